/* SPDX-License-Identifier: Apache-2.0 */
/* Which generator ran. The data stack and the thread state cannot be copied at one instant: 0.4 µs lie between, and a generator that
 * C resumes runs no longer than that. The copy of the data stack tells for its own instant which function is innermost on it (its
 * leaf), be that running or resuming a generator; the thread state tells for its own which generator ran itself, if one did. Each of the two
 * is met as often as it is, and from both the share of every function follows:
 *
 *     share of a generator's function        = how often the thread state named it
 *     share of a function on the data stack  = how often it was the leaf - how often a generator ran that was resumed from it
 *
 * So a tick in which no generator ran counts for the leaf, and one in which a generator ran counts for that; and if then another function was
 * the leaf than the one that resumed it (it was on its way out), the leaf gets the next sample of the one that resumed it (owed.h). */
#ifndef SAMPLED_SAMPLER_RUNNING_H
#define SAMPLED_SAMPLER_RUNNING_H

#include "sampler/walk.h"

/* What the thread state in w->plan names: the address of the frame of the generator that runs, or is called from; else `current`. Since 3.13 the
 * current frame says so; before, that is behind a pointer which is of another instant, and what notes handled exceptions says it. */
raddr_t running_named(const struct walker *w, const struct thread *t, raddr_t current);
/* Remembers what the stack in t->seen says of its generators. */
void running_note(const struct walker *w, const struct thread *t);

struct running {
	raddr_t generator, code; /* of the one that ran itself when the thread state was copied; code 0: none, but a function on the data stack, or C */
	raddr_t resumer; /* the code of what had resumed it, on the data stack; 0: not known */
};

/* After a walk from running_named(). */
struct running running_find(const struct walker *w, const struct thread *t, raddr_t current);

#endif
