/* SPDX-License-Identifier: Apache-2.0 */
/* A set of 64-bit keys other than 0, by open addressing, which grows up to a bound and then begins anew. */
#ifndef SAMPLED_SAMPLER_KEYSET_H
#define SAMPLED_SAMPLER_KEYSET_H

#include <stdbool.h>
#include <stdint.h>

struct keyset {
	uint64_t *keys;       /* owned; 0: empty */
	uint32_t room, count; /* room: a power of two */
};

/* 0 or -ENOMEM. */
int keyset_init(struct keyset *set, uint32_t room);
void keyset_release(struct keyset *set);
void keyset_add(struct keyset *set, uint64_t key);

static inline uint32_t keyset_place(const struct keyset *set, uint64_t key)
{
	uint32_t i = (uint32_t)(key >> 20) & (set->room - 1);

	while (set->keys[i] != 0 && set->keys[i] != key)
		i = (i + 1) & (set->room - 1);
	return i;
}

static inline bool keyset_has(const struct keyset *set, uint64_t key)
{
	return set->keys[keyset_place(set, key)] == key;
}

#endif
