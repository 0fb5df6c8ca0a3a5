/* SPDX-License-Identifier: Apache-2.0 */
/* sampled diff BEFORE AFTER [-o OUT] */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "daemon/commands.h"
#include "daemon/diff_print.h"
#include "daemon/error.h"
#include "daemon/filters.h"
#include "daemon/help.h"
#include "daemon/load.h"
#include "daemon/options.h"
#include "daemon/output.h"
#include "daemon/parse.h"
#include "daemon/terminal.h"
#include "exporters/difference.h"

enum { OPT_SORT = 256, OPT_LIMIT, OPT_JSON, OPT_FAIL_ABOVE, OPT_VERSION };

static const struct option long_options[] = {
	{"format", required_argument, NULL, 'f'},
	{"output", required_argument, NULL, 'o'},
	{"sort", required_argument, NULL, OPT_SORT},
	{"limit", required_argument, NULL, OPT_LIMIT},
	{"json", no_argument, NULL, OPT_JSON},
	{"fail-above", required_argument, NULL, OPT_FAIL_ABOVE},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, 'h'},
	FILTER_OPTIONS,
	{NULL, 0, NULL, 0},
};

struct diff {
	struct filters filters;
	const char *format_name, *output;
	const struct format *format;
	enum difference_key key;
	uint64_t limit;
	double fail_above; /* points; below 0: not asked for */
	bool json, limited, help, version;

	char **paths;
	struct loaded sides[SIDES];
	bool is_graph; /* both are, or were reduced to, call graphs */
	struct facts facts[SIDES];
	struct difference difference;
};

static int read_sort(struct diff *c, const char *text, struct fault *fault)
{
	static const char *const names[] = {
		[DIFFERENCE_SELF] = "self", [DIFFERENCE_TOTAL] = "total", [DIFFERENCE_NAME] = "name"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0) {
			c->key = (enum difference_key)i;
			return 0;
		}
	return fault_set(fault, -EINVAL, "self, total or name", "--sort %s: no such order", text);
}

static int read_fail_above(struct diff *c, const char *text, struct fault *fault)
{
	char *end;

	c->fail_above = strtod(text, &end);
	if (end == text || *end != '\0' || !isfinite(c->fail_above) || c->fail_above < 0 || c->fail_above > 100)
		return fault_set(fault, -EINVAL, "0 to 100", "--fail-above %s: not a percentage", text);
	return 0;
}

static int read_option(struct diff *c, int letter, struct fault *fault)
{
	switch (letter) {
	case 'f':
		c->format_name = optarg;
		return 0;
	case 'o':
		c->output = optarg;
		return 0;
	case OPT_SORT:
		return read_sort(c, optarg, fault);
	case OPT_LIMIT:
		c->limited = true;
		if (parse_u64(optarg, &c->limit) || c->limit > UINT32_MAX)
			return fault_set(fault, -EINVAL, "a number of functions; 0: all", "--limit %s: not a number",
			                 optarg);
		return 0;
	case OPT_JSON:
		c->json = true;
		return 0;
	case OPT_FAIL_ABOVE:
		return read_fail_above(c, optarg, fault);
	case OPT_VERSION:
		c->version = true;
		return 0;
	case 'h':
		c->help = true;
		return 0;
	case FILTER_LINE_LEVEL:
		return fault_set(fault, -EINVAL, "lines move from one version to the next",
		                 "--line-level: diff goes by function");
	default:
		return filters_take(&c->filters, letter, optarg, fault);
	}
}

static int check(struct diff *c, int operands, struct fault *fault)
{
	int err = 0;

	if (operands != 2)
		return fault_set(fault, -EINVAL, "sampled diff BEFORE AFTER", "diff: %s",
		                 operands < 2 ? "two inputs are needed" : "more than two inputs");
	if (strcmp(c->paths[BEFORE], "-") == 0 && strcmp(c->paths[AFTER], "-") == 0)
		return fault_set(fault, -EINVAL, "", "diff: standard input cannot be both");
	if (c->output && c->json)
		return fault_set(fault, -EINVAL, "--json goes to standard output", "--json and -o: one of them");
	if (c->format_name && !c->output)
		return fault_set(fault, -EINVAL, "give -o as well", "-f %s: no output named", c->format_name);
	if (c->format_name)
		err = output_find_format(c->format_name, &c->format, fault);
	else if (c->output)
		err = output_guess_format(c->output, &c->format, fault);
	if (!err && c->format && !c->format->compares)
		return fault_set(fault, -EINVAL, "flamegraph and svg do",
		                 "diff: the format %s cannot show two profiles", c->format->name);
	return err;
}

/* --- comparing --- */

/* What cannot be compared as stacks is compared as functions. */
static int reduce(struct diff *c)
{
	int err = 0;

	c->is_graph = !c->sides[BEFORE].profile || !c->sides[AFTER].profile;
	for (int side = 0; side < SIDES && c->is_graph && !err; side++)
		if (c->sides[side].profile)
			err = callgraph_add_profile(&c->sides[side].graph, c->sides[side].profile);
	return err;
}

static int compare(struct diff *c)
{
	enum value_index by;
	int err = reduce(c);

	for (int side = 0; side < SIDES; side++)
		if (c->sides[side].profile)
			facts_make(&c->facts[side], c->sides[side].profile);
	if (c->is_graph) {
		for (int side = 0; side < SIDES && !err; side++)
			err = difference_add_callgraph(&c->difference, (enum side)side, &c->sides[side].graph);
	} else {
		by = difference_value(c->sides[BEFORE].profile, c->sides[AFTER].profile);
		for (int side = 0; side < SIDES && !err; side++)
			err = difference_add_profile(&c->difference, (enum side)side, c->sides[side].profile, by);
	}
	if (!err) {
		difference_finish(&c->difference);
		difference_sort(&c->difference, c->key);
	}
	return err;
}

/* --- writing --- */

static const struct facts *facts_of(const struct diff *c, enum side side)
{
	return c->sides[side].profile ? &c->facts[side] : NULL;
}

static void write_words(const struct diff *c, struct writer *to)
{
	struct diff_view view = {
		.difference = &c->difference,
		.key = c->key,
		.limit = c->limited ? (uint32_t)c->limit
	                 : c->json  ? 0
	                            : 20,
		.color = terminal_color(STDOUT_FILENO),
		.titles = {[BEFORE] = c->paths[BEFORE], [AFTER] = c->paths[AFTER]},
		.facts = {[BEFORE] = facts_of(c, BEFORE), [AFTER] = facts_of(c, AFTER)},
	};

	if (c->json)
		diff_print_json(&view, to);
	else
		diff_print_table(&view, to);
}

static int write_picture(const struct diff *c, struct writer *to)
{
	struct comparison comparison = {
		.titles = {[BEFORE] = c->paths[BEFORE], [AFTER] = c->paths[AFTER]},
		.facts = {[BEFORE] = facts_of(c, BEFORE), [AFTER] = facts_of(c, AFTER)},
		.difference = &c->difference,
	};
	struct export_options options = {.comparison = &comparison};
	struct profile *joined;
	int err = difference_join(&joined, &comparison, c->sides[BEFORE].profile, c->sides[AFTER].profile);

	if (err) {
		to->err = to->err ? to->err : err;
		return err;
	}
	err = format_write(c->format, joined, &options, to);
	profile_free(joined);
	return err;
}

static int write_output(const struct diff *c)
{
	bool is_stdout = !c->output || strcmp(c->output, "-") == 0;
	struct writer *to = malloc(sizeof(*to));
	struct fault fault = {0};
	int err = 0;

	if (!to) {
		error_note("cannot write: out of memory");
		return EXIT_FAILED;
	}
	if (is_stdout)
		writer_open_fd(to, STDOUT_FILENO);
	else
		err = writer_open(to, c->output, &fault);
	if (!err) {
		if (c->output)
			write_picture(c, to);
		else
			write_words(c, to);
		err = writer_close(to, &fault);
	}
	free(to);
	if (err)
		error_fault(&fault, "cannot write %s", is_stdout ? "standard output" : c->output);
	else if (!is_stdout && (err = terminal_print(c->output)) == 0)
		err = terminal_print("\n");
	return err ? EXIT_FAILED : EXIT_DONE;
}

/* Whether a function's share grew by more than is allowed, beyond the noise. By the share that the order is of: self, unless it is total. */
static bool is_above(const struct diff *c)
{
	const struct difference *d = &c->difference;
	const struct difference_row *worst = NULL;
	struct buf name = {0};
	uint32_t count = 0;

	for (uint32_t i = 0; i < d->row_count; i++) {
		const struct change *change = difference_change(&d->rows[i], c->key);

		if (!change->is_certain || change->points <= c->fail_above)
			continue;
		if (!worst || change->points > difference_change(worst, c->key)->points)
			worst = &d->rows[i];
		count++;
	}
	if (!worst)
		return false;
	utf8_fit(&name, difference_name(d, worst), 60, false);
	error_note("%s: its share of %s time grew by %.2f points (--fail-above %g: %u function%s did)", buf_text(&name),
	           c->key == DIFFERENCE_TOTAL ? "total" : "self", difference_change(worst, c->key)->points,
	           c->fail_above, count, count == 1 ? "" : "s");
	buf_release(&name);
	return true;
}

static int diff(struct diff *c)
{
	int status = load_all(&c->sides[BEFORE], &c->paths[BEFORE], 1, &c->filters, false), err;

	if (status != EXIT_DONE)
		return status;
	status = load_all(&c->sides[AFTER], &c->paths[AFTER], 1, &c->filters, false);
	if (status != EXIT_DONE)
		goto out_before;
	err = compare(c);
	if (err) {
		error_note("cannot compare: %s", strerror(-err));
		status = EXIT_FAILED;
	} else if (c->output && c->is_graph) {
		error_note("cannot draw a flame graph: %s files hold function totals, no stacks (without -o there is a "
		           "table)",
		           c->sides[c->sides[BEFORE].profile ? AFTER : BEFORE].format->name);
		status = EXIT_USAGE;
	} else {
		status = write_output(c);
		if (status == EXIT_DONE && c->fail_above >= 0 && is_above(c))
			status = EXIT_ABOVE;
	}
	loaded_release(&c->sides[AFTER]);
out_before:
	loaded_release(&c->sides[BEFORE]);
	return status;
}

int diff_main(int argc, char **argv)
{
	struct diff *c = calloc(1, sizeof(*c));
	struct fault fault;
	int letter, err = 0, status;

	if (!c) {
		error_note("out of memory");
		return EXIT_FAILED;
	}
	c->fail_above = -1;
	difference_init(&c->difference);
	opterr = 0;
	optind = 0;
	while (!err && (letter = options_next(argc, argv, ":f:o:h", long_options, NULL, &fault)) != -1)
		err = letter < 0 ? letter : read_option(c, letter, &fault);
	c->paths = argv + optind;
	if (!err && !c->help && !c->version) {
		err = filters_check(&c->filters, &fault);
		if (!err)
			err = check(c, argc - optind, &fault);
	}
	if (err)
		status = error_usage(&fault);
	else if (c->help || c->version)
		status = c->help ? help_print(argv[0]) : help_print_version();
	else
		status = diff(c);
	filters_release(&c->filters);
	difference_release(&c->difference);
	free(c);
	return status;
}
