/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/ends.h"

#include "base/hash.h"
#include "base/ways.h"

#define WAYS 4u

static uint64_t set_of(raddr_t current, raddr_t end)
{
	return ways_set(hash_combine(current, end), ENDS, WAYS);
}

void ends_note(struct ends *ends, struct end end)
{
	struct end *set = &ends->ends[set_of(end.current, end.end)];
	uint32_t way = 0;

	while (way < WAYS - 1 && !(set[way].current == end.current && set[way].end == end.end))
		way++;
	ways_make_first(set, sizeof(*set), way);
	set[0] = end;
}

struct end ends_find(const struct ends *ends, raddr_t current, raddr_t end)
{
	const struct end *set = &ends->ends[set_of(current, end)];

	for (uint32_t way = 0; way < WAYS; way++)
		if (set[way].current == current && set[way].end == end)
			return set[way];
	return (struct end){0};
}
