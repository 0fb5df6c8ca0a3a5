/* SPDX-License-Identifier: Apache-2.0 */
/* What was read of a speedscope file, into the builder: by now all frames have their names. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/speedscope.h"

static const double unit_factors[] = {1, 1, 1e3, 1e6, 1e9, 1}; /* by enum speedscope_unit; of times to nanoseconds */

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

static uint32_t weight_value(struct builder *to, const struct speedscope_profile *profile)
{
	enum speedscope_unit unit = profile->unit;

	if (profile->is_cpu)
		return builder_value(to, profile_value_types[VALUE_CPU].name, profile_value_types[VALUE_CPU].unit,
		                     VALUE_CPU);
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
	double weight = round(value->weight * unit_factors[profile->unit]);
	uint64_t whole = weight < 0x1p63 ? (uint64_t)weight : UINT64_C(1) << 63, values[VALUE_COUNT] = {0};

	values[VALUE_SAMPLES] = profile->unit == UNIT_NONE && !profile->counted ? whole : value->count;
	if (place != BUILDER_NONE)
		values[place] = whole;
	builder_add(to, thread, node, values);
}

/* Whether rows of all threads are in the order of time, and last some. */
static bool is_timed(const struct speedscope *s)
{
	const struct speedscope_profile *profiles = (const struct speedscope_profile *)(void *)s->profiles.data;

	for (size_t i = 0; i < s->profiles.bytes / sizeof(*profiles); i++)
		if (!profiles[i].is_cpu && (profiles[i].unordered || profiles[i].unit == UNIT_NONE || profiles[i].unit == UNIT_BYTES))
			return false;
	return s->keeps_moments;
}

static void add_moments(const struct speedscope *s, struct builder *to, const struct built *built)
{
	const struct speedscope_profile *profiles = (const struct speedscope_profile *)(void *)s->profiles.data;
	const struct speedscope_moment *moments = (const struct speedscope_moment *)(void *)s->moments.data;
	uint64_t now_ns = 1; /* 0 is no time */

	builder_set_start(to, now_ns);
	for (size_t i = 0; i < s->moments.bytes / sizeof(*moments); i++) {
		double weight_ns = round(moments[i].weight * unit_factors[profiles[moments[i].profile].unit]);
		uint64_t values[VALUE_COUNT] = {0};

		if (profiles[moments[i].profile].is_cpu)
			continue;
		if (i == 0 || moments[i].profile != moments[i - 1].profile)
			now_ns = 1;
		values[VALUE_WALL] = weight_ns < 0x1p61 - (double)now_ns ? (uint64_t)weight_ns : 0;
		now_ns += values[VALUE_WALL];
		if (moments[i].count > 0)
			builder_run(to, built->threads[moments[i].node], built->nodes[moments[i].node], now_ns, now_ns,
			            moments[i].count, values[VALUE_WALL], STATUS_UNKNOWN);
	}
}

static int add_nodes(struct speedscope *s, struct builder *to, struct built *built, struct fault *fault)
{
	const struct speedscope_profile *profiles = (const struct speedscope_profile *)(void *)s->profiles.data;
	const struct speedscope_frame *frames = (const struct speedscope_frame *)(void *)s->frames.data;
	size_t frame_count = s->frames.bytes / sizeof(*frames);
	uint32_t profile = 0;
	bool timed = is_timed(s);

	for (uint32_t i = 0; i < s->nodes.count; i++) {
		struct pair node = pair_set_get(&s->nodes, i);

		/* The nodes of a profile lie together, its root first. */
		if (node.a == UINT32_MAX) {
			profile = node.b;
			built->values[profile] = weight_value(to, &profiles[profile]);
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
		if (!timed || profiles[profile].is_cpu)
			add_values(&profiles[profile], built->values[profile], speedscope_value_of(s, i), to, built->threads[i],
			           built->nodes[i]);
	}
	if (timed)
		add_moments(s, to, built);
	else if (builder_wants_time(to))
		return fault_set(fault, -EINVAL, "a recording (.sampled) has it", "this speedscope file holds no time order, so this cannot be done with it");
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
		err = fault_set(fault, -ENOMEM, "", "out of memory");
	} else {
		builder_profile(to)->imported = true;
		builder_profile(to)->uncounted = s->uncounted;
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
