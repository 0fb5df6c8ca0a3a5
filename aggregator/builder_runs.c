/* SPDX-License-Identifier: Apache-2.0 */
/* Samples and their times: runs, cut to the window that was asked for, and to what their fields can hold. */
#include <errno.h>
#include <stdlib.h>

#include "aggregator/builder_state.h"

void builder_add(struct builder *b, uint32_t thread, uint32_t node, const uint64_t values[VALUE_COUNT])
{
	if (b->err)
		return;
	if (!builder_has_node(b, thread, node)) {
		b->profile->out_of_memory += values[VALUE_SAMPLES];
		left_out_add(&b->profile->left_out, values);
		return;
	}
	for (int v = 0; v < VALUE_COUNT; v++)
		b->threads[thread].tree.nodes[node].self[v] += values[v];
}

uint64_t builder_outside(const struct builder *b)
{
	return b->outside;
}

void builder_set_start(struct builder *b, uint64_t t_start_ns)
{
	b->start_ns = t_start_ns;
}

/* a × b / c, which fits. */
static uint64_t scaled(uint64_t a, uint64_t b, uint64_t c)
{
	return (uint64_t)((unsigned __int128)a * b / c);
}

/* How many of `count` samples, the i-th (from 0) at first_ns + span_ns × i / (count - 1), are earlier than at_ns. */
static uint64_t earlier(uint64_t first_ns, uint64_t span_ns, uint64_t count, uint64_t at_ns)
{
	uint64_t off_ns = at_ns - first_ns;

	if (at_ns <= first_ns)
		return 0;
	if (off_ns > span_ns || count == 1 || span_ns == 0)
		return count;
	return (uint64_t)(((unsigned __int128)off_ns * (count - 1) + span_ns - 1) / span_ns);
}

/* Cuts what lies outside of the window off; false: nothing is left. Windows that meet share a run out without a rest: each sample and each
 * nanosecond of its weight lies in one of them. */
static bool cut_to_window(struct builder *b, uint64_t *first_ns, uint64_t *last_ns, uint64_t *count,
                          uint64_t *weight_ns)
{
	uint64_t span_ns = *last_ns - *first_ns, gaps = *count > 1 ? *count - 1 : 1, from, to;

	if (b->start_ns == 0)
		b->start_ns = *first_ns;
	if (!builder_has_window(b))
		return true;
	/* A window from the start on holds what lies before it by the rounding of times. */
	from = b->options.from_ns ? earlier(*first_ns, span_ns, *count, b->start_ns + b->options.from_ns) : 0;
	to = b->options.to_ns ? earlier(*first_ns, span_ns, *count, b->start_ns + b->options.to_ns) : *count;
	if (from >= to) {
		b->profile->filtered += *count;
		b->outside += *count;
		return false;
	}
	b->profile->filtered += *count - (to - from);
	b->outside += *count - (to - from);
	*weight_ns = scaled(*weight_ns, to, *count) - scaled(*weight_ns, from, *count);
	*last_ns = *first_ns + scaled(span_ns, to - 1, gaps);
	*first_ns += scaled(span_ns, from, gaps);
	*count = to - from;
	return true;
}

void builder_only_run(struct builder *b, uint32_t thread, struct run run)
{
	struct built_thread *t;

	if (b->err || !b->options.runs || !builder_has_node(b, thread, run.node))
		return;
	if (b->options.runs_max && b->run_count >= b->options.runs_max) {
		builder_fail(b, -E2BIG);
		return;
	}
	t = &b->threads[thread];
	if (t->like.run_count == t->run_room) {
		/* Half as large again: what counts is how little lies unused (a large array grows in place). */
		size_t room = t->run_room ? t->run_room + t->run_room / 2 : 64;
		struct run *runs = realloc(t->like.runs, room * sizeof(*runs));

		if (!runs) {
			builder_fail(b, -ENOMEM);
			return;
		}
		t->like.runs = runs;
		t->run_room = room;
	}
	t->like.runs[t->like.run_count++] = run;
	b->run_count++;
}

uint64_t builder_run(struct builder *b, uint32_t thread, uint32_t node, uint64_t t_first_ns, uint64_t t_last_ns,
                     uint64_t count, uint64_t weight_ns, unsigned status)
{
	uint64_t taken_ns;

	if (b->err || count == 0)
		return 0;
	t_last_ns = t_last_ns < t_first_ns ? t_first_ns : t_last_ns;
	if (!cut_to_window(b, &t_first_ns, &t_last_ns, &count, &weight_ns))
		return 0;
	if (!sample_is_wanted(b->options.mode, !b->options.no_idle, status)) {
		b->profile->filtered += count;
		b->profile->left_out.wall += weight_ns;
		return 0;
	}
	if (!builder_has_node(b, thread, node)) {
		b->profile->out_of_memory += count;
		b->profile->left_out.wall += weight_ns;
		return 0;
	}
	taken_ns = weight_ns;
	node_add(&b->threads[thread].tree.nodes[node], count, weight_ns, status);
	thread_widen(&b->threads[thread].like, t_first_ns, t_last_ns);
	while (b->options.runs && count > 0 && !b->err) { /* in pieces that the fields of a run can hold */
		uint64_t pieces = 1 + count / (RUN_COUNT_MAX + UINT64_C(1)), part, span_ns;

		if (pieces <= (t_last_ns - t_first_ns) >> 32)
			pieces = ((t_last_ns - t_first_ns) >> 32) + 1;
		pieces = pieces > count ? count : pieces > 0 ? pieces : 1;
		part = pieces > 1 ? count / pieces : count;
		span_ns = t_last_ns - t_first_ns;
		if (part < count && count > 1)
			span_ns = span_ns / (count - 1) * (part - 1);
		builder_only_run(b, thread,
		                 (struct run){.t_first_ns = t_first_ns,
		                              .span_ns = span_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)span_ns,
		                              .weight_ns = weight_ns / pieces,
		                              .node = node,
		                              .status = status & 0xffu,
		                              .count = part & RUN_COUNT_MAX});
		if (part < count && count > 1)
			t_first_ns += (t_last_ns - t_first_ns) / (count - 1) * part;
		weight_ns -= weight_ns / pieces;
		count -= part;
	}
	return taken_ns;
}

static uint64_t end_of(const struct run *run)
{
	return run->t_first_ns + run->span_ns;
}

static int compare_runs(const void *left, const void *right)
{
	const struct run *a = left, *b = right;

	if (end_of(a) != end_of(b))
		return end_of(a) < end_of(b) ? -1 : 1;
	return (a->t_first_ns > b->t_first_ns) - (a->t_first_ns < b->t_first_ns);
}

/* Samples that were held back come late, and those of one such run may lie far apart, with other runs in between: these come first, as their
 * ends do, so that the few samples of the one do not take their time. Nearly all is in order already. */
void runs_sort(struct thread_tree *thread)
{
	for (size_t i = 1; i < thread->run_count; i++)
		if (compare_runs(&thread->runs[i - 1], &thread->runs[i]) > 0) {
			qsort(thread->runs, thread->run_count, sizeof(*thread->runs), compare_runs);
			return;
		}
}
