/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/builder_state.h"
#include "base/utf8.h"

int builder_new(struct builder **ret_builder, const struct builder_options *options)
{
	struct builder *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->options = *options;
	b->budget.max_bytes = options->memory_max_bytes;
	symbols_init(&b->symbols, &b->budget, NULL, NULL);
	b->profile = calloc(1, sizeof(*b->profile));
	if (!b->profile) {
		builder_free(b);
		return -ENOMEM;
	}
	b->profile->values[VALUE_SAMPLES] = profile_value_types[VALUE_SAMPLES];
	b->profile->mode = "wall";
	*ret_builder = b;
	return 0;
}

void builder_free(struct builder *b)
{
	if (!b)
		return;
	for (uint32_t i = 0; i < b->thread_count; i++) {
		free(b->threads[i].like.name);
		free(b->threads[i].like.runs);
		tree_release(&b->threads[i].tree, &b->symbols);
	}
	free(b->threads);
	lookup_release(&b->thread_names);
	lookup_release(&b->process_names);
	symbols_release(&b->symbols);
	buf_release(&b->name);
	buf_release(&b->file);
	buf_release(&b->module);
	profile_free(b->profile);
	free(b);
}

struct profile *builder_profile(struct builder *b)
{
	return b->profile;
}

bool builder_has_window(const struct builder *b)
{
	return b->options.from_ns || b->options.to_ns;
}

bool builder_selects(const struct builder *b)
{
	return builder_has_window(b) || b->options.mode != MODE_WALL || b->options.no_idle;
}

bool builder_wants_time(const struct builder *b)
{
	return (b->options.runs && !b->options.runs_optional) || builder_has_window(b);
}

void builder_window(const struct builder *b, uint64_t *ret_from_ns, uint64_t *ret_to_ns)
{
	*ret_from_ns = b->options.from_ns;
	*ret_to_ns = b->options.to_ns;
}

bool builder_keeps_runs(const struct builder *b)
{
	return b->options.runs;
}

int builder_error(const struct builder *b)
{
	return b->err;
}

uint32_t builder_fail(struct builder *b, int err)
{
	if (!b->err)
		b->err = err;
	return BUILDER_NONE;
}

void *builder_grown(struct builder *b, void *array, uint32_t count, uint32_t *room, size_t bytes)
{
	uint32_t more = *room ? *room * 2 : 4;
	void *larger;

	if (count < *room)
		return array;
	larger = more < UINT32_MAX / 2 ? realloc(array, more * bytes) : NULL;
	if (!larger) {
		builder_fail(b, -ENOMEM);
		return NULL;
	}
	*room = more;
	return larger;
}

/* --- frames --- */

/* A text as we keep it: UTF-8, of bounded length. Whether it was cut. */
static bool add_text(struct buf *to, const char *text, size_t bytes)
{
	to->bytes = 0;
	utf8_add_valid(to, text, bytes > REC_TEXT_MAX ? REC_TEXT_MAX : bytes);
	return bytes > REC_TEXT_MAX;
}

static uint32_t intern(struct builder *b, struct symbol_content *content)
{
	uint32_t slot;

	if (b->name.err || b->file.err || b->module.err)
		return builder_fail(b, -ENOMEM);
	content->name = b->name.data ? b->name.data : "";
	content->file = b->file.data ? b->file.data : "";
	content->name_bytes = (uint32_t)b->name.bytes;
	content->file_bytes = (uint32_t)b->file.bytes;
	/* Kept until the end by the reference that symbols_intern() adds. */
	slot = symbols_intern(&b->symbols, content);
	b->name.bytes = b->file.bytes = b->module.bytes = 0;
	return slot == SYMBOL_LOST ? BUILDER_NONE : slot;
}

/* Both; true: something was cut off. */
static bool add_texts(struct builder *b, const char *name, size_t name_bytes, const char *file, size_t file_bytes)
{
	bool cut = add_text(&b->name, name, name_bytes);

	return add_text(&b->file, file, file_bytes) || cut;
}

uint32_t builder_symbol(struct builder *b, const char *name, size_t name_bytes, const char *file, size_t file_bytes,
                        uint32_t first_line, uint8_t kind, uint8_t flags)
{
	struct symbol_content content = {.first_line = first_line, .kind = kind, .flags = flags};

	if (b->err)
		return BUILDER_NONE;
	if (add_texts(b, name, name_bytes, file, file_bytes))
		content.flags |= SYMBOL_CUT;
	return intern(b, &content);
}

static bool is_build_id(const char *text)
{
	return strspn(text, "0123456789abcdef") == strlen(text) && strlen(text) <= 2 * (size_t)BUILD_ID_MAX;
}

uint32_t builder_symbol_like(struct builder *b, const struct symbol *symbol)
{
	struct symbol_content content = {.first_line = symbol->first_line,
	                                 .kind = symbol->kind,
	                                 .flags = symbol->flags,
	                                 .mapped = symbol->mapped && symbol->kind == FRAME_NATIVE,
	                                 .mapped_from = symbol->mapped_from,
	                                 .mapped_to = symbol->mapped_to};

	if (b->err)
		return BUILDER_NONE;
	if (add_texts(b, symbol->name, strlen(symbol->name), symbol->file, strlen(symbol->file)) && !content.mapped)
		content.flags |= SYMBOL_CUT;
	if (symbol->kind == FRAME_NATIVE) {
		add_text(&b->module, symbol->module, strlen(symbol->module));
		content.module = b->module.data;
		content.module_bytes = (uint32_t)b->module.bytes;
		content.build_id = symbol->build_id;
		content.build_id_bytes = is_build_id(symbol->build_id) ? (uint32_t)strlen(symbol->build_id) : 0;
	}
	return intern(b, &content);
}

void builder_named(struct builder *b, uint32_t symbol, uint32_t where, const struct named_frame *frames, size_t count)
{
	if (b->err || symbol >= b->symbols.count || !b->symbols.slots[symbol].mapped)
		return;
	if (named_add(&b->profile->named, symbol, where, frames, count) == -ENOMEM)
		builder_fail(b, -ENOMEM);
}

uint32_t builder_child(struct builder *b, uint32_t thread, uint32_t parent, uint32_t symbol, uint32_t line)
{
	if (b->err || !builder_has_node(b, thread, parent) || symbol >= b->symbols.count)
		return BUILDER_NONE;
	return tree_child(&b->threads[thread].tree, &b->symbols, parent, symbol, line);
}

/* --- the end --- */

static uint32_t deepest(const struct node *nodes, uint32_t count)
{
	uint32_t *depths = calloc(count, sizeof(*depths)), depth = 0;

	for (uint32_t i = 1; depths && i < count; i++) {
		depths[i] = depths[nodes[i].parent] + 1;
		depth = depths[i] > depth ? depths[i] : depth;
	}
	free(depths);
	return depth;
}

int builder_finish(struct builder *b, struct profile **ret_profile)
{
	struct profile *p = b->profile;
	bool has_times = p->t_end_ns != 0;

	if (b->err)
		return b->err;
	p->threads = calloc(b->thread_count + (size_t)1, sizeof(*p->threads));
	if (!p->threads || symbols_copy(&b->symbols, p))
		return b->err = -ENOMEM;
	for (uint32_t i = 0; i < b->thread_count; i++) {
		struct built_thread *from = &b->threads[i];
		struct thread_tree *to = &p->threads[p->thread_count];

		if (!builder_keeps_thread(b, i))
			continue;
		p->thread_count++;
		*to = from->like;
		to->nodes = from->tree.nodes;
		to->node_count = from->tree.count;
		to->depth_max = deepest(to->nodes, to->node_count);
		lookup_release(&from->tree.children);
		from->tree = (struct tree){0};
		from->like.name = NULL;
		from->like.runs = NULL;
		runs_sort(to);
		/* Where profiles of several clocks were joined, the threads' times do not compare. */
		if (has_times)
			continue;
		if (to->t_last_ns && (p->t_start_ns == 0 || to->t_first_ns < p->t_start_ns))
			p->t_start_ns = to->t_first_ns;
		if (p->t_end_ns < to->t_last_ns)
			p->t_end_ns = to->t_last_ns;
	}
	p->has_runs = b->options.runs;
	b->thread_count = 0;
	b->profile = NULL;
	*ret_profile = p;
	return 0;
}
