/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Makes sure that one more of `count` entries finds a free slot soon; hash(set, index) is an entry's. 0 or -ENOMEM. */
static int make_room(struct intern_slots *table, uint32_t count, uint64_t (*hash)(const void *set, uint32_t index),
                     const void *set)
{
	size_t room = table->room ? table->room * 2 : 1024;
	uint32_t *slots;

	if (table->room && count < table->room / 2)
		return 0;
	if (count >= INTERN_FAILED - 1)
		return -ENOMEM;
	slots = calloc(room, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		size_t at = hash(set, i) & (room - 1);

		while (slots[at])
			at = (at + 1) & (room - 1);
		slots[at] = i + 1;
	}
	free(table->slots);
	table->slots = slots;
	table->room = room;
	return 0;
}

struct pair pair_set_get(const struct pair_set *set, uint32_t index)
{
	struct pair pair;

	memcpy(&pair, set->pairs.data + index * sizeof(pair), sizeof(pair));
	return pair;
}

static uint64_t pair_hash(const void *set, uint32_t index)
{
	struct pair pair = pair_set_get(set, index);

	return hash_combine(pair.a, pair.b);
}

/* The slot that the pair has, or the free one that it would get. There are slots. */
static size_t pair_slot(const struct pair_set *set, uint32_t a, uint32_t b)
{
	size_t at = hash_combine(a, b) & (set->table.room - 1);

	for (; set->table.slots[at]; at = (at + 1) & (set->table.room - 1)) {
		struct pair pair = pair_set_get(set, set->table.slots[at] - 1);

		if (pair.a == a && pair.b == b)
			break;
	}
	return at;
}

uint32_t pair_set_add(struct pair_set *set, uint32_t a, uint32_t b)
{
	struct pair new = {.a = a, .b = b};
	size_t at;

	if (make_room(&set->table, set->count, pair_hash, set))
		return INTERN_FAILED;
	at = pair_slot(set, a, b);
	if (set->table.slots[at])
		return set->table.slots[at] - 1;
	buf_add(&set->pairs, &new, sizeof(new));
	if (set->pairs.err)
		return INTERN_FAILED;
	set->table.slots[at] = ++set->count;
	return set->count - 1;
}

uint32_t pair_set_find(const struct pair_set *set, uint32_t a, uint32_t b)
{
	uint32_t number = set->table.room ? set->table.slots[pair_slot(set, a, b)] : 0;

	return number ? number - 1 : INTERN_FAILED;
}

void pair_set_release(struct pair_set *set)
{
	buf_release(&set->pairs);
	free(set->table.slots);
	*set = (struct pair_set){0};
}

static struct text_entry entry_of(const struct text_set *set, uint32_t index)
{
	struct text_entry entry;

	memcpy(&entry, set->entries.data + index * sizeof(entry), sizeof(entry));
	return entry;
}

const char *text_set_get(const struct text_set *set, uint32_t index, size_t *ret_bytes)
{
	struct text_entry entry = entry_of(set, index);

	if (ret_bytes)
		*ret_bytes = entry.bytes;
	return set->texts.data + entry.text_off;
}

static uint64_t text_hash(const void *set, uint32_t index)
{
	return entry_of(set, index).hash;
}

uint32_t text_set_add(struct text_set *set, const char *text, size_t bytes)
{
	struct text_entry new = {
		.text_off = set->texts.bytes, .hash = hash_bytes(0, text, bytes), .bytes = (uint32_t)bytes};
	size_t at;

	if (make_room(&set->table, set->count, text_hash, set))
		return INTERN_FAILED;
	at = new.hash &(set->table.room - 1);
	for (; set->table.slots[at]; at = (at + 1) & (set->table.room - 1)) {
		struct text_entry entry = entry_of(set, set->table.slots[at] - 1);

		if (entry.hash == new.hash &&
		    entry.bytes == new.bytes &&memcmp(set->texts.data + entry.text_off, text, bytes) == 0)
			return set->table.slots[at] - 1;
	}
	buf_add(&set->texts, text, bytes);
	buf_putc(&set->texts, '\0');
	buf_add(&set->entries, &new, sizeof(new));
	if (set->texts.err || set->entries.err)
		return INTERN_FAILED;
	set->table.slots[at] = ++set->count;
	return set->count - 1;
}

void text_set_release(struct text_set *set)
{
	buf_release(&set->texts);
	buf_release(&set->entries);
	free(set->table.slots);
	*set = (struct text_set){0};
}
