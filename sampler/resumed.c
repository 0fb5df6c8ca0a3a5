/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/resumed.h"

#include "base/hash.h"
#include "base/ways.h"

#define BELIEVED 4 /* sightings */
#define WAYS     4u

static uint64_t key_of(uint64_t caller, uint64_t callee)
{
	return hash_combine(caller, callee) | 1;
}

void resumed_note(struct resumed *r, uint64_t caller, uint64_t callee, int64_t offset)
{
	uint64_t key = key_of(caller, callee);
	struct resumed_place *set = &r->places[ways_set(key >> 1, RESUMED_PLACES, WAYS)], place;
	uint32_t way = 0;

	while (way < WAYS - 1 && set[way].key != key)
		way++;
	place = set[way];
	if (place.key != key)
		place = (struct resumed_place){.key = key, .offset = offset, .seen = 1};
	else if (place.offset != offset)
		place.seen = 0;
	else if (place.seen > 0 && place.seen < BELIEVED)
		place.seen++;
	ways_make_first(set, sizeof(*set), way);
	set[0] = place;
}

bool resumed_find(const struct resumed *r, uint64_t caller, uint64_t callee, int64_t *ret_offset)
{
	uint64_t key = key_of(caller, callee);
	const struct resumed_place *set = &r->places[ways_set(key >> 1, RESUMED_PLACES, WAYS)];

	for (uint32_t way = 0; way < WAYS; way++) {
		if (set[way].key == key && set[way].seen == BELIEVED) {
			*ret_offset = set[way].offset;
			return true;
		}
	}
	return false;
}
