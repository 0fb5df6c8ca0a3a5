/* SPDX-License-Identifier: Apache-2.0 */
/* A table of slots found by id through an index, and by content through chains. A retired symbol's slot is used again
 * for another symbol, its id is not. */
#include "sampler/symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sampler/record.h"

#define ID_MAX ((1u << 30) - 1)

struct slot {
	uint32_t id; /* 0: free */
	uint32_t refs;
	uint32_t next; /* slot of the next symbol with the same hash chain, or of the next free slot; 0: none */
	uint32_t first_line;
	uint64_t hash;
	uint32_t name_bytes, file_bytes;
	uint8_t kind, flags;
	bool published;
	char *text; /* name, then file, then, of a mapping, struct symbol_mapping */
};

struct symtab {
	struct slot *slots; /* slot 0 is not used */
	uint32_t slot_count, slot_room;
	uint32_t free_slot;
	uint32_t live;
	uint32_t *chains; /* by hash */
	uint32_t chain_count;
	uint32_t *by_id; /* open addressing, id → slot; power of two */
	uint32_t by_id_room;
	uint32_t next_id;
	uint32_t *forgotten; /* ids of published symbols that are retired and not announced yet */
	uint32_t forgotten_count, forgotten_room;
	uint64_t defined;
};

int symtab_new(struct symtab **ret_symbols)
{
	struct symtab *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->slot_room = 256;
	s->chain_count = 1024;
	s->by_id_room = 1024;
	s->slots = calloc(s->slot_room, sizeof(*s->slots));
	s->chains = calloc(s->chain_count, sizeof(*s->chains));
	s->by_id = calloc(s->by_id_room, sizeof(*s->by_id));
	if (!s->slots || !s->chains || !s->by_id) {
		symtab_free(s);
		return -ENOMEM;
	}
	s->slot_count = 1;
	s->next_id = 1;
	*ret_symbols = s;
	return 0;
}

void symtab_free(struct symtab *s)
{
	if (!s)
		return;
	for (uint32_t i = 1; s->slots && i < s->slot_count; i++)
		free(s->slots[i].text);
	free(s->slots);
	free(s->chains);
	free(s->by_id);
	free(s->forgotten);
	free(s);
}

/* The place of `id` in by_id, or of the empty entry where it belongs. */
static uint32_t id_place(const struct symtab *s, uint32_t id)
{
	uint32_t mask = s->by_id_room - 1;
	uint32_t i = (uint32_t)hash_u64(id) & mask;

	while (s->by_id[i] != 0 && s->slots[s->by_id[i]].id != id)
		i = (i + 1) & mask;
	return i;
}

static struct slot *slot_of(const struct symtab *s, uint32_t id)
{
	uint32_t slot = s->by_id[id_place(s, id)];

	return slot ? &s->slots[slot] : NULL;
}

/* Empties a place of by_id and moves up what a search would no longer reach behind the gap. */
static void id_remove(struct symtab *s, uint32_t hole)
{
	uint32_t mask = s->by_id_room - 1;

	for (uint32_t i = (hole + 1) & mask; s->by_id[i] != 0; i = (i + 1) & mask) {
		uint32_t home = (uint32_t)hash_u64(s->slots[s->by_id[i]].id) & mask;

		if (((i - home) & mask) >= ((i - hole) & mask)) {
			s->by_id[hole] = s->by_id[i];
			hole = i;
		}
	}
	s->by_id[hole] = 0;
}

/* Doubles the tables when they are half full. */
static bool grow(struct symtab *s)
{
	uint32_t room = s->by_id_room * 2;
	uint32_t *by_id, *chains;

	if (s->live + 1 < s->by_id_room / 2)
		return true;
	by_id = calloc(room, sizeof(*by_id));
	chains = calloc(room, sizeof(*chains));
	if (!by_id || !chains) {
		free(by_id);
		free(chains);
		return false;
	}
	free(s->by_id);
	free(s->chains);
	s->by_id = by_id;
	s->chains = chains;
	s->by_id_room = s->chain_count = room;
	for (uint32_t i = 1; i < s->slot_count; i++) {
		struct slot *slot = &s->slots[i];
		uint32_t chain = (uint32_t)slot->hash & (room - 1);

		if (slot->id == 0)
			continue;
		s->by_id[id_place(s, slot->id)] = i;
		slot->next = s->chains[chain];
		s->chains[chain] = i;
	}
	return true;
}

static uint32_t take_slot(struct symtab *s)
{
	uint32_t slot = s->free_slot;

	if (slot) {
		s->free_slot = s->slots[slot].next;
		return slot;
	}
	if (s->slot_count == s->slot_room) {
		struct slot *slots = realloc(s->slots, 2 * (size_t)s->slot_room * sizeof(*slots));

		if (!slots)
			return 0;
		s->slots = slots;
		s->slot_room *= 2;
	}
	return s->slot_count++;
}

static bool same(const struct slot *slot, const struct symbol_text *t, uint64_t hash)
{
	return slot->hash == hash && slot->first_line == t->first_line && slot->kind == t->kind &&
	       slot->flags == t->flags && slot->name_bytes == t->name_bytes && slot->file_bytes == t->file_bytes &&
	       memcmp(slot->text, t->name, t->name_bytes) == 0 &&
	       memcmp(slot->text + t->name_bytes, t->file, t->file_bytes) == 0;
}

uint32_t symtab_intern(struct symtab *s, const struct symbol_text *t)
{
	uint64_t hash = hash_bytes(hash_bytes(t->first_line, t->name, t->name_bytes), t->file, t->file_bytes);
	uint32_t place, chain;
	struct slot *slot;
	char *text;

	for (uint32_t i = s->chains[hash & (s->chain_count - 1)]; i != 0; i = s->slots[i].next) {
		if (same(&s->slots[i], t, hash)) {
			s->slots[i].refs++;
			return s->slots[i].id;
		}
	}
	if (s->next_id > ID_MAX || !grow(s))
		return 0;
	text = malloc((size_t)t->name_bytes + t->file_bytes + sizeof(*t->mapping));
	place = text ? take_slot(s) : 0;
	if (!place) {
		free(text);
		return 0;
	}
	memcpy(text, t->name, t->name_bytes);
	memcpy(text + t->name_bytes, t->file, t->file_bytes);
	if (t->mapping)
		memcpy(text + t->name_bytes + t->file_bytes, t->mapping, sizeof(*t->mapping));
	slot = &s->slots[place];
	chain = (uint32_t)hash & (s->chain_count - 1);
	*slot = (struct slot){
		.refs = 1,
		.next = s->chains[chain],
		.first_line = t->first_line,
		.hash = hash,
		.name_bytes = t->name_bytes,
		.file_bytes = t->file_bytes,
		.kind = t->kind,
		.flags = t->flags,
		.text = text,
	};
	s->chains[chain] = place;
	s->by_id[id_place(s, s->next_id)] = place;
	slot->id = s->next_id++;
	s->live++;
	s->defined++;
	return slot->id;
}

uint32_t symtab_special(struct symtab *s, const char *name)
{
	return symtab_intern(
		s, &(struct symbol_text){
			   .name = name, .file = "", .name_bytes = (uint32_t)strlen(name), .kind = FRAME_SPECIAL});
}

static void remember_forgotten(struct symtab *s, uint32_t id)
{
	if (s->forgotten_count == s->forgotten_room) {
		uint32_t room = s->forgotten_room ? s->forgotten_room * 2 : 64;
		uint32_t *list = realloc(s->forgotten, room * sizeof(*list));

		if (!list)
			return; /* the consumer keeps one symbol longer than it need */
		s->forgotten = list;
		s->forgotten_room = room;
	}
	s->forgotten[s->forgotten_count++] = id;
}

void symtab_unref(struct symtab *s, uint32_t id)
{
	uint32_t place = id ? id_place(s, id) : 0;
	uint32_t number = id ? s->by_id[place] : 0;
	struct slot *slot = &s->slots[number];
	uint32_t *link;

	if (!number || --slot->refs > 0)
		return;
	link = &s->chains[slot->hash & (s->chain_count - 1)];
	while (*link != number)
		link = &s->slots[*link].next;
	*link = slot->next;
	id_remove(s, place);
	if (slot->published)
		remember_forgotten(s, id);
	free(slot->text);
	*slot = (struct slot){.next = s->free_slot};
	s->free_slot = number;
	s->live--;
}

uint32_t symtab_mapping_key(const struct symbol_mapping *m, bool has_file)
{
	uint64_t hash = has_file ? hash_u64(m->inode ^ ((uint64_t)m->dev_major << 32 | m->dev_minor))
	                         : hash_u64(m->start ^ hash_u64(m->target));

	return (uint32_t)hash;
}

static bool publish_mapping(const struct slot *slot, struct ring *ring)
{
	uint32_t bytes = slot->name_bytes + slot->file_bytes;
	struct rec_mapping *record = ring_reserve(ring, rec_round(sizeof(*record) + bytes), REC_MAPPING);
	struct symbol_mapping mapping;

	if (!record)
		return false;
	memcpy(&mapping, slot->text + bytes, sizeof(mapping));
	record->id = slot->id;
	record->target = mapping.target;
	record->flags = slot->flags;
	record->dev_major = mapping.dev_major;
	record->dev_minor = mapping.dev_minor;
	record->path_bytes = slot->file_bytes;
	record->build_id_bytes = slot->name_bytes;
	record->pad = 0;
	record->start = mapping.start;
	record->end = mapping.end;
	record->file_off = mapping.file_off;
	record->inode = mapping.inode;
	memcpy(record->text, slot->text + slot->name_bytes, slot->file_bytes);
	memcpy(record->text + slot->file_bytes, slot->text, slot->name_bytes);
	ring_commit(ring);
	return true;
}

bool symtab_publish(struct symtab *s, uint32_t id, struct ring *ring)
{
	struct slot *slot = slot_of(s, id);
	struct rec_symbol *record;
	uint32_t bytes;

	if (!slot)
		return false;
	if (slot->published)
		return true;
	if (slot->kind == FRAME_NATIVE) {
		slot->published = publish_mapping(slot, ring);
		return slot->published;
	}
	bytes = slot->name_bytes + slot->file_bytes;
	record = ring_reserve(ring, rec_round(sizeof(*record) + bytes), REC_SYMBOL);
	if (!record)
		return false;
	record->id = id;
	record->kind = slot->kind;
	record->first_line = slot->first_line;
	record->name_bytes = slot->name_bytes;
	record->file_bytes = slot->file_bytes;
	record->flags = slot->flags;
	memcpy(record->text, slot->text, bytes);
	ring_commit(ring);
	slot->published = true;
	return true;
}

void symtab_flush_forgotten(struct symtab *s, struct ring *ring)
{
	while (s->forgotten_count > 0) {
		struct rec_forget *record = ring_reserve(ring, sizeof(*record), REC_FORGET);

		if (!record)
			return;
		record->id = s->forgotten[--s->forgotten_count];
		record->pad = 0;
		ring_commit(ring);
	}
}

uint64_t symtab_defined(const struct symtab *s)
{
	return s->defined;
}
