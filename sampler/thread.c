/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/thread.h"

#include "sampler/exact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAP_MAX          20000u
#define HEAP_MANY         12u /* heap frames; each costs up to 0.35 µs a sample, used or not */
#define HEAP_KEEP_TICKS   256 /* so long one is read on without being used */
#define HEAP_FORGET_TICKS 2   /* so long where there are many */
#define CHUNK_SIZE_MAX    (256u << 20)

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

bool stack_copy(struct pystack *stack, const struct pystack *from, uint32_t count)
{
	if (stack->room < count) {
		struct pyframe *frames = realloc(stack->frames, from->room * sizeof(*frames));

		if (!frames)
			return false;
		stack->frames = frames;
		stack->room = from->room;
	}
	if (count > 0)
		memcpy(stack->frames, from->frames, count * sizeof(*stack->frames));
	stack->depth = count;
	return true;
}

static bool plan_heap(struct thread *t, const struct pyabi *abi, struct plan *plan, bool reversed)
{
	t->copy.heap = plan->count;
	t->copy.heap_count = t->heap_count;
	t->copy.reversed = reversed;
	for (uint32_t i = 0; i < t->heap_count; i++) {
		uint32_t k = t->copy.reversed ? t->heap_count - 1 - i : i;

		if (plan_add(plan, t->heap[k].frame, (uint32_t)abi->frame.bytes) == PLAN_FULL)
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
	t->copy.late_head = false;
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

bool thread_plan_stack(struct thread *t, struct plan *plan)
{
	t->copy = (struct copy){.head = PLAN_FULL};
	return plan_chunks(t, plan);
}

void thread_plan_state(struct thread *t, const struct pyabi *abi, struct plan *plan)
{
	t->copy = (struct copy){.head = plan_add(plan, t->tstate, (uint32_t)abi->tstate.bytes)};
}

bool thread_read_state(struct thread *t, const struct pyabi *abi, struct plan *plan, const struct remote *remote)
{
	struct iovec pieces[1 + CFRAMES_MAX];
	uint32_t count = 0;
	int read;

	pieces[count++] =
		(struct iovec){.iov_base = (void *)(uintptr_t)t->tstate, .iov_len = (size_t)abi->tstate.bytes};
	for (uint32_t i = 0; i < t->cframe_count; i++)
		pieces[count++] = (struct iovec){
			.iov_base = (void *)(uintptr_t)(t->cframes[i].frame + (uint64_t)abi->tstate.cframe_frame),
			.iov_len = 8};
	if (!plan_reserve(plan, (uint32_t)abi->tstate.bytes + 16 * (CFRAMES_MAX + 1)))
		return false;
	t->copy.head = plan_put(plan, remote, pieces, count, &read);
	t->copy.late_head = true;
	t->copy.cframes = t->copy.head + 1;
	t->copy.cframe_count = t->cframe_count;
	t->copy.item_count = 0;
	t->copy.apart = (struct apart_copy){.frames = plan->count};
	return t->copy.head != PLAN_FULL && read > 0;
}

bool thread_plan(struct thread *t, const struct pyabi *abi, struct plan *plan, uint64_t tick, bool reversed)
{
	if (abi->frames == FRAMES_HEAP)
		return plan_heap(t, abi, plan, reversed) && plan_head(t, abi, plan) && plan_chunks(t, plan);
	return plan_chunks(t, plan) && plan_head(t, abi, plan) && apart_plan(t->apart, plan, tick, &t->copy.apart);
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

void thread_want_chunk(struct chunk *chunk, uint64_t bytes)
{
	chunk->copy_bytes = 2 * bytes < chunk->size_bytes ? (uint32_t)(2 * bytes) : chunk->size_bytes;
}

bool thread_want_stack(struct thread *t, raddr_t frame, uint32_t bytes)
{
	for (uint32_t i = 0; i < t->chunk_count; i++) {
		struct chunk *chunk = &t->chunks[i];
		uint64_t end = frame - chunk->base + bytes;

		if (frame < chunk->base || end > chunk->size_bytes || end <= chunk->copy_bytes)
			continue;
		thread_want_chunk(chunk, end);
		return true;
	}
	return false;
}

bool thread_in_chunks(const struct thread *t, raddr_t addr)
{
	for (uint32_t i = 0; i < t->chunk_count; i++)
		if (addr - t->chunks[i].base < t->chunks[i].size_bytes)
			return true;
	return false;
}

struct apart *thread_apart(struct thread *t)
{
	if (!t->apart)
		t->apart = calloc(1, sizeof(*t->apart));
	return t->apart;
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

	for (uint32_t i = 0; i < t->heap_count; i++) {
		if (tick - t->heap[i].used_tick < (t->heap_count > HEAP_MANY ? HEAP_FORGET_TICKS : HEAP_KEEP_TICKS))
			t->heap[kept++] = t->heap[i];
	}
	t->heap_count = kept;
	if (t->apart)
		apart_age(t->apart, tick);
}

void thread_drop_chunks(struct thread *t, uint32_t count)
{
	for (uint32_t i = count; i < t->chunk_count; i++)
		free(t->chunks[i].last);
	t->chunk_count = count;
	t->last_plain = 0;
}

/* The first byte in which they differ, or a little before; `bytes` where they do not. */
static uint32_t find_difference(const uint8_t *a, const uint8_t *b, uint32_t bytes)
{
	uint32_t at = 0;

	while (bytes - at >= 4096 && memcmp(a + at, b + at, 4096) == 0)
		at += 4096;
	while (bytes - at >= 256 && memcmp(a + at, b + at, 256) == 0)
		at += 256;
	while (bytes - at >= 16 && memcmp(a + at, b + at, 16) == 0)
		at += 16;
	return bytes - at < 16 && memcmp(a + at, b + at, bytes - at) == 0 ? bytes : at;
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

/* How much of a chunk's copy is as it was. */
static uint32_t same_bytes(const struct thread *t, const struct plan *plan, uint32_t chunk)
{
	const uint8_t *bytes = plan_bytes(plan, t->copy.chunks + chunk);
	const struct chunk *c = &t->chunks[chunk];
	uint32_t most = bytes ? plan->pieces[t->copy.chunks + chunk].bytes : 0;

	if (!c->last || !bytes)
		return 0;
	return find_difference(bytes, c->last, most < c->last_bytes ? most : c->last_bytes);
}

/* Room for `bytes` bytes of the chunk; a chunk's size is the target's word, so no more is taken. */
static bool make_room(struct chunk *c, uint32_t bytes)
{
	uint8_t *grown;

	if (bytes <= c->last_room)
		return true;
	grown = realloc(c->last, bytes);
	if (!grown)
		return false;
	c->last = grown;
	c->last_room = bytes;
	return true;
}

void thread_keep_copy(struct thread *t, const struct plan *plan)
{
	for (uint32_t i = 0; t->seen_plain > 0 && i < t->copy.chunk_count; i++) {
		const uint8_t *bytes = plan_bytes(plan, t->copy.chunks + i);
		struct chunk *c = &t->chunks[i];
		uint32_t count = bytes ? plan->pieces[t->copy.chunks + i].bytes : 0;

		if (!bytes || !make_room(c, count)) {
			t->seen_plain = 0;
			return;
		}
		if (i < t->copy.same_chunks)
			continue;
		memcpy(c->last, bytes, count);
		c->last_bytes = count;
	}
}

uint32_t thread_find_same(struct thread *t, const struct plan *plan, uint32_t frame_bytes)
{
	uint32_t low = 0, high = t->last_plain, chunk = 0, same = 0;

	t->copy.same_chunks = 0;
	if (high == 0)
		return 0;
	for (; chunk < t->copy.chunk_count; chunk++) {
		same = same_bytes(t, plan, chunk);
		if (same < plan->pieces[t->copy.chunks + chunk].bytes)
			break;
	}
	t->copy.same_chunks = chunk;
	while (low < high) { /* the first one that does not lie there */
		uint32_t middle = (low + high) / 2, in = 0;
		raddr_t frame = t->last.frames[middle].frame;

		while (in < t->copy.chunk_count && frame - t->chunks[in].base >= t->chunks[in].size_bytes)
			in++;
		if (in < chunk ||
		    (in == chunk && in < t->copy.chunk_count && frame + frame_bytes - t->chunks[in].base <= same))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int thread_find_chunks(struct thread *t, const struct remote *r, raddr_t newest)
{
	uint32_t count = 0;
	raddr_t chunk = newest;

	thread_drop_chunks(t, 0); /* until all of them are known */
	while (chunk != 0) {
		uint64_t head
			[3]; /* previous, size in bytes, top in slots (struct _stack_chunk, Include/cpython/pystate.h) */
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
