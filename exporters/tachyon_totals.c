/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the JSON Lines of CPython's profiling.sampling (--jsonl; Lib/profiling/sampling/jsonl_collector.py): totals of frames, one JSON object a line,
 * tables of texts and frames before what names them. A frame is a function at a line, as in its pstats files; of frames that differ by column alone
 * the samples are added up. There are no stacks in it, and no callers. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exporters/formats.h"
#include "exporters/json_head.h"
#include "exporters/json_read.h"

enum { IDS_MAX = 1 << 24 };

struct totals {
	struct callgraph *to;
	struct text_set texts;
	struct buf strings; /* uint32_t: by str_id, a number in texts */
	struct buf frames;  /* uint32_t: by frame_id, a function of the graph */
	double interval_s;
	uint64_t samples, records;
	bool ended;
};

/* Makes room for entries up to this one; what is not set is INTERN_FAILED. */
static bool reach(struct buf *table, uint64_t index)
{
	static const uint32_t none = INTERN_FAILED;

	while (index < IDS_MAX && table->bytes / sizeof(none) <= index && !table->err)
		buf_add(table, &none, sizeof(none));
	return index < IDS_MAX && !table->err;
}

static uint32_t entry(const struct buf *table, uint64_t index)
{
	return index < table->bytes / sizeof(uint32_t) ? ((const uint32_t *)(const void *)table->data)[index]
	                                               : INTERN_FAILED;
}

static int wrong(struct fault *fault, const char *what)
{
	return fault_set(fault, -EPROTO, "", "a line of its %s makes no sense", what);
}

static int take_strings(struct totals *t, const struct json_tree *tree, struct fault *fault)
{
	const struct json_value *strings = json_member(tree, json_root(tree), "strings");

	for (const struct json_value *v = json_first(strings); v; v = json_after(tree, strings, v)) {
		uint64_t id = json_index(json_member(tree, v, "str_id"), IDS_MAX - 1);
		struct span text = json_text(tree, json_member(tree, v, "value"));
		uint32_t number = text_set_add(&t->texts, text.at, text.bytes);

		if (!reach(&t->strings, id) || number == INTERN_FAILED)
			return wrong(fault, "texts");
		((uint32_t *)(void *)t->strings.data)[id] = number;
	}
	return 0;
}

static int take_frames(struct totals *t, const struct json_tree *tree, struct fault *fault)
{
	const struct json_value *frames = json_member(tree, json_root(tree), "frames");

	for (const struct json_value *v = json_first(frames); v; v = json_after(tree, frames, v)) {
		uint64_t id = json_index(json_member(tree, v, "frame_id"), IDS_MAX - 1);
		uint32_t file = entry(&t->strings, json_index(json_member(tree, v, "path_str_id"), IDS_MAX)),
			 name = entry(&t->strings, json_index(json_member(tree, v, "func_str_id"), IDS_MAX));
		uint64_t line = json_index(json_member(tree, v, "line"), UINT32_MAX);
		size_t file_bytes, name_bytes;
		const char *file_text, *name_text;

		if (!reach(&t->frames, id) || file == INTERN_FAILED || name == INTERN_FAILED)
			return wrong(fault, "frames");
		file_text = text_set_get(&t->texts, file, &file_bytes);
		name_text = text_set_get(&t->texts, name, &name_bytes);
		((uint32_t *)(void *)t->frames.data)[id] = callgraph_function(
			t->to, name_text, name_bytes, file_text, file_bytes, line == UINT64_MAX ? 0 : (uint32_t)line);
	}
	return t->to->err ? fault_set(fault, -ENOMEM, "", "out of memory") : 0;
}

static int take_sums(struct totals *t, const struct json_tree *tree, struct fault *fault)
{
	const struct json_value *entries = json_member(tree, json_root(tree), "entries");

	if (!json_is(tree, json_member(tree, json_root(tree), "kind"), "frame"))
		return 0;
	for (const struct json_value *v = json_first(entries); v; v = json_after(tree, entries, v)) {
		uint32_t function = entry(&t->frames, json_index(json_member(tree, v, "frame_id"), IDS_MAX));
		uint64_t self = json_index(json_member(tree, v, "self"), UINT64_C(1) << 52),
			 all = json_index(json_member(tree, v, "cumulative"), UINT64_C(1) << 52);
		struct call_sums sums = {.calls = (int64_t)all, .primitive_calls = (int64_t)all};

		if (function == INTERN_FAILED || self == UINT64_MAX || all == UINT64_MAX)
			return wrong(fault, "totals");
		sums.self_s = (double)self * t->interval_s;
		sums.total_s = (double)all * t->interval_s;
		callgraph_give_sums(t->to, function);
		call_sums_add(&t->to->functions[function].sums, &sums);
		t->to->functions[function].self_samples += self;
		t->to->sampled_s += sums.self_s;
		t->samples += self;
	}
	return t->to->err ? fault_set(fault, -ENOMEM, "", "out of memory") : 0;
}

static int take_record(void *context, const struct json_tree *tree, struct fault *fault)
{
	struct totals *t = context;
	const struct json_value *type = json_member(tree, json_root(tree), "type");
	double interval_us = json_number(json_member(tree, json_root(tree), "sample_interval_usec"), -1);

	if (!type)
		return fault_set(fault, -EPROTO, "", "a line of it is no record");
	if (json_number(json_member(tree, json_root(tree), "v"), 0) != 0)
		return fault_set(fault, -EPROTO, "", "its records are of a later version than 0");
	if (t->records++ == 0 && !json_is(tree, type, "meta"))
		return fault_set(fault, -EPROTO, "", "its first record is not \"meta\"");
	if (json_is(tree, type, "meta") && interval_us > 0 && interval_us < 1e12)
		t->interval_s = interval_us / 1e6;
	if (json_is(tree, type, "string_table"))
		return take_strings(t, tree, fault);
	if (json_is(tree, type, "frame_table"))
		return take_frames(t, tree, fault);
	if (json_is(tree, type, "agg"))
		return take_sums(t, tree, fault);
	t->ended |= json_is(tree, type, "end");
	return 0;
}

int tachyon_totals_read(struct input *from, struct callgraph *to, struct fault *fault)
{
	struct totals t = {.to = to, .interval_s = 1e-3};
	char number[32];
	int err = json_each(from, NULL, take_record, &t, NULL, fault);

	if (!err && !t.ended)
		err = fault_set(fault, -EPROTO, "", "it was not written to its end");
	to->from_samples = true;
	snprintf(number, sizeof(number), "%llu", (unsigned long long)t.samples);
	callgraph_fact(to, "samples", number);
	text_set_release(&t.texts);
	buf_release(&t.strings);
	buf_release(&t.frames);
	return err;
}

bool tachyon_totals_detect(const unsigned char *head, size_t bytes)
{
	return json_begins(head, bytes, '{') && json_has_key(head, bytes, "run_id") &&
	       json_has_key(head, bytes, "sample_interval_usec");
}
