/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Austin's binary files, MOJO, of versions 1 to 4: events of one byte and their fields. Texts and frames are numbered once, a process at a
 * time, and named by number. An event STACK begins a sample; frames follow from the outermost in, then what it weighs.
 *
 * Numbers are of variable length: six bits and the sign in the first byte, seven in each that follows. Each sample weighs the time since the one
 * before of its thread, in microseconds, or, in mode "memory", bytes. Version 4 repeats the thread's last Python frames by STACK_REPEAT; what it
 * says of tasks is passed over. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/formats.h"
#include "exporters/mojo_reader.h"

enum event {
	EVENT_METADATA = 1,
	EVENT_STACK,
	EVENT_FRAME,
	EVENT_INVALID,
	EVENT_FRAME_REF,
	EVENT_KERNEL,
	EVENT_GC,
	EVENT_IDLE,
	EVENT_TIME,
	EVENT_MEMORY,
	EVENT_STRING,
	EVENT_STRING_REF,
	EVENT_STACK_REPEAT,
	EVENT_TASK_STACK,
	EVENT_TASK_WAITER,
	EVENT_TASK_RUNNING
};

enum {
	FORMAT_MAX = 4,
	TEXT_BYTES_MAX = REC_TEXT_MAX,

	TABLE_MAX = 1 << 24,
	TEXTS_MAX_BYTES = 1 << 30
};

int mojo_malformed(struct mojo *m, const char *what)
{
	if (m->in->err)
		return input_fault(m->in->err, m->fault);
	return fault_set(m->fault, -EPROTO, "", "%s, at byte %" PRIu64, what, m->in->bytes);
}

static int take_byte(struct mojo *m, unsigned char *ret_byte)
{
	return input_read(m->in, ret_byte, 1) ? 0 : mojo_malformed(m, "it ends within an event");
}

static int take_number(struct mojo *m, int64_t *ret_number)
{
	unsigned char byte = 0;
	uint64_t number;
	unsigned shift = 6;
	bool negative;
	int err = take_byte(m, &byte);

	number = byte & 0x3f;
	negative = byte & 0x40;
	while (!err && byte & 0x80) {
		err = take_byte(m, &byte);
		if (!err && shift > 55)
			return mojo_malformed(m, "a number is too large");
		number |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	}
	*ret_number = negative ? -(int64_t)number : (int64_t)number;
	return err;
}

/* Into m->text, cut to what is kept of one. */
static int take_text(struct mojo *m)
{
	unsigned char byte = 0;
	int err;

	m->text.bytes = 0;
	while (!(err = take_byte(m, &byte)) && byte)
		if (m->text.bytes < TEXT_BYTES_MAX)
			buf_putc(&m->text, (char)byte);
	return err ? err : m->text.err ? fault_set(m->fault, -ENOMEM, "", "out of memory") : 0;
}

/* --- tables --- */

/* Keys are of a process, and may be addresses. INTERN_FAILED: no memory. */
static uint32_t number_of(struct text_set *set, uint32_t process, int64_t key)
{
	char text[sizeof(process) + sizeof(key)];

	memcpy(text, &process, sizeof(process));
	memcpy(text + sizeof(process), &key, sizeof(key));
	return set->count < TABLE_MAX ? text_set_add(set, text, sizeof(text)) : INTERN_FAILED;
}

static int keep_name(struct mojo *m, int64_t key)
{
	uint32_t text = text_set_add(&m->texts, m->text.data ? m->text.data : "", m->text.bytes),
		 index = number_of(&m->names, m->process, key);

	if (text == INTERN_FAILED || index == INTERN_FAILED || index > m->name_texts.bytes / sizeof(text) ||
	    m->texts.texts.bytes > TEXTS_MAX_BYTES)
		return fault_set(m->fault, -ENOMEM, "", "its names are too many");
	if (index == m->name_texts.bytes / sizeof(text))
		buf_add(&m->name_texts, &text, sizeof(text));
	else
		((uint32_t *)(void *)m->name_texts.data)[index] = text;
	return m->name_texts.err ? fault_set(m->fault, -ENOMEM, "", "out of memory") : 0;
}

/* 0 is no text, 1 "<unknown>". */
static const char *name_of(struct mojo *m, int64_t key, size_t *ret_bytes)
{
	uint32_t index = key == 0 || key == 1 ? INTERN_FAILED : number_of(&m->names, m->process, key);

	*ret_bytes = key == 1 ? 9 : 0;
	if (index >= m->name_texts.bytes / sizeof(index))
		return key == 1 ? "<unknown>" : "";
	return text_set_get(&m->texts, ((const uint32_t *)(const void *)m->name_texts.data)[index], ret_bytes);
}

static bool is_python(const char *file, size_t bytes)
{
	return (bytes > 3 && memcmp(file + bytes - 3, ".py", 3) == 0) ||
	       (bytes > 1 && file[0] == '<' && file[bytes - 1] == '>');
}

static int read_frame(struct mojo *m)
{
	int64_t key = 0, file_key = 0, name_key = 0, line = 0, rest;
	uint32_t line_number, index;
	size_t file_bytes, name_bytes;
	const char *file, *name;
	struct mojo_frame frame;
	int err = take_number(m, &key);

	err = err ? err : take_number(m, &file_key);
	err = err ? err : take_number(m, &name_key);
	err = err ? err : take_number(m, &line);
	for (int i = 0; !err && m->format >= 2 && i < 3; i++) /* where the line ends, and columns */
		err = take_number(m, &rest);
	if (err)
		return err;
	line_number = line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
	file = name_of(m, file_key, &file_bytes);
	name = name_of(m, name_key, &name_bytes);
	frame = (struct mojo_frame){.line = line_number, .native = !is_python(file, file_bytes)};
	frame.symbol = builder_symbol(m->to, name_bytes ? name : "<unknown>", name_bytes ? name_bytes : 9, file,
	                              file_bytes, 0, FRAME_PYTHON, 0);
	index = number_of(&m->keys, m->process, key);
	if (index == INTERN_FAILED || index > m->frames.bytes / sizeof(frame))
		return fault_set(m->fault, -ENOMEM, "", "its frames are too many");
	if (index == m->frames.bytes / sizeof(frame))
		buf_add(&m->frames, &frame, sizeof(frame));
	else
		((struct mojo_frame *)(void *)m->frames.data)[index] = frame;
	return m->frames.err ? fault_set(m->fault, -ENOMEM, "", "out of memory") : 0;
}

/* --- samples --- */

static int begin_sample(struct mojo *m)
{
	int64_t pid = 0, interpreter = 0;
	int err = mojo_end_sample(m);

	err = err ? err : take_number(m, &pid);
	if (!err && m->format >= 3)
		err = take_number(m, &interpreter);
	err = err ? err : take_text(m);
	if (!err && (pid < 0 || pid > INT32_MAX))
		err = mojo_malformed(m, "a process' number makes no sense");
	return err ? err : mojo_begin_sample(m, (int32_t)pid, interpreter);
}

static int take_frame_ref(struct mojo *m)
{
	uint32_t index;
	int64_t key = 0;
	int err = take_number(m, &key);

	if (err)
		return err;
	if (m->task_frames > 0) {
		m->task_frames--;
		return 0;
	}
	index = number_of(&m->keys, m->process, key);
	if (index >= m->frames.bytes / sizeof(struct mojo_frame))
		return mojo_malformed(m, "a stack names a frame that there is not");
	return mojo_add_frame(m, index);
}

static int take_kernel(struct mojo *m)
{
	uint32_t symbol;
	int err = take_text(m);

	if (err)
		return err;
	symbol = builder_symbol(m->to, m->text.bytes ? m->text.data : "<unknown>", m->text.bytes ? m->text.bytes : 9,
	                        "[kernel]", 8, 0, FRAME_NATIVE, 0);
	buf_add(&m->kernel, &symbol, sizeof(symbol));
	return m->kernel.err ? fault_set(m->fault, -ENOMEM, "", "out of memory") : mojo_add_frame(m, UINT32_MAX);
}

static int take_metric(struct mojo *m, bool is_memory)
{
	int64_t number = 0;
	int err = take_number(m, &number);

	/* In mode "full" there are both, and the time is what is shown. Memory that was given back is negative. */
	if (!err && is_memory == (strcmp(m->metric, "memory") == 0)) {
		m->metric_number = number > 0 && number < INT64_MAX / 1000 ? (uint64_t)number : 0;
		m->has_metric = true;
	}
	return err;
}

static int take_tasks(struct mojo *m, int numbers)
{
	int64_t number = 0;
	int err = 0;

	for (int i = 0; i < numbers && !err; i++)
		err = take_number(m, &number);
	m->tasks++;
	if (numbers == 3)
		m->task_frames = number > 0 && number <= REC_DEPTH_MAX ? (uint64_t)number : 0;
	return err;
}

static int take_metadata(struct mojo *m)
{
	static const struct {
		const char *mode, *metric, *ours;
	} modes[] = {{"wall", "wall", "wall"},
	             {"cpu", "cpu", "cpu"},
	             {"memory", "memory", "wall"},
	             {"full", "wall", "wall"}};
	char key[32];
	int err = take_text(m);

	if (err)
		return err;
	snprintf(key, sizeof(key), "%.31s", buf_text(&m->text));
	err = take_text(m);
	for (size_t i = 0; !err && strcmp(key, "mode") == 0 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(buf_text(&m->text), modes[i].mode) == 0 && m->metric_value == BUILDER_NONE) {
			m->metric = modes[i].metric;
			builder_profile(m->to)->mode = modes[i].ours;
		}
	if (!err && strcmp(key, "interval") == 0) {
		uint64_t interval_us = strtoull(buf_text(&m->text), NULL, 10);

		builder_profile(m->to)->interval_ns = interval_us < UINT64_C(1) << 40 ? interval_us * 1000 : 0;
	}
	return err;
}

static int read_event(struct mojo *m, enum event event)
{
	int64_t key = 0;
	int err;

	if (!m->in_sample && event != EVENT_METADATA && event != EVENT_STACK)
		return mojo_malformed(m, "an event stands before the first stack");
	switch (event) {
	case EVENT_METADATA:
		return take_metadata(m);
	case EVENT_STACK:
		return begin_sample(m);
	case EVENT_FRAME:
		return read_frame(m);
	case EVENT_INVALID:
		m->invalid = true;
		return 0;
	case EVENT_FRAME_REF:
		return take_frame_ref(m);
	case EVENT_KERNEL:
		return take_kernel(m);
	case EVENT_GC:
		m->collects = true;
		return 0;
	case EVENT_IDLE:
		m->idle = true;
		return 0;
	case EVENT_TIME:
	case EVENT_MEMORY:
		return take_metric(m, event == EVENT_MEMORY);
	case EVENT_STRING:
		err = take_number(m, &key);
		err = err ? err : take_text(m);
		return err ? err : keep_name(m, key);
	case EVENT_STRING_REF:
		return take_number(m, &key);
	case EVENT_STACK_REPEAT:
		return mojo_repeat_stack(m);
	case EVENT_TASK_STACK:
		return take_tasks(m, 3);
	case EVENT_TASK_WAITER:
		return take_tasks(m, 2);
	case EVENT_TASK_RUNNING:
		return take_tasks(m, 1);
	}
	return mojo_malformed(m, "an event is of no known kind");
}

static int read_events(struct mojo *m)
{
	unsigned char head[3], event;
	int64_t format = 0;
	int err;

	if (!input_read(m->in, head, sizeof(head)) || memcmp(head, "MOJ", 3) != 0)
		return mojo_malformed(m, "it does not begin as MOJO does");
	err = take_number(m, &format);
	if (!err && (format < 1 || format > FORMAT_MAX))
		return fault_set(m->fault, -EPROTO, "", "it is MOJO of version %" PRId64 ", and 1 to %d are read",
		                 format, FORMAT_MAX);
	m->format = (uint64_t)format;
	while (!err && input_read(m->in, &event, 1))
		err = read_event(m, (enum event)event);
	if (!err && m->in->err)
		err = input_fault(m->in->err, m->fault);
	return err;
}

static void add_notes(const struct mojo *m)
{
	if (m->invalid_samples)
		builder_note(m->to, "invalid_samples", "samples that Austin calls invalid", (double)m->invalid_samples,
		             true);
	if (m->deep)
		builder_note(m->to, "deep_stacks", "stacks cut at 16,384 frames", (double)m->deep, true);
	if (m->tasks)
		builder_note(m->to, "task_events", "events of asyncio's tasks, passed over", (double)m->tasks, false);
}

int mojo_read(struct input *from, struct builder *to, struct fault *fault)
{
	struct mojo m = {.in = from, .to = to, .fault = fault, .metric = "wall", .metric_value = BUILDER_NONE};
	bool cut = false;
	int err;

	builder_profile(to)->imported = true;
	m.gc = builder_symbol(to, "<GC>", 4, "", 0, 0, FRAME_SPECIAL, 0);
	err = read_events(&m);
	if (err == -EPROTO && !from->err && m.samples > 0) { /* what a killed Austin leaves */
		cut = true;
		err = 0;
	}
	if (!cut && !err)
		err = mojo_end_sample(&m);
	add_notes(&m);
	if (cut) {
		builder_note(to, "cut_at_byte", "it makes no sense any more from byte", (double)from->bytes, true);
		fault->err = 0;
	}
	for (size_t i = 0; i < m.threads.bytes / sizeof(struct mojo_thread); i++)
		buf_release(&mojo_thread_at(&m, (uint32_t)i)->last);
	text_set_release(&m.texts);
	text_set_release(&m.names);
	buf_release(&m.name_texts);
	text_set_release(&m.keys);
	buf_release(&m.frames);
	text_set_release(&m.who);
	buf_release(&m.threads);
	pair_set_release(&m.processes);
	buf_release(&m.text);
	buf_release(&m.stack);
	buf_release(&m.kernel);
	return err;
}

bool mojo_detect(const unsigned char *head, size_t bytes)
{
	return bytes > 4 && memcmp(head, "MOJ", 3) == 0 && head[3] > 0 && head[3] < 64;
}
