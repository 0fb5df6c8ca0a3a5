/* SPDX-License-Identifier: Apache-2.0 */
/* sampled diff BEFORE AFTER [-o OUT] */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "daemon/commands.h"
#include "daemon/diff_print.h"
#include "daemon/error.h"
#include "daemon/filters.h"
#include "daemon/load.h"
#include "daemon/option_table.h"
#include "daemon/option_values.h"
#include "daemon/output.h"
#include "daemon/parse.h"
#include "daemon/result.h"
#include "daemon/terminal.h"
#include "exporters/difference.h"
#include "exporters/native.h"

struct diff {
	struct filters filters;
	const char *format_name, *output;
	const struct format *format;
	enum difference_key key;
	uint64_t limit;    /* UINT64_MAX: not asked for */
	double fail_above; /* points; below 0: not asked for */
	bool json;

	char **paths;
	struct loaded sides[SIDES];
	bool is_graph; /* both are, or were reduced to, call graphs */
	struct facts facts[SIDES];
	struct difference difference, waiting;
	bool has_waiting;
};

static int read_sort(void *key, const char *option, const char *text, struct fault *fault)
{
	static const char *const names[] = {
		[DIFFERENCE_SELF] = "self", [DIFFERENCE_TOTAL] = "total", [DIFFERENCE_NAME] = "name"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0) {
			*(enum difference_key *)key = (enum difference_key)i;
			return 0;
		}
	return fault_set(fault, -EINVAL, "self, total or name", "%s %s: no such order", option, text);
}

static int read_limit(void *limit, const char *option, const char *text, struct fault *fault)
{
	uint64_t value;

	if (parse_u64(text, &value) || value > UINT32_MAX)
		return fault_set(fault, -EINVAL, "a number of functions; 0: all", "%s %s: not a number", option, text);
	*(uint64_t *)limit = value;
	return 0;
}

static int check(void *self, char **paths, int count, struct fault *fault)
{
	struct diff *c = self;
	int err = 0;

	c->paths = paths;
	if (count != 2)
		return fault_set(fault, -EINVAL, "sampled diff BEFORE AFTER", "diff: %s",
		                 count < 2 ? "two inputs are needed" : "more than two inputs");
	if (strcmp(c->paths[BEFORE], "-") == 0 && strcmp(c->paths[AFTER], "-") == 0)
		return fault_set(fault, -EINVAL, "", "diff: standard input cannot be both");
	if (c->output && c->json)
		return fault_set(fault, -EINVAL, "--json goes to standard output", "--json and -o: one of them");
	if (c->format_name && !c->output)
		return fault_set(fault, -EINVAL, "give -o as well", "-f %s: no output named", c->format_name);
	if (c->output)
		err = output_choose_format(c->format_name, c->output, &c->format, fault);
	if (!err && c->output)
		err = output_check_inputs(c->output, paths, count, fault);
	if (!err && c->format && !c->format->compares)
		return fault_set(fault, -EINVAL, "flamegraph and svg do",
		                 "diff: the format %s cannot show two profiles", c->format->name);
	return err;
}

/* --- comparing --- */

static const char *unit_of(const struct loaded *side)
{
	return side->profile ? callgraph_unit_of(side->profile) : side->graph.unit;
}

/* Shares of counts and of seconds say nothing of one another, and the names of one side would seem new, or gone. */
static bool has_one_unit(const struct diff *c)
{
	const struct loaded *before = &c->sides[BEFORE], *after = &c->sides[AFTER];
	bool one = strcmp(unit_of(before), unit_of(after)) == 0;

	if (!one)
		error_note("cannot compare %s with %s: the first counts %.60s, the second %.60s%s", c->paths[BEFORE],
		           c->paths[AFTER], unit_of(before), unit_of(after),
		           before->profile && after->profile ? " (--value NAME takes a value that both have, such as samples)" : "");
	return one;
}

/* Places in mappings are compared by name, as all else. */
static int show_native(struct profile **profile)
{
	struct profile *shown;
	int err = *profile && native_needs_showing(*profile) ? native_show(*profile, &shown) : 1;

	if (err)
		return err < 0 ? err : 0;
	profile_free(*profile);
	*profile = shown;
	return 0;
}

/* What cannot be compared as stacks is compared as functions. */
static int reduce(struct diff *c)
{
	int err = 0;

	for (int side = 0; side < SIDES && !err; side++)
		err = show_native(&c->sides[side].profile);
	if (err)
		return err;
	c->is_graph = !c->sides[BEFORE].profile || !c->sides[AFTER].profile;
	for (int side = 0; side < SIDES && c->is_graph && !err; side++)
		if (c->sides[side].profile)
			err = callgraph_add_profile(&c->sides[side].graph, c->sides[side].profile);
	return err;
}

static int compare_profiles(const struct diff *c, struct difference *d)
{
	int err = 0;

	for (int side = 0; side < SIDES && !err; side++)
		err = difference_add_profile(d, (enum side)side, c->sides[side].profile);
	return err;
}

/* By CPU time, and what that leaves out by itself; whoever names a value is given that. */
static int compare_stacks(struct diff *c)
{
	const struct profile *before = c->sides[BEFORE].profile, *after = c->sides[AFTER].profile;
	int err;

	c->difference.ranking = difference_ranking(before, after, c->filters.value != NULL);
	err = compare_profiles(c, &c->difference);
	c->has_waiting = ranking_is_part(&c->difference.ranking) && profile_has(before, VALUE_IDLE) &&
	                 profile_has(after, VALUE_IDLE);
	if (err || !c->has_waiting)
		return err;
	c->waiting.ranking = c->difference.ranking;
	c->waiting.waiting = true;
	err = compare_profiles(c, &c->waiting);
	if (!err)
		err = difference_finish(&c->waiting);
	if (!err)
		difference_sort(&c->waiting, c->key);
	return err;
}

static int compare(struct diff *c)
{
	int err = reduce(c);

	for (int side = 0; side < SIDES; side++)
		if (c->sides[side].profile)
			facts_make(&c->facts[side], c->sides[side].profile);
	if (!err && !c->is_graph)
		err = compare_stacks(c);
	for (int side = 0; side < SIDES && c->is_graph && !err; side++)
		err = difference_add_callgraph(&c->difference, (enum side)side, &c->sides[side].graph);
	if (!err)
		err = difference_finish(&c->difference);
	if (!err)
		difference_sort(&c->difference, c->key);
	return err;
}

/* --- writing --- */

static const struct facts *facts_of(const struct diff *c, enum side side)
{
	return c->sides[side].profile ? &c->facts[side] : NULL;
}

static int write_words(const void *of, struct writer *to, struct fault *fault)
{
	const struct diff *c = of;
	struct diff_view view = {
		.columns = isatty(STDOUT_FILENO) ? terminal_columns(STDOUT_FILENO) : 0,
		.difference = &c->difference,
		.waiting = c->has_waiting ? &c->waiting : NULL,
		.key = c->key,
		.limit = c->limit != UINT64_MAX ? (uint32_t)c->limit
	                 : c->json              ? 0
	                                        : 20,
		.color = terminal_color(STDOUT_FILENO),
		.titles = {[BEFORE] = c->paths[BEFORE], [AFTER] = c->paths[AFTER]},
		.facts = {[BEFORE] = facts_of(c, BEFORE), [AFTER] = facts_of(c, AFTER)},
	};

	(void)fault;
	if (c->json)
		diff_print_json(&view, to);
	else
		diff_print_table(&view, to);
	return 0;
}

static int write_picture(const void *of, struct writer *to, struct fault *fault)
{
	const struct diff *c = of;
	struct comparison comparison = {
		.titles = {[BEFORE] = c->paths[BEFORE], [AFTER] = c->paths[AFTER]},
		.facts = {[BEFORE] = facts_of(c, BEFORE), [AFTER] = facts_of(c, AFTER)},
		.difference = &c->difference,
	};
	struct export_options options = {.comparison = &comparison};
	struct profile *joined;
	int err = difference_join(&joined, &comparison, c->sides[BEFORE].profile, c->sides[AFTER].profile);

	(void)fault;
	if (err)
		return err;
	err = format_write(c->format, joined, &options, to);
	profile_free(joined);
	return err;
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
	error_note("%s: its share of %s %stime grew by %.2f points (--fail-above %g: %u function%s did)", buf_text(&name),
	           c->key == DIFFERENCE_TOTAL ? "total" : "self",
	           d->ranking.by == VALUE_CPU ? "CPU " : d->ranking.less_idle ? "running " : "", difference_change(worst, c->key)->points,
	           c->fail_above, count, count == 1 ? "" : "s");
	buf_release(&name);
	return true;
}

static int diff(void *self, char **paths, int count)
{
	struct diff *c = self;
	int status = load_all(&c->sides[BEFORE], &paths[BEFORE], 1, &c->filters, NEEDS_PROFILE), err;

	(void)count; /* two: check() */
	if (status != EXIT_DONE)
		return status;
	status = load_all(&c->sides[AFTER], &paths[AFTER], 1, &c->filters, NEEDS_PROFILE);
	if (status != EXIT_DONE)
		goto out_before;
	/* What one side lacks, the other has gained or lost. */
	if (c->sides[BEFORE].is_empty && c->sides[AFTER].is_empty) {
		status = EXIT_FAILED;
		goto out_after;
	}
	if (!has_one_unit(c)) {
		status = EXIT_USAGE;
		goto out_after;
	}
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
		status = result_write(c->output, c->output ? write_picture : write_words, c);
		if (status == EXIT_DONE && c->fail_above >= 0 && is_above(c))
			status = EXIT_ABOVE;
	}
out_after:
	loaded_release(&c->sides[AFTER]);
out_before:
	loaded_release(&c->sides[BEFORE]);
	return status;
}

int diff_main(int argc, char **argv)
{
	struct diff c = {.limit = UINT64_MAX, .fail_above = -1};
	const struct option_row rows[] = {
		{"format", 'f', .text = &c.format_name},
		{"output", 'o', .text = &c.output},
		{"json", .yes = &c.json},
		{"sort", .read = read_sort, .into = &c.key},
		{"limit", .read = read_limit, .into = &c.limit},
		{"fail-above", .read = option_read_percent, .into = &c.fail_above},
		{"line-level", .refused = "diff goes by function", .hint = "lines move from one version to the next"},
		{.name = NULL},
	};
	const struct file_command command = {
		.self = &c, .rows = rows, .filters = &c.filters, .check = check, .run = diff};
	int status;

	difference_init(&c.difference);
	difference_init(&c.waiting);
	status = command_with_files(argc, argv, &command);
	filters_release(&c.filters);
	difference_release(&c.difference);
	difference_release(&c.waiting);
	return status;
}
