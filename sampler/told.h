/* SPDX-License-Identifier: Apache-2.0 */
/* Frames on the heap (to 3.10): what one copy of a frame says of itself, and of what it calls. */
#ifndef SAMPLED_SAMPLER_TOLD_H
#define SAMPLED_SAMPLER_TOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/walk.h"

#define TOLD_PLACES 1024u
#define TOLD_OTHERS 64u

enum told_kind { TOLD_FUNCTION, TOLD_METHOD, TOLD_GENERATOR, TOLD_COROUTINE, TOLD_KINDS };

/* What lately lay at an address that a value stack named. */
struct told_object {
	raddr_t addr;
	raddr_t code; /* of a function; 0: it is none */
	bool method;  /* it is a bound method, and exists no longer than the call */
	bool resumes; /* a generator or a coroutine: it runs its own frame and nothing else */
	uint64_t read_ns;
};

struct told_objects { /* of one target; all zero in the beginning */
	raddr_t types[TOLD_KINDS];   /* 0: none seen yet */
	raddr_t others[TOLD_OTHERS]; /* types that are none of these */
	struct told_object at[TOLD_PLACES];
};

/* What one copy of a frame says. */
struct told {
	bool ok; /* it was copied, is executed, and its code is known */
	struct pyframe frame;
	raddr_t previous, generator;
	struct code *code;
	struct callsite *site; /* NULL: it stands where nothing is called */
	const uint8_t *slots;  /* of the site; NULL: there are none, or they are not in the copy */
	raddr_t callable_at;   /* in the target */
	const uint8_t *copy;   /* of the frame, of so many bytes */
	uint32_t bytes;
};

/* What the copy in a piece of the plan says of its frame; `called`: what that calls, too. */
struct told told_read(struct walker *w, uint32_t index, bool called);
/* The object at addr, or NULL. What is remembered of it is believed for a short time only, and not at all if `afresh`. */
const struct told_object *told_object_at(struct told_objects *objects, const struct walker *w, raddr_t addr, bool afresh);
/* The code of the function at addr; 0: it is none, nor is a bound method one, whose caller has to be asked again (told_code()). */
raddr_t told_code_at(struct told_objects *objects, const struct walker *w, raddr_t addr);
/* The code of what a frame says it calls, be it a method. Objects that come and go are read, and then the frame once more: had it gone on, another one
 * could lie there by now. 0: none, or it has gone on. */
raddr_t told_code(struct told_objects *objects, const struct walker *w, const struct told *told);
/* Whether the callable was taken from a global, or an attribute, of the callee's name. */
bool told_is_named(const struct walker *w, const struct told *told, const struct code *callee);

#endif
