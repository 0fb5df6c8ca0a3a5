/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of generators from the data stack, proven between two readings of the generator (3.11+). A coroutine that C resumes for some microseconds has
 * mostly gone on by the time that a look at the whole stack comes to its frame, so that it is hardly ever seen with who called it. But where its frame
 * lies is remembered, and what it linked to: it can be read again and again, with its caller between, in one go, until it runs at both times. */
#ifndef SAMPLED_SAMPLER_BRACKET_H
#define SAMPLED_SAMPLER_BRACKET_H

#include "sampler/target.h"

/* Reads some of the generators that were met of late so, each with the frame that resumed it in the stack in t->seen. What is above that frame is not
 * looked at, so it may be one that was not whole. */
void bracket_calls(struct target *target, struct walker *w, struct thread *t);

#endif
