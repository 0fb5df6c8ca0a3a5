/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of statistics: pstats.Stats.sort_stats() and reverse_order(). */
#ifndef SAMPLED_EXPORTERS_STATS_SORT_H
#define SAMPLED_EXPORTERS_STATS_SORT_H

#include "exporters/stats.h"

enum stats_key {
	STATS_CALLS, /* most first; so are the times */
	STATS_CUMULATIVE,
	STATS_FILE,
	STATS_LINE,
	STATS_NAME,
	STATS_NFL, /* name, file, line */
	STATS_PCALLS,
	STATS_STDNAME,
	STATS_TIME,
	STATS_ON_CPU, /* ours: self CPU time, by the kernel's count */
	STATS_GIL,    /* ours: self time holding the GIL */
};

enum { STATS_KEYS_MAX = 16 };

struct stats_order {
	enum stats_key keys[STATS_KEYS_MAX];
	size_t count;
};

/* Adds the key of this name: a word of pstats, an abbreviation that pstats takes for unique, 3.15's words for samples, or ours. 0, -ENOENT:
 * there is no such key, -ENOTUNIQ: it is the beginning of several, or -E2BIG: too many. */
int stats_order_add(struct stats_order *order, const char *word, size_t bytes);
/* The words and what each sorts by, in pstats' order, ours behind (from stats_own_words on); NULL at the end. */
const char *stats_word(size_t index, const char **ret_meaning);
size_t stats_own_words(void);

/* Sorts the listing; what is equal by all keys stays in the profile's order. 0 or -ENOMEM. */
int stats_sort(struct stats *stats, const struct stats_order *order);
/* As pstats, only of what was sorted. */
void stats_reverse(struct stats *stats);

#endif
