/* SPDX-License-Identifier: Apache-2.0 */
/* A set of things found by the 32-bit ids that the records give them; in no order. */
#ifndef SAMPLED_AGGREGATOR_KEYED_H
#define SAMPLED_AGGREGATOR_KEYED_H

#include <stddef.h>
#include <stdint.h>

#include "aggregator/lookup.h"

struct keyed_item {
	uint32_t id;
	void *item; /* not owned */
};

/* All zeros is an empty one. */
struct keyed {
	struct keyed_item *items; /* owned; count of them */
	uint32_t count, room;
	struct lookup ids;
};

/* Memory an item costs. */
enum { KEYED_ITEM_BYTES = 2 * sizeof(struct keyed_item) + LOOKUP_ENTRY_BYTES };

void keyed_release(struct keyed *keyed);
/* The id is not there yet. 0 or -ENOMEM. */
int keyed_add(struct keyed *keyed, uint32_t id, void *item);
/* Removes items[index]; the last one takes its place. */
void keyed_remove(struct keyed *keyed, uint32_t index);

/* NULL: there is none. */
static inline void *keyed_find(const struct keyed *keyed, uint32_t id)
{
	uint32_t index = lookup_id(&keyed->ids, id);

	return index == LOOKUP_NONE ? NULL : keyed->items[index].item;
}

#endif
