/* SPDX-License-Identifier: Apache-2.0 */
/* What a record does to its thread's stack: frames go and come, each with its node in the builder. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/tachyon_replay.h"

enum { LEVELS_MAX = 1 << 24 };

/* Says where, for what is wrong with the records. */
int tachyon_malformed(struct replay *r, const char *what)
{
	if (r->stream.err && r->stream.err != -EPROTO)
		return fault_set(r->fault, r->stream.err, "", "%s", strerror(-r->stream.err));
	if (r->stream.err)
		what = "its compressed data is damaged";
	return fault_set(r->fault, -EPROTO, "", "%s (record %" PRIu64 ", byte %" PRIu64 " of the samples)", what,
	                 r->records, tachyon_stream_offset(&r->stream));
}

static bool ends_in(const char *text, size_t bytes, const char *end)
{
	size_t end_bytes = strlen(end);

	return bytes >= end_bytes && memcmp(text + bytes - end_bytes, end, end_bytes) == 0;
}

/* "~" as a file stands for none, as in pstats: "<GC>", "<native>". */
static uint32_t symbol_of(struct replay *r, uint32_t frame)
{
	const struct tachyon_frame *f = &r->file.frames[frame];
	const struct tachyon_string *name = &r->file.strings[f->name], *file = &r->file.strings[f->file];
	const char *texts = r->file.texts;
	bool special = file->bytes == 1 && texts[file->off] == '~' && f->line == 0;

	if (r->symbols[frame] == BUILDER_NONE) {
		r->is_internal[frame] = ends_in(texts + file->off, file->bytes, "_sync_coordinator.py");
		r->symbols[frame] =
			builder_symbol(r->to, texts + name->off, name->bytes, texts + file->off,
		                       special ? 0 : file->bytes, 0, special ? FRAME_SPECIAL : FRAME_PYTHON, 0);
	}
	return r->symbols[frame];
}

static bool is_gc(const struct replay *r, uint32_t frame)
{
	const struct tachyon_string *name = &r->file.strings[r->file.frames[frame].name];

	return name->bytes == 4 && memcmp(r->file.texts + name->off, "<GC>", 4) == 0;
}

static void enter(struct replay *r, struct replayed *t, uint32_t frame)
{
	const struct level *above = t->depth ? &t->levels[t->depth - 1] : NULL;
	struct level level = {.frame = frame, .node = above ? above->node : 0, .in_gc = above && above->in_gc};
	uint32_t symbol = symbol_of(r, frame);

	if (!r->is_internal[frame])
		level.node = builder_child(r->to, t->thread, level.node, symbol, r->file.frames[frame].line);
	level.in_gc |= is_gc(r, frame);
	t->levels[t->depth++] = level;
}

/* `count` frames on top of those that stay: they come innermost first. */
static int push(struct replay *r, struct replayed *t, uint64_t keep, uint64_t count)
{
	uint64_t frame;

	if (keep + count > REC_DEPTH_MAX)
		return tachyon_malformed(r, "a stack is deeper than 16,384 frames");
	if (keep + count > t->room) {
		struct level *larger = realloc(t->levels, (keep + count) * sizeof(*larger));

		if (!larger)
			return fault_set(r->fault, -ENOMEM, "", "out of memory");
		t->levels = larger;
		r->level_room += keep + count - t->room;
		t->room = (uint32_t)(keep + count);
		if (r->level_room > LEVELS_MAX)
			return tachyon_malformed(r, "the stacks of all threads have more than 16,777,216 frames");
	}
	for (uint64_t i = keep + count; i-- > keep;) {
		if (!tachyon_stream_varint(&r->stream, UINT32_MAX, &frame) || frame >= r->file.frame_count) {
			t->depth = 0;
			return tachyon_malformed(r, "a frame is not in the table");
		}
		t->levels[i].frame = (uint32_t)frame;
	}
	t->depth = (uint32_t)keep;
	for (uint64_t i = 0; i < count; i++)
		enter(r, t, t->levels[keep + i].frame);
	return 0;
}

int tachyon_change_stack(struct replay *r, struct replayed *t, unsigned kind)
{
	uint64_t first = 0, count;

	if (kind != RECORD_FULL && !tachyon_stream_varint(&r->stream, UINT32_MAX, &first))
		return tachyon_malformed(r, "a stack is cut off");
	if (!tachyon_stream_varint(&r->stream, UINT32_MAX, &count))
		return tachyon_malformed(r, "a stack is cut off");
	if (kind == RECORD_SUFFIX && first > t->depth)
		return tachyon_malformed(r, "a stack shares more frames than there are");
	if (kind == RECORD_POP_PUSH)
		first = first < t->depth ? t->depth - first : 0;
	return push(r, t, first, count);
}
