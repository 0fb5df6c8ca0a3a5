/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Deeper than REC_DEPTH_MAX by the special frames (<GC>, <truncated>) that a record has room for. */
enum {
	DEPTH_BOUND = (REC_BYTES_MAX - sizeof(struct rec_stack)) / sizeof(struct frame),
	DEPTH_COST_BYTES = sizeof(struct stack_frame) + sizeof(uint32_t),
	FIRST_DEPTH = 16,
};

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
	thread->stack.omit_at = DEPTH_NONE;
	thread->stack.stop_at = DEPTH_NONE;
	*ret_thread = thread;
	return 0;
}

/* Forgets the frames from `depth` on, and what was found out about them. */
static void stack_cut(struct stack *stack, struct symbols *symbols, uint32_t depth)
{
	for (uint32_t i = depth; i < stack->depth; i++)
		symbols_unref(symbols, stack->frames[i].symbol);
	if (depth < stack->depth)
		stack->depth = depth;
	if (stack->omit_at >= depth)
		stack->omit_at = DEPTH_NONE;
	if (stack->stop_at >= depth)
		stack->stop_at = DEPTH_NONE;
}

void thread_free(struct thread *thread, struct symbols *symbols)
{
	if (!thread)
		return;
	stack_cut(&thread->stack, symbols, 0);
	budget_give(symbols->budget, sizeof(*thread) + (uint64_t)thread->stack.room * DEPTH_COST_BYTES);
	free(thread->stack.frames);
	free(thread->stack.path);
	tree_release(&thread->tree, symbols);
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

static int stack_make_room(struct stack *stack, struct budget *budget, uint32_t depth)
{
	uint32_t room = stack->room ? stack->room : FIRST_DEPTH;
	struct stack_frame *frames;
	uint32_t *path;

	if (depth <= stack->room)
		return 0;
	while (room < depth)
		room *= 2;
	frames = realloc(stack->frames, room * sizeof(*frames));
	if (frames)
		stack->frames = frames;
	path = realloc(stack->path, room * sizeof(*path));
	if (path)
		stack->path = path;
	if (!frames || !path)
		return -ENOMEM;
	budget_charge(budget, (uint64_t)(room - stack->room) * DEPTH_COST_BYTES);
	stack->room = room;
	return 0;
}

/* Replaces the frames behind the shared ones. On an unknown symbol the stack ends before it, so that what is kept is
 * right as far as it goes. */
static int stack_replace(struct stack *stack, struct symbols *symbols, const struct rec_stack *record)
{
	int err = stack_make_room(stack, symbols->budget, record->depth);

	stack_cut(stack, symbols, record->shared);
	for (uint32_t depth = record->shared; !err && depth < record->depth; depth++) {
		const struct frame *frame = &record->frames[depth - record->shared];
		uint32_t symbol = symbols_find(symbols, frame->id);

		if (symbol == SYMBOL_NONE || frame->kind == FRAME_NATIVE) {
			err = -EPROTO;
			break;
		}
		symbols_ref(symbols, symbol);
		stack->frames[depth] = (struct stack_frame){.symbol = symbol, .line = frame->where};
		stack->depth = depth + 1;
		if (symbol == SYMBOL_LOST)
			continue;
		if (symbols->slots[symbol].omit && stack->omit_at == DEPTH_NONE)
			stack->omit_at = depth;
		if (symbols->slots[symbol].stop && stack->stop_at == DEPTH_NONE)
			stack->stop_at = depth;
	}
	return err;
}

/* Brings what is known of the nodes in line with the frames, of which the first `shared` are as they were. */
static void stack_restart(struct stack *stack, uint32_t shared)
{
	uint32_t start = stack->stop_at == DEPTH_NONE ? 0 : stack->stop_at;

	if (start != stack->start)
		stack->path_depth = 0; /* the path begins elsewhere */
	else if (stack->path_depth > shared)
		stack->path_depth = shared;
	stack->start = start;
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

static bool is_wanted(const struct thread *thread, const struct aggregator_options *options, unsigned status)
{
	if (thread->excluded)
		return false;
	switch (options->mode) {
	case MODE_CPU:
		return status & STATUS_ON_CPU;
	case MODE_GIL:
		return status & STATUS_GIL;
	case MODE_WALL:
		break;
	}
	return options->idle || !(status & STATUS_IDLE);
}

int thread_take(struct thread *thread, struct symbols *symbols, const struct aggregator_options *options,
                const struct rec_stack *record, enum taken *ret_taken)
{
	struct stack *stack = &thread->stack;
	uint32_t leaf;
	int err;

	/* The next record may share frames of this one: when this one is left out, nothing is known of them. */
	if (record->depth > DEPTH_BOUND || record->shared > record->depth || record->shared > stack->depth ||
	    record->head.bytes != sizeof(*record) + (record->depth - record->shared) * sizeof(struct frame) ||
	    record->count == 0 || record->t_last_ns < record->t_first_ns) {
		stack_cut(stack, symbols, 0);
		stack_restart(stack, 0);
		return -EPROTO;
	}
	err = stack_replace(stack, symbols, record);
	stack_restart(stack, record->shared);
	if (err)
		return err;
	if (!is_wanted(thread, options, record->status)) {
		*ret_taken = TAKEN_FILTERED;
		return 0;
	}
	if (stack->omit_at != DEPTH_NONE) {
		*ret_taken = TAKEN_OMITTED;
		return 0;
	}
	leaf = stack_leaf(stack, &thread->tree, symbols);
	if (leaf == NODE_NONE) {
		*ret_taken = TAKEN_NO_MEMORY;
		return 0;
	}
	node_add(&thread->tree.nodes[leaf], record->count, record->weight_ns, record->status);
	/* Samples that were held back come late, behind younger ones. */
	if (thread->t_first_ns == 0 || record->t_first_ns < thread->t_first_ns)
		thread->t_first_ns = record->t_first_ns;
	if (thread->t_last_ns < record->t_last_ns)
		thread->t_last_ns = record->t_last_ns;
	if (stack->depth - stack->start > thread->depth_max)
		thread->depth_max = stack->depth - stack->start;
	*ret_taken = TAKEN_COUNTED;
	return 0;
}
