/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/keyset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MAX (1u << 18) /* 2 MiB */

int keyset_init(struct keyset *set, uint32_t room)
{
	*set = (struct keyset){.keys = calloc(room, sizeof(*set->keys)), .room = room};
	return set->keys ? 0 : -ENOMEM;
}

void keyset_release(struct keyset *set)
{
	free(set->keys);
	*set = (struct keyset){0};
}

/* Twice the room, or, past the bound or without memory, an empty set. */
static void make_room(struct keyset *set)
{
	struct keyset larger;

	if (set->room >= ROOM_MAX || keyset_init(&larger, 2 * set->room) != 0) {
		memset(set->keys, 0, set->room * sizeof(*set->keys));
		set->count = 0;
		return;
	}
	for (uint32_t i = 0; i < set->room; i++)
		if (set->keys[i] != 0)
			larger.keys[keyset_place(&larger, set->keys[i])] = set->keys[i];
	larger.count = set->count;
	keyset_release(set);
	*set = larger;
}

void keyset_add(struct keyset *set, uint64_t key)
{
	if (keyset_has(set, key))
		return;
	if (2 * (set->count + 1) > set->room)
		make_room(set);
	set->keys[keyset_place(set, key)] = key;
	set->count++;
}
