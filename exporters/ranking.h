/* SPDX-License-Identifier: Apache-2.0 */
/* What comes first where functions, paths and threads are ranked: what had the CPU. A thread that sleeps has all the wall time there is, and answers no
 * question about speed. */
#ifndef SAMPLED_EXPORTERS_RANKING_H
#define SAMPLED_EXPORTERS_RANKING_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/profile.h"

struct ranking {
	enum value_index by; /* this value … */
	bool less_idle;      /* … less VALUE_IDLE */
	const char *label;   /* "on CPU", "running" or "self" */
};

/* By CPU time where the kernel told it, or else by time that is not idle; by the profile's weight where it has neither of these, or all is idle. */
struct ranking ranking_of(const struct profile *profile);
/* Whether that is a part of wall time, and leaves the rest out. */
bool ranking_is_part(const struct ranking *ranking);
uint64_t ranking_amount(const struct ranking *ranking, const uint64_t values[VALUE_COUNT]);
/* A thread's sum of one value. */
uint64_t ranking_thread_sum(const struct thread_tree *tree, enum value_index value);

/* The part of a file's name that tells it from others: below site-packages, or below the standard library. Into file. */
const char *ranking_short_file(const char *file);

#endif
