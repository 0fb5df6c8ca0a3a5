/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/records.h"
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

/* Of the four texts, with their NULs. */
static size_t content_bytes(const struct symbol_content *content)
{
	return (size_t)content->name_bytes + content->file_bytes + content->module_bytes + content->build_id_bytes + 4;
}

static size_t kept_bytes(const struct kept_symbol *kept)
{
	return (size_t)kept->name_bytes + kept->file_bytes + kept->module_bytes + kept->build_id_bytes + 4;
}

/* What a symbol costs: its texts, its slot and its entries in both tables. */
static uint64_t symbol_cost_bytes(size_t text_bytes)
{
	return sizeof(struct kept_symbol) + text_bytes + 2 * LOOKUP_ENTRY_BYTES;
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

static bool has_content(const struct kept_symbol *have, const struct symbol_content *content)
{
	const char *file = have->text + have->name_bytes + 1, *module = file + have->file_bytes + 1;

	return have->name_bytes == content->name_bytes && have->file_bytes == content->file_bytes &&
	       have->module_bytes == content->module_bytes && have->build_id_bytes == content->build_id_bytes &&
	       have->first_line == content->first_line && have->kind == content->kind &&
	       have->flags == content->flags && have->mapped == content->mapped &&
	       memcmp(have->text, content->name, content->name_bytes) == 0 &&
	       memcmp(file, content->file, content->file_bytes) == 0 &&
	       (!have->module_bytes || memcmp(module, content->module, content->module_bytes) == 0) &&
	       (!have->build_id_bytes ||
	        memcmp(module + have->module_bytes + 1, content->build_id, content->build_id_bytes) == 0);
}

/* The slot that already has this content, or SYMBOL_NONE. */
static uint32_t find_content(const struct symbols *symbols, const struct symbol_content *content, uint32_t hash)
{
	uint32_t at = hash;

	for (;;) {
		uint32_t slot = lookup_next(&symbols->contents, hash, &at);

		if (slot == LOOKUP_NONE)
			return SYMBOL_NONE;
		if (has_content(&symbols->slots[slot], content))
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

static char *put_text(char *to, const char *text, uint32_t bytes)
{
	if (bytes)
		memcpy(to, text, bytes);
	to[bytes] = '\0';
	return to + bytes + 1;
}

static char *copy_text(const struct symbol_content *content)
{
	char *text = malloc(content_bytes(content)), *at = text;

	if (!text)
		return NULL;
	at = put_text(at, content->name, content->name_bytes);
	at = put_text(at, content->file, content->file_bytes);
	at = put_text(at, content->module, content->module_bytes);
	put_text(at, content->build_id, content->build_id_bytes);
	return text;
}

static bool matches(const regex_t *regex, const char *text)
{
	return regex && regexec(regex, text, 0, NULL, 0) == 0;
}

/* A new slot without references, or SYMBOL_LOST when there is no memory for it. */
static uint32_t keep(struct symbols *symbols, const struct symbol_content *content, uint32_t hash)
{
	uint64_t cost_bytes = symbol_cost_bytes(content_bytes(content));
	const char *file, *module;
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
	module = file + content->file_bytes + 1;
	symbols->slots[slot] = (struct kept_symbol){
		.text = text,
		.name_bytes = content->name_bytes,
		.file_bytes = content->file_bytes,
		.module_bytes = content->module_bytes,
		.build_id_bytes = content->build_id_bytes,
		.first_line = content->first_line,
		.hash = hash,
		.kind = content->kind,
		.flags = content->flags,
		.omit = matches(symbols->omit, content->mapped ? module : file),
		.stop = matches(symbols->stop, content->mapped ? module : file) || matches(symbols->stop, text),
		.mapped = content->mapped,
		.mapped_from = content->mapped_from,
		.mapped_to = content->mapped_to,
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
	if (content.module_bytes || content.build_id_bytes)
		hash = (uint32_t)hash_bytes(hash_bytes(hash, content.module, content.module_bytes), content.build_id,
		                            content.build_id_bytes);
	slot = find_content(symbols, &content, hash);
	if (slot == SYMBOL_NONE)
		slot = keep(symbols, &content, hash);
	symbols_ref(symbols, slot);
	return slot;
}

static int define(struct symbols *symbols, uint32_t id, const struct symbol_content *content)
{
	uint32_t slot;
	int err;

	if (symbols_find(symbols, id) != SYMBOL_NONE)
		return -EPROTO;
	slot = symbols_intern(symbols, content);
	err = lookup_add(&symbols->ids, lookup_hash_id(id), slot);
	if (err)
		symbols_unref(symbols, slot);
	return err;
}

int symbols_define(struct symbols *symbols, const struct rec_symbol *record)
{
	struct symbol_content content;
	int err = content_parse(&content, record);

	return err ? err : define(symbols, record->id, &content);
}

struct symbol_content symbol_of_mapping(const struct rec_mapping *record, char build_id[2 * BUILD_ID_MAX])
{
	static const char digits[] = "0123456789abcdef", memory[] = "[memory]";
	const char *slash = record->path_bytes ? memrchr(record->text, '/', record->path_bytes) : NULL;
	const unsigned char *id_bytes = (const unsigned char *)record->text + record->path_bytes;
	struct symbol_content content = {
		.name = slash ? slash + 1 : record->text,
		.file = "",
		.module = record->text,
		.build_id = build_id,
		.module_bytes = record->path_bytes,
		.build_id_bytes = 2 * record->build_id_bytes,
		.first_line = record_mapping_key(record),
		.kind = FRAME_NATIVE,
		.flags = (uint8_t)record->flags,
		.mapped = true,
	};

	content.name_bytes = (uint32_t)(record->text + record->path_bytes - content.name);
	if (content.name_bytes == 0) {
		content.name = record->path_bytes ? record->text : memory;
		content.name_bytes = record->path_bytes ? record->path_bytes : sizeof(memory) - 1;
	}
	for (uint32_t i = 0; i < record->build_id_bytes; i++) {
		build_id[2 * i] = digits[id_bytes[i] >> 4];
		build_id[2 * i + 1] = digits[id_bytes[i] & 15];
	}
	if (!(record->flags & MAPPING_MEMORY) && record->file_off + (record->end - record->start) > record->file_off) {
		content.mapped_from = record->file_off;
		content.mapped_to = record->file_off + (record->end - record->start);
	}
	return content;
}

int symbols_define_mapping(struct symbols *symbols, const struct rec_mapping *record)
{
	char build_id[2 * BUILD_ID_MAX];
	struct symbol_content content = symbol_of_mapping(record, build_id);

	return define(symbols, record->id, &content);
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
	budget_give(symbols->budget, symbol_cost_bytes(kept_bytes(symbol)));
	free(symbol->text);
	give_slot(symbols, slot);
}

struct symbol symbols_get(const struct symbols *symbols, uint32_t slot)
{
	const struct kept_symbol *kept = &symbols->slots[slot];
	const char *file = kept->text + kept->name_bytes + 1, *module = file + kept->file_bytes + 1;

	return (struct symbol){
		.name = kept->text,
		.file = file,
		.module = module,
		.build_id = module + kept->module_bytes + 1,
		.mapped_from = kept->mapped_from,
		.mapped_to = kept->mapped_to,
		.mapped = kept->mapped,
		.first_line = kept->first_line,
		.kind = kept->kind,
		.flags = kept->flags,
	};
}

int symbols_copy(const struct symbols *symbols, struct profile *profile)
{
	size_t text_bytes = 1;
	char *text;

	for (uint32_t i = 0; i < symbols->count; i++)
		if (symbols->slots[i].text)
			text_bytes += kept_bytes(&symbols->slots[i]);
	profile->strings = malloc(text_bytes);
	profile->symbols = calloc((size_t)symbols->count + 1, sizeof(*profile->symbols));
	if (!profile->strings || !profile->symbols)
		return -ENOMEM;
	profile->symbol_count = symbols->count;
	text = profile->strings;
	for (uint32_t i = 0; i < symbols->count; i++) {
		const struct kept_symbol *kept = &symbols->slots[i];
		struct symbol *symbol = &profile->symbols[i];

		if (!kept->text) { /* a free slot, which no node names */
			*symbol = (struct symbol){.name = "<unknown>", .file = "", .module = "", .build_id = ""};
			continue;
		}
		memcpy(text, kept->text, kept_bytes(kept));
		*symbol = symbols_get(symbols, i);
		symbol->name = text;
		symbol->file = text + (symbol->file - kept->text);
		symbol->module = text + (symbol->module - kept->text);
		symbol->build_id = text + (symbol->build_id - kept->text);
		text += kept_bytes(kept);
	}
	return 0;
}
