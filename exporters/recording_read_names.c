/* SPDX-License-Identifier: Apache-2.0 */
/* Of a recording's reader: native symbols, and what places in mappings are called. */
#include "base/utf8.h"
#include "exporters/recording_reader.h"

/* Of all names of places. */
#define NAME_TEXTS_MAX_BYTES (UINT64_C(256) << 20)

struct read_frame {
	size_t name, file, module, build_id; /* where they begin in name_texts */
	uint32_t first_line;
	uint8_t kind;
};

/* Keeps a text, made valid, with its NUL, and tells where it begins. */
static size_t keep_bytes(struct reader *r, const char *text, size_t bytes)
{
	size_t off = r->name_texts.bytes;

	utf8_add_valid(&r->name_texts, text, bytes > REC_TEXT_MAX ? REC_TEXT_MAX : bytes);
	buf_putc(&r->name_texts, '\0');
	return off;
}

static size_t keep_text(struct reader *r, struct cursor *c)
{
	size_t bytes;
	const char *text = take_text(c, &bytes);

	return keep_bytes(r, text, bytes);
}

static const char *text_at(const struct reader *r, size_t off)
{
	return r->name_texts.err ? "" : r->name_texts.data + off;
}

uint32_t reader_native_symbol(struct reader *r, struct cursor *c, const struct symbol_content *like)
{
	size_t before = r->name_texts.bytes, name = keep_bytes(r, like->name, like->name_bytes);
	size_t file = keep_bytes(r, like->file, like->file_bytes), none = keep_bytes(r, "", 0), module = none,
	       build_id = none;
	struct symbol symbol = {.first_line = like->first_line, .kind = like->kind, .flags = like->flags};
	uint32_t made;

	if (c->at < c->end && take_u(c) == 1) {
		symbol.mapped = true;
		symbol.first_line = (uint32_t)take_u(c);
		symbol.mapped_from = take_u(c);
		symbol.mapped_to = take_u(c);
		module = file;
		file = none;
		build_id = keep_text(r, c);
	} else if (c->at < c->end) {
		module = keep_text(r, c);
		build_id = keep_text(r, c);
	}
	if (!symbol.mapped && (like->name_bytes > REC_TEXT_MAX || like->file_bytes > REC_TEXT_MAX))
		symbol.flags |= SYMBOL_CUT;
	symbol.name = text_at(r, name);
	symbol.file = text_at(r, file);
	symbol.module = text_at(r, module);
	symbol.build_id = text_at(r, build_id);
	made = c->bad ? BUILDER_NONE : builder_symbol_like(r->to, &symbol);
	r->name_texts.bytes = before;
	return made;
}

bool reader_mapping(struct reader *r, struct cursor *c)
{
	struct symbol symbol = {.kind = FRAME_NATIVE, .flags = (uint8_t)take_u(c), .mapped = true, .file = ""};
	size_t before = r->name_texts.bytes, name, module, build_id;
	uint32_t made;

	symbol.first_line = (uint32_t)take_u(c);
	name = keep_text(r, c);
	module = keep_text(r, c);
	build_id = keep_text(r, c);
	symbol.name = text_at(r, name);
	symbol.module = text_at(r, module);
	symbol.build_id = text_at(r, build_id);
	if (c->bad || COUNT(r->mappings, uint32_t) >= RECORDING_TABLE_MAX)
		return false;
	made = builder_symbol_like(r->to, &symbol);
	r->name_texts.bytes = before;
	buf_add(&r->mappings, &made, sizeof(made));
	return true;
}

bool reader_frame(struct reader *r, struct cursor *c)
{
	uint64_t kind = take_u(c);
	struct read_frame frame = {.kind = (uint8_t)kind, .first_line = (uint32_t)take_u(c)};

	frame.name = keep_text(r, c);
	frame.file = keep_text(r, c);
	frame.module = keep_text(r, c);
	frame.build_id = keep_text(r, c);
	if (c->bad || kind > FRAME_SPECIAL || COUNT(r->frames, struct read_frame) >= RECORDING_TABLE_MAX ||
	    r->name_texts.bytes > NAME_TEXTS_MAX_BYTES)
		return false;
	buf_add(&r->frames, &frame, sizeof(frame));
	return true;
}

bool reader_named(struct reader *r, struct cursor *c)
{
	uint64_t mapping = take_u(c), place = take_u(c), count = take_u(c);
	struct named_frame frames[NAMED_FRAMES_MAX];

	if (c->bad || mapping == 0 || mapping > COUNT(r->mappings, uint32_t) || place > UINT32_MAX ||
	    count > NAMED_FRAMES_MAX)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t number = take_u(c), line = take_u(c);
		const struct read_frame *frame;

		if (c->bad || number == 0 || number > COUNT(r->frames, struct read_frame))
			return false;
		frame = (const struct read_frame *)r->frames.data + number - 1;
		frames[i] = (struct named_frame){.name = text_at(r, frame->name),
		                                 .file = text_at(r, frame->file),
		                                 .module = text_at(r, frame->module),
		                                 .build_id = text_at(r, frame->build_id),
		                                 .first_line = frame->first_line,
		                                 .line = (uint32_t)line,
		                                 .kind = frame->kind};
	}
	builder_named(r->to, ((const uint32_t *)r->mappings.data)[mapping - 1], (uint32_t)place, frames, (size_t)count);
	return true;
}
