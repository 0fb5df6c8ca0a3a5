/* SPDX-License-Identifier: Apache-2.0 */
/* A set of 64-bit keys, open addressing. A false "known" needs a 64-bit collision. */
#include "sampler/edges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define ROOM_FIRST 1024u
#define ROOM_MAX (1u << 18) /* 2 MiB of keys a target */

#define PENDING_ROOM 4096u
#define PENDING_WAYS 16u /* so many keys of one stack may fall together and still all become known */
#define PENDING_NS (10 * NS_PER_S)

struct pending { /* not known yet */
	uint64_t key;
	uint64_t first_ns;
	uint32_t sightings;
};

struct edges {
	uint64_t *keys; /* 0: empty */
	uint32_t room, count;
	struct pending pending[PENDING_ROOM]; /* sets of PENDING_WAYS by key; a newer one takes the place of the oldest */
};

int edges_new(struct edges **ret_edges)
{
	struct edges *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->room = ROOM_FIRST;
	e->keys = calloc(e->room, sizeof(*e->keys));
	if (!e->keys) {
		free(e);
		return -ENOMEM;
	}
	*ret_edges = e;
	return 0;
}

void edges_free(struct edges *e)
{
	if (!e)
		return;
	free(e->keys);
	free(e);
}

static uint32_t place_of(const uint64_t *keys, uint32_t room, uint64_t key)
{
	uint32_t i = (uint32_t)(key >> 20) & (room - 1);

	while (keys[i] != 0 && keys[i] != key)
		i = (i + 1) & (room - 1);
	return i;
}

bool edges_has(const struct edges *e, uint64_t key)
{
	return e->keys[place_of(e->keys, e->room, key)] == key;
}

static void add(struct edges *e, uint64_t key)
{
	uint32_t place = place_of(e->keys, e->room, key);

	if (e->keys[place] == key)
		return;
	if (2 * (e->count + 1) > e->room) {
		uint64_t *keys = e->room < ROOM_MAX ? calloc(2 * (size_t)e->room, sizeof(*keys)) : NULL;

		if (!keys) {
			memset(e->keys, 0, e->room * sizeof(*e->keys));
			e->count = 0;
		} else {
			for (uint32_t i = 0; i < e->room; i++)
				if (e->keys[i] != 0)
					keys[place_of(keys, 2 * e->room, e->keys[i])] = e->keys[i];
			free(e->keys);
			e->keys = keys;
			e->room *= 2;
		}
		place = place_of(e->keys, e->room, key);
	}
	e->keys[place] = key;
	e->count++;
}

/* The entry of this key, or the oldest of those it may take. */
static struct pending *find_pending(struct edges *e, uint64_t key)
{
	struct pending *set = &e->pending[(key >> 8) % (PENDING_ROOM / PENDING_WAYS) * PENDING_WAYS];
	struct pending *oldest = set;

	for (uint32_t i = 0; i < PENDING_WAYS; i++) {
		if (set[i].key == key)
			return &set[i];
		if (set[i].first_ns < oldest->first_ns)
			oldest = &set[i];
	}
	return oldest;
}

bool edges_sight(struct edges *e, uint64_t key, uint64_t now_ns)
{
	struct pending *pending;

	if (edges_has(e, key))
		return false;
	pending = find_pending(e, key);
	if (pending->key != key || now_ns - pending->first_ns > PENDING_NS)
		*pending = (struct pending){.key = key, .first_ns = now_ns};
	if (++pending->sightings < EDGE_SIGHTINGS)
		return false;
	*pending = (struct pending){0};
	add(e, key);
	return true;
}
