/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a stack, and what the set of known calls (edges.h) says of them. */
#ifndef SAMPLED_SAMPLER_CALLS_H
#define SAMPLED_SAMPLER_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/walk.h"

/* Whether all calls of a stack, from that of frame `from` on, are in the set. */
bool calls_are_known(const struct walker *w, const struct pystack *stack, uint32_t from, struct edges *edges);
/* Those of the `count` outermost frames were seen alike once more. True: one has become known. */
bool calls_sight(const struct walker *w, const struct pystack *stack, uint32_t count, struct edges *edges);

/* They were seen in one copy: known by their share, if it is large enough. True: one has become known. */
bool calls_sight_once(const struct walker *w, const struct pystack *stack, struct edges *edges);
/* Whether the innermost call, of a frame that had been left when it was copied, is known (edges_sight_left()). */
bool calls_know_left(const struct walker *w, const struct pystack *stack);
/* They were seen while the thread stood. */
void calls_learn(const struct walker *w, const struct pystack *stack, struct edges *edges);
/* All stacks of the first ticks are counted: what is learnt then is compared with few. */
#define CALLS_FIRST_TICKS 4096u

/* Counts the sites and callees of a stack; where there are many ticks (`often`), those of one in sixteen, for all of them. */
void calls_count(const struct walker *w, const struct pystack *stack, struct edges *edges, bool often);
/* Of calls from that of frame `from` on, between frames that lie on one another on the data stack: those that are alike in the other copy
 * were seen so once more, whoever led to them. True: one has become known. */
bool calls_sight_adjacent(const struct walker *w, const struct pystack *stack, const struct pystack *other,
                          uint32_t from, struct edges *edges);
/* The calls of this stack that were proven while it was read were seen once more. True: one has become known. */
bool calls_sight_proven(const struct walker *w, const struct pystack *stack, struct edges *edges);

#endif
