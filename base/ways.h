/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that remember the latest of what they are told: sets of a few entries each, the latest first; what is new takes the place of the last. With one
 * place a key, two keys that are met in turn would take each other's place for good. */
#ifndef SAMPLED_BASE_WAYS_H
#define SAMPLED_BASE_WAYS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The first entry of a key's set, in a table of `entries`; both are powers of two. */
static inline uint32_t ways_set(uint64_t hash, uint32_t entries, uint32_t ways)
{
	return (uint32_t)hash & (entries - 1) & ~(ways - 1);
}

/* Moves those before entry `way` up by one, each of `size` bytes, over it: the first place is the caller's to fill. */
static inline void ways_make_first(void *set, size_t size, uint32_t way)
{
	memmove((unsigned char *)set + size, set, way * size);
}

#endif
