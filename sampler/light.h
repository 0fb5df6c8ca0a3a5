/* SPDX-License-Identifier: Apache-2.0 */
/* The cheapest look: unthrottled, of a process with one thread, which works, first the data stack alone is read, by one short copy. Most
 * of the time that tells the stack. Where it does not (C, or a generator, may lead on from the leaf; a call is not known), the thread
 * state is read behind it, and all goes on as with a whole read: to read the stack anew would favour what is told at once. */
#ifndef SAMPLED_SAMPLER_LIGHT_H
#define SAMPLED_SAMPLER_LIGHT_H

#include "sampler/target.h"

enum light {
	LIGHT_NOT,  /* this tick has to be a whole one; nothing was read */
	LIGHT_READ, /* the thread's copy is in target->plan */
	LIGHT_TOLD, /* and so is the stack in t->seen, all of its calls known */
};

enum light light_look(struct target *target, struct walker *w);

#endif
