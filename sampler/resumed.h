/* SPDX-License-Identifier: Apache-2.0 */
/* From where the functions of generators and coroutines call others, and await one another, as whole stacks show it: what a copy that came
 * too late lacks (placed.h). */
#ifndef SAMPLED_SAMPLER_RESUMED_H
#define SAMPLED_SAMPLER_RESUMED_H

#include <stdbool.h>
#include <stdint.h>

#define RESUMED_PLACES 1024u

struct resumed_place {
	uint64_t key;   /* of caller and callee; 0: none */
	int64_t offset; /* of the instruction in the caller */
	uint32_t seen;  /* so often, there only; 0: at several places */
};

struct resumed { /* the latest few of a hash */
	struct resumed_place places[RESUMED_PLACES];
	uint64_t sought_tick; /* in which instructions were last searched for a place */
};

/* Functions are told by what their code objects say (struct code, content). Notes a call in a stack that proved to be whole. */
void resumed_note(struct resumed *r, uint64_t caller, uint64_t callee, int64_t offset);
/* The one place from which it is called; false: not known, or several. */
bool resumed_find(const struct resumed *r, uint64_t caller, uint64_t callee, int64_t *ret_offset);

#endif
