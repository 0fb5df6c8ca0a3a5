/* SPDX-License-Identifier: Apache-2.0 */
/* Frames on the heap (to 3.10): what a look reads of them. Which frame is current is known for the instant of the sample, be it gone by the time its stack
 * is copied; and it mostly lies where it lay before, on the frames that it lay on before. So another look reads just these, outermost first and the
 * current one last: fewer pieces are closer to one instant. A function that runs for less than the time between two pieces is never executed in a copy
 * whose thread state says so. But its caller's frame, while it stands at the call, is a copy of one instant that says whom it calls, so that the
 * stack is known up to the function, which is shown where it begins. */
#ifndef SAMPLED_SAMPLER_HEAPLOOK_H
#define SAMPLED_SAMPLER_HEAPLOOK_H

#include "sampler/thread.h"

struct target;
struct walker;

#define HEAP_LINKS  512u /* of a thread */
#define HEAP_LINKED 64u  /* frames of a chain, from the innermost on, that are remembered; what these lie on must be of the latest sample */

struct heap_link { /* a frame, and the one that called it when it was last executed */
	raddr_t frame, previous, code;
	raddr_t other; /* the latest that had called it, but that one; 0: none */
};

/* Remembers what called a frame that was copied while it was executed. Not of a thread of which no look was torn yet. */
void heaplook_note(struct thread *t, raddr_t frame, raddr_t previous, raddr_t code);
/* The code that a frame was last seen to execute. 0: none is remembered. */
raddr_t heaplook_code(const struct thread *t, raddr_t frame);
/* The next copy of the thread is of the chain that led to this frame, and nothing else. False: none is remembered. */
bool heaplook_expect(struct walker *w, struct thread *t, raddr_t current);
/* The latest look found current what the first one of the tick did. */
bool heaplook_stands(const struct walker *w);
/* The first look of a tick was torn, or not. */
void heaplook_count(struct thread *t, bool torn);
/* The stack in t->seen becomes a sample: where the thread stands in the same frame as at the sample before, the next tick copies the same frames at
 * once, else it asks for the current frame first. */
void heaplook_accepted(const struct walker *w, struct thread *t);
/* Takes what the frames of that copy say of their calls. `err`: the walk's; where it was torn, the stack up to the last frame but one, with the function
 * of the last at its beginning, stands for it in t->seen. 0, or err: that frame is not known to call it there. */
int heaplook_take(struct target *target, struct walker *w, struct thread *t, int err);

#endif
