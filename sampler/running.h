/* SPDX-License-Identifier: Apache-2.0 */
/* Which function ran. The data stack and the thread state cannot be copied at one instant: 0.4 µs lie between, and a function that runs for 100 ns, or a
 * generator that C resumes, has ended by then. But the thread state is one short copy, and says three things of its instant: the current frame (since 3.13;
 * before, that is behind a pointer), which item notes handled exceptions (that of the generator that runs, or is called from), and where the data stack ends.
 * Frames differ in size, so that this mostly tells whose frame is the innermost one there (ends.h), even if another one lies there by the time that it is
 * copied. So each tick is the function's that ran when the thread state was copied; what was copied behind it is its stack only if it has that
 * function, at that place. */
#ifndef SAMPLED_SAMPLER_RUNNING_H
#define SAMPLED_SAMPLER_RUNNING_H

#include "sampler/walk.h"

/* What the thread state in w->plan names: the address of the frame of the generator that runs, or is called from; else `current`. Since 3.13 the
 * current frame says so; before, that is behind a pointer which is of another instant, and what notes handled exceptions says it. */
raddr_t running_named(const struct walker *w, const struct thread *t, raddr_t current);
/* Remembers what the stack in t->seen says of its generators. */
void running_note(const struct walker *w, const struct thread *t);

struct running {
	raddr_t frame, code;    /* of the function that ran; code 0: not known */
	raddr_t resumer;        /* where it is a generator's: the code of what had resumed it, on the data stack; 0: not known */
	bool placed;            /* it lies on the data stack, and … */
	raddr_t generator_code; /* … the code of the innermost generator below it; 0: there is none */
};

/* After a walk from running_named(). */
struct running running_find(const struct walker *w, const struct thread *t, raddr_t current);

#endif
