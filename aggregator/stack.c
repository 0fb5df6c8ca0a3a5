/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/stack.h"

#include <errno.h>
#include <stdlib.h>

/* Deeper than REC_DEPTH_MAX by the special frames (<GC>, <truncated>) that a record has room for. */
enum {
	DEPTH_BOUND = (REC_BYTES_MAX - sizeof(struct rec_stack)) / sizeof(struct frame),
	DEPTH_COST_BYTES = sizeof(struct stack_frame) + sizeof(uint32_t),
	FIRST_DEPTH = 16,
};

void stack_init(struct stack *stack)
{
	*stack = (struct stack){.omit_at = DEPTH_NONE, .stop_at = DEPTH_NONE};
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

void stack_release(struct stack *stack, struct symbols *symbols)
{
	stack_cut(stack, symbols, 0);
	budget_give(symbols->budget, (uint64_t)stack->room * DEPTH_COST_BYTES);
	free(stack->frames);
	free(stack->path);
	stack_init(stack);
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

		if (symbol == SYMBOL_NONE ||
		    (symbol != SYMBOL_LOST && symbols->slots[symbol].mapped != (frame->kind == FRAME_NATIVE))) {
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

int stack_take(struct stack *stack, struct symbols *symbols, const struct rec_stack *record)
{
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
	return err;
}
