/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/named.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/builder.h"
#include "aggregator/lookup.h"
#include "aggregator/transform.h"
#include "base/buf.h"
#include "base/hash.h"

enum {
	PLACES_MAX = 1 << 22,
	FRAMES_MAX = 1 << 23,
	TEXTS_MAX_BYTES = 1 << 29,
};

struct place {
	uint32_t symbol, where;
	uint32_t first, count; /* of frames */
};

struct kept_frame {
	uint32_t name, file, module, build_id; /* where they begin in texts */
	uint32_t first_line, line;
	uint32_t kind;
};

struct named {
	struct buf texts; /* each with its NUL, and once */
	struct lookup text_hashes;
	struct buf frames; /* struct kept_frame */
	struct buf places; /* struct place */
	struct lookup place_hashes;
};

void named_free(struct named *t)
{
	if (!t)
		return;
	buf_release(&t->texts);
	buf_release(&t->frames);
	buf_release(&t->places);
	lookup_release(&t->text_hashes);
	lookup_release(&t->place_hashes);
	free(t);
}

static uint32_t place_hash(uint32_t symbol, uint32_t where)
{
	return (uint32_t)hash_combine(hash_u64(symbol), where);
}

static const struct place *find(const struct named *t, uint32_t symbol, uint32_t where)
{
	uint32_t hash = place_hash(symbol, where), at = hash, number;

	while (t && (number = lookup_next(&t->place_hashes, hash, &at)) != LOOKUP_NONE) {
		const struct place *place = (const struct place *)t->places.data + number;

		if (place->symbol == symbol && place->where == where)
			return place;
	}
	return NULL;
}

/* 0 or -errno. */
static int keep_text(struct named *t, const char *text, uint32_t *ret_off)
{
	size_t bytes = strlen(text) + 1;
	uint32_t hash = (uint32_t)hash_bytes(0, text, bytes), at = hash, off;

	while ((off = lookup_next(&t->text_hashes, hash, &at)) != LOOKUP_NONE)
		if (strcmp(t->texts.data + off, text) == 0) {
			*ret_off = off;
			return 0;
		}
	if (t->texts.bytes + bytes > TEXTS_MAX_BYTES)
		return -E2BIG;
	off = (uint32_t)t->texts.bytes;
	buf_add(&t->texts, text, bytes);
	if (t->texts.err || lookup_add(&t->text_hashes, hash, off))
		return -ENOMEM;
	*ret_off = off;
	return 0;
}

static int keep_frame(struct named *t, const struct named_frame *frame)
{
	struct kept_frame kept = {.first_line = frame->first_line, .line = frame->line, .kind = frame->kind};
	int err = keep_text(t, frame->name, &kept.name);

	if (!err)
		err = keep_text(t, frame->file, &kept.file);
	if (!err)
		err = keep_text(t, frame->module, &kept.module);
	if (!err)
		err = keep_text(t, frame->build_id, &kept.build_id);
	if (err)
		return err;
	buf_add(&t->frames, &kept, sizeof(kept));
	return t->frames.err ? -ENOMEM : 0;
}

int named_add(struct named **table, uint32_t symbol, uint32_t where, const struct named_frame *frames, size_t count)
{
	struct named *t = *table ? *table : calloc(1, sizeof(*t));
	struct place place = {.symbol = symbol, .where = where};
	int err = 0;

	if (!t)
		return -ENOMEM;
	*table = t;
	if (find(t, symbol, where))
		return 0;
	place.first = (uint32_t)(t->frames.bytes / sizeof(struct kept_frame));
	place.count = (uint32_t)(count < NAMED_FRAMES_MAX ? count : NAMED_FRAMES_MAX);
	if (t->places.bytes / sizeof(place) >= PLACES_MAX || place.first + place.count > FRAMES_MAX)
		return -E2BIG;
	for (uint32_t i = 0; i < place.count && !err; i++)
		err = keep_frame(t, &frames[i]);
	if (!err) {
		buf_add(&t->places, &place, sizeof(place));
		err = t->places.err ? -ENOMEM : 0;
	}
	if (!err)
		err = lookup_add(&t->place_hashes, place_hash(symbol, where),
		                 (uint32_t)(t->places.bytes / sizeof(place)) - 1);
	return err;
}

size_t named_find(const struct named *t, uint32_t symbol, uint32_t where, struct named_frame *to, size_t room)
{
	const struct place *place = find(t, symbol, where);
	size_t count = place && place->count < room ? place->count : room;

	if (!place)
		return FRAMES_SAME;
	for (size_t i = 0; i < count; i++) {
		const struct kept_frame *kept = (const struct kept_frame *)t->frames.data + place->first + i;

		to[i] = (struct named_frame){.name = t->texts.data + kept->name,
		                             .file = t->texts.data + kept->file,
		                             .first_line = kept->first_line,
		                             .line = kept->line,
		                             .kind = (uint8_t)kept->kind,
		                             .module = t->texts.data + kept->module,
		                             .build_id = t->texts.data + kept->build_id};
	}
	return count;
}

bool named_place(const struct named *t, uint32_t number, uint32_t *ret_symbol, uint32_t *ret_where)
{
	const struct place *place;

	if (!t || number >= t->places.bytes / sizeof(*place))
		return false;
	place = (const struct place *)t->places.data + number;
	*ret_symbol = place->symbol;
	*ret_where = place->where;
	return true;
}

size_t named_of_profile(void *none, const struct profile *profile, const struct node *node, struct named_frame *to,
                        size_t room)
{
	(void)none;
	return profile->symbols[node->symbol].mapped ? named_find(profile->named, node->symbol, node->line, to, room)
	                                             : FRAMES_SAME;
}

int profile_name(struct profile **profile, named_frames *frames, void *context)
{
	struct builder_options options = {.runs = (*profile)->has_runs};
	struct profile *named;
	struct builder *builder;
	int err = builder_new(&builder, &options);

	if (err)
		return err;
	err = transform_add(builder, *profile, &(struct transform){.frames = frames, .frames_context = context});
	if (!err)
		err = builder_finish(builder, &named);
	builder_free(builder);
	if (err)
		return err;
	profile_free(*profile);
	*profile = named;
	return 0;
}
