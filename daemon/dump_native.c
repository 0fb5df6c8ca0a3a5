/* SPDX-License-Identifier: Apache-2.0 */
/* Native frames of a dump get their names as those of profiles do: a profile is made of their places, and asked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/builder.h"
#include "aggregator/records.h"
#include "daemon/dump.h"
#include "exporters/names.h"

struct work {
	struct dump *dump;
	struct names *names; /* NULL: none are had */
	struct profile *profile;
	uint32_t *symbol_of; /* in the profile, of each of the dump's; BUILDER_NONE */
	uint32_t first_new;  /* the dump's symbols from here on are made here */
	uint32_t next;
};

static bool is_place(const struct work *w, const struct frame *frame)
{
	return frame->kind == FRAME_NATIVE && frame->id < w->first_new && w->symbol_of[frame->id] != BUILDER_NONE;
}

static int make_profile(struct work *w)
{
	struct builder_options options = {0};
	struct dump *d = w->dump;
	struct builder *builder;
	uint64_t one[VALUE_COUNT] = {1};
	uint32_t thread, other;
	int err = builder_new(&builder, &options);

	if (err)
		return err;
	builder_process(builder, &(struct process){.pid = 1});
	thread = builder_thread(builder, &(struct thread_tree){.tid = 1});
	other = builder_symbol(builder, "other", strlen("other"), "", 0, 0, FRAME_SPECIAL, 0);
	for (uint32_t i = 0; i < d->symbol_room; i++)
		w->symbol_of[i] =
			d->symbols[i].name && d->symbols[i].mapped
				? builder_symbol_like(builder, &(struct symbol){.name = d->symbols[i].name,
		                                                                .file = "",
		                                                                .module = d->symbols[i].module,
		                                                                .build_id = d->symbols[i].build_id,
		                                                                .mapped = true,
		                                                                .first_line = d->symbols[i].first_line,
		                                                                .kind = FRAME_NATIVE,
		                                                                .flags = d->symbols[i].flags})
				: BUILDER_NONE;
	for (uint32_t t = 0; t < d->thread_count; t++) {
		uint32_t node = 0;

		for (uint32_t i = 0; i < d->threads[t].depth; i++) {
			const struct frame *frame = &d->threads[t].frames[i];
			uint32_t symbol = is_place(w, frame) ? w->symbol_of[frame->id] : other;

			node = builder_child(builder, thread, node, symbol, symbol == other ? 0 : frame->where);
		}
		builder_add(builder, thread, node, one);
	}
	err = builder_finish(builder, &w->profile);
	builder_free(builder);
	return err;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* The number of a new symbol for it; 0: no memory. */
static uint32_t add_symbol(struct work *w, const struct named_frame *frame)
{
	struct dump *d = w->dump;
	const char *file = frame->file[0] || strstr(frame->name, "+0x") ? frame->file : last_part(frame->module);
	struct dump_symbol symbol = {.name = strdup(frame->name),
	                             .file = strdup(file),
	                             .first_line = frame->first_line,
	                             .module = strdup(frame->module),
	                             .build_id = strdup(frame->build_id)};

	if (w->next == d->symbol_room) {
		uint32_t room = d->symbol_room ? d->symbol_room * 2 : 256;
		struct dump_symbol *symbols = realloc(d->symbols, room * sizeof(*symbols));

		if (symbols) {
			memset(symbols + d->symbol_room, 0, (room - d->symbol_room) * sizeof(*symbols));
			d->symbols = symbols;
			d->symbol_room = room;
		}
	}
	if (!symbol.name || !symbol.file || !symbol.module || !symbol.build_id || w->next == d->symbol_room) {
		free(symbol.name);
		free(symbol.file);
		free(symbol.module);
		free(symbol.build_id);
		return 0;
	}
	d->symbols[w->next] = symbol;
	return w->next++;
}

/* The frames that one becomes, appended to *to. */
static int add_frames(struct work *w, const struct frame *frame, struct frame **to, uint32_t *count)
{
	struct named_frame named[NAMED_FRAMES_MAX];
	struct node node = {.symbol = w->symbol_of[frame->id], .line = frame->where};
	size_t named_count =
		w->names ? names_frames(w->names, w->profile, &node, named, NAMED_FRAMES_MAX) : FRAMES_SAME;
	struct frame *frames;

	if (named_count == FRAMES_SAME) {
		frames = realloc(*to, (*count + 1) * sizeof(*frames));
		if (!frames)
			return -ENOMEM;
		*to = frames;
		frames[(*count)++] = *frame;
		return 0;
	}
	frames = realloc(*to, (*count + named_count + 1) * sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	*to = frames;
	for (size_t i = 0; i < named_count; i++) {
		uint32_t id = add_symbol(w, &named[i]);

		if (!id)
			return -ENOMEM;
		frames[(*count)++] = frame_make(FRAME_NATIVE, id, named[i].line);
	}
	return 0;
}

static int name_thread(struct work *w, struct dump_thread *thread)
{
	struct frame *frames = NULL, *grown;
	uint32_t count = 0;
	int err = 0;

	for (uint32_t i = 0; i < thread->depth && !err; i++) {
		const struct frame *frame = &thread->frames[i];

		if (is_place(w, frame)) {
			err = add_frames(w, frame, &frames, &count);
			continue;
		}
		grown = realloc(frames, (count + 1) * sizeof(*frames));
		err = grown ? 0 : -ENOMEM;
		if (grown) {
			frames = grown;
			frames[count++] = *frame;
		}
	}
	if (err) {
		free(frames);
		return err;
	}
	free(thread->frames);
	thread->frames = frames;
	thread->depth = count;
	return 0;
}

int dump_name(struct dump *dump, struct naming *naming)
{
	struct work w = {.dump = dump, .first_new = dump->symbol_room, .next = dump->symbol_room};
	int err;

	w.symbol_of = malloc((dump->symbol_room + (size_t)1) * sizeof(*w.symbol_of));
	err = w.symbol_of ? make_profile(&w) : -ENOMEM;
	if (!err)
		w.names = naming_prepare(naming, w.profile);
	for (uint32_t i = 0; i < dump->thread_count && !err; i++)
		err = name_thread(&w, &dump->threads[i]);
	profile_free(w.profile);
	free(w.symbol_of);
	return err;
}
