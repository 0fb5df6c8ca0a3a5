/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/keyed.h"

#include <errno.h>
#include <stdlib.h>

void keyed_release(struct keyed *keyed)
{
	free(keyed->items);
	lookup_release(&keyed->ids);
	*keyed = (struct keyed){0};
}

int keyed_add(struct keyed *keyed, uint32_t id, void *item)
{
	if (keyed->count == keyed->room) {
		uint32_t room = keyed->room ? keyed->room * 2 : 8;
		struct keyed_item *larger = NULL;

		if (room < LOOKUP_NONE / 2)
			larger = realloc(keyed->items, room * sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		keyed->items = larger;
		keyed->room = room;
	}
	if (lookup_add(&keyed->ids, lookup_hash_id(id), keyed->count))
		return -ENOMEM;
	keyed->items[keyed->count++] = (struct keyed_item){.id = id, .item = item};
	return 0;
}

void keyed_remove(struct keyed *keyed, uint32_t index)
{
	uint32_t last = --keyed->count;

	lookup_remove(&keyed->ids, lookup_hash_id(keyed->items[index].id), index);
	if (index == last)
		return;
	lookup_remove(&keyed->ids, lookup_hash_id(keyed->items[last].id), last);
	/* Cannot fail: an entry has just been removed. */
	lookup_add(&keyed->ids, lookup_hash_id(keyed->items[last].id), index);
	keyed->items[index] = keyed->items[last];
}
