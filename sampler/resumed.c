/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/resumed.h"

#include "base/hash.h"

#define BELIEVED 4 /* sightings */

static uint64_t key_of(uint64_t caller, uint64_t callee)
{
	return hash_combine(caller, callee) | 1;
}

void resumed_note(struct resumed *r, uint64_t caller, uint64_t callee, int64_t offset)
{
	uint64_t key = key_of(caller, callee);
	struct resumed_place *place = &r->places[(key >> 1) % RESUMED_PLACES];

	if (place->key != key)
		*place = (struct resumed_place){.key = key, .offset = offset, .seen = 1};
	else if (place->offset != offset)
		place->seen = 0;
	else if (place->seen > 0 && place->seen < BELIEVED)
		place->seen++;
}

bool resumed_find(const struct resumed *r, uint64_t caller, uint64_t callee, int64_t *ret_offset)
{
	uint64_t key = key_of(caller, callee);
	const struct resumed_place *place = &r->places[(key >> 1) % RESUMED_PLACES];

	if (place->key != key || place->seen < BELIEVED)
		return false;
	*ret_offset = place->offset;
	return true;
}
