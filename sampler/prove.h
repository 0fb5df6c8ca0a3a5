/* SPDX-License-Identifier: Apache-2.0 */
/* The proof that a copied stack is one that the thread had. */
#ifndef SAMPLED_SAMPLER_PROVE_H
#define SAMPLED_SAMPLER_PROVE_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/target.h"

/* Judges the calls in t->seen: 0 when all are known, at once or after having been seen alike in two copies of one read.
 * -EAGAIN: the copy is torn, or a call of it cannot be proved yet: read again. */
int prove_calls(struct target *target, struct walker *w, struct thread *t);

/* Whether all calls of a stack, from that of frame `from` on, are known; else, where frames lie on the heap, *ret_unknown is the frame of
 * the first that is not. */
bool prove_knows(const struct target *target, const struct walker *w, const struct pystack *stack, uint32_t from,
                 uint32_t *ret_unknown);

#endif
