/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of Austin's MOJO files: whose they are, their stacks, and what they weigh. */
#include "exporters/mojo_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void add_values(struct mojo *m, uint32_t node)
{
	bool is_time = strcmp(m->metric, "memory") != 0;
	uint64_t values[VALUE_COUNT] = {[VALUE_SAMPLES] = 1}, number = m->metric_number;

	builder_profile(m->to)->uncounted = true; /* each has its own time, or bytes, as Austin's text of it says */
	if (m->metric_value == BUILDER_NONE)
		m->metric_value = builder_value(m->to, m->metric, is_time ? "nanoseconds" : "bytes", VALUE_WALL);
	number = is_time ? number * 1000 : number;
	if (m->sum + number > INT64_MAX)
		number = 0;
	m->sum += number;
	if (m->metric_value < VALUE_COUNT)
		values[m->metric_value] = number;
	if (m->idle && is_time && builder_value(m->to, "idle", "nanoseconds", VALUE_IDLE) == VALUE_IDLE)
		values[VALUE_IDLE] = number;
	builder_add(m->to, mojo_thread_at(m, m->thread)->thread, node, values);
}

int mojo_end_sample(struct mojo *m)
{
	struct mojo_thread *thread = m->in_sample ? mojo_thread_at(m, m->thread) : NULL;
	const uint32_t *stack = (const uint32_t *)(const void *)m->stack.data;
	size_t count = m->stack.bytes / sizeof(*stack), kernel = 0;
	uint32_t node = 0;

	m->in_sample = false;
	if (!thread)
		return 0;
	thread->last.bytes = 0;
	for (size_t i = 0; i < count; i++) {
		if (stack[i] == UINT32_MAX) {
			node = builder_child(m->to, thread->thread, node,
			                     ((uint32_t *)(void *)m->kernel.data)[kernel++], 0);
			continue;
		}
		buf_add(&thread->last, &stack[i], sizeof(stack[i]));
		if (i < REC_DEPTH_MAX)
			node = builder_child(m->to, thread->thread, node, mojo_frame_at(m, stack[i])->symbol,
			                     mojo_frame_at(m, stack[i])->line);
	}
	m->deep += count > REC_DEPTH_MAX;
	m->invalid_samples += m->invalid;
	if (m->collects)
		node = builder_child(m->to, thread->thread, node, m->gc, 0);
	if (m->has_metric) {
		m->samples++;
		add_values(m, node);
	}
	return thread->last.err || builder_error(m->to) ? fault_set(m->fault, -ENOMEM, "", "out of memory") : 0;
}

static int find_process(struct mojo *m, int32_t pid)
{
	m->process = pair_set_add(&m->processes, (uint32_t)pid, 0);
	return m->process == INTERN_FAILED ? fault_set(m->fault, -ENOMEM, "", "out of memory") : 0;
}

/* A thread is a hexadecimal number, or a name. */
static int find_thread(struct mojo *m, int32_t pid, int64_t interpreter)
{
	struct thread_tree like = {.interpreter = interpreter};
	struct process process = {.pid = pid};
	struct mojo_thread thread = {0};
	const char *text = buf_text(&m->text);
	char *end;
	struct buf who = {0};

	buf_printf(&who, "%" PRId32 ":%" PRId64 ":%s", pid, interpreter, text);
	m->thread = who.err ? INTERN_FAILED : text_set_add(&m->who, who.data, who.bytes);
	buf_release(&who);
	if (m->thread != INTERN_FAILED && m->thread == m->threads.bytes / sizeof(thread)) {
		like.tid = strtoull(text, &end, 16);
		if (*end || end == text || like.tid >> 53) {
			like.tid = 0;
			like.name = (char *)text;
		}
		like.is_main = like.tid && like.tid == (uint64_t)pid;
		like.process = builder_process(m->to, &process);
		thread.thread = like.process == BUILDER_NONE ? BUILDER_NONE : builder_thread(m->to, &like);
		buf_add(&m->threads, &thread, sizeof(thread));
	}
	return m->thread == INTERN_FAILED || m->threads.err || builder_error(m->to)
	               ? fault_set(m->fault, -ENOMEM, "", "out of memory")
	               : 0;
}

int mojo_begin_sample(struct mojo *m, int32_t pid, int64_t interpreter)
{
	int err = find_process(m, pid);

	err = err ? err : find_thread(m, pid, interpreter);
	m->in_sample = !err;
	m->idle = m->collects = m->invalid = m->has_metric = false;
	m->stack.bytes = m->kernel.bytes = 0;
	m->metric_number = m->task_frames = 0;
	return err;
}

int mojo_add_frame(struct mojo *m, uint32_t index)
{
	if (m->stack.bytes / sizeof(index) >= 2 * REC_DEPTH_MAX)
		return mojo_malformed(m, "a stack is deeper than any is");
	buf_add(&m->stack, &index, sizeof(index));
	return m->stack.err ? fault_set(m->fault, -ENOMEM, "", "out of memory") : 0;
}

int mojo_repeat_stack(struct mojo *m)
{
	struct mojo_thread *thread = mojo_thread_at(m, m->thread);
	const uint32_t *last = (const uint32_t *)(const void *)thread->last.data;
	size_t count = thread->last.bytes / sizeof(*last);
	struct buf above = m->stack;
	int err = 0;

	m->stack = (struct buf){0};
	while (count > 0 && mojo_frame_at(m, last[count - 1])->native)
		count--;
	for (size_t i = 0; i < count && !err; i++)
		err = mojo_add_frame(m, last[i]);
	for (size_t i = 0; i < above.bytes / sizeof(*last) && !err; i++)
		err = mojo_add_frame(m, ((uint32_t *)(void *)above.data)[i]);
	buf_release(&above);
	return err;
}
