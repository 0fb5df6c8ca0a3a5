/* SPDX-License-Identifier: Apache-2.0 */
/* Which function ran when the data stack ended at some place: frames begin where their callers end and differ in size, so that mostly one function's frame
 * ends there. For what the thread state says of an instant at which that frame was not copied yet, and another one lay there when it was (running.h). */
#ifndef SAMPLED_SAMPLER_ENDS_H
#define SAMPLED_SAMPLER_ENDS_H

#include "sampler/frames.h"

#define ENDS      2048u
#define ENDS_WAYS 8u
#define END_CALLS 2u

struct end_call {
	raddr_t frame, code; /* that made it; frame 0: a generator's; code 0: not known */
	int64_t offset;
};

struct end {
	raddr_t current, end; /* the thread state's current frame, 0 where that is not of the same instant; the data stack's end */
	raddr_t generator;    /* the code of the one that ran or was called from; 0: none, or not known */
	raddr_t frame, code;  /* the function's; code 0: nothing is known */
	raddr_t loop;         /* to 3.12: the run of the interpreter's loop that it was last met in (tstate.cframe); 0: not known */
	uint64_t content;     /* what its code says (struct code): another one can come to lie there */
	uint32_t met;         /* how often it was innermost in a copy, lately */
	uint32_t copied;      /* of the looks that are counted (lookalike.h): in so many it was, … */
	uint32_t told;        /* … in so many it was said to have run, … */
	uint32_t gone;        /* … and of these, in so many another frame lay there, or none */
	struct end_call calls[END_CALLS]; /* that led to it, the latest first */
};

struct ends { /* the latest few of a hash */
	struct end ends[ENDS];
};

/* Those of one function that differ in their callers are kept apart. */
void ends_note(struct ends *ends, const struct end *end);
/* Of the same current frame, end and generator: ENDS_WAYS of them, the one that was noted last first; not all need be of that place. */
struct end *ends_find(struct ends *ends, const struct end *place);

static inline bool ends_is_at(const struct end *end, const struct end *place)
{
	return end->code != 0 && end->current == place->current && end->end == place->end && end->generator == place->generator;
}

#endif
