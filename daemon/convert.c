/* SPDX-License-Identifier: Apache-2.0 */
/* sampled convert IN... -o OUT */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/commands.h"
#include "daemon/error.h"
#include "daemon/filters.h"
#include "daemon/graphviz.h"
#include "daemon/help.h"
#include "daemon/load.h"
#include "daemon/options.h"
#include "daemon/output.h"
#include "daemon/parse.h"
#include "daemon/terminal.h"

enum { OPT_COLLAPSED_STYLE = 256, OPT_SVG, OPT_HISTORY, OPT_VERSION };

static const struct option long_options[] = {
	{"format", required_argument, NULL, 'f'},
	{"output", required_argument, NULL, 'o'},
	{"collapsed-style", required_argument, NULL, OPT_COLLAPSED_STYLE},
	{"svg", no_argument, NULL, OPT_SVG},
	{"history", required_argument, NULL, OPT_HISTORY},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, 'h'},
	FILTER_OPTIONS,
	{NULL, 0, NULL, 0},
};

struct convert {
	struct filters filters;
	struct export_options options;
	const char *format_name, *output;
	const struct format *format;
	bool svg, help, version;
};

static int read_option(struct convert *c, int letter, struct fault *fault)
{
	switch (letter) {
	case 'f':
		c->format_name = optarg;
		return 0;
	case 'o':
		c->output = optarg;
		return 0;
	case 'h':
		c->help = true;
		return 0;
	case OPT_VERSION:
		c->version = true;
		return 0;
	case OPT_SVG:
		c->svg = true;
		return 0;
	case OPT_COLLAPSED_STYLE:
		return options_read_style(&c->options.collapsed_style, optarg, fault);
	case OPT_HISTORY:
		if (parse_duration(optarg, &c->options.history_interval_ns))
			return fault_set(fault, -EINVAL, "the time of one entry, such as 1, 500ms or 1m",
			                 "--history %s: not a time", optarg);
		return 0;
	default:
		return filters_take(&c->filters, letter, optarg, fault);
	}
}

static int check_svg(const struct convert *c, struct fault *fault)
{
	const char *dot = strrchr(c->output, '.');

	if (strcmp(c->format->name, "pstats") != 0)
		return fault_set(fault, -EINVAL, "-f dot -o NAME.svg writes the call graph alone",
		                 "--svg: goes with -f pstats");
	if (strcmp(c->output, "-") == 0)
		return fault_set(fault, -EINVAL, "name the pstats file with -o",
		                 "--svg: there is no place beside standard output");
	if (dot && strcmp(dot, ".svg") == 0)
		return fault_set(fault, -EINVAL, "give the pstats file another name",
		                 "-o %s: the call graph of --svg would have this name", c->output);
	return 0;
}

static int check(struct convert *c, int operands, struct fault *fault)
{
	int err;

	if (operands == 0)
		return fault_set(fault, -EINVAL, "sampled convert IN... -o OUT", "convert: no input named");
	if (!c->output)
		return fault_set(fault, -EINVAL, "-o FILE, or -o - for standard output", "convert: no output named");
	err = c->format_name ? output_find_format(c->format_name, &c->format, fault)
	                     : output_guess_format(c->output, &c->format, fault);
	if (!err && c->svg)
		err = check_svg(c, fault);
	if (!err && c->options.history_interval_ns && strcmp(c->format->name, "dask") != 0)
		return fault_set(fault, -EINVAL, "-f dask", "--history: %s has none", c->format->name);
	return err;
}

/* A call graph goes into formats that hold no more. */
static int write_loaded(const struct convert *c, const struct loaded *loaded, bool svg, struct writer *to,
                        struct fault *fault)
{
	if (svg)
		return loaded->profile ? graphviz_write_profile(loaded->profile, &c->options, to, fault)
		                       : graphviz_write(&loaded->graph, &c->options, to, fault);
	if (loaded->profile)
		return format_write(c->format, loaded->profile, &c->options, to);
	return c->format->write_callgraph(&loaded->graph, &c->options, to);
}

static int write_output(const struct convert *c, const struct loaded *loaded, const char *path, bool svg)
{
	bool is_stdout = strcmp(path, "-") == 0;
	struct writer *to = malloc(sizeof(*to));
	struct fault fault = {0};
	int err;

	if (!to) {
		error_note("cannot write %s: out of memory", path);
		return EXIT_FAILED;
	}
	if (is_stdout)
		writer_open_fd(to, STDOUT_FILENO);
	err = is_stdout ? 0 : writer_open(to, path, &fault);
	if (!err) {
		err = write_loaded(c, loaded, svg, to, &fault);
		/* The exporter's error sticks in the writer, except one of its own. */
		if (err && !to->err) {
			if (!fault.err)
				fault_set(&fault, err, "", "%s", strerror(-err));
			writer_abort(to);
		} else {
			err = writer_close(to, &fault);
		}
	}
	free(to);
	if (err)
		error_fault(&fault, "cannot write %s", is_stdout ? "standard output" : path);
	else if (!is_stdout && (err = terminal_print(path)) == 0)
		err = terminal_print("\n");
	return err ? EXIT_FAILED : EXIT_DONE;
}

/* The call graph beside a pstats file, named as that is. */
static int write_svg(const struct convert *c, const struct loaded *loaded)
{
	const char *slash = strrchr(c->output, '/'), *dot = strrchr(c->output, '.');
	int stem_bytes = (int)(dot && dot > c->output && (!slash || dot > slash + 1) ? (size_t)(dot - c->output)
	                                                                             : strlen(c->output));
	int status;
	char *path;

	if (asprintf(&path, "%.*s.svg", stem_bytes, c->output) < 0) {
		error_note("cannot write the call graph: out of memory");
		return EXIT_FAILED;
	}
	status = write_output(c, loaded, path, true);
	free(path);
	return status;
}

static int convert(struct convert *c, char **inputs, int count)
{
	struct loaded loaded;
	bool runs;
	int status;

	assert(c->format); /* check() */
	runs = c->format->needs == NEEDS_RUNS || c->options.history_interval_ns;
	status = load_all(&loaded, inputs, count, &c->filters, runs);
	if (status != EXIT_DONE)
		return status;
	if (!loaded.profile && !c->format->write_callgraph) {
		error_note("cannot convert to %s: %s files hold function totals, no stacks (pstats, callgrind and dot "
		           "can be written from them)",
		           c->format->name, loaded.format->name);
		status = EXIT_USAGE;
	} else {
		status = write_output(c, &loaded, c->output, graphviz_is_meant(c->format, c->output));
		if (status == EXIT_DONE && c->svg)
			status = write_svg(c, &loaded);
	}
	loaded_release(&loaded);
	return status;
}

int convert_main(int argc, char **argv)
{
	struct convert c = {0};
	struct fault fault;
	int letter, err = 0, status;

	opterr = 0;
	optind = 0;
	while (!err && (letter = options_next(argc, argv, ":f:o:h", long_options, NULL, &fault)) != -1)
		err = letter < 0 ? letter : read_option(&c, letter, &fault);
	if (!err && !c.help && !c.version) {
		err = filters_check(&c.filters, &fault);
		if (!err)
			err = check(&c, argc - optind, &fault);
	}
	if (err)
		status = error_usage(&fault);
	else if (c.help || c.version)
		status = c.help ? help_print(argv[0]) : help_print_version();
	else
		status = convert(&c, argv + optind, argc - optind);
	filters_release(&c.filters);
	return status;
}
