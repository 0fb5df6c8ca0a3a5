/* SPDX-License-Identifier: Apache-2.0 */
/* Of a recording's writer: symbols, which are kept as long as the sampler names them, and written at their first use. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/recording_state.h"

static char *copy_texts(const struct symbol_content *content)
{
	const char *texts[] = {content->name, content->file, content->module, content->build_id};
	uint32_t bytes[] = {content->name_bytes, content->file_bytes, content->module_bytes, content->build_id_bytes};
	char *text = malloc((size_t)bytes[0] + bytes[1] + bytes[2] + bytes[3] + 1), *at = text;

	for (int i = 0; i < 4 && text; i++) {
		if (bytes[i])
			memcpy(at, texts[i], bytes[i]);
		at += bytes[i];
	}
	return text;
}

static void know_symbol(struct recording_writer *w, uint32_t id, const struct symbol_content *content)
{
	uint32_t slot = w->free_symbol ? w->free_symbol - 1 : w->symbol_count;
	char *text = copy_texts(content);

	if (slot == w->symbol_room && text) {
		uint32_t room = w->symbol_room ? w->symbol_room * 2 : 256;
		struct known_symbol *larger = realloc(w->symbols, room * sizeof(*larger));

		if (larger) {
			w->symbols = larger;
			w->symbol_room = room;
		}
	}
	if (!text || slot == w->symbol_room || lookup_add(&w->symbol_ids, lookup_hash_id(id), slot)) {
		free(text);
		return recording_fail(w, -ENOMEM);
	}
	if (w->free_symbol)
		w->free_symbol = w->symbols[slot].next_free;
	else
		w->symbol_count++;
	w->symbols[slot] = (struct known_symbol){
		.text = text,
		.id = id,
		.name_bytes = content->name_bytes,
		.file_bytes = content->file_bytes,
		.module_bytes = content->module_bytes,
		.build_id_bytes = content->build_id_bytes,
		.first_line = content->mapped ? 0 : content->first_line,
		.key = content->first_line,
		.mapped_from = content->mapped_from,
		.mapped_to = content->mapped_to,
		.mapped = content->mapped,
		.kind = content->kind,
		.flags = content->flags,
	};
}

void recording_take_symbol(struct recording_writer *w, const struct rec_symbol *record)
{
	struct symbol_content content = {.name = record->text,
	                                 .file = record->text + record->name_bytes,
	                                 .name_bytes = record->name_bytes,
	                                 .file_bytes = record->file_bytes,
	                                 .first_line = record->first_line,
	                                 .kind = (uint8_t)record->kind,
	                                 .flags = (uint8_t)record->flags};

	know_symbol(w, record->id, &content);
}

void recording_take_mapping(struct recording_writer *w, const struct rec_mapping *record)
{
	char build_id[2 * BUILD_ID_MAX];
	struct symbol_content content = symbol_of_mapping(record, build_id);

	know_symbol(w, record->id, &content);
}

static uint32_t bounded(const char *text)
{
	return (uint32_t)strnlen(text, REC_TEXT_MAX);
}

void recording_writer_symbol(struct recording_writer *w, uint32_t id, const struct symbol *symbol)
{
	struct symbol_content content = {.name = symbol->name,
	                                 .file = symbol->file,
	                                 .module = symbol->module,
	                                 .build_id = symbol->build_id,
	                                 .name_bytes = bounded(symbol->name),
	                                 .file_bytes = bounded(symbol->file),
	                                 .module_bytes = bounded(symbol->module),
	                                 .build_id_bytes = bounded(symbol->build_id),
	                                 .first_line = symbol->first_line,
	                                 .kind = symbol->kind,
	                                 .flags = symbol->flags,
	                                 .mapped = symbol->mapped,
	                                 .mapped_from = symbol->mapped_from,
	                                 .mapped_to = symbol->mapped_to};

	if (!w->block.err)
		know_symbol(w, id, &content);
}

void recording_take_forget(struct recording_writer *w, const struct rec_forget *record)
{
	uint32_t slot = lookup_id(&w->symbol_ids, record->id);

	if (slot == LOOKUP_NONE)
		return;
	lookup_remove(&w->symbol_ids, lookup_hash_id(record->id), slot);
	free(w->symbols[slot].text);
	w->symbols[slot] = (struct known_symbol){.next_free = w->free_symbol};
	w->free_symbol = slot + 1;
}

/* What a frame names whose symbol is not known any more: the sampler does not write such. */
static const struct known_symbol nobody = {.text = (char *)""};

/* What follows of a native symbol. A mapping's file is what it is mapped from. */
static void put_native(struct buf *body, const struct known_symbol *symbol)
{
	const char *module = symbol->text + symbol->name_bytes + symbol->file_bytes;

	if (!symbol->mapped && !symbol->module_bytes)
		return;
	put_u(body, symbol->mapped);
	if (symbol->mapped) {
		put_u(body, symbol->key);
		put_u(body, symbol->mapped_from);
		put_u(body, symbol->mapped_to);
	} else {
		recording_put_text(body, module, symbol->module_bytes);
	}
	recording_put_text(body, module + symbol->module_bytes, symbol->build_id_bytes);
}

uint32_t recording_write_symbol(struct recording_writer *w, struct known_symbol *symbol)
{
	struct known_symbol copy = symbol ? *symbol : nobody;
	const char *path = copy.text + copy.name_bytes;
	uint32_t path_bytes = copy.file_bytes, files, file;
	struct buf *body;

	if (symbol && symbol->number && symbol->epoch == w->epoch)
		return symbol->number;
	if (copy.mapped) { /* it has no file else */
		path += copy.file_bytes;
		path_bytes = copy.module_bytes;
	}
	files = w->files.count;
	file = text_set_add(&w->files, path, path_bytes);
	if (file == INTERN_FAILED) {
		recording_fail(w, -ENOMEM);
		return 0;
	}
	body = recording_begin(w);
	put_u(body, copy.kind);
	put_u(body, copy.flags);
	put_u(body, copy.first_line);
	recording_put_text(body, copy.text, copy.name_bytes);
	put_u(body, file == files ? 0 : file + 1);
	if (file == files)
		recording_put_text(body, path, path_bytes);
	if (copy.kind == FRAME_NATIVE)
		put_native(body, &copy);
	recording_end(w, ITEM_SYMBOL);
	w->symbols_written++;
	if (symbol) {
		symbol->number = w->symbols_written;
		symbol->epoch = w->epoch;
	}
	return w->symbols_written;
}
