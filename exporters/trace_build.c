/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a trace into stacks: thread by thread in the order of time, callers before what they call. What ends behind its caller is cut there and
 * counted, so that no time counts twice.
 *
 * A count is a call. Where time order is asked for it is a stretch of time in which one stack stood, since only that has a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/trace_reader.h"

/* Times are written in microseconds, as binary fractions: ends may lie this much behind their callers' without a word. */
#define ROUNDING_NS 1000

struct call {
	uint32_t node;
	uint64_t end_ns; /* UINT64_MAX: not known yet */
};

struct walk {
	struct trace *trace;
	uint32_t thread;    /* the builder's */
	struct call *calls; /* open ones; room for REC_DEPTH_MAX */
	uint32_t depth;
	uint64_t now_ns, last_ns; /* up to where time was given; the latest time of the thread */
	uint32_t deeper;          /* open begins that found no room */
	bool timed;
};

static int compare_events(const void *left, const void *right)
{
	const struct trace_event *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->kind == TRACE_SPAN && b->kind == TRACE_SPAN && a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/* Time up to t_ns is that of the innermost call. */
static void pass(struct walk *w, uint64_t t_ns)
{
	uint64_t values[VALUE_COUNT] = {0};

	if (t_ns <= w->now_ns)
		return;
	values[VALUE_WALL] = t_ns - w->now_ns;
	if (w->depth > 0 && w->timed)
		builder_run(w->trace->to, w->thread, w->calls[w->depth - 1].node, t_ns, t_ns, 1, values[VALUE_WALL],
		            STATUS_UNKNOWN);
	else if (w->depth > 0)
		builder_add(w->trace->to, w->thread, w->calls[w->depth - 1].node, values);
	w->now_ns = t_ns;
}

/* Calls that have ended by t_ns are left, the innermost first. */
static void leave(struct walk *w, uint64_t t_ns)
{
	while (w->depth > 0 && w->calls[w->depth - 1].end_ns <= t_ns) {
		pass(w, w->calls[w->depth - 1].end_ns);
		w->depth--;
	}
	pass(w, t_ns);
}

static void enter(struct walk *w, const struct trace_event *event)
{
	uint64_t values[VALUE_COUNT] = {[VALUE_SAMPLES] = 1};
	uint64_t end_ns = event->kind == TRACE_SPAN ? event->end_ns : UINT64_MAX;
	uint32_t above = w->depth ? w->calls[w->depth - 1].node : 0;

	if (w->depth == REC_DEPTH_MAX) {
		w->deeper += event->kind == TRACE_BEGIN;
		w->trace->too_deep++;
		return;
	}
	for (uint32_t i = w->depth; i-- > 0;) /* begins around do not know their ends */
		if (w->calls[i].end_ns != UINT64_MAX) {
			if (event->kind == TRACE_SPAN && end_ns > w->calls[i].end_ns) {
				w->trace->clipped += end_ns - w->calls[i].end_ns > ROUNDING_NS;
				end_ns = w->calls[i].end_ns;
			}
			break;
		}
	w->calls[w->depth++] = (struct call){
		.node = builder_child(w->trace->to, w->thread, above, event->symbol, event->line), .end_ns = end_ns};
	if (!w->timed)
		builder_add(w->trace->to, w->thread, w->calls[w->depth - 1].node, values);
	else if (event->kind == TRACE_SPAN && end_ns == event->start_ns)
		w->depth--; /* it has no time */
}

/* The innermost begin ends, and with it the spans in it. */
static void end(struct walk *w, uint64_t t_ns)
{
	uint32_t at = w->depth;

	if (w->deeper > 0) {
		w->deeper--;
		return;
	}
	while (at > 0 && w->calls[at - 1].end_ns != UINT64_MAX)
		at--;
	if (at == 0) {
		w->trace->without_begin++;
		return;
	}
	for (uint32_t i = at; i < w->depth; i++)
		w->trace->clipped += w->calls[i].end_ns - t_ns > ROUNDING_NS;
	w->depth = at - 1;
}

static uint32_t add_thread(struct trace *t, uint32_t index)
{
	const struct trace_thread *from = (const struct trace_thread *)(void *)t->threads.data + index;
	const char *id = text_set_get(&t->ids, index, NULL); /* begins with that of the process */
	const uint32_t *processes = (const uint32_t *)(void *)t->processes.data;
	struct process process = {.pid = from->pid};
	struct thread_tree like = {.tid = from->tid, .is_main = from->tid && from->tid == (uint64_t)from->pid};
	uint32_t known = text_set_add(&t->process_ids, id, strlen(id));

	if (known == INTERN_FAILED)
		return BUILDER_NONE;
	if (known < t->processes.bytes / sizeof(*processes) && processes[known] != INTERN_FAILED)
		process.name = (char *)text_set_get(&t->texts, processes[known], NULL);
	else if (from->process != INTERN_FAILED)
		process.name = (char *)text_set_get(&t->texts, from->process, NULL);
	if (from->name != INTERN_FAILED)
		like.name = (char *)text_set_get(&t->texts, from->name, NULL);
	like.process = builder_process(t->to, &process);
	return like.process == BUILDER_NONE ? BUILDER_NONE : builder_new_thread(t->to, &like);
}

static void begin_thread(struct walk *w, const struct trace_event *first)
{
	*w = (struct walk){.trace = w->trace, .calls = w->calls, .timed = w->timed, .now_ns = first->start_ns};
	w->thread = add_thread(w->trace, first->thread);
}

static void end_thread(struct walk *w)
{
	for (uint32_t i = 0; i < w->depth; i++)
		if (w->calls[i].end_ns == UINT64_MAX) {
			w->trace->left_open++;
			w->calls[i].end_ns = w->last_ns;
		}
	leave(w, w->last_ns);
}

static void take(struct walk *w, const struct trace_event *event)
{
	leave(w, event->start_ns);
	w->last_ns = event->start_ns > w->last_ns ? event->start_ns : w->last_ns;
	w->last_ns = event->end_ns > w->last_ns ? event->end_ns : w->last_ns;
	if (event->kind == TRACE_END)
		end(w, event->start_ns);
	else
		enter(w, event);
}

int trace_build(struct trace *t)
{
	struct trace_event *events = (struct trace_event *)(void *)t->events.data;
	size_t count = t->events.bytes / sizeof(*events);
	struct profile *profile = builder_profile(t->to);
	struct walk w = {.trace = t,
	                 .calls = calloc(REC_DEPTH_MAX, sizeof(*w.calls)),
	                 .timed = builder_keeps_runs(t->to) || builder_has_window(t->to)};
	uint64_t first_ns = UINT64_MAX, last_ns = 0;

	if (!w.calls)
		return -ENOMEM;
	qsort(events, count, sizeof(*events), compare_events);
	for (size_t i = 0; i < count; i++) {
		first_ns = events[i].start_ns < first_ns ? events[i].start_ns : first_ns;
		last_ns = events[i].end_ns > last_ns ? events[i].end_ns : last_ns;
	}
	builder_set_start(t->to, first_ns);
	for (size_t i = 0; i < count && !builder_error(t->to); i++) {
		if (i == 0 || events[i].thread != events[i - 1].thread) {
			if (i > 0)
				end_thread(&w);
			begin_thread(&w, &events[i]);
		}
		take(&w, &events[i]);
	}
	if (count > 0)
		end_thread(&w);
	if (!builder_has_window(t->to)) {
		profile->t_start_ns = first_ns;
		profile->t_end_ns = last_ns;
	}
	free(w.calls);
	return builder_error(t->to);
}
