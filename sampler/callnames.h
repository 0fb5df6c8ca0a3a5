/* SPDX-License-Identifier: Apache-2.0 */
/* What a code object's bytecode calls by name (3.11+): the global, or the attribute, that it takes the callable from. What has that name and is met above
 * the one place where it is called so was called there, as the program says itself. A function with another name may be called there all the same: by what
 * wraps it, or under an alias; and where one name is called at several places, functions of that name may be called, each at its own. */
#ifndef SAMPLED_SAMPLER_CALLNAMES_H
#define SAMPLED_SAMPLER_CALLNAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/pyabi/pyabi.h"
#include "sampler/remote.h"

#define CALLNAME_BYTES 256  /* longer names are none */
#define CALLNAMES_MAX  512 /* code with more has none: each is compared with each */

enum callname_kind {
	CALLNAME_ATTRIBUTE, /* which may be a property */
	CALLNAME_CALL,
	CALLNAME_RESUME, /* of what a function of this name made, a generator or a coroutine */
};

struct callname {
	uint32_t first, last; /* units; where a frame stands meanwhile */
	uint32_t name;        /* callname_hash(); 0: it is not called by one */
	uint32_t argument;    /* by which the last argument of a call is made, so that it is a generator where what has this name is one; 0: by none */
	raddr_t made;         /* the code of a generator expression that the function itself gives to what is called there, or iterates over; 0: none */
	enum callname_kind kind;
	bool argument_single; /* nor is what has that name an argument, or resumed, at another place */
	bool single; /* no other place of its kind has this name; nor is it that of an attribute that is called as a method elsewhere */
};

/* Of a name of `bytes` bytes; not 0. */
uint32_t callname_hash(const char *name, size_t bytes);

/* All of them, in the order of their places, from `bytes` bytes of bytecode. `names` and `consts` are the code object's co_names and co_consts, tuples in the target; owner: the hash of
 * the class that it belongs to, by which private names are told. How many,
 * with *ret_names the caller's to free (NULL where there are none), or -errno. What cannot be told has none. */
int callnames_find_all(const struct pyabi *abi, const struct remote *r, raddr_t names, raddr_t consts, uint32_t owner, const uint8_t *bytecode,
                       uint32_t bytes, struct callname **ret_names);

/* The one at this offset in bytes, or NULL. */
const struct callname *callnames_at(const struct callname *names, uint32_t count, int64_t offset);

#endif
