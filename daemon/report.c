/* SPDX-License-Identifier: Apache-2.0 */
/* sampled report FILE... */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/browse.h"
#include "daemon/commands.h"
#include "daemon/error.h"
#include "daemon/filters.h"
#include "daemon/help.h"
#include "daemon/options.h"
#include "daemon/statistics.h"
#include "exporters/stats_limit.h"
#include "exporters/stats_sort.h"
#include "exporters/stats_tables.h"

enum { LIMITS_MAX = 32 };

enum {
	OPT_SORT = 256,
	OPT_REVERSE,
	OPT_LIMIT,
	OPT_CALLERS,
	OPT_CALLEES,
	OPT_JSON,
	OPT_CSV,
	OPT_INTERACTIVE,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{"sort", required_argument, NULL, OPT_SORT},
	{"reverse", no_argument, NULL, OPT_REVERSE},
	{"limit", required_argument, NULL, OPT_LIMIT},
	{"callers", no_argument, NULL, OPT_CALLERS},
	{"callees", no_argument, NULL, OPT_CALLEES},
	{"json", no_argument, NULL, OPT_JSON},
	{"csv", no_argument, NULL, OPT_CSV},
	{"interactive", no_argument, NULL, OPT_INTERACTIVE},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, 'h'},
	FILTER_OPTIONS,
	{NULL, 0, NULL, 0},
};

struct report {
	struct filters filters;
	struct stats_order order;
	struct stats_limit limits[LIMITS_MAX];
	size_t limit_count;
	unsigned calls; /* STATS_CALLERS, STATS_CALLEES */
	bool reverse, json, csv, interactive, strip_dirs, help, version;
};

static int read_keys(struct report *r, const char *text, struct fault *fault)
{
	for (;;) {
		size_t bytes = strcspn(text, ",");
		int err = stats_order_add(&r->order, text, bytes);

		if (err == -E2BIG)
			return fault_set(fault, -EINVAL, "", "--sort: more than %d keys", STATS_KEYS_MAX);
		if (err)
			return fault_set(fault, -EINVAL,
			                 "calls cumulative filename line name nfl pcalls stdname time on_cpu gil, and "
			                 "more: sampled report --help",
			                 "--sort %.*s: no such key", (int)(bytes > 64 ? 64 : bytes), text);
		if (text[bytes] == '\0')
			return 0;
		text += bytes + 1;
	}
}

static int read_limit(struct report *r, const char *text, struct fault *fault)
{
	int err;

	if (r->limit_count == LIMITS_MAX)
		return fault_set(fault, -EINVAL, "", "--limit: given more than %d times", LIMITS_MAX);
	err = stats_limit_read(&r->limits[r->limit_count++], text);
	if (err == -ERANGE)
		return fault_set(fault, -EINVAL, "0.0 to 1.0; a whole number is a count", "--limit %s: not a fraction",
		                 text);
	if (err == -EINVAL)
		return fault_set(fault, -EINVAL, "an extended regular expression, a count, or a fraction",
		                 "--limit %s: not a regular expression", text);
	return err ? fault_set(fault, err, "", "%s", strerror(-err)) : 0;
}

static int read_option(struct report *r, int letter, struct fault *fault)
{
	switch (letter) {
	case OPT_SORT:
		return read_keys(r, optarg, fault);
	case OPT_LIMIT:
		return read_limit(r, optarg, fault);
	case OPT_CALLERS:
	case OPT_CALLEES:
		r->calls |= letter == OPT_CALLERS ? STATS_CALLERS : STATS_CALLEES;
		return 0;
	case OPT_REVERSE:
		r->reverse = true;
		return 0;
	case OPT_JSON:
		r->json = true;
		return 0;
	case OPT_CSV:
		r->csv = true;
		return 0;
	case OPT_INTERACTIVE:
		r->interactive = true;
		return 0;
	case OPT_VERSION:
		r->version = true;
		return 0;
	case 'h':
		r->help = true;
		return 0;
	case FILTER_STRIP_DIRS: /* of trees and call graphs alike; the filters have it for trees only */
		r->strip_dirs = true;
		return 0;
	default:
		return filters_take(&r->filters, letter, optarg, fault);
	}
}

static int check(const struct report *r, char *const *files, int count, struct fault *fault)
{
	if (count == 0 && !r->interactive)
		return fault_set(fault, -EINVAL, "sampled report FILE...", "report: no file named");
	if (r->json && r->csv)
		return fault_set(fault, -EINVAL, "", "--json and --csv: one of them");
	if (r->csv && r->calls == (STATS_CALLERS | STATS_CALLEES))
		return fault_set(fault, -EINVAL, "each by itself, or --json",
		                 "--csv is one table: --callers and --callees are two");
	if (r->interactive && (r->json || r->csv || r->calls || r->limit_count || r->order.count || r->reverse))
		return fault_set(fault, -EINVAL, "sort, reverse, stats, callers and callees are commands there",
		                 "--interactive: takes no tables' options");
	for (int i = 0; i < count && r->interactive; i++)
		if (strcmp(files[i], "-") == 0)
			return fault_set(fault, -EINVAL, "name a file",
			                 "--interactive: standard input is for commands");
	return filters_check(&r->filters, fault);
}

/* By internal time, unless told otherwise: where a sampling profile's time is. */
static int sort(struct report *r, struct statistics *s)
{
	bool on_cpu = false, gil = false;
	int err;

	if (r->order.count == 0)
		stats_order_add(&r->order, "tottime", strlen("tottime"));
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

static int print(const struct report *r, const struct stats_view *view, struct writer *to)
{
	int err = 0;

	if (r->json)
		return stats_write_json(view, r->calls, to);
	if (r->csv)
		return stats_write_csv(view, r->calls, to);
	if (!r->calls)
		return stats_print(view, to);
	if (r->calls & STATS_CALLERS)
		err = stats_print_calls(view, true, to);
	if (!err && r->calls & STATS_CALLEES)
		err = stats_print_calls(view, false, to);
	return err;
}

static int report(struct report *r, char *const *files, int count)
{
	struct writer *to = malloc(sizeof(*to));
	struct statistics s;
	struct fault fault = {0};
	int status = statistics_read(&s, files, count, &r->filters, r->strip_dirs), err, closed;

	if (status == EXIT_DONE && (status = sort(r, &s)) != EXIT_DONE)
		statistics_release(&s);
	if (!to || status != EXIT_DONE) {
		free(to);
		return status == EXIT_DONE ? EXIT_FAILED : status;
	}
	writer_open_fd(to, STDOUT_FILENO);
	err = print(r,
	            &(struct stats_view){.stats = &s.stats,
	                                 .limits = r->limits,
	                                 .limit_count = r->limit_count,
	                                 .files = buf_text(&s.files),
	                                 .on_cpu = s.has_on_cpu,
	                                 .gil = s.has_gil,
	                                 .safe = isatty(STDOUT_FILENO)},
	            to);
	closed = writer_close(to, &fault);
	if (err && !closed)
		fault_set(&fault, err, "", "%s", strerror(-err));
	if (err || closed)
		error_fault(&fault, "cannot write standard output");
	statistics_release(&s);
	free(to);
	return err || closed ? EXIT_FAILED : EXIT_DONE;
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

int report_main(int argc, char **argv)
{
	struct report r = {0};
	struct fault fault;
	int letter, err = 0, status;

	opterr = 0;
	optind = 0;
	while (!err && (letter = options_next(argc, argv, ":h", long_options, NULL, &fault)) != -1)
		err = letter < 0 ? letter : read_option(&r, letter, &fault);
	if (!err && !r.help && !r.version)
		err = check(&r, argv + optind, argc - optind, &fault);
	if (err)
		status = error_usage(&fault);
	else if (r.help || r.version)
		status = r.help ? help_print(argv[0]) : help_print_version();
	else
		status = r.interactive ? interact(&r, argv + optind, argc - optind)
		                       : report(&r, argv + optind, argc - optind);
	for (size_t i = 0; i < r.limit_count; i++)
		stats_limit_release(&r.limits[i]);
	filters_release(&r.filters);
	return status;
}
