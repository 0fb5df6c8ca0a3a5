/* SPDX-License-Identifier: Apache-2.0 */
/* The garbage collector of an interpreter: whether it runs, and which frame started it, of the same moment as the stacks. */
#ifndef SAMPLED_SAMPLER_COLLECTOR_H
#define SAMPLED_SAMPLER_COLLECTOR_H

#include "sampler/target.h"

/* Adds its words to a plan. */
void collector_plan(const struct target *target, struct interp *interp, struct plan *plan);
/* After that was read: what they said. */
void collector_take(struct interp *interp, const struct plan *plan);
/* A thread was read again: its interpreter's words are, too. */
void collector_look(struct target *target, const struct thread *t);

#endif
