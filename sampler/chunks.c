/* SPDX-License-Identifier: Apache-2.0 */
/* The data stack (3.11+), in pieces: which there are, how much of each a sample reads, and what the latest accepted one read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/thread.h"

#define CHUNK_SIZE_MAX (256u << 20)

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

void thread_drop_chunks(struct thread *t, uint32_t count)
{
	for (uint32_t i = count; i < t->chunk_count; i++)
		free(t->chunks[i].last);
	t->chunk_count = count;
	t->last_plain.count = 0;
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
	for (uint32_t i = 0; t->seen_plain.count > 0 && i < t->copy.chunk_count; i++) {
		const uint8_t *bytes = plan_bytes(plan, t->copy.chunks + i);
		struct chunk *c = &t->chunks[i];
		uint32_t same, count = bytes ? plan->pieces[t->copy.chunks + i].bytes : 0;

		if (!bytes || !make_room(c, count)) {
			t->seen_plain.count = 0;
			return;
		}
		if (i < t->copy.same_chunks)
			continue;
		same = i == t->copy.same_chunks ? t->copy.same_bytes : 0;
		memcpy(c->last + same, bytes + same, count - same);
		c->last_bytes = count;
	}
}

uint32_t thread_find_same(struct thread *t, const struct plan *plan, uint32_t frame_bytes)
{
	uint32_t low = 0, high = t->last_plain.count, chunk = 0, same = 0;

	t->copy.same_chunks = t->copy.same_bytes = 0;
	if (high == 0)
		return 0;
	for (; chunk < t->copy.chunk_count; chunk++) {
		same = same_bytes(t, plan, chunk);
		if (same < plan->pieces[t->copy.chunks + chunk].bytes)
			break;
	}
	t->copy.same_chunks = chunk;
	t->copy.same_bytes = chunk < t->copy.chunk_count ? same : 0;
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
