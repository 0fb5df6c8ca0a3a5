/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/ends.h"

#include <string.h>

#include "base/hash.h"
#include "base/ways.h"

#define MET_MAX 1024u

static uint64_t set_of(const struct end *place)
{
	return ways_set(hash_combine(hash_combine(place->current, place->end), place->generator), ENDS, ENDS_WAYS);
}

static bool is_same(const struct end *a, const struct end *b)
{
	return ends_is_at(a, b) && a->frame == b->frame && a->code == b->code && a->content == b->content &&
	       memcmp(a->calls, b->calls, sizeof(a->calls)) == 0;
}

void ends_note(struct ends *ends, const struct end *end)
{
	struct end *set = &ends->ends[set_of(end)], noted = *end;
	uint32_t way = 0;

	while (way < ENDS_WAYS - 1 && !is_same(&set[way], end))
		way++;
	if (is_same(&set[way], end)) {
		noted.met += set[way].met;
		noted.copied += set[way].copied;
		noted.told = set[way].told;
		noted.gone = set[way].gone;
		if (!noted.loop)
			noted.loop = set[way].loop;
	}
	ways_make_first(set, sizeof(*set), way);
	set[0] = noted;
	for (uint32_t i = 0; noted.met > MET_MAX && i < ENDS_WAYS; i++) {
		set[i].met /= 2;
		set[i].copied /= 2;
		set[i].told /= 2;
		set[i].gone /= 2;
	}
}

struct end *ends_find(struct ends *ends, const struct end *place)
{
	return &ends->ends[set_of(place)];
}
