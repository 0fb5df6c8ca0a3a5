/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/lookup.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_SLOTS = 16 };

void lookup_release(struct lookup *lookup)
{
	free(lookup->slots);
	*lookup = (struct lookup){0};
}

static void place(struct lookup *lookup, uint64_t slot)
{
	uint32_t at = (uint32_t)(slot >> 32);

	while (lookup->slots[at & lookup->mask])
		at++;
	lookup->slots[at & lookup->mask] = slot;
}

static int grow(struct lookup *lookup)
{
	uint64_t room = lookup->slots ? 2 * ((uint64_t)lookup->mask + 1) : FIRST_SLOTS;
	struct lookup larger = {.mask = (uint32_t)(room - 1), .used = lookup->used};

	if (room > UINT64_C(1) << 31)
		return -ENOMEM;
	larger.slots = calloc(room, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (uint64_t i = 0; lookup->slots && i <= lookup->mask; i++)
		if (lookup->slots[i])
			place(&larger, lookup->slots[i]);
	free(lookup->slots);
	*lookup = larger;
	return 0;
}

int lookup_add(struct lookup *lookup, uint32_t hash, uint32_t value)
{
	if (!lookup->slots || lookup->used > lookup->mask / 2) {
		int err = grow(lookup);

		if (err)
			return err;
	}
	place(lookup, (uint64_t)hash << 32 | (value + 1));
	lookup->used++;
	return 0;
}

/* Entries behind the hole move up where they may (not before the slot their hash names), so that no search stops short
 * and no tombstones are needed. */
void lookup_remove(struct lookup *lookup, uint32_t hash, uint32_t value)
{
	uint64_t wanted = (uint64_t)hash << 32 | (value + 1);
	uint32_t mask = lookup->mask;
	uint32_t hole = hash & mask;

	while (lookup->slots[hole] != wanted)
		hole = (hole + 1) & mask;
	lookup->slots[hole] = 0;
	lookup->used--;
	for (uint32_t at = (hole + 1) & mask; lookup->slots[at]; at = (at + 1) & mask) {
		uint32_t home = (uint32_t)(lookup->slots[at] >> 32) & mask;

		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		lookup->slots[hole] = lookup->slots[at];
		lookup->slots[at] = 0;
		hole = at;
	}
}
