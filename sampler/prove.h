/* SPDX-License-Identifier: Apache-2.0 */
/* The proof that a copied stack is one that the thread had. */
#ifndef SAMPLED_SAMPLER_PROVE_H
#define SAMPLED_SAMPLER_PROVE_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/target.h"

struct look { /* that was taken just before, as the thread was then */
	const struct pystack *stack;
	bool agreed;
};

/* Judges the calls in t->seen: 0 when all are known, at once or after having been seen alike in two copies of one read.
 * -EAGAIN: the copy is torn, read again. -EINPROGRESS: not yet; the sample is held, and counted when its calls are
 * proved, or as torn after a while. */
int prove_calls(struct target *target, struct walker *w, struct thread *t, uint16_t status, uint64_t weight_ns);

/* Learns what t->seen says of its calls beside the look before it (NULL: none), and looks once more. True: the stack is whole, its calls known. */
bool prove_learn(struct target *target, struct walker *w, struct thread *t, const struct look *before);

/* Whether all calls in t->seen are known already, and the thread state agrees with it. */
bool prove_knows_calls(const struct target *target, struct walker *w, const struct thread *t);
/* Whether those calls in t->seen are known that are not the latest accepted sample's. */
bool prove_knows_rest(const struct target *target, struct walker *w, const struct thread *t);
/* Whether all calls of a stack, from that of frame `from` on, are known; else, where frames lie on the heap, *ret_unknown is the frame of
 * the first that is not. */
bool prove_knows(const struct target *target, const struct walker *w, const struct pystack *stack, uint32_t from,
                 uint32_t *ret_unknown);

#endif
