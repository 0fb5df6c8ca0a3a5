/* SPDX-License-Identifier: Apache-2.0 */
/* Samples whose calls are not all known yet, held until they are. */
#ifndef SAMPLED_SAMPLER_HELD_H
#define SAMPLED_SAMPLER_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/target.h"

/* Holds the sample in t->seen. -EINPROGRESS: done; -EAGAIN: too many are; -ENOMEM. */
int held_add(struct target *target, const struct thread *t, uint16_t status, bool one_copy, uint64_t now_ns,
             uint64_t weight_ns);
/* A sample of the thread was whole: the stack in t->seen, with this function innermost (content), stands for what is held of the
 * thread with it, should that prove torn. */
void held_offer(struct target *target, const struct thread *t, uint64_t function);
/* Lets go of held samples that are proved by now, or never will be. */
void held_release(struct target *target, struct walker *w);
/* At the end of a thread, or (NULL) of all: takes what is held of it where nothing speaks against it. */
void held_end(struct target *target, const struct thread *t);
/* Code objects were retired from the cache: what is held of samples that name them is judged now or never. */
void held_forget(struct target *target);

#endif
