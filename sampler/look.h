/* SPDX-License-Identifier: Apache-2.0 */
/* One look at a thread: the copy is walked, and the thread state asked whether it agrees. */
#ifndef SAMPLED_SAMPLER_LOOK_H
#define SAMPLED_SAMPLER_LOOK_H

#include "sampler/target.h"

/* Walks the copy in w->plan into t->seen. 0, -EAGAIN (read again: torn, or the guess has grown), or another -errno. */
int look_walk(struct walker *w, struct thread *t);
/* The same of a thread that was blocked or stopped while it was read (w->stands): -EAGAIN where something was not in the copy, or the thread stood
 * in the middle of a change. */
int look_standing(struct walker *w, struct thread *t);
/* Reads the thread again, by itself, and walks that; w->plan is target->again then. */
int look_again(struct target *target, struct walker *w, struct thread *t);

#endif
