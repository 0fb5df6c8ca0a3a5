/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of a Dask profile, once it is whole, goes to the builder: what a node counts beyond its children is its own. */
#include "exporters/dask_reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exporters/span.h"

/* Of all counts; each is below it (dask_read.c). */
#define SUM_MAX (UINT64_C(1) << 62)

int dask_stop(struct dask_reader *r, const char *why)
{
	if (!r->why)
		fault_set(r->fault, -EPROTO, "", "%s", why);
	r->why = r->why ? r->why : why;
	return 0;
}

static struct span text_of(const struct dask_reader *r, uint32_t number)
{
	struct span span = {.at = ""};

	if (number != INTERN_FAILED)
		span.at = text_set_get(&r->texts, number, &span.bytes);
	return span;
}

/* An identifier is NAME;FILE;LINE; a description, where there is one, says the first two better. */
static uint32_t symbol_of(struct dask_reader *r, const struct dask_node *node)
{
	struct span identifier = text_of(r, node->identifier), name = identifier, file = {.at = ""};
	const char *first = memchr(identifier.at, ';', identifier.bytes);
	const char *last = memrchr(identifier.at, ';', identifier.bytes);
	uint64_t line = 0;

	if (first && last > first) {
		const char *end = identifier.at + identifier.bytes;

		name.bytes = (size_t)(first - identifier.at);
		file = (struct span){.at = first + 1, .bytes = (size_t)(last - first) - 1};
		for (const char *c = last + 1; c < end && *c >= '0' && *c <= '9' && line <= UINT32_MAX; c++)
			line = line * 10 + (uint64_t)(*c - '0');
		line = line > UINT32_MAX ? 0 : line;
	}
	if (node->name != INTERN_FAILED)
		name = text_of(r, node->name);
	if (node->filename != INTERN_FAILED)
		file = text_of(r, node->filename);
	return builder_symbol(r->to, name.at, name.bytes, file.at, file.bytes, (uint32_t)line,
	                      file.bytes == 0                                               ? FRAME_SPECIAL
	                      : file.bytes == 11 && memcmp(file.at, "<low-level>", 11) == 0 ? FRAME_NATIVE
	                                                                                    : FRAME_PYTHON,
	                      0);
}

static bool add_samples(struct dask_reader *r, uint32_t place, uint64_t count)
{
	uint64_t values[VALUE_COUNT] = {
		[VALUE_SAMPLES] = r->is_weight ? 1 : count, [VALUE_WALL] = r->is_weight ? count : 0};

	r->sum += count;
	if (r->sum > SUM_MAX)
		return false;
	if (r->has_time)
		builder_run(r->to, r->thread, place, r->time_ns, r->time_ns, count, 0, 0);
	else
		builder_add(r->to, r->thread, place, values);
	return true;
}

/* What the counts of ours are, where it is not samples. */
static void name_value(struct dask_reader *r)
{
	char name[72], unit[72];

	if (r->value == INTERN_FAILED || r->unit == INTERN_FAILED || r->has_time || r->is_weight)
		return;
	snprintf(name, sizeof(name), "%.64s", text_of(r, r->value).at);
	snprintf(unit, sizeof(unit), "%.64s", text_of(r, r->unit).at);
	r->is_weight = builder_value(r->to, name, unit, VALUE_WALL) == VALUE_WALL;
	builder_profile(r->to)->uncounted |= r->is_weight;
}

int dask_end_tree(struct dask_reader *r)
{
	uint32_t count = (uint32_t)(r->nodes.bytes / sizeof(struct dask_node));

	for (uint32_t i = count; i-- > 1;) {
		struct dask_node *parent = dask_raw(r, dask_raw(r, i)->parent);

		parent->below += dask_raw(r, i)->count;
		if (parent->below > SUM_MAX)
			return dask_stop(r, "the counts make no sense");
	}
	name_value(r);
	if (r->has_time && r->first_ns == 0) {
		r->first_ns = r->time_ns;
		builder_set_start(r->to, r->time_ns);
	}
	for (uint32_t i = 0; i < count; i++) {
		struct dask_node *node = dask_raw(r, i);

		if (i > 0)
			node->place = builder_child(r->to, r->thread, dask_raw(r, node->parent)->place,
			                            symbol_of(r, node), node->line);
		if (!node->has_count)
			return dask_stop(r, "a node has no count");
		r->repaired += node->count < node->below;
		if (node->count > node->below && !add_samples(r, node->place, node->count - node->below))
			return dask_stop(r, "the counts make no sense");
	}
	r->trees++;
	r->untimed += !r->has_time;
	r->nodes.bytes = 0;
	if (r->texts.count > DASK_NODES_MAX || r->texts.texts.bytes > 256 << 20) /* of earlier trees */
		text_set_release(&r->texts);
	return !builder_error(r->to);
}
