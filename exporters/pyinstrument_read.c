/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pyinstrument's sessions (pyinstrument -r session, .pyisession): a record a sample, its stack from the outermost frame in and the seconds that
 * it stands for. A frame is "NAME\0FILE\0FIRST LINE", then attributes behind \1: l its line. The first is the
 * thread. Each record follows the one before in time. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/formats.h"
#include "exporters/json_head.h"
#include "exporters/json_read.h"

struct session {
	struct builder *to;
	const struct json_tree *tree;
	struct fault *fault;
	uint32_t process; /* the builder's */
	uint64_t now_ns, bad;
	bool timed;
};

static uint32_t number_of(struct span text)
{
	uint64_t number = 0;

	for (size_t i = 0; i < text.bytes && is_digit(text.at[i]) && number <= UINT32_MAX; i++)
		number = number * 10 + (uint64_t)(text.at[i] - '0');
	return number <= UINT32_MAX ? (uint32_t)number : 0;
}

/* What stands before `end`, taken off the text with it. */
static struct span take_part(struct span *text, char end)
{
	const char *at = memchr(text->at, end, text->bytes);
	struct span part = {.at = text->at, .bytes = at ? (size_t)(at - text->at) : text->bytes};

	*text = at ? span_behind(*text, part.bytes + 1) : (struct span){.at = ""};
	return part;
}

struct frame_text {
	struct span name, file, owner;
	uint32_t first_line, line;
	struct span third; /* of a thread: its number */
};

static struct frame_text frame_text(struct span text)
{
	struct frame_text frame = {.owner = {.at = ""}};
	struct span identity = take_part(&text, '\1');

	frame.name = take_part(&identity, '\0');
	frame.file = take_part(&identity, '\0');
	frame.third = identity;
	frame.line = frame.first_line = number_of(identity);
	while (text.bytes > 0) {
		struct span attribute = take_part(&text, '\1');

		if (attribute.bytes > 1 && attribute.at[0] == 'l')
			frame.line = number_of(span_behind(attribute, 1));
		else if (attribute.bytes > 1 && attribute.at[0] == 'c')
			frame.owner = span_behind(attribute, 1);
	}
	return frame;
}

static bool is_text(struct span span, const char *text)
{
	return span.bytes == strlen(text) && memcmp(span.at, text, span.bytes) == 0;
}

static uint32_t add_frame(struct session *s, uint32_t thread, uint32_t parent, const struct frame_text *frame)
{
	bool special = frame->name.bytes && frame->name.at[0] == '[';
	struct buf name = {0};
	uint32_t symbol;

	if (frame->owner.bytes) {
		buf_add(&name, frame->owner.at, frame->owner.bytes);
		buf_putc(&name, '.');
	}
	buf_add(&name, frame->name.at, frame->name.bytes);
	symbol =
		builder_symbol(s->to, name.bytes ? name.data : "<unknown>", name.bytes ? name.bytes : 9, frame->file.at,
	                       frame->file.bytes, frame->first_line, special ? FRAME_SPECIAL : FRAME_PYTHON, 0);
	buf_release(&name);
	return builder_child(s->to, thread, parent, symbol, frame->line);
}

static uint32_t find_thread(struct session *s, const struct frame_text *frame)
{
	struct thread_tree like = {.process = s->process};
	struct buf name = {0};
	uint32_t thread;

	buf_add(&name, frame->name.at, frame->name.bytes);
	if (name.bytes)
		like.name = (char *)buf_text(&name);
	like.is_main = is_text(frame->name, "MainThread");
	like.tid = 0; /* its number is Python's thread_id, no system's */
	thread = builder_thread(s->to, &like);
	buf_release(&name);
	return thread;
}

static void add_values(struct session *s, uint32_t thread, uint32_t node, uint64_t ns, uint64_t count)
{
	uint64_t values[VALUE_COUNT] = {[VALUE_SAMPLES] = count, [VALUE_WALL] = ns};

	s->now_ns += ns;
	if (s->timed)
		builder_run(s->to, thread, node, s->now_ns, s->now_ns, count, ns, STATUS_UNKNOWN);
	else
		builder_add(s->to, thread, node, values);
}

static uint64_t ns_of(const struct json_value *value)
{
	double s = json_number(value, -1);

	return s >= 0 && s < 1e9 ? (uint64_t)llround(s * 1e9) : UINT64_MAX;
}

static void add_record(struct session *s, const struct json_value *record)
{
	const struct json_value *stack = json_first(record), *time = stack ? json_after(s->tree, record, stack) : NULL;
	uint64_t ns = ns_of(time);
	uint32_t thread = BUILDER_NONE, node = 0, depth = 0;

	if (!stack || stack->type != JSON_ARRAY || ns == UINT64_MAX) {
		s->bad++;
		return;
	}
	for (const struct json_value *v = json_first(stack); v; v = json_after(s->tree, stack, v)) {
		struct frame_text frame = frame_text(json_text(s->tree, v));

		if (thread == BUILDER_NONE) {
			thread = find_thread(s, &frame);
			if (is_text(frame.file, "<thread>"))
				continue;
		}
		if (depth++ < REC_DEPTH_MAX)
			node = add_frame(s, thread, node, &frame);
	}
	if (thread == BUILDER_NONE)
		thread = find_thread(s, &(struct frame_text){0});
	add_values(s, thread, node, ns, 1);
}

static int read_session(struct session *s)
{
	const struct json_value *all = json_root(s->tree), *records = json_member(s->tree, all, "frame_records");
	struct span program = json_text(s->tree, json_member(s->tree, all, "target_description"));
	double start_s = json_number(json_member(s->tree, all, "start_time"), 0);
	struct profile *profile = builder_profile(s->to);
	struct buf name = {0};

	if (program.bytes > 9 && memcmp(program.at, "Program: ", 9) == 0)
		program = span_behind(program, 9);
	buf_add(&name, program.at, program.bytes);
	s->process = builder_process(s->to, &(struct process){.name = (char *)buf_text(&name)});
	buf_release(&name);
	if (start_s > 1e9 && start_s < 9e9)
		profile->wall_start_ns = (uint64_t)(start_s * 1e9);
	s->now_ns = 1; /* 0 is no time */
	builder_set_start(s->to, s->now_ns);
	for (const struct json_value *v = json_first(records); v && !builder_error(s->to);
	     v = json_after(s->tree, records, v))
		add_record(s, v);
	if (!records)
		return fault_set(s->fault, -EPROTO, "pyinstrument -r session writes them",
		                 "it has no \"frame_records\"");
	if (s->bad)
		builder_note(s->to, "bad_records", "records left out: no stack or no time", (double)s->bad, true);
	return builder_error(s->to);
}

int pyinstrument_read(struct input *from, struct builder *to, struct fault *fault)
{
	struct json_tree tree = {0};
	struct session s = {
		.to = to, .tree = &tree, .fault = fault, .timed = builder_keeps_runs(to) || builder_has_window(to)};
	int err = json_read(&tree, from, fault);

	if (err)
		return err;
	builder_profile(to)->imported = true;
	builder_profile(to)->uncounted = true; /* a call that sleeps for a second is one record */
	builder_value(to, profile_value_types[VALUE_WALL].name, profile_value_types[VALUE_WALL].unit, VALUE_WALL);
	err = read_session(&s);
	if (err && fault->why[0] == '\0')
		fault_set(fault, err, "", "%s", strerror(-err));
	json_tree_release(&tree);
	return err;
}

bool pyinstrument_detect(const unsigned char *head, size_t bytes)
{
	return json_begins(head, bytes, '{') && json_has_key(head, bytes, "sample_count") &&
	       json_has_key(head, bytes, "cpu_time") &&
	       (json_has_key(head, bytes, "start_call_stack") || json_has_key(head, bytes, "root_frame"));
}
