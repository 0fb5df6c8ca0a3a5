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
#include "daemon/load.h"
#include "daemon/option_table.h"
#include "daemon/option_values.h"
#include "daemon/output.h"
#include "daemon/parse.h"
#include "daemon/result.h"
#include "daemon/terminal.h"

struct convert {
	struct filters filters;
	struct export_options options;
	const char *format_name, *output;
	const struct format *format;
	bool svg;
};

static int read_history(void *interval_ns, const char *option, const char *text, struct fault *fault)
{
	if (parse_duration(text, interval_ns))
		return fault_set(fault, -EINVAL, "the time of one entry, such as 1, 500ms or 1m", "%s %s: not a time",
		                 option, text);
	return 0;
}

static int check_svg(const struct convert *c, struct fault *fault)
{
	const char *dot = strrchr(c->output, '.');

	if (strcmp(c->format->name, "pstats") != 0)
		return fault_set(fault, -EINVAL, "-f dot -o NAME.svg writes the call graph alone",
		                 "--svg: goes with -f pstats");
	if (writer_is_stream(c->output))
		return fault_set(fault, -EINVAL, "name the pstats file with -o",
		                 "--svg: there is no place beside %s",
		                 writer_is_stdout(c->output) ? "standard output" : "a stream");
	if (dot && strcmp(dot, ".svg") == 0)
		return fault_set(fault, -EINVAL, "give the pstats file another name",
		                 "-o %s: the call graph of --svg would have this name", c->output);
	return 0;
}

static int check(void *self, char **inputs, int count, struct fault *fault)
{
	struct convert *c = self;
	char hint[256];
	int err;

	if (count == 0)
		return fault_set(fault, -EINVAL, "sampled convert IN... -o OUT", "convert: no input named");
	if (!c->output)
		return fault_set(fault, -EINVAL, "-o FILE, or -o - for standard output", "convert: no output named");
	err = output_choose_format(c->format_name, c->output, &c->format, fault);
	if (!err && !c->format_name && !writer_is_stream(c->output) && !format_by_suffix(c->output)) {
		snprintf(hint, sizeof(hint), "give -f; formats: %s", format_names());
		return fault_set(fault, -EINVAL, hint, "-o %s: its name tells no format", c->output);
	}
	if (!err)
		err = output_check_inputs(c->output, inputs, count, fault);
	if (!err && c->svg)
		err = check_svg(c, fault);
	if (!err && c->filters.value && c->format->needs == NEEDS_RUNS)
		return fault_set(fault, -EINVAL, "", "--value: %s shows when things were, and not how much of a value",
		                 c->format->name);
	if (!err && c->options.history_interval_ns && strcmp(c->format->name, "dask") != 0)
		return fault_set(fault, -EINVAL, "-f dask", "--history: %s has none", c->format->name);
	return err;
}

struct conversion {
	const struct convert *how;
	const struct loaded *loaded;
	bool svg; /* through Graphviz */
};

/* A call graph goes into formats that hold no more. */
static int write_loaded(const void *of, struct writer *to, struct fault *fault)
{
	const struct conversion *conversion = of;
	const struct convert *c = conversion->how;
	const struct loaded *loaded = conversion->loaded;

	if (conversion->svg)
		return loaded->profile ? graphviz_write_profile(loaded->profile, &c->options, to, fault)
		                       : graphviz_write(&loaded->graph, &c->options, to, fault);
	if (loaded->profile)
		return format_write(c->format, loaded->profile, &c->options, to);
	return c->format->write_callgraph(&loaded->graph, &c->options, to);
}

static int write_output(const struct convert *c, const struct loaded *loaded, const char *path, bool svg)
{
	return result_write(path, write_loaded, &(struct conversion){.how = c, .loaded = loaded, .svg = svg});
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

static int convert(void *self, char **inputs, int count)
{
	struct convert *c = self;
	struct loaded loaded;
	enum format_needs needs;
	int status;

	assert(c->format); /* check() */
	if (writer_is_stdout(c->output) && isatty(STDOUT_FILENO)) {
		c->options.color = terminal_color(STDOUT_FILENO);
		c->options.columns = terminal_columns(STDOUT_FILENO);
	}
	needs = c->options.history_interval_ns ? NEEDS_RUNS : c->format->needs;
	status = load_all(&loaded, inputs, count, &c->filters, needs);
	if (status != EXIT_DONE)
		return status;
	if (loaded.is_empty) {
		status = EXIT_FAILED;
	} else if (!loaded.profile && !c->format->write_callgraph) {
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
	const struct option_row rows[] = {
		{"format", 'f', .text = &c.format_name},
		{"output", 'o', .text = &c.output},
		{"svg", .yes = &c.svg},
		{"collapsed-style", .read = option_read_style, .into = &c.options.collapsed_style},
		{"history", .read = read_history, .into = &c.options.history_interval_ns},
		{.name = NULL},
	};
	const struct file_command command = {
		.self = &c, .rows = rows, .filters = &c.filters, .check = check, .run = convert};
	int status = command_with_files(argc, argv, &command);

	filters_release(&c.filters);
	return status;
}
