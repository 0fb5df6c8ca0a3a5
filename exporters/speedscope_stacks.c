/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/speedscope.h"

/* More than any profile that a browser can show. */
enum {
	FRAMES_MAX = 1 << 23,
	NODES_MAX = 1 << 26,
	PROFILES_MAX = 1 << 18,
	ROWS_MAX = 1 << 25, /* that are held, of one profile */
	TEXTS_MAX_BYTES = 1 << 30
};

struct speedscope_value {
	double weight;
	uint64_t count;
};

static int no_memory(struct fault *fault)
{
	return fault_set(fault, -ENOMEM, "", "out of memory");
}

static int too_many(struct fault *fault, const char *what, int bound)
{
	return fault_set(fault, -E2BIG, "", "it has more than %d %s", bound, what);
}

static struct speedscope_value *value_of(const struct speedscope *s, uint32_t node)
{
	return (struct speedscope_value *)(void *)s->values.data + node;
}

static struct speedscope_rows *rows_of(const struct speedscope *s)
{
	return (struct speedscope_rows *)(void *)s->rows.data;
}

void speedscope_release(struct speedscope *s)
{
	text_set_release(&s->texts);
	pair_set_release(&s->nodes);
	buf_release(&s->frames);
	buf_release(&s->values);
	buf_release(&s->profiles);
	buf_release(&s->rows);
	buf_release(&s->weights.early);
	buf_release(&s->counts.early);
}

int speedscope_text(struct speedscope *s, const char *text, size_t bytes, uint32_t *ret_text, struct fault *fault)
{
	uint32_t index = text_set_add(&s->texts, text, bytes > REC_TEXT_MAX ? REC_TEXT_MAX : bytes);

	if (index == INTERN_FAILED)
		return no_memory(fault);
	if (s->texts.texts.bytes > TEXTS_MAX_BYTES)
		return too_many(fault, "bytes of names", TEXTS_MAX_BYTES);
	*ret_text = index + 1;
	return 0;
}

int speedscope_frame(struct speedscope *s, const struct speedscope_frame *frame, struct fault *fault)
{
	if (s->frames.bytes / sizeof(*frame) >= FRAMES_MAX)
		return too_many(fault, "frames", FRAMES_MAX);
	buf_add(&s->frames, frame, sizeof(*frame));
	return s->frames.err ? no_memory(fault) : 0;
}

/* --- a profile --- */

static int child(struct speedscope *s, uint32_t parent, uint32_t frame, uint32_t *ret_node, struct fault *fault)
{
	static const struct speedscope_value none;
	uint32_t before = s->nodes.count, node = pair_set_add(&s->nodes, parent, frame);

	if (s->nodes.count > before)
		buf_add(&s->values, &none, sizeof(none));
	if (node == INTERN_FAILED || s->values.err)
		return no_memory(fault);
	if (node >= NODES_MAX)
		return too_many(fault, "different stacks", NODES_MAX);
	*ret_node = node;
	return 0;
}

int speedscope_begin(struct speedscope *s, struct fault *fault)
{
	static const struct speedscope_profile none;
	uint32_t index = (uint32_t)(s->profiles.bytes / sizeof(none));
	int err;

	if (index >= PROFILES_MAX)
		return too_many(fault, "profiles", PROFILES_MAX);
	buf_add(&s->profiles, &none, sizeof(none));
	if (s->profiles.err)
		return no_memory(fault);
	s->profile = (struct speedscope_profile *)(void *)s->profiles.data + index;
	s->rows.bytes = 0;
	s->row_count = 0;
	s->has_rows = s->has_time = false;
	s->weights.early.bytes = s->counts.early.bytes = 0;
	s->weights = (struct speedscope_column){.early = s->weights.early};
	s->counts = (struct speedscope_column){.early = s->counts.early};
	s->depth = s->too_deep = 0;
	err = child(s, UINT32_MAX, index, &s->profile->root, fault);
	s->at = s->profile->root;
	return err;
}

int speedscope_unit(struct speedscope *s, const char *text, size_t bytes, struct fault *fault)
{
	static const char *const names[] = {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == bytes && memcmp(names[i], text, bytes) == 0) {
			s->profile->unit = (enum speedscope_unit)i;
			return 0;
		}
	return fault_set(fault, -EPROTO, "", "its values have a unit that is not known");
}

static int open_frame(struct speedscope *s, double frame, struct fault *fault)
{
	if (!(frame >= 0 && frame < FRAMES_MAX) || frame != floor(frame))
		return fault_set(fault, -EPROTO, "", "%g is not the number of a frame", frame);
	if (s->depth == REC_DEPTH_MAX) {
		s->too_deep++;
		return 0;
	}
	s->depth++;
	return child(s, s->at, (uint32_t)frame, &s->at, fault);
}

/* --- sampled --- */

void speedscope_stack_begin(struct speedscope *s)
{
	s->at = s->profile->root;
	s->depth = s->too_deep = 0;
}

int speedscope_stack_frame(struct speedscope *s, double frame, struct fault *fault)
{
	return open_frame(s, frame, fault);
}

int speedscope_stack_end(struct speedscope *s, struct fault *fault)
{
	size_t count = s->rows.bytes / sizeof(struct speedscope_rows);
	struct speedscope_rows row = {.node = s->at, .count = 1};

	if (s->has_rows)
		return fault_set(fault, -EPROTO, "", "a profile has its samples twice");
	s->cut_stacks += s->too_deep > 0;
	s->row_count++;
	if (count > 0 && rows_of(s)[count - 1].node == s->at && rows_of(s)[count - 1].count < UINT32_MAX) {
		rows_of(s)[count - 1].count++;
		return 0;
	}
	if (count >= ROWS_MAX)
		return too_many(fault, "samples in a profile", ROWS_MAX);
	buf_add(&s->rows, &row, sizeof(row));
	return s->rows.err ? no_memory(fault) : 0;
}

/* The node that the column's next value belongs to. */
static int next_node(const struct speedscope *s, struct speedscope_column *column, uint32_t *ret_node,
                     struct fault *fault)
{
	if (column->taken >= s->row_count)
		return fault_set(fault, -EPROTO, "", "a profile has more weights than samples");
	column->taken++;
	if (column->used == rows_of(s)[column->row].count) {
		column->row++;
		column->used = 0;
	}
	column->used++;
	*ret_node = rows_of(s)[column->row].node;
	return 0;
}

static int keep_early(struct speedscope_column *column, double value, struct fault *fault)
{
	if (column->early.bytes / sizeof(value) >= ROWS_MAX)
		return too_many(fault, "samples in a profile", ROWS_MAX);
	buf_add(&column->early, &value, sizeof(value));
	return column->early.err ? no_memory(fault) : 0;
}

int speedscope_weight(struct speedscope *s, double weight, struct fault *fault)
{
	uint32_t node = 0;
	int err;

	if (!s->has_rows)
		return keep_early(&s->weights, weight, fault);
	err = next_node(s, &s->weights, &node, fault);
	if (err)
		return err;
	if (weight >= 0 && weight < 1e18)
		value_of(s, node)->weight += weight;
	else
		s->bad_weights++;
	return 0;
}

int speedscope_count(struct speedscope *s, double count, struct fault *fault)
{
	uint32_t node = 0;
	int err;

	if (!s->has_rows)
		return keep_early(&s->counts, count, fault);
	err = next_node(s, &s->counts, &node, fault);
	if (err)
		return err;
	if (count >= 0 && count < 1e15)
		value_of(s, node)->count += (uint64_t)count;
	else
		s->bad_weights++;
	return 0;
}

int speedscope_samples_end(struct speedscope *s, struct fault *fault)
{
	int err = 0;

	s->has_rows = true;
	for (size_t i = 0; i < s->weights.early.bytes / sizeof(double) && !err; i++)
		err = speedscope_weight(s, ((double *)(void *)s->weights.early.data)[i], fault);
	for (size_t i = 0; i < s->counts.early.bytes / sizeof(double) && !err; i++)
		err = speedscope_count(s, ((double *)(void *)s->counts.early.data)[i], fault);
	return err;
}

/* --- evented --- */

int speedscope_event(struct speedscope *s, const struct speedscope_event *event, struct fault *fault)
{
	double passed = s->has_time ? event->at - s->at_time : 0;

	if (!event->has_at || !event->has_frame || (event->type != 'O' && event->type != 'C'))
		return fault_set(fault, -EPROTO, "", "an event has no time, no frame or no type that is known");
	if (!(passed >= 0))
		return fault_set(fault, -EPROTO, "", "an event lies before the one in front of it");
	if (s->at != s->profile->root && passed > 0) {
		value_of(s, s->at)->weight += passed < 1e18 ? passed : 0;
		value_of(s, s->at)->count++;
		s->cut_stacks += s->too_deep > 0;
	}
	s->at_time = event->at;
	s->has_time = true;
	if (event->type == 'O')
		return open_frame(s, event->frame, fault);
	if (s->too_deep > 0) {
		s->too_deep--;
		return 0;
	}
	if (s->at == s->profile->root || pair_set_get(&s->nodes, s->at).b != event->frame)
		return fault_set(fault, -EPROTO, "", "an event closes frame %g, which is not the innermost",
		                 event->frame);
	s->at = pair_set_get(&s->nodes, s->at).a;
	s->depth--;
	return 0;
}

int speedscope_end(struct speedscope *s, struct fault *fault)
{
	if (s->weights.early.bytes && !s->has_rows)
		return fault_set(fault, -EPROTO, "", "a profile has weights and no samples");
	if (s->has_rows && s->weights.taken != s->row_count)
		return fault_set(fault, -EPROTO, "", "a profile has %" PRIu64 " samples and %" PRIu64 " weights",
		                 s->row_count, s->weights.taken);
	if (s->counts.taken && s->counts.taken != s->row_count)
		return fault_set(fault, -EPROTO, "", "a profile has %" PRIu64 " samples and %" PRIu64 " counts",
		                 s->row_count, s->counts.taken);
	s->left_open += s->has_time && s->at != s->profile->root;
	s->profile->counted = s->counts.taken > 0;
	if (s->has_rows && s->counts.taken == 0)
		for (size_t i = 0; i < s->rows.bytes / sizeof(struct speedscope_rows); i++)
			value_of(s, rows_of(s)[i].node)->count += rows_of(s)[i].count;
	return 0;
}

/* --- into the builder --- */

struct built {
	uint32_t *symbols; /* of each frame */
	uint32_t *threads; /* of each node */
	uint32_t *nodes;   /* of each node: the builder's */
	uint32_t *values;  /* of each profile: where its weight goes, or BUILDER_NONE */
};

static const char *text_of(const struct speedscope *s, uint32_t text, size_t *ret_bytes)
{
	*ret_bytes = 0;
	return text ? text_set_get(&s->texts, text - 1, ret_bytes) : "";
}

static void add_symbols(struct speedscope *s, struct builder *to, struct built *built)
{
	const struct speedscope_frame *frames = (const struct speedscope_frame *)(void *)s->frames.data;

	for (size_t i = 0; i < s->frames.bytes / sizeof(*frames); i++) {
		size_t name_bytes, file_bytes;
		const char *name = text_of(s, frames[i].name, &name_bytes);
		const char *file = text_of(s, frames[i].file, &file_bytes);
		bool special = file_bytes == 0 && name_bytes > 0 && (name[0] == '<' || name[0] == '(');

		built->symbols[i] = builder_symbol(to, name_bytes ? name : "<unknown>", name_bytes ? name_bytes : 9,
		                                   file, file_bytes, 0, special ? FRAME_SPECIAL : FRAME_PYTHON, 0);
	}
}

static uint32_t weight_value(struct builder *to, enum speedscope_unit unit)
{
	if (unit == UNIT_NONE)
		return BUILDER_NONE;
	if (unit == UNIT_BYTES)
		return builder_value(to, "bytes", "bytes", VALUE_WALL);
	return builder_value(to, profile_value_types[VALUE_WALL].name, profile_value_types[VALUE_WALL].unit,
	                     VALUE_WALL);
}

static uint32_t add_thread(struct speedscope *s, struct builder *to, const struct speedscope_profile *profile)
{
	size_t bytes;
	struct process process = {.pid = profile->pid, .name = (char *)text_of(s, profile->process, &bytes)};
	struct thread_tree thread = {
		.interpreter = profile->interpreter, .tid = profile->tid, .is_main = profile->is_main};
	/* One of ours says apart who the thread is, and may be without a name. */
	uint32_t name = profile->thread || profile->process ? profile->thread : profile->name;

	thread.process = builder_process(to, &process);
	thread.name = name ? (char *)text_of(s, name, &bytes) : NULL;
	return thread.process == BUILDER_NONE ? BUILDER_NONE : builder_thread(to, &thread);
}

static void add_values(const struct speedscope_profile *profile, uint32_t place, const struct speedscope_value *value,
                       struct builder *to, uint32_t thread, uint32_t node)
{
	static const double factors[] = {1, 1, 1e3, 1e6, 1e9, 1};
	double weight = round(value->weight * factors[profile->unit]);
	uint64_t whole = weight < 0x1p63 ? (uint64_t)weight : UINT64_C(1) << 63, values[VALUE_COUNT] = {0};

	values[VALUE_SAMPLES] = profile->unit == UNIT_NONE && !profile->counted ? whole : value->count;
	if (place != BUILDER_NONE)
		values[place] = whole;
	builder_add(to, thread, node, values);
}

static int add_nodes(struct speedscope *s, struct builder *to, struct built *built, struct fault *fault)
{
	const struct speedscope_profile *profiles = (const struct speedscope_profile *)(void *)s->profiles.data;
	const struct speedscope_frame *frames = (const struct speedscope_frame *)(void *)s->frames.data;
	size_t frame_count = s->frames.bytes / sizeof(*frames);
	uint32_t profile = 0;

	for (uint32_t i = 0; i < s->nodes.count; i++) {
		struct pair node = pair_set_get(&s->nodes, i);

		/* The nodes of a profile lie together, its root first. */
		if (node.a == UINT32_MAX) {
			profile = node.b;
			built->values[profile] = weight_value(to, profiles[profile].unit);
			built->threads[i] = add_thread(s, to, &profiles[profile]);
			built->nodes[i] = 0;
		} else if (node.b >= frame_count) {
			return fault_set(fault, -EPROTO, "", "a stack names frame %" PRIu32 " of %zu", node.b,
			                 frame_count);
		} else {
			built->threads[i] = built->threads[node.a];
			built->nodes[i] = builder_child(to, built->threads[i], built->nodes[node.a],
			                                built->symbols[node.b], frames[node.b].line);
		}
		add_values(&profiles[profile], built->values[profile], value_of(s, i), to, built->threads[i],
		           built->nodes[i]);
	}
	return 0;
}

static void add_note(struct builder *to, const char *key, const char *label, uint64_t count)
{
	if (count)
		builder_note(to, key, label, (double)count, true);
}

int speedscope_build(struct speedscope *s, struct builder *to, struct fault *fault)
{
	size_t profiles = s->profiles.bytes / sizeof(struct speedscope_profile);
	struct built built = {.symbols =
	                              calloc(s->frames.bytes / sizeof(struct speedscope_frame) + 1, sizeof(uint32_t)),
	                      .threads = calloc(s->nodes.count + (size_t)1, sizeof(uint32_t)),
	                      .nodes = calloc(s->nodes.count + (size_t)1, sizeof(uint32_t)),
	                      .values = calloc(profiles + 1, sizeof(uint32_t))};
	int err;

	if (!built.symbols || !built.threads || !built.nodes || !built.values) {
		err = no_memory(fault);
	} else {
		builder_profile(to)->imported = true;
		add_symbols(s, to, &built);
		err = add_nodes(s, to, &built, fault);
		add_note(to, "bad_weights", "weights left out: below zero, or too large", s->bad_weights);
		add_note(to, "cut_stacks", "stacks cut: too deep", s->cut_stacks);
		add_note(to, "left_open", "profiles with frames left open", s->left_open);
		if (!err && builder_error(to))
			err = fault_set(fault, builder_error(to), "", "%s", strerror(-builder_error(to)));
	}
	free(built.symbols);
	free(built.threads);
	free(built.nodes);
	free(built.values);
	return err;
}
