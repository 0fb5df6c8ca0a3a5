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

#endif
