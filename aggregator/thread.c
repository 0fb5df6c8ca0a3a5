/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int thread_new(struct thread **ret_thread, uint32_t id, uint32_t process, struct budget *budget)
{
	struct thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return -ENOMEM;
	if (tree_init(&thread->tree, budget) != 0) {
		free(thread);
		return -ENOMEM;
	}
	budget_charge(budget, sizeof(*thread));
	thread->id = id;
	thread->process = process;
	stack_init(&thread->stack);
	*ret_thread = thread;
	return 0;
}

void thread_free(struct thread *thread, struct symbols *symbols)
{
	if (!thread)
		return;
	stack_release(&thread->stack, symbols);
	budget_give(symbols->budget, sizeof(*thread));
	tree_release(&thread->tree, symbols);
	spread_release(&thread->spread, symbols->budget);
	free(thread->name);
	free(thread);
}

static bool is_excluded(const struct thread *thread, const struct aggregator_options *options)
{
	if (!options->threads)
		return false;
	for (size_t i = 0; i < options->thread_filter_count; i++) {
		const struct thread_filter *filter = &options->threads[i];

		if (filter->name ? thread->name && strcmp(filter->name, thread->name) == 0
		                 : thread->tid && filter->tid == thread->tid)
			return false;
	}
	return true;
}

int thread_describe(struct thread *thread, const struct rec_thread *record, const struct aggregator_options *options)
{
	if (record->name_bytes) { /* a later record that knows no name does not take the known one away */
		char *name = strndup(record->text, record->name_bytes);

		if (!name)
			return -ENOMEM;
		free(thread->name);
		thread->name = name;
	}
	thread->interpreter = record->interpreter;
	thread->tid = record->tid;
	thread->start_time = record->start_time;
	thread->is_main = record->flags & THREAD_MAIN;
	thread->has_ended = record->flags & THREAD_ENDED;
	thread->excluded = is_excluded(thread, options);
	return 0;
}

/* The node of the innermost frame, or NODE_NONE. Only frames whose node is not known yet are looked up. */
static uint32_t stack_leaf(struct stack *stack, struct tree *tree, struct symbols *symbols)
{
	uint32_t depth = stack->path_depth > stack->start ? stack->path_depth : stack->start;
	uint32_t node = depth > stack->start ? stack->path[depth - 1] : 0;

	for (; depth < stack->depth; depth++) {
		const struct stack_frame *frame = &stack->frames[depth];

		node = tree_child(tree, symbols, node, frame->symbol, frame->line);
		if (node == NODE_NONE)
			break;
		stack->path[depth] = node;
	}
	stack->path_depth = depth;
	return node;
}

bool sample_is_wanted(enum sample_mode mode, bool idle, unsigned status)
{
	switch (mode) {
	case MODE_CPU:
		return status & STATUS_RUNNABLE;
	case MODE_GIL:
		return status & STATUS_GIL;
	case MODE_EXCEPTION:
		return status & STATUS_EXCEPTION;
	case MODE_WALL:
	case SAMPLE_MODES:
		break;
	}
	return idle || !(status & STATUS_IDLE);
}

int thread_take(struct thread *thread, struct symbols *symbols, const struct aggregator_options *options,
                const struct rec_stack *record, enum taken *ret_taken)
{
	struct stack *stack = &thread->stack;
	uint32_t leaf;
	int err = stack_take(stack, symbols, record);

	if (err)
		return err;
	leaf = NODE_NONE;
	if (thread->excluded || !sample_is_wanted(options->mode, options->idle, record->status))
		*ret_taken = TAKEN_FILTERED;
	else if (stack->omit_at != DEPTH_NONE)
		*ret_taken = TAKEN_OMITTED;
	else {
		leaf = stack_leaf(stack, &thread->tree, symbols);
		*ret_taken = leaf == NODE_NONE ? TAKEN_NO_MEMORY : TAKEN_COUNTED;
	}
	/* What is left out takes its part of the CPU time with it. */
	spread_add(&thread->spread, leaf, record->weight_ns, record->status, symbols->budget);
	if (leaf == NODE_NONE)
		return 0;
	node_add(&thread->tree.nodes[leaf], record->count, record->weight_ns, record->status);
	/* Samples that were held back come late, behind younger ones. */
	if (thread->t_first_ns == 0 || record->t_first_ns < thread->t_first_ns)
		thread->t_first_ns = record->t_first_ns;
	if (thread->t_last_ns < record->t_last_ns)
		thread->t_last_ns = record->t_last_ns;
	if (stack->depth - stack->start > thread->depth_max)
		thread->depth_max = stack->depth - stack->start;
	return 0;
}

struct given {
	struct tree *tree;
	struct record_fate *fate;
};

static void add_time(void *context, uint32_t node, uint64_t cpu_ns, uint64_t wait_ns)
{
	struct given *given = context;

	if (node == NODE_NONE) {
		given->fate->left_cpu_ns += cpu_ns;
		given->fate->left_wait_ns += wait_ns;
		return;
	}
	given->tree->nodes[node].self[VALUE_CPU] += cpu_ns;
	given->tree->nodes[node].self[VALUE_RUN_WAIT] += wait_ns;
	given->fate->cpu_ns += cpu_ns;
	given->fate->wait_ns += wait_ns;
}

void thread_take_time(struct thread *thread, const struct rec_time *record, struct record_fate *fate)
{
	struct given given = {.tree = &thread->tree, .fate = fate};

	spread_give(&thread->spread, record->cpu_ns, record->wait_ns, add_time, &given);
}
