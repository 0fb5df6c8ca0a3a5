/* SPDX-License-Identifier: Apache-2.0 */
/* A dict's entries, read many at a time: what pyobj.h offers of dicts and attributes stands on it. */
#ifndef SAMPLED_SAMPLER_PYDICT_H
#define SAMPLED_SAMPLER_PYDICT_H

#include <stddef.h>
#include <stdint.h>

#include "sampler/pyabi/pyabi.h"
#include "sampler/remote.h"

/* How much of each key object is read along with its entry: an int of 64 bits, the head and text of a short ASCII str. */
enum { PYKEY_HEAD_BYTES = 64 };

struct pykey {
	raddr_t key, value;
	const unsigned char
		*head; /* PYKEY_HEAD_BYTES of the key object and what lies behind it; NULL: it could not be read */
};

/* Not 0 stops the walk. */
typedef int pykey_fn(void *context, const struct pykey *key);

/* The values of keys that several instances share; address 0: the entries hold the values themselves. */
struct pyvalues {
	raddr_t address;
	uint64_t count;
};

/* Calls fn for each entry that has a key and a value, in the order of insertion: at most 65,536 are looked at. Returns
 * what fn did, 0 at the end, or -errno (-EFAULT also when too many keys could not be read). A dict that changes
 * meanwhile yields old, new or missing entries, or an error. */
int pykeys_walk(const struct remote *r, const struct pyabi *abi, raddr_t keys, struct pyvalues values, pykey_fn *fn,
                void *context);
/* The same for a dict object. */
int pydict_walk(const struct remote *r, const struct pyabi *abi, raddr_t dict, pykey_fn *fn, void *context);

/* Looks for the entry whose key is the str `name` (UTF-8, at most 255 bytes; longer: -EINVAL). -ENOENT: none. */
int pykeys_get(const struct remote *r, const struct pyabi *abi, raddr_t keys, struct pyvalues values, const char *name,
               raddr_t *ret_value);

/* From the address in a dict's or instance's values pointer to the first value: 3.13 put a head before it. */
raddr_t pyvalues_first(const struct pyabi *abi, raddr_t values);

#endif
