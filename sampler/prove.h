/* SPDX-License-Identifier: Apache-2.0 */
/* The proof that a copied stack is one that the thread had. */
#ifndef SAMPLED_SAMPLER_PROVE_H
#define SAMPLED_SAMPLER_PROVE_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/target.h"

/* Walks the copy in w->plan into t->seen. 0, -EAGAIN (read again: torn, or the guess has grown), or another -errno. */
int prove_walk(struct walker *w, struct thread *t);
/* Reads the thread again, by itself, and walks that; w->plan is target->again then. */
int prove_again(struct target *target, struct walker *w, struct thread *t);
/* Judges the calls in t->seen: 0 when all are known, at once or after having been seen alike in two copies of one read.
 * -EAGAIN: the copy is torn, read again. -EINPROGRESS: not yet; the sample is held, and counted when its calls are
 * proved, or as torn after a while. */
int prove_calls(struct target *target, struct walker *w, struct thread *t, uint16_t status, uint64_t weight_ns);
/* Whether all calls in t->seen are known already, and the thread state agrees with it. */
bool prove_knows_calls(const struct target *target, struct walker *w, const struct thread *t);
/* Lets go of held samples that are proved by now, or never will be. */
void prove_release_held(struct target *target, struct walker *w);
/* At the end of a thread, or (NULL) of all: takes what is held of it where nothing speaks against it. */
void prove_end_held(struct target *target, const struct thread *t);
/* Code objects were retired from the cache: what is held of samples that name them is judged now or never. */
void prove_forget_held(struct target *target);

#endif
