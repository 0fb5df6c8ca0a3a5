/* SPDX-License-Identifier: Apache-2.0 */
/* The cheapest looks: unthrottled, at a process with one thread, which works, the data stack alone is read, several times over in one system
 * call, which costs more than twice what a copy within it does. Each copy is a look, of its own instant. Most of the time it tells the
 * stack. Where it does not (C, or a generator, may lead on from the leaf; a call is not known), the thread state is read behind it, and all
 * goes on as with a whole read: to read the stack anew would favour what is told at once. The looks behind such a one are given up. */
#ifndef SAMPLED_SAMPLER_LIGHT_H
#define SAMPLED_SAMPLER_LIGHT_H

#include "sampler/target.h"

enum light {
	LIGHT_NOT,  /* this tick has to be a whole one; nothing was read */
	LIGHT_READ, /* the thread's copy is in target->plan */
	LIGHT_TOLD, /* and so is the stack in t->seen, all of its calls known */
};

/* Reads the looks of this tick and the next ones. How many there are; 0: this tick has to be a whole one, nothing was read. */
uint32_t light_read(struct target *target, struct walker *w);
/* The index-th of these looks; w->now_ns becomes its instant. */
enum light light_look(struct target *target, struct walker *w, uint32_t index);

#endif
