/* SPDX-License-Identifier: Apache-2.0 */
/* Which function ran when the data stack ended at some place: frames begin where their callers end and differ in size, so that mostly one function's frame
 * ends there. For what the thread state says of an instant at which that frame was not copied yet, and another one lay there when it was (running.h). */
#ifndef SAMPLED_SAMPLER_ENDS_H
#define SAMPLED_SAMPLER_ENDS_H

#include "sampler/frames.h"

#define ENDS 1024u

struct end {
	raddr_t current, end; /* the thread state's current frame, 0 where that is not of the same instant; the data stack's end */
	raddr_t frame, code;  /* the function's; code 0: nothing is known */
};

struct ends { /* the latest few of a hash */
	struct end ends[ENDS];
};

void ends_note(struct ends *ends, struct end end);
/* What was noted last, or zeros. */
struct end ends_find(const struct ends *ends, raddr_t current, raddr_t end);

#endif
