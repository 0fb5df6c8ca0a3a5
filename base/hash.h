/* SPDX-License-Identifier: Apache-2.0 */
/* Hash functions for tables keyed by numbers and by bytes. Not for hostile keys where a flood matters: tables are bounded. */
#ifndef SAMPLED_BASE_HASH_H
#define SAMPLED_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Mixes all bits of one word (the finalizer of MurmurHash3: https://github.com/aappleby/smhasher). */
static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	x ^= x >> 33;
	return x;
}

static inline uint64_t hash_combine(uint64_t seed, uint64_t x)
{
	return hash_u64(seed ^ (x + UINT64_C(0x9e3779b97f4a7c15)));
}

/* FNV-1a over bytes, seeded, finished with hash_u64 (http://www.isthe.com/chongo/tech/comp/fnv/). */
static inline uint64_t hash_bytes(uint64_t seed, const void *data, size_t bytes)
{
	const unsigned char *p = data;
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ seed;

	for (size_t i = 0; i < bytes; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return hash_u64(h);
}

#endif
