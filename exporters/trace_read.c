/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Chrome's trace events (the "Trace Event Format"), as torch.profiler, VizTracer, py-spy and we write them: the object with "traceEvents",
 * or the bare array, which need not be closed. Complete events (X) and begins and ends (B, E) are calls; names of processes and threads come from
 * metadata (M). Asynchronous events are no calls of a thread, and are counted; flows, instants and counters say nothing of time.
 *
 * A frame's file and line come from its arguments (py-spy) or its name: "f (a.py:3)" (VizTracer, ours), "a.py(3): f" (torch). */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "exporters/formats.h"
#include "exporters/json_head.h"
#include "exporters/json_read.h"
#include "exporters/span.h"
#include "exporters/trace_reader.h"

enum { EVENTS_MAX = 1 << 26, THREADS_MAX = 1 << 16, TEXTS_MAX_BYTES = 64 << 20 };

/* Microseconds, which may have a fraction; a time that makes no sense is UINT64_MAX. 0 is a time there and none here, so all are one later. */
static uint64_t ns_of(const struct json_value *value)
{
	double us = json_number(value, -1);

	return us >= 0 && us < 4e15 ? (uint64_t)llround(us * 1e3) + 1 : UINT64_MAX;
}

/* An id as the file has it: a number or a text. */
static void add_id(struct buf *to, const struct json_tree *tree, const struct json_value *id)
{
	struct span text = json_text(tree, id);

	if (id && id->type == JSON_NUMBER)
		buf_printf(to, "%.17g", id->number);
	else
		buf_add(to, text.at, text.bytes);
}

static uint32_t keep(struct trace *t, struct span text)
{
	return text.bytes && t->texts.texts.bytes < TEXTS_MAX_BYTES ? text_set_add(&t->texts, text.at, text.bytes)
	                                                            : INTERN_FAILED;
}

/* The name of this process, to be read or set. NULL: no memory. */
static uint32_t *process_of(struct trace *t, const struct json_tree *tree, const struct json_value *pid)
{
	static const uint32_t none = INTERN_FAILED;
	struct buf id = {0};
	uint32_t index;

	add_id(&id, tree, pid);
	index = id.err ? INTERN_FAILED : text_set_add(&t->process_ids, buf_text(&id), id.bytes);
	buf_release(&id);
	if (index == t->processes.bytes / sizeof(none))
		buf_add(&t->processes, &none, sizeof(none));
	return index == INTERN_FAILED || t->processes.err ? NULL : (uint32_t *)(void *)t->processes.data + index;
}

static int thread_of(struct trace *t, const struct json_tree *tree, uint32_t *ret_thread, struct fault *fault)
{
	const struct json_value *event = json_root(tree), *pid = json_member(tree, event, "pid"),
				*tid = json_member(tree, event, "tid");
	struct trace_thread thread = {.process = INTERN_FAILED, .name = INTERN_FAILED};
	uint64_t number = json_index(pid, INT32_MAX);
	struct buf id = {0};
	uint32_t index;

	add_id(&id, tree, pid);
	buf_putc(&id, '\0');
	add_id(&id, tree, tid);
	index = id.err ? INTERN_FAILED : text_set_add(&t->ids, id.data, id.bytes);
	buf_release(&id);
	if (index == t->threads.bytes / sizeof(thread)) {
		thread.pid = number == UINT64_MAX ? 0 : (int32_t)number;
		number = json_index(tid, UINT64_C(1) << 53);
		thread.tid = number == UINT64_MAX ? 0 : number;
		thread.name = keep(t, json_text(tree, tid));
		thread.process = keep(t, json_text(tree, pid));
		buf_add(&t->threads, &thread, sizeof(thread));
	}
	if (index == INTERN_FAILED || t->threads.err)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	if (index >= THREADS_MAX)
		return fault_set(fault, -E2BIG, "", "it has more than %d threads", THREADS_MAX);
	*ret_thread = index;
	return 0;
}

static int take_name(struct trace *t, const struct json_tree *tree, struct fault *fault)
{
	const struct json_value *event = json_root(tree), *args = json_member(tree, event, "args");
	uint32_t name = keep(t, json_text(tree, json_member(tree, args, "name"))), thread, *process;
	int err = 0;

	if (name == INTERN_FAILED)
		return 0;
	if (json_is(tree, json_member(tree, event, "name"), "process_name")) {
		process = process_of(t, tree, json_member(tree, event, "pid"));
		if (!process)
			return fault_set(fault, -ENOMEM, "", "out of memory");
		*process = name;
	} else if (json_is(tree, json_member(tree, event, "name"), "thread_name")) {
		err = thread_of(t, tree, &thread, fault);
		if (!err)
			((struct trace_thread *)(void *)t->threads.data)[thread].name = name;
	}
	return err;
}

/* Where a frame is, as its name says. */
struct place {
	struct span name, file;
	uint32_t line;
};

static uint32_t digits(struct span text)
{
	uint64_t number = 0;

	for (size_t i = 0; i < text.bytes && number <= UINT32_MAX; i++)
		number = is_digit(text.at[i]) ? number * 10 + (uint64_t)(text.at[i] - '0') : UINT64_MAX / 16;
	return text.bytes && number <= UINT32_MAX ? (uint32_t)number : 0;
}

/* "a.py(3): f" */
static bool split_torch(struct place *place)
{
	struct span name = place->name;
	const char *behind = memmem(name.at, name.bytes, "): ", 3), *open;

	open = behind ? memrchr(name.at, '(', (size_t)(behind - name.at)) : NULL;
	if (!open || open == name.at || open + 1 == behind || behind + 3 == name.at + name.bytes)
		return false;
	place->line = digits((struct span){.at = open + 1, .bytes = (size_t)(behind - open) - 1});
	if (place->line == 0 && open[1] != '0')
		return false;
	place->file = (struct span){.at = name.at, .bytes = (size_t)(open - name.at)};
	place->name = span_behind(name, (size_t)(behind - name.at) + 3);
	return true;
}

/* "f (a.py:3)", "f (a.so)" */
static void split_sampled(struct place *place)
{
	struct span name = place->name, in;
	const char *open, *colon;

	if (name.bytes < 4 || name.at[name.bytes - 1] != ')')
		return;
	for (open = name.at + name.bytes - 2; open > name.at + 1 && !(open[-1] == ' ' && open[0] == '('); open--)
		;
	if (open <= name.at + 1)
		return;
	in = (struct span){.at = open + 1, .bytes = (size_t)(name.at + name.bytes - open) - 2};
	colon = memrchr(in.at, ':', in.bytes);
	if (colon) {
		place->line = digits(span_behind(in, (size_t)(colon - in.at) + 1));
		if (place->line == 0)
			return;
		in.bytes = (size_t)(colon - in.at);
	} else if (!memchr(in.at, '.', in.bytes) && !memchr(in.at, '/', in.bytes)) {
		return;
	}
	place->file = in;
	place->name.bytes = (size_t)(open - name.at) - 1;
}

static void symbol_of(struct trace *t, const struct json_tree *tree, struct trace_event *ret_event)
{
	const struct json_value *event = json_root(tree), *args = json_member(tree, event, "args"),
				*line = json_member(tree, args, "line");
	struct place place = {.name = json_text(tree, json_member(tree, event, "name"))};
	struct span file = json_text(tree, json_member(tree, args, "filename"));
	uint32_t first_line;
	bool special;

	if (file.bytes) { /* the line that ran */
		uint64_t number = json_index(line, UINT32_MAX);

		place.file = file;
		place.line = number == UINT64_MAX ? 0 : (uint32_t)number;
		first_line = 0;
	} else {
		if (!split_torch(&place))
			split_sampled(&place);
		first_line = place.line;
	}
	special = place.file.bytes == 0 && place.name.bytes > 0 && place.name.at[0] == '<';
	ret_event->line = place.line;
	ret_event->symbol = builder_symbol(t->to, place.name.bytes ? place.name.at : "<unknown>",
	                                   place.name.bytes ? place.name.bytes : 9, place.file.at ? place.file.at : "",
	                                   place.file.bytes, first_line, special ? FRAME_SPECIAL : FRAME_PYTHON, 0);
}

static int add_event(struct trace *t, const struct json_tree *tree, char phase, struct fault *fault)
{
	const struct json_value *event = json_root(tree), *dur = json_member(tree, event, "dur");
	struct trace_event added = {.start_ns = ns_of(json_member(tree, event, "ts"))};
	uint64_t ns = ns_of(dur);
	uint32_t thread;
	int err;

	/* torch's own spans around all of it are no thread's. */
	if (json_is(tree, json_member(tree, event, "cat"), "Trace")) {
		t->passed_over++;
		return 0;
	}
	if (added.start_ns == UINT64_MAX || (dur && ns == UINT64_MAX)) {
		t->bad++;
		return 0;
	}
	added.order = (uint32_t)(t->events.bytes / sizeof(added));
	if (added.order >= EVENTS_MAX)
		return fault_set(fault, -E2BIG, "", "it has more than %d calls", EVENTS_MAX);
	added.kind = phase == 'E' ? TRACE_END : phase == 'X' && dur ? TRACE_SPAN : TRACE_BEGIN;
	added.end_ns = added.start_ns + (added.kind == TRACE_SPAN ? ns - 1 : 0);
	err = thread_of(t, tree, &thread, fault);
	if (err)
		return err;
	added.thread = thread & 0x3fffffff;
	if (phase != 'E')
		symbol_of(t, tree, &added);
	buf_add(&t->events, &added, sizeof(added));
	return t->events.err || builder_error(t->to) ? fault_set(fault, -ENOMEM, "", "out of memory") : 0;
}

static int take_event(void *context, const struct json_tree *tree, struct fault *fault)
{
	struct trace *t = context;
	struct span phase = json_text(tree, json_member(tree, json_root(tree), "ph"));
	char ph = phase.bytes == 1 ? phase.at[0] : '\0';

	if (ph == 'X' || ph == 'B' || ph == 'E')
		return add_event(t, tree, ph, fault);
	if (ph == 'M')
		return take_name(t, tree, fault);
	if (ph && strchr("bneSTpF", ph))
		t->async++;
	else if (ph && strchr("stfiIRCPNODvVac()", ph))
		t->passed_over++;
	else
		t->bad++;
	return 0;
}

static void add_note(struct trace *t, const char *key, const char *label, uint64_t count, bool loss)
{
	if (count)
		builder_note(t->to, key, label, (double)count, loss);
}

static void add_notes(struct trace *t)
{
	add_note(t, "passed_over", "events that are no calls: instants, counters, flows", t->passed_over, false);
	add_note(t, "asynchronous", "asynchronous events, left out", t->async, true);
	add_note(t, "bad_events", "events left out: no time, or of no kind that is known", t->bad, true);
	add_note(t, "clipped_calls", "calls cut at their caller's end", t->clipped, true);
	add_note(t, "left_open", "calls that do not end: taken to the last event", t->left_open, true);
	add_note(t, "without_begin", "ends without a begin", t->without_begin, true);
	add_note(t, "cut_stacks", "calls left out: too deep", t->too_deep, true);
}

int trace_read(struct input *from, struct builder *to, struct fault *fault)
{
	struct trace t = {.to = to};
	bool cut = false;
	int err;

	builder_profile(to)->imported = true;
	builder_profile(to)->uncounted = true; /* calls */
	builder_value(to, profile_value_types[VALUE_WALL].name, profile_value_types[VALUE_WALL].unit, VALUE_WALL);
	err = json_each(from, "traceEvents", take_event, &t, &cut, fault);
	if (cut && t.events.bytes) /* as the format allows, and as what ended early leaves it */
		err = 0;
	if (!err)
		fault->why[0] = '\0';
	if (!err && t.events.bytes == 0)
		err = fault_set(fault, -EPROTO, "", "there are no calls in it (events of the kinds X, B and E)");
	if (!err)
		err = trace_build(&t);
	if (err && fault->why[0] == '\0')
		fault_set(fault, err, "", "%s", strerror(-err));
	add_notes(&t);
	if (cut && !err)
		builder_note(to, "cut_file", "it ends early: what is before was read", 1, false);
	buf_release(&t.events);
	buf_release(&t.threads);
	buf_release(&t.processes);
	text_set_release(&t.ids);
	text_set_release(&t.process_ids);
	text_set_release(&t.texts);
	return err;
}

bool trace_detect(const unsigned char *head, size_t bytes)
{
	bool events = json_has_key(head, bytes, "ph");

	if (json_begins(head, bytes, '['))
		return events && json_has_key(head, bytes, "pid");
	if (!json_begins(head, bytes, '{'))
		return false;
	return json_has_key(head, bytes, "traceEvents") ||
	       (json_has_key(head, bytes, "schemaVersion") && json_has_key(head, bytes, "deviceProperties"));
}
