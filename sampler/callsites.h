/* SPDX-License-Identifier: Apache-2.0 */
/* Where a frame keeps what it is calling (CPython to 3.10): the depth of the callable on the value stack is a static
 * property of the call's instruction, found by following the bytecode once, as the compiler did when it sized the stack.
 * Pure: works on copied bytes, which may be anything. */
#ifndef SAMPLED_SAMPLER_CALLSITES_H
#define SAMPLED_SAMPLER_CALLSITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/pyabi/pyabi.h"

enum callsite_kind {
	CALLSITE_CALL,   /* the slot holds the callable, those behind it the arguments */
	CALLSITE_METHOD, /* the slot holds a function, followed by its `self`; or nothing, followed by the callable */
	CALLSITE_RESUME, /* the slot holds what is resumed: an iterator, a generator, a coroutine */
	CALLSITE_OTHER, /* an operator, an attribute: it may call, and no slot says what; or the depth is not certain */
};

struct callsite {
	uint32_t offset; /* of the instruction, as a frame names it (that of a prefix, where there is one), in bytes */
	uint16_t slot;   /* of the value stack, 0 is the lowest */
	uint16_t end;    /* of the slots in use */
	uint8_t kind;    /* enum callsite_kind */
	bool unsure;     /* a call at a depth that is not certain: it does not say so where it calls a Python function */
	uint16_t name_index; /* in co_names, plus 1: the global, or the attribute, that the callable was taken from; 0: it was not */
	uint32_t name;       /* callname_hash() of that, for whoever reads it; 0: not read yet */
	/* What frames that stood here were seen to call, for whoever keeps count of it: the Python function that most of them called
	 * (the identity of its code; 0: none yet), how many did, how many called another one, and how many none. */
	uint64_t callee;
	uint32_t callee_count, other_count, open_count;
};

/* Counts what one frame that stands at the site calls. 0: no Python function. */
void callsite_count(struct callsite *site, uint64_t callee);
/* Whether it calls this function only, but for what may have been misread. */
bool callsite_is_of(const struct callsite *site, uint64_t callee);
/* Whether it calls Python functions only, as far as is known. */
bool callsite_is_python(const struct callsite *site);
/* Whether it calls C only, and that never a function that was given to it there, as far as is known. */
bool callsite_is_open(const struct callsite *site);

/* Finds the instructions of one code object that may call, by ascending offset (to 3.8, those inside of a `finally` have no certain
 * depth). *ret_sites is the caller's to free, NULL where there are none. Returns their number, 0 also for bytecode
 * that makes no sense, or -ENOMEM. */
int callsites_find_all(const struct pyabi *abi, const uint8_t *bytecode, uint32_t bytes, uint32_t stacksize,
                       struct callsite **ret_sites);

/* The site at this offset, or NULL. */
struct callsite *callsites_at(struct callsite *sites, uint32_t count, int64_t offset);

#endif
