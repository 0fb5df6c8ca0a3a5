/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static const char unknown_name[] = "<unknown>";

void symbols_init(struct symbols *symbols, struct budget *budget, const regex_t *omit, const regex_t *stop)
{
	*symbols = (struct symbols){.first_free = SYMBOL_NONE, .budget = budget, .omit = omit, .stop = stop};
}

void symbols_release(struct symbols *symbols)
{
	for (uint32_t i = 0; i < symbols->count; i++)
		free(symbols->slots[i].text);
	free(symbols->slots);
	lookup_release(&symbols->ids);
	lookup_release(&symbols->contents);
	*symbols = (struct symbols){.first_free = SYMBOL_NONE};
}

/* What a symbol costs: its texts, its slot and its entries in both tables. */
static uint64_t symbol_cost_bytes(uint32_t name_bytes, uint32_t file_bytes)
{
	return sizeof(struct kept_symbol) + name_bytes + file_bytes + 2 + 2 * LOOKUP_ENTRY_BYTES;
}

static int content_parse(struct symbol_content *ret_content, const struct rec_symbol *record)
{
	uint64_t text_bytes;
	struct symbol_content content;

	if (record->head.bytes < sizeof(*record))
		return -EPROTO;
	text_bytes = (uint64_t)record->name_bytes + record->file_bytes;
	if (text_bytes > record->head.bytes - sizeof(*record) ||
	    record->head.bytes != rec_round(sizeof(*record) + text_bytes))
		return -EPROTO;
	if (record->id == 0 || record->id >= 1U << 30 || record->flags > UINT8_MAX ||
	    (record->kind != FRAME_PYTHON && record->kind != FRAME_SPECIAL) || memchr(record->text, 0, text_bytes))
		return -EPROTO;
	content = (struct symbol_content){
		.name = record->text,
		.file = record->text + record->name_bytes,
		.name_bytes = record->name_bytes,
		.file_bytes = record->file_bytes,
		.first_line = record->first_line,
		.kind = (uint8_t)record->kind,
		.flags = (uint8_t)record->flags,
	};
	*ret_content = content;
	return 0;
}

/* The slot that already has this content, or SYMBOL_NONE. */
static uint32_t find_content(const struct symbols *symbols, const struct symbol_content *content, uint32_t hash)
{
	uint32_t at = hash;

	for (;;) {
		uint32_t slot = lookup_next(&symbols->contents, hash, &at);
		const struct kept_symbol *have;

		if (slot == LOOKUP_NONE)
			return SYMBOL_NONE;
		have = &symbols->slots[slot];
		if (have->name_bytes == content->name_bytes && have->file_bytes == content->file_bytes &&
		    have->first_line == content->first_line && have->kind == content->kind &&
		    have->flags == content->flags && memcmp(have->text, content->name, content->name_bytes) == 0 &&
		    memcmp(have->text + have->name_bytes + 1, content->file, content->file_bytes) == 0)
			return slot;
	}
}

static uint32_t free_slot(struct symbols *symbols)
{
	uint32_t slot = symbols->first_free;

	if (slot != SYMBOL_NONE) {
		symbols->first_free = symbols->slots[slot].next_free;
		return slot;
	}
	if (symbols->count == symbols->room) {
		uint32_t room = symbols->room ? symbols->room * 2 : 256;
		struct kept_symbol *slots = NULL;

		if (room < SYMBOL_LOST / 2)
			slots = realloc(symbols->slots, room * sizeof(*slots));
		if (!slots)
			return SYMBOL_LOST;
		symbols->slots = slots;
		symbols->room = room;
	}
	return symbols->count++;
}

static void give_slot(struct symbols *symbols, uint32_t slot)
{
	symbols->slots[slot] = (struct kept_symbol){.next_free = symbols->first_free};
	symbols->first_free = slot;
}

static char *copy_text(const struct symbol_content *content)
{
	char *text = malloc((size_t)content->name_bytes + content->file_bytes + 2);
	char *file;

	if (!text)
		return NULL;
	file = text + content->name_bytes + 1;
	memcpy(text, content->name, content->name_bytes);
	text[content->name_bytes] = '\0';
	memcpy(file, content->file, content->file_bytes);
	file[content->file_bytes] = '\0';
	return text;
}

static bool matches(const regex_t *regex, const char *text)
{
	return regex && regexec(regex, text, 0, NULL, 0) == 0;
}

/* A new slot without references, or SYMBOL_LOST when there is no memory for it. */
static uint32_t keep(struct symbols *symbols, const struct symbol_content *content, uint32_t hash)
{
	uint64_t cost_bytes = symbol_cost_bytes(content->name_bytes, content->file_bytes);
	const char *file;
	uint32_t slot;
	char *text;

	if (!budget_take(symbols->budget, cost_bytes))
		return SYMBOL_LOST;
	text = copy_text(content);
	slot = text ? free_slot(symbols) : SYMBOL_LOST;
	if (slot == SYMBOL_LOST)
		goto no_memory;
	if (lookup_add(&symbols->contents, hash, slot) != 0) {
		give_slot(symbols, slot);
		goto no_memory;
	}
	file = text + content->name_bytes + 1;
	symbols->slots[slot] = (struct kept_symbol){
		.text = text,
		.name_bytes = content->name_bytes,
		.file_bytes = content->file_bytes,
		.first_line = content->first_line,
		.hash = hash,
		.kind = content->kind,
		.flags = content->flags,
		.omit = matches(symbols->omit, file),
		.stop = matches(symbols->stop, file) || matches(symbols->stop, text),
	};
	return slot;
no_memory:
	free(text);
	budget_give(symbols->budget, cost_bytes);
	return SYMBOL_LOST;
}

uint32_t symbols_intern(struct symbols *symbols, const struct symbol_content *given)
{
	struct symbol_content content = *given;
	uint32_t hash, slot;

	if (content.name_bytes == 0) {
		content.name = unknown_name;
		content.name_bytes = sizeof(unknown_name) - 1;
	}
	hash = (uint32_t)hash_bytes(hash_bytes(content.first_line, content.name, content.name_bytes), content.file,
	                            content.file_bytes);
	slot = find_content(symbols, &content, hash);
	if (slot == SYMBOL_NONE)
		slot = keep(symbols, &content, hash);
	symbols_ref(symbols, slot);
	return slot;
}

int symbols_define(struct symbols *symbols, const struct rec_symbol *record)
{
	struct symbol_content content;
	uint32_t slot;
	int err = content_parse(&content, record);

	if (err)
		return err;
	if (symbols_find(symbols, record->id) != SYMBOL_NONE)
		return -EPROTO;
	slot = symbols_intern(symbols, &content);
	err = lookup_add(&symbols->ids, lookup_hash_id(record->id), slot);
	if (err)
		symbols_unref(symbols, slot);
	return err;
}

int symbols_forget(struct symbols *symbols, uint32_t id)
{
	uint32_t slot = symbols_find(symbols, id);

	if (slot == SYMBOL_NONE)
		return -EPROTO;
	lookup_remove(&symbols->ids, lookup_hash_id(id), slot);
	symbols_unref(symbols, slot);
	return 0;
}

void symbols_ref(struct symbols *symbols, uint32_t slot)
{
	if (slot < symbols->count)
		symbols->slots[slot].refs++;
}

void symbols_unref(struct symbols *symbols, uint32_t slot)
{
	struct kept_symbol *symbol;

	if (slot >= symbols->count)
		return;
	symbol = &symbols->slots[slot];
	if (--symbol->refs > 0)
		return;
	lookup_remove(&symbols->contents, symbol->hash, slot);
	budget_give(symbols->budget, symbol_cost_bytes(symbol->name_bytes, symbol->file_bytes));
	free(symbol->text);
	give_slot(symbols, slot);
}

int symbols_copy(const struct symbols *symbols, struct profile *profile)
{
	size_t text_bytes = 1;
	char *text;

	for (uint32_t i = 0; i < symbols->count; i++)
		if (symbols->slots[i].text)
			text_bytes += (size_t)symbols->slots[i].name_bytes + symbols->slots[i].file_bytes + 2;
	profile->strings = malloc(text_bytes);
	profile->symbols = calloc((size_t)symbols->count + 1, sizeof(*profile->symbols));
	if (!profile->strings || !profile->symbols)
		return -ENOMEM;
	profile->symbol_count = symbols->count;
	text = profile->strings;
	for (uint32_t i = 0; i < symbols->count; i++) {
		const struct kept_symbol *kept = &symbols->slots[i];
		size_t bytes = (size_t)kept->name_bytes + kept->file_bytes + 2;

		if (!kept->text) { /* a free slot, which no node names */
			profile->symbols[i] = (struct symbol){.name = "<unknown>", .file = ""};
			continue;
		}
		memcpy(text, kept->text, bytes);
		profile->symbols[i] = (struct symbol){
			.name = text,
			.file = text + kept->name_bytes + 1,
			.first_line = kept->first_line,
			.kind = kept->kind,
			.flags = kept->flags,
		};
		text += bytes;
	}
	return 0;
}
