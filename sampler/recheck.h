/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the code objects of a sample are still those that were decoded. */
#ifndef SAMPLED_SAMPLER_RECHECK_H
#define SAMPLED_SAMPLER_RECHECK_H

#include "sampler/target.h"

/* How many code objects the thread's interpreter has freed, as last read; 0: it does not say. */
uint64_t recheck_generation(const struct target *target, const struct thread *t);
/* Compares the code objects of the stack in t->seen that cannot be trusted as they are. -EAGAIN: one was stale. */
int recheck_stack(struct target *target, struct thread *t, uint64_t now_ns);
/* Whether all code objects of the stack in t->seen, read at read_ns and the generation, are those that were decoded. None is retired: a
 * sample that is being judged may name it. */
bool recheck_is_same(struct target *target, const struct thread *t, uint64_t generation, uint64_t read_ns);
/* Whether none of the code objects of a stack that is kept has been retired. */
bool recheck_has_codes(const struct target *target, const struct pystack *stack);
/* The sample that recheck_stack() looked at was accepted. */
void recheck_accepted(const struct target *target, struct thread *t, uint64_t now_ns);
/* A walk that failed at a code object would fail at each tick where its address is used again by a longer one.
 * -EAGAIN: so it was, and it is forgotten. */
int recheck_doubted(struct target *target, const struct thread *t, struct walker *w);

#endif
