/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from 32-bit hashes to 32-bit numbers, which the owner takes for indices into an array of its own. It
 * never looks at keys: where a hash does not determine the key, the owner compares each candidate itself. */
#ifndef SAMPLED_AGGREGATOR_LOOKUP_H
#define SAMPLED_AGGREGATOR_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#define LOOKUP_NONE UINT32_MAX

/* Open addressing, linear probing, at most half full. All zeros is an empty table. */
struct lookup {
	uint64_t *slots; /* hash << 32 | value + 1; 0: free. Owned */
	uint32_t mask;   /* slots - 1 */
	uint32_t used;
};

/* Memory an entry costs, at the worst (a table that has just grown, a quarter full). */
enum { LOOKUP_ENTRY_BYTES = 4 * sizeof(uint64_t) };

void lookup_release(struct lookup *lookup);
/* Adds value (below LOOKUP_NONE); equal hashes may be there already. 0 or -ENOMEM. */
int lookup_add(struct lookup *lookup, uint32_t hash, uint32_t value);
/* Removes the entry that has both; it must be there. */
void lookup_remove(struct lookup *lookup, uint32_t hash, uint32_t value);

/* The next value with this hash, or LOOKUP_NONE. *at is the caller's cursor and begins as the hash. */
static inline uint32_t lookup_next(const struct lookup *lookup, uint32_t hash, uint32_t *at)
{
	if (!lookup->slots)
		return LOOKUP_NONE;
	for (;;) {
		uint64_t slot = lookup->slots[(*at)++ & lookup->mask];

		if (!slot)
			return LOOKUP_NONE;
		if (slot >> 32 == hash)
			return (uint32_t)slot - 1;
	}
}

/* A hash of ids that no two ids share (the factor is odd), so that no comparison is needed. */
static inline uint32_t lookup_hash_id(uint32_t id)
{
	return id * UINT32_C(0x9e3779b1);
}

/* For tables keyed by id alone: the value, or LOOKUP_NONE. */
static inline uint32_t lookup_id(const struct lookup *lookup, uint32_t id)
{
	uint32_t at = lookup_hash_id(id);

	return lookup_next(lookup, lookup_hash_id(id), &at);
}

#endif
