/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/exact.h"

#define HEAP_MAX          20000u
#define HEAP_MANY         12u /* heap frames; each costs up to 0.35 µs a sample, used or not */
#define HEAP_KEEP_TICKS   256 /* so long one is read on without being used */
#define HEAP_FORGET_TICKS 2   /* so long where there are many */

bool stack_push(struct pystack *stack, struct pyframe frame)
{
	if (stack->depth == stack->room) {
		uint32_t room = stack->room ? 2 * stack->room : 64;
		struct pyframe *frames = realloc(stack->frames, room * sizeof(*frames));

		if (!frames)
			return false;
		stack->frames = frames;
		stack->room = room;
	}
	stack->frames[stack->depth++] = frame;
	return true;
}

static bool copy_into(struct pystack *stack, uint32_t room, const struct pystack *from, uint32_t count)
{
	if (stack->room < count) {
		struct pyframe *frames = realloc(stack->frames, room * sizeof(*frames));

		if (!frames)
			return false;
		stack->frames = frames;
		stack->room = room;
	}
	if (count > 0)
		memcpy(stack->frames, from->frames, count * sizeof(*stack->frames));
	stack->depth = count;
	return true;
}

bool stack_copy(struct pystack *stack, const struct pystack *from, uint32_t count)
{
	return copy_into(stack, from->room, from, count);
}

bool stack_keep(struct pystack *stack, const struct pystack *from, uint32_t count)
{
	stack->apart = from->apart;
	return copy_into(stack, count, from, count);
}

static bool plan_heap_frame(struct thread *t, const struct pyabi *abi, struct plan *plan, uint32_t k)
{
	return plan_add(plan, t->heap[k].frame, t->heap[k].bytes ? t->heap[k].bytes : (uint32_t)abi->frame.bytes) != PLAN_FULL;
}

static bool plan_heap(struct thread *t, const struct pyabi *abi, struct plan *plan)
{
	t->copy.heap_count = t->heap_count;
	t->copy.heap = plan->count;
	for (uint32_t i = 0; i < t->copy.heap_count; i++) {
		if (!plan_heap_frame(t, abi, plan, i))
			return false;
	}
	return true;
}

static bool plan_chunks(struct thread *t, struct plan *plan)
{
	t->copy.chunks = plan->count;
	t->copy.chunk_count = t->chunk_count;
	for (uint32_t i = 0; i < t->chunk_count; i++)
		if (plan_add(plan, t->chunks[i].base, t->chunks[i].copy_bytes) == PLAN_FULL)
			return false;
	return true;
}

static bool plan_head(struct thread *t, const struct pyabi *abi, struct plan *plan)
{
	t->copy.head = plan_add(plan, t->tstate, (uint32_t)abi->tstate.bytes);
	t->copy.cframes = plan->count;
	t->copy.cframe_count = t->cframe_count;
	for (uint32_t i = 0; i < t->cframe_count; i++)
		if (plan_add(plan, t->cframes[i].frame + (uint64_t)abi->tstate.cframe_frame, 8) == PLAN_FULL)
			return false;
	t->copy.items = plan->count;
	t->copy.item_count = t->item_count;
	for (uint32_t i = 0; i < t->item_count; i++)
		if (plan_add(plan, t->items[i], pyabi_item_bytes(abi)) == PLAN_FULL)
			return false;
	return t->copy.head != PLAN_FULL;
}

void thread_plan_state(struct thread *t, const struct pyabi *abi, struct plan *plan)
{
	t->copy = (struct copy){.head = plan_add(plan, t->tstate, (uint32_t)abi->tstate.bytes)};
}

bool thread_plan(struct thread *t, const struct pyabi *abi, struct plan *plan, uint64_t tick)
{
	if (abi->frames == FRAMES_HEAP)
		return plan_heap(t, abi, plan) && plan_head(t, abi, plan) && plan_chunks(t, plan);
	return plan_chunks(t, plan) && plan_head(t, abi, plan) && apart_plan(t->apart, plan, tick, &t->copy.apart);
}

static bool make_heap_room(struct thread *t, uint32_t count)
{
	uint32_t room = t->heap_room ? t->heap_room : 32;
	struct heap_frame *heap;

	if (count > HEAP_MAX)
		return false;
	if (count <= t->heap_room)
		return true;
	while (room < count)
		room *= 2;
	heap = realloc(t->heap, room * sizeof(*heap));
	if (!heap)
		return false;
	t->heap = heap;
	t->heap_room = room;
	return true;
}

bool thread_want(struct thread *t, raddr_t frame, uint64_t tick)
{
	for (uint32_t i = 0; i < t->heap_count; i++) {
		if (t->heap[i].frame == frame) {
			t->heap[i].used_tick = tick;
			return true;
		}
	}
	if (!make_heap_room(t, t->heap_count + 1))
		return false;
	t->heap[t->heap_count++] = (struct heap_frame){.frame = frame, .used_tick = tick};
	return true;
}

struct apart *thread_apart(struct thread *t)
{
	if (!t->apart)
		t->apart = calloc(1, sizeof(*t->apart));
	return t->apart;
}

void thread_note_on(struct thread *t, bool passed)
{
	const struct plain *seen = &t->seen_plain;

	if ((!passed || seen->count == 0) && !t->seen.apart) /* that is not known of what was read again to prove a call */
		return;
	if (seen->count < t->seen.depth || seen->shims != t->on.shims ||
	    memcmp(seen->called_by_c, t->on.called_by_c, seen->shims * sizeof(*seen->called_by_c)) != 0)
		t->on_same = 0;
	else if (t->on_same < ON_SAME)
		t->on_same++;
	t->on = *seen;
}

static bool is_in_order(const struct thread *t)
{
	if (t->heap_count < t->seen.depth)
		return false;
	for (uint32_t i = 0; i < t->seen.depth; i++)
		if (t->heap[i].frame != t->seen.frames[i].frame)
			return false;
	return true;
}

bool thread_order_heap(struct thread *t, uint64_t tick)
{
	uint32_t depth = t->seen.depth, others = 0;

	if (is_in_order(t))
		return true;
	if (!make_heap_room(t, depth))
		return false;
	/* Those used in this tick are the chain's, or were in an attempt that failed: they can go. */
	for (uint32_t i = 0; i < t->heap_count; i++)
		if (t->heap[i].used_tick != tick)
			t->heap[others++] = t->heap[i];
	if (others > t->heap_room - depth)
		others = t->heap_room - depth;
	memmove(&t->heap[depth], &t->heap[0], others * sizeof(*t->heap));
	for (uint32_t i = 0; i < depth; i++)
		t->heap[i] = (struct heap_frame){.frame = t->seen.frames[i].frame, .used_tick = tick};
	t->heap_count = depth + others;
	return true;
}

void thread_want_cframe(struct thread *t, raddr_t cframe, uint64_t tick)
{
	uint32_t at = t->cframe_count;

	if (t->cframe_count == CFRAMES_MAX) {
		at = 0;
		for (uint32_t i = 1; i < CFRAMES_MAX; i++)
			if (t->cframes[i].used_tick < t->cframes[at].used_tick)
				at = i;
	} else {
		t->cframe_count++;
	}
	t->cframes[at] = (struct heap_frame){.frame = cframe, .used_tick = tick};
}

void thread_prune(struct thread *t, uint64_t tick)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->cframe_count; i++)
		if (tick - t->cframes[i].used_tick < HEAP_KEEP_TICKS)
			t->cframes[kept++] = t->cframes[i];
	t->cframe_count = kept;
	kept = 0;

	for (uint32_t i = 0; i < t->heap_count; i++) {
		if (tick - t->heap[i].used_tick < (t->heap_count > HEAP_MANY ? HEAP_FORGET_TICKS : HEAP_KEEP_TICKS))
			t->heap[kept++] = t->heap[i];
	}
	t->heap_count = kept;
	if (t->apart)
		apart_age(t->apart, tick);
}

void thread_slim(struct thread *t)
{
	for (uint32_t i = 0; i < t->chunk_count; i++) {
		free(t->chunks[i].last);
		t->chunks[i].last = NULL;
		t->chunks[i].last_bytes = t->chunks[i].last_room = 0;
	}
	free(t->seen.frames);
	t->seen = (struct pystack){0};
}

void thread_release(struct thread *t)
{
	oncpu_release(&t->oncpu);
	exact_thread_free(t->exact);
	thread_drop_chunks(t, 0);
	free(t->chunks);
	free(t->apart);
	free(t->heap);
	free(t->seen.frames);
	free(t->last.frames);
	free(t->frames);
	free(t->sent);
}
