/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles to profiles: merging, filtering, folding lines, pruning. Several calls on one builder merge. */
#ifndef SAMPLED_AGGREGATOR_TRANSFORM_H
#define SAMPLED_AGGREGATOR_TRANSFORM_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "aggregator/aggregator.h"
#include "aggregator/builder.h"
#include "aggregator/named.h"

/* All zero: everything stays. Regular expressions are the caller's; NULL: none. */
struct transform {
	const struct thread_filter *threads; /* none: all */
	size_t thread_count;
	const regex_t *focus;  /* only samples with a frame whose file or name matches */
	const regex_t *ignore; /* no samples with such a frame */
	const regex_t *omit;   /* no samples with a frame whose file matches */
	const regex_t *stop;   /* the frames outside of the outermost one whose file or name matches are cut off */
	bool by_function;      /* lines of a function become one: the first */
	bool strip_dirs;       /* files by their last part */
	/* What native frames become; NULL: they stay. The conditions above look at frames as they were before. */
	named_frames *frames;
	void *frames_context;
	double min_percent;    /* nodes with less of the whole profile become "(other)" below their caller; 0: none */
};

/* Adds a profile, transformed: its trees, its runs where the builder keeps them, processes with their facts, notes and counts. What is filtered
 * is counted in the result's filtered or omitted. 0 or -errno (it sticks in the builder, too). */
int transform_add(struct builder *to, const struct profile *from, const struct transform *transform);

#endif
