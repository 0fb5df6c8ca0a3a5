/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics written out: the tables of pstats (print_stats, print_callers, print_callees), JSON, and CSV. */
#ifndef SAMPLED_EXPORTERS_STATS_TABLES_H
#define SAMPLED_EXPORTERS_STATS_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "exporters/stats_limit.h"
#include "exporters/writer.h"

enum { STATS_CALLERS = 1, STATS_CALLEES = 2 };

struct stats_view {
	const struct stats *stats;
	struct stats_limit *limits; /* of each table */
	size_t limit_count;
	const char *files; /* what was read: a line each, with its time; "" for none; safe for a terminal */
	bool on_cpu, gil;  /* further columns: self time of the function on a CPU, as the kernel counted, and with the GIL, seconds */
	bool safe;         /* CSV: names made safe for a terminal */
	bool brief;        /* what sampling asked for and lost was said before */
	unsigned columns;  /* of the terminal: names of the table of functions are cut to fit; 0: none, they are whole */
};

/* Each: 0, or the writer's error, or -ENOMEM. */
int stats_print(const struct stats_view *view, struct writer *to);
int stats_print_calls(const struct stats_view *view, bool callers, struct writer *to);
/* calls: STATS_CALLERS and STATS_CALLEES, for each function. */
int stats_write_json(const struct stats_view *view, unsigned calls, struct writer *to);
/* RFC 4180: a line a function, or, with one of the two, a line a call of it. */
int stats_write_csv(const struct stats_view *view, unsigned calls, struct writer *to);

#endif
