/* SPDX-License-Identifier: Apache-2.0 */
/* sampled report FILE... */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/browse.h"
#include "daemon/commands.h"
#include "daemon/error.h"
#include "daemon/filters.h"
#include "daemon/option_table.h"
#include "daemon/result.h"
#include "daemon/statistics.h"
#include "daemon/terminal.h"
#include "exporters/stats_limit.h"
#include "exporters/stats_sort.h"
#include "exporters/stats_tables.h"

enum { LIMITS_MAX = 32 };

struct report {
	struct filters filters;
	struct stats_order order;
	struct stats_limit limits[LIMITS_MAX];
	size_t limit_count;
	bool callers, callees, reverse, json, csv, interactive;
	bool strip_dirs; /* of trees and call graphs alike; the filters have it for trees only */
};

static int read_keys(void *order, const char *option, const char *text, struct fault *fault)
{
	for (;;) {
		size_t bytes = strcspn(text, ",");
		int err = stats_order_add(order, text, bytes);

		if (err == -E2BIG)
			return fault_set(fault, -EINVAL, "", "%s: more than %d keys", option, STATS_KEYS_MAX);
		if (err == -ENOTUNIQ)
			return fault_set(fault, -EINVAL, "a letter more, or the whole word, tells them apart",
			                 "%s %.*s: more than one key begins so", option, (int)bytes, text);
		if (err)
			return fault_set(fault, -EINVAL,
			                 "calls cumulative filename line name nfl pcalls stdname time on_cpu gil, and "
			                 "more: sampled report --help",
			                 "%s %.*s: no such key", option, (int)(bytes > 64 ? 64 : bytes), text);
		if (text[bytes] == '\0')
			return 0;
		text += bytes + 1;
	}
}

static int read_limit(void *report, const char *option, const char *text, struct fault *fault)
{
	struct report *r = report;
	int err;

	if (r->limit_count == LIMITS_MAX)
		return fault_set(fault, -EINVAL, "", "%s: given more than %d times", option, LIMITS_MAX);
	err = stats_limit_read(&r->limits[r->limit_count++], text);
	if (err == -ERANGE)
		return fault_set(fault, -EINVAL, "0.0 to 1.0; a whole number is a count", "%s %s: not a fraction",
		                 option, text);
	if (err == -EINVAL)
		return fault_set(fault, -EINVAL, "an extended regular expression, a count, or a fraction",
		                 "%s %s: not a regular expression", option, text);
	return err ? fault_set(fault, err, "", "%s", strerror(-err)) : 0;
}

/* STATS_CALLERS, STATS_CALLEES */
static unsigned calls_of(const struct report *r)
{
	return (r->callers ? STATS_CALLERS : 0u) | (r->callees ? STATS_CALLEES : 0u);
}

static int check(void *self, char **files, int count, struct fault *fault)
{
	const struct report *r = self;

	if (count == 0 && !r->interactive)
		return fault_set(fault, -EINVAL, "sampled report FILE...", "report: no file named");
	if (r->json && r->csv)
		return fault_set(fault, -EINVAL, "", "--json and --csv: one of them");
	if (r->csv && r->callers && r->callees)
		return fault_set(fault, -EINVAL, "each by itself, or --json",
		                 "--csv is one table: --callers and --callees are two");
	if (r->interactive && (r->json || r->csv || calls_of(r) || r->limit_count || r->order.count || r->reverse))
		return fault_set(fault, -EINVAL, "sort, reverse, stats, callers and callees are commands there",
		                 "--interactive: takes no tables' options");
	for (int i = 0; i < count && r->interactive; i++)
		if (strcmp(files[i], "-") == 0)
			return fault_set(fault, -EINVAL, "name a file",
			                 "--interactive: standard input is for commands");
	return 0;
}

/* By time on the CPU, unless told otherwise, where the kernel told it: by internal time who sleeps would win. */
static int sort(struct report *r, struct statistics *s)
{
	bool on_cpu = false, gil = false;
	int err;

	if (r->order.count == 0) {
		if (s->has_on_cpu)
			stats_order_add(&r->order, "on_cpu", strlen("on_cpu"));
		stats_order_add(&r->order, "tottime", strlen("tottime"));
	}
	for (size_t i = 0; i < r->order.count; i++) {
		on_cpu |= r->order.keys[i] == STATS_ON_CPU;
		gil |= r->order.keys[i] == STATS_GIL;
	}
	if ((on_cpu && !s->has_on_cpu) || (gil && !s->has_gil)) {
		error_note("--sort %s: the profile does not hold it (profiles that sampled wrote as trees do)",
		           on_cpu && !s->has_on_cpu ? "on_cpu" : "gil");
		return EXIT_USAGE;
	}
	err = stats_sort(&s->stats, &r->order);
	if (err) {
		error_note("cannot report: %s", strerror(-err));
		return EXIT_FAILED;
	}
	if (r->reverse)
		stats_reverse(&s->stats);
	/* For tables the columns of those keys only; programs get all there is. */
	s->has_on_cpu &= on_cpu || r->json || r->csv;
	s->has_gil &= gil || r->json || r->csv;
	return EXIT_DONE;
}

struct printing {
	const struct report *how;
	struct stats_view view;
};

static int print(const void *of, struct writer *to, struct fault *fault)
{
	const struct printing *printing = of;
	const struct report *r = printing->how;
	const struct stats_view *view = &printing->view;
	int err = 0;

	(void)fault;
	if (r->json)
		return stats_write_json(view, calls_of(r), to);
	if (r->csv)
		return stats_write_csv(view, calls_of(r), to);
	if (!r->callers && !r->callees)
		return stats_print(view, to);
	if (r->callers)
		err = stats_print_calls(view, true, to);
	if (!err && r->callees)
		err = stats_print_calls(view, false, to);
	return err;
}

static int print_all(struct report *r, char *const *files, int count)
{
	struct statistics s;
	int status = statistics_read(&s, files, count, &r->filters, r->strip_dirs);

	if (status != EXIT_DONE)
		return status;
	status = sort(r, &s);
	if (status == EXIT_DONE) {
		struct printing printing = {.how = r,
		                            .view = {.stats = &s.stats,
		                                     .limits = r->limits,
		                                     .limit_count = r->limit_count,
		                                     .files = buf_text(&s.files),
		                                     .on_cpu = s.has_on_cpu,
		                                     .gil = s.has_gil,
		                                     .columns = isatty(STDOUT_FILENO) ? terminal_columns(STDOUT_FILENO) : 0,
		                                     .safe = isatty(STDOUT_FILENO)}};

		status = result_write(NULL, print, &printing);
	}
	statistics_release(&s);
	return status;
}

/* python -m pstats reads the first file and adds the others. */
static int interact(struct report *r, char *const *files, int count)
{
	struct statistics s;
	int status = EXIT_DONE;

	if (count > 0)
		status = statistics_read(&s, files, count, &r->filters, r->strip_dirs);
	return status == EXIT_DONE ? browse(count > 0 ? files[0] : NULL, count > 0 ? &s : NULL, &r->filters) : status;
}

static int report(void *self, char **files, int count)
{
	struct report *r = self;

	return r->interactive ? interact(r, files, count) : print_all(r, files, count);
}

int report_main(int argc, char **argv)
{
	struct report r = {0};
	const struct option_row rows[] = {
		{"sort", .read = read_keys, .into = &r.order},
		{"reverse", .yes = &r.reverse},
		{"limit", .read = read_limit, .into = &r},
		{"callers", .yes = &r.callers},
		{"callees", .yes = &r.callees},
		{"json", .yes = &r.json},
		{"csv", .yes = &r.csv},
		{"interactive", .yes = &r.interactive},
		{"strip-dirs", .yes = &r.strip_dirs},
		{.name = NULL},
	};
	const struct file_command command = {
		.self = &r, .rows = rows, .filters = &r.filters, .check = check, .run = report};
	int status = command_with_files(argc, argv, &command);

	for (size_t i = 0; i < r.limit_count; i++)
		stats_limit_release(&r.limits[i]);
	filters_release(&r.filters);
	return status;
}
