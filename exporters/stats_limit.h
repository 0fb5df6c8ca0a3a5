/* SPDX-License-Identifier: Apache-2.0 */
/* Restrictions of a listing, as the print methods of pstats.Stats take them: so many functions, a fraction of them, or those whose standard
 * name a regular expression finds. Several are applied one after the other. */
#ifndef SAMPLED_EXPORTERS_STATS_LIMIT_H
#define SAMPLED_EXPORTERS_STATS_LIMIT_H

#include <regex.h>
#include <stdbool.h>

#include "exporters/stats.h"

enum stats_limit_kind { STATS_LIMIT_COUNT, STATS_LIMIT_FRACTION, STATS_LIMIT_REGEX };

struct stats_limit {
	enum stats_limit_kind kind;
	uint64_t count;  /* UINT64_MAX: negative, which limits nothing, or more than can be */
	double fraction; /* 0 … 1 */
	bool has_regex;  /* false: it is not valid, and limits nothing */
	regex_t regex;
	struct buf shown; /* as Python's repr() shows it */
};

/* Reads a number, a fraction, or else a regular expression: POSIX extended, and \d, \D, (?: and a brace that begins no repetition as Python
 * reads them. 0; -ERANGE: a number that is neither whole nor in 0 … 1; -EINVAL: not a regular expression, still to be released and shown
 * as pstats does; -ENOMEM. */
int stats_limit_read(struct stats_limit *ret_limit, const char *text);
void stats_limit_release(struct stats_limit *limit);

/* What is left of a listing. */
struct stats_selection {
	uint32_t *functions; /* owned */
	uint32_t count;
	struct buf message; /* "   Ordered by: …" and what each restriction left, a line each */
};

/* 0 or -ENOMEM; to be released either way. */
int stats_select(struct stats_selection *ret_selection, const struct stats *stats, struct stats_limit *limits,
                 size_t limit_count);
void stats_selection_release(struct stats_selection *selection);

#endif
