/* SPDX-License-Identifier: Apache-2.0 */
/* Of a recording's writer: what places in mappings are called, at the file's end, so that it tells as much on another machine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/recording_state.h"

struct naming {
	struct recording_writer *to;
	const struct profile *profile;
	named_frames *frames;
	void *context;
	uint32_t *mappings; /* of each symbol: its number in the file; 0: none yet */
	uint32_t mapping_count;
	struct pair_set places;
	struct text_set known; /* bodies of the FRAME items that there are */
	struct buf body;
};

static void put_text(struct buf *to, const char *text)
{
	size_t bytes = strnlen(text, REC_TEXT_MAX);

	recording_put_text(to, text, bytes);
}

static uint32_t number_mapping(struct naming *n, uint32_t index)
{
	const struct symbol *symbol = &n->profile->symbols[index];
	struct buf *body;

	if (n->mappings[index])
		return n->mappings[index];
	body = recording_begin(n->to);
	put_u(body, symbol->flags);
	put_u(body, symbol->first_line);
	put_text(body, symbol->name);
	put_text(body, symbol->module);
	put_text(body, symbol->build_id);
	recording_end(n->to, ITEM_MAPPING);
	return n->mappings[index] = ++n->mapping_count;
}

/* 0: no memory, or the table is full. */
static uint32_t number_frame(struct naming *n, const struct named_frame *frame)
{
	uint32_t before = n->known.count, number;
	struct buf *body;

	n->body.bytes = 0;
	put_u(&n->body, frame->kind);
	put_u(&n->body, frame->first_line);
	put_text(&n->body, frame->name);
	put_text(&n->body, frame->file);
	put_text(&n->body, frame->module);
	put_text(&n->body, frame->build_id);
	if (n->body.err || before >= RECORDING_TABLE_MAX)
		return 0;
	number = text_set_add(&n->known, n->body.data, n->body.bytes);
	if (number == INTERN_FAILED)
		return 0;
	if (number == before) {
		body = recording_begin(n->to);
		buf_add(body, n->body.data, n->body.bytes);
		recording_end(n->to, ITEM_FRAME);
	}
	return number + 1;
}

static void name_place(struct naming *n, const struct node *node)
{
	struct named_frame frames[NAMED_FRAMES_MAX];
	uint32_t numbers[NAMED_FRAMES_MAX], before = n->places.count, mapping;
	struct buf *body;
	size_t count;

	if (!n->profile->symbols[node->symbol].mapped || pair_set_add(&n->places, node->symbol, node->line) != before)
		return;
	count = n->frames(n->context, n->profile, node, frames, NAMED_FRAMES_MAX);
	if (count == FRAMES_SAME)
		return;
	count = count < NAMED_FRAMES_MAX ? count : NAMED_FRAMES_MAX;
	mapping = number_mapping(n, node->symbol);
	for (size_t i = 0; i < count; i++) {
		numbers[i] = number_frame(n, &frames[i]);
		if (!numbers[i])
			return;
	}
	body = recording_begin(n->to);
	put_u(body, mapping);
	put_u(body, node->line);
	put_u(body, count);
	for (size_t i = 0; i < count; i++) {
		put_u(body, numbers[i]);
		put_u(body, frames[i].line);
	}
	recording_end(n->to, ITEM_NAMED);
}

void recording_writer_names(struct recording_writer *w, const struct profile *profile, named_frames *frames,
                            void *context)
{
	struct naming n = {.to = w, .profile = profile, .frames = frames, .context = context};

	n.mappings = calloc(profile->symbol_count + (size_t)1, sizeof(*n.mappings));
	if (!n.mappings)
		recording_fail(w, -ENOMEM);
	for (uint32_t i = 0; i < profile->thread_count && !w->block.err; i++)
		for (uint32_t j = 1; j < profile->threads[i].node_count && !w->block.err; j++)
			name_place(&n, &profile->threads[i].nodes[j]);
	free(n.mappings);
	pair_set_release(&n.places);
	text_set_release(&n.known);
	buf_release(&n.body);
}
