/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of one tree at one level of detail, oldest first, in chunks: appended at the end, taken off the front, found by number. */
#ifndef SAMPLED_AGGREGATOR_HISTORY_QUEUE_H
#define SAMPLED_AGGREGATOR_HISTORY_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/history_entry.h"

struct chunk {
	uint64_t before;       /* number of the entry before its first one */
	uint32_t start, bytes; /* its entries lie in data[start … bytes) */
	uint32_t room, count;  /* count: of entries */
	uint8_t data[];
};

/* All zeros is an empty one. */
struct queue {
	struct chunk **chunks; /* owned; those in use are [first, first + count) */
	uint32_t first, count, room;
	uint64_t last;         /* number of the last entry; where there is none, of what would be before the next */
	uint64_t memory_bytes; /* charged */
};

void queue_release(struct queue *queue, struct budget *budget);
/* Appends the sums, which are sorted, as the entry of this number, which is above all there are. What it takes is charged, never refused. `scratch` is
 * for making it. 0 or -ENOMEM (all is as before). */
int queue_push(struct queue *queue, struct budget *budget, struct patterns *patterns, const struct sums *sums,
               uint64_t number, struct buf *scratch);

/* Walks over entries. */
struct cursor {
	const struct queue *queue;
	uint32_t chunk, at;
	uint64_t number; /* of the entry that cursor_next() found */
	struct entry entry;
};

/* Before the first entry whose number is at least that. */
struct cursor queue_seek(const struct queue *queue, uint64_t number);
/* To the next entry; false: there is none. */
bool cursor_next(struct cursor *cursor);

/* The number of the first entry. False: there is none. */
bool queue_front(const struct queue *queue, uint64_t *ret_number);
/* Finds the first entry. There is one. */
struct entry queue_first(const struct queue *queue);
/* Takes the first entry off, when the caller has done with it. There is one. */
void queue_pop(struct queue *queue, struct budget *budget);

#endif
