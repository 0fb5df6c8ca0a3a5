/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/history_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHUNK_ENTRIES = 64,      /* so that one is found by number in few steps */
	CHUNK_BYTES = 16 * 1024, /* and little is copied when it grows */
	CHUNK_FIRST_BYTES = 48,
	CHUNK_COST_BYTES = sizeof(struct chunk) + 16 +
	                   sizeof(void *), /* besides its room: what malloc() takes, its place in chunks[] */
};

static void charge(struct queue *queue, struct budget *budget, uint64_t bytes)
{
	budget_charge(budget, bytes);
	queue->memory_bytes += bytes;
}

static void give(struct queue *queue, struct budget *budget, uint64_t bytes)
{
	budget_give(budget, bytes);
	queue->memory_bytes -= bytes;
}

void queue_release(struct queue *queue, struct budget *budget)
{
	for (uint32_t i = queue->first; i < queue->first + queue->count; i++)
		free(queue->chunks[i]);
	free(queue->chunks);
	budget_give(budget, queue->memory_bytes);
	*queue = (struct queue){.last = queue->last};
}

static struct chunk *last_chunk(struct queue *queue)
{
	return queue->count ? queue->chunks[queue->first + queue->count - 1] : NULL;
}

/* The chunk with another room; NULL: no memory, and all is as before. */
static struct chunk *resize(struct queue *queue, struct budget *budget, struct chunk *chunk, uint32_t room)
{
	struct chunk *resized = realloc(chunk, sizeof(*chunk) + room);

	if (!resized)
		return NULL;
	give(queue, budget, resized->room);
	charge(queue, budget, room);
	resized->room = room;
	queue->chunks[queue->first + queue->count - 1] = resized;
	return resized;
}

static int add_chunk(struct queue *queue, struct budget *budget)
{
	struct chunk *chunk, *last = last_chunk(queue);

	if (last && last->room > last->bytes)
		resize(queue, budget, last, last->bytes);
	if (queue->first + queue->count == queue->room && queue->first > queue->room / 2) {
		memmove(queue->chunks, queue->chunks + queue->first, queue->count * sizeof(struct chunk *));
		queue->first = 0;
	}
	if (queue->first + queue->count == queue->room) {
		uint32_t room = queue->room + queue->room / 2 + 2;
		struct chunk **chunks = realloc(queue->chunks, room * sizeof(struct chunk *));

		if (!chunks)
			return -ENOMEM;
		queue->chunks = chunks;
		queue->room = room;
	}
	chunk = malloc(sizeof(*chunk) + CHUNK_FIRST_BYTES);
	if (!chunk)
		return -ENOMEM;
	*chunk = (struct chunk){.before = queue->last, .room = CHUNK_FIRST_BYTES};
	charge(queue, budget, CHUNK_COST_BYTES + chunk->room);
	queue->chunks[queue->first + queue->count++] = chunk;
	return 0;
}

static void drop_chunk(struct queue *queue, struct budget *budget, uint32_t at)
{
	give(queue, budget, CHUNK_COST_BYTES + queue->chunks[at]->room);
	free(queue->chunks[at]);
	queue->count--;
}

static int append(struct queue *queue, struct budget *budget, const void *data, size_t bytes)
{
	struct chunk *chunk = last_chunk(queue);
	size_t room;

	if (bytes > UINT32_MAX / 4)
		return -ENOMEM;
	if (!chunk || chunk->count >= CHUNK_ENTRIES || chunk->bytes >= CHUNK_BYTES) {
		if (add_chunk(queue, budget))
			return -ENOMEM;
		chunk = last_chunk(queue);
	}
	room = chunk->room + chunk->room / 2;
	if (room < chunk->bytes + bytes)
		room = chunk->bytes + bytes;
	if (chunk->bytes + bytes > chunk->room)
		chunk = resize(queue, budget, chunk, (uint32_t)room);
	if (!chunk) {
		if (last_chunk(queue)->count == 0)
			drop_chunk(queue, budget, queue->first + queue->count - 1);
		return -ENOMEM;
	}
	memcpy(chunk->data + chunk->bytes, data, bytes);
	chunk->bytes += (uint32_t)bytes;
	chunk->count++;
	return 0;
}

int queue_push(struct queue *queue, struct budget *budget, struct patterns *patterns, const struct sums *sums,
               uint64_t number, struct buf *scratch)
{
	int err;

	if (queue->count == 0)
		queue->last = number - 1;
	scratch->bytes = 0;
	scratch->err = 0;
	err = entry_write(scratch, patterns, budget, sums, number - queue->last - 1);
	if (!err)
		err = append(queue, budget, scratch->data, scratch->bytes);
	if (!err)
		queue->last = number;
	return err;
}

struct cursor queue_seek(const struct queue *queue, uint64_t number)
{
	uint32_t low = queue->first, high = queue->first + queue->count;
	struct cursor cursor = {.queue = queue}, next;

	/* The last chunk that begins behind an entry with a lower number. */
	while (low + 1 < high) {
		uint32_t middle = low + (high - low) / 2;

		if (queue->chunks[middle]->before < number)
			low = middle;
		else
			high = middle;
	}
	cursor.chunk = low;
	if (queue->count) {
		cursor.at = queue->chunks[low]->start;
		cursor.number = queue->chunks[low]->before;
	}
	for (next = cursor; cursor_next(&next) && next.number < number;)
		cursor = next;
	return cursor;
}

bool cursor_next(struct cursor *cursor)
{
	const struct queue *queue = cursor->queue;
	const struct chunk *chunk;

	while (cursor->chunk < queue->first + queue->count) {
		chunk = queue->chunks[cursor->chunk];
		if (cursor->at < chunk->bytes) {
			cursor->entry = entry_read(chunk->data + cursor->at);
			cursor->number += cursor->entry.gap + 1;
			cursor->at = (uint32_t)(cursor->entry.end - chunk->data);
			return true;
		}
		cursor->chunk++;
		if (cursor->chunk < queue->first + queue->count) {
			cursor->at = queue->chunks[cursor->chunk]->start;
			cursor->number = queue->chunks[cursor->chunk]->before;
		}
	}
	return false;
}

static struct cursor front(const struct queue *queue)
{
	const struct chunk *chunk = queue->chunks[queue->first];

	return (struct cursor){.queue = queue, .chunk = queue->first, .at = chunk->start, .number = chunk->before};
}

bool queue_front(const struct queue *queue, uint64_t *ret_number)
{
	struct cursor cursor;

	if (queue->count == 0)
		return false;
	cursor = front(queue);
	cursor_next(&cursor);
	*ret_number = cursor.number;
	return true;
}

struct entry queue_first(const struct queue *queue)
{
	struct cursor cursor = front(queue);

	cursor_next(&cursor);
	return cursor.entry;
}

void queue_pop(struct queue *queue, struct budget *budget)
{
	struct chunk *chunk = queue->chunks[queue->first];
	struct cursor cursor = front(queue);

	cursor_next(&cursor);
	chunk->start = cursor.at;
	chunk->before = cursor.number;
	if (--chunk->count > 0)
		return;
	drop_chunk(queue, budget, queue->first);
	queue->first++;
	if (queue->count == 0)
		queue->first = 0;
}
