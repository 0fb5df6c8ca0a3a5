/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's runs as slices of time, for formats that draw what happened when.
 *
 * A sample stands for the time since the one before it: that is what its weight is. So a run lasts from its last sample back over its
 * weight; slices of a thread follow each other without overlap, their lengths add up to the thread's weight, and what was not sampled is a gap
 * between two. */
#ifndef SAMPLED_EXPORTERS_TIMELINE_H
#define SAMPLED_EXPORTERS_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/profile.h"

struct timeline_slice {
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; end > start */
	uint32_t node;             /* of the thread's tree */
	unsigned status;           /* STATUS_* bits */
};

struct timeline { /* a reader's place; all zero but thread: at the start */
	const struct thread_tree *thread;
	size_t at;
	uint64_t end_ns;
};

/* False: there are no more. Runs without any length are passed over. */
bool timeline_next(struct timeline *line, struct timeline_slice *ret_slice);
/* What lasts over a gap no longer than this is taken to have gone on: two intervals. */
uint64_t timeline_gap_ns(const struct profile *profile);
/* Where a drawing of the profile begins: its start, or the first slice's, which is an interval earlier. */
uint64_t timeline_base_ns(const struct profile *profile);

#endif
