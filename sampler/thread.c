/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAP_MAX 20000u
#define HEAP_MANY 16u        /* heap frames; each costs 0.35 µs a sample, used or not */
#define HEAP_KEEP_TICKS 256  /* so long one is read on without being used */
#define HEAP_FORGET_TICKS 32 /* so long where there are many */
#define CHUNK_SIZE_MAX (256u << 20)

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

bool thread_plan(struct thread *t, const struct pyabi *abi, struct plan *plan, bool reversed)
{
	uint32_t frame_bytes = (uint32_t)abi->frame.bytes;

	t->copy.head = plan_add(plan, t->tstate, (uint32_t)abi->tstate.bytes);
	t->copy.cframes = plan->count;
	t->copy.cframe_count = t->cframe_count;
	for (uint32_t i = 0; i < t->cframe_count; i++)
		if (plan_add(plan, t->cframes[i].frame + (uint64_t)abi->tstate.cframe_frame, 8) == PLAN_FULL)
			return false;
	t->copy.chunks = plan->count;
	t->copy.chunk_count = t->chunk_count;
	for (uint32_t i = 0; i < t->chunk_count; i++)
		if (plan_add(plan, t->chunks[i].base, t->chunks[i].copy_bytes) == PLAN_FULL)
			return false;
	t->copy.heap = plan->count;
	t->copy.heap_count = t->heap_count;
	t->copy.reversed = reversed;
	for (uint32_t i = 0; i < t->heap_count; i++)
		if (plan_add(plan, t->heap[reversed ? t->heap_count - 1 - i : i].frame, frame_bytes) == PLAN_FULL)
			return false;
	return t->copy.head != PLAN_FULL;
}

bool thread_want(struct thread *t, raddr_t frame, uint64_t tick)
{
	for (uint32_t i = 0; i < t->heap_count; i++) {
		if (t->heap[i].frame == frame) {
			t->heap[i].used_tick = tick;
			return true;
		}
	}
	if (t->heap_count == HEAP_MAX)
		return false;
	if (t->heap_count == t->heap_room) {
		uint32_t room = t->heap_room ? 2 * t->heap_room : 32;
		struct heap_frame *heap = realloc(t->heap, room * sizeof(*heap));

		if (!heap)
			return false;
		t->heap = heap;
		t->heap_room = room;
	}
	t->heap[t->heap_count++] = (struct heap_frame){.frame = frame, .used_tick = tick};
	return true;
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

void thread_order_heap(struct thread *t, uint64_t tick)
{
	uint32_t depth = t->seen.depth, others = 0;

	if (is_in_order(t))
		return;
	/* Those used in this tick are the chain's, or were in an attempt that failed: they can go. */
	for (uint32_t i = 0; i < t->heap_count; i++)
		if (t->heap[i].used_tick != tick)
			t->heap[others++] = t->heap[i];
	if (depth > t->heap_room)
		return; /* cannot be: each frame of the chain was wanted */
	if (others > t->heap_room - depth)
		others = t->heap_room - depth;
	memmove(&t->heap[depth], &t->heap[0], others * sizeof(*t->heap));
	for (uint32_t i = 0; i < depth; i++)
		t->heap[i] = (struct heap_frame){.frame = t->seen.frames[i].frame, .used_tick = tick};
	t->heap_count = depth + others;
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

	for (uint32_t i = 0; i < t->heap_count; i++)
		if (tick - t->heap[i].used_tick < (t->heap_count > HEAP_MANY ? HEAP_FORGET_TICKS : HEAP_KEEP_TICKS))
			t->heap[kept++] = t->heap[i];
	t->heap_count = kept;
}

int thread_find_chunks(struct thread *t, const struct remote *r, raddr_t newest)
{
	uint32_t count = 0;
	raddr_t chunk = newest;

	t->chunk_count = 0; /* until all of them are known */
	while (chunk != 0) {
		uint64_t head[3]; /* previous, size in bytes, top in slots (struct _stack_chunk, Include/cpython/pystate.h) */
		int err = remote_read(r, chunk, head, sizeof(head));

		if (err)
			return err == -EFAULT ? -EAGAIN : err;
		if (count == CHUNKS_MAX || head[1] < sizeof(head) || head[1] > CHUNK_SIZE_MAX || (chunk & 7) != 0)
			return -EPROTO;
		if (count == t->chunk_room) {
			uint32_t room = t->chunk_room ? 2 * t->chunk_room : 4;
			struct chunk *chunks = realloc(t->chunks, room * sizeof(*chunks));

			if (!chunks)
				return -ENOMEM;
			t->chunks = chunks;
			t->chunk_room = room;
		}
		t->chunks[count++] = (struct chunk){.base = chunk, .size_bytes = (uint32_t)head[1]};
		chunk = head[0];
	}
	for (uint32_t i = 0; i < count / 2; i++) {
		struct chunk swap = t->chunks[i];

		t->chunks[i] = t->chunks[count - 1 - i];
		t->chunks[count - 1 - i] = swap;
	}
	/* An older chunk is full but for a frame; of the newest the walk learns how much is in use. */
	for (uint32_t i = 0; i < count; i++) {
		uint32_t size = t->chunks[i].size_bytes;

		t->chunks[i].copy_bytes = i + 1 < count || size < 2048 ? size : 2048;
	}
	t->chunk_count = count;
	return 0;
}

void thread_release(struct thread *t)
{
	oncpu_release(&t->oncpu);
	free(t->chunks);
	free(t->heap);
	free(t->seen.frames);
	free(t->last.frames);
	free(t->frames);
	free(t->sent);
}
