/* SPDX-License-Identifier: Apache-2.0 */
/* Books become one, and are compacted; those who hold numbers of their nodes are told. */
#include <stdlib.h>

#include "aggregator/history_state.h"

void history_compact(struct history *h, struct book *book)
{
	uint64_t lost = 0;
	uint32_t *map;

	if (book_compact(book, &h->symbols, &h->scratch[0], &h->bytes, &lost, &map))
		return;
	h->out_of_memory += lost;
	h->compactions++;
	for (uint32_t i = 0; i < h->threads.count; i++) {
		struct history_thread *thread = h->threads.items[i].item;

		if (thread->target->book != book)
			continue;
		thread->node = map[thread->node];
		thread->stack.path_depth = 0;
	}
	free(map);
}

/* Which node of `into` each node of `from` becomes; freed by the caller; NULL: no memory. */
static uint32_t *map_nodes(struct history *h, struct book *into, const struct book *from)
{
	uint32_t *map = calloc(from->tree.count, sizeof(*map));

	for (uint32_t i = 1; map && i < from->tree.count; i++) {
		struct call_node node = from->tree.nodes[i];

		if (node.parent == 0) {
			node.symbol = book_thread_named(into, &h->budget, &from->threads[node.symbol]);
			node.line = 0;
		}
		map[i] = node.symbol == THREAD_NONE
		                 ? CALL_NONE
		                 : call_tree_child(&into->tree, &h->symbols, map[node.parent], node.symbol, node.line);
		if (map[i] == CALL_NONE) {
			free(map);
			return NULL;
		}
	}
	return map;
}

/* Moves the first entry of a queue into sums. */
static void take_first(struct history *h, struct book *book, int level, const uint32_t *map, struct sums *sums)
{
	struct entry entry = queue_first(&book->queues[level]);

	h->out_of_memory += entry_add(&entry, &book->patterns, map, sums);
	queue_pop(&book->queues[level], &h->budget);
}

/* Entries of the same slice become one. */
static void merge_queues(struct history *h, struct book *into, struct book *from, int level, const uint32_t *map)
{
	struct queue *queue = &into->queues[level], merged = {.last = queue->last};
	struct sums *sums = &h->scratch[0];
	uint64_t mine, theirs;

	for (;;) {
		bool any = queue_front(queue, &mine), more = queue_front(&from->queues[level], &theirs);
		uint64_t number = any && (!more || mine < theirs) ? mine : theirs;

		if (!any && !more)
			break;
		if (any && mine == number)
			take_first(h, into, level, NULL, sums);
		if (more && theirs == number)
			take_first(h, from, level, map, sums);
		sums_sort(sums);
		if (queue_push(&merged, &h->budget, &into->patterns, sums, number, &h->bytes))
			h->out_of_memory += sums_samples(sums);
		sums_clear(sums);
	}
	queue_release(queue, &h->budget);
	*queue = merged;
}

static void merge_open(struct history *h, struct book *into, const struct book *from, const uint32_t *map)
{
	for (uint32_t i = 0; i < from->open.count; i++) {
		const struct node_values *item = &from->open.items[i];
		uint64_t *values = sums_at(&into->open, map[item->node]);

		for (int v = 0; v < HISTORY_VALUES && values; v++)
			values[v] += item->values[v];
		if (!values) {
			h->out_of_memory += item->values[VALUE_SAMPLES];
			into->open.facts[FACT_OUT_OF_MEMORY] += item->values[VALUE_SAMPLES];
		}
	}
	for (int i = 0; i < FACT_COUNT; i++)
		into->open.facts[i] += from->open.facts[i];
}

/* Who wrote into `from` writes into `into` from now on. */
static void move_writers(struct history *h, struct book *into, const struct book *from, const uint32_t *map)
{
	for (uint32_t i = 0; i < h->threads.count; i++) {
		struct history_thread *thread = h->threads.items[i].item;
		const struct book_thread *was;

		if (thread->target->book != from)
			continue;
		was = &from->threads[thread->thread];
		thread->thread = book_thread_named(into, &h->budget, was);
		into->threads[thread->thread].live++;
		thread->node = map[thread->node];
		thread->stack.path_depth = 0;
	}
	for (uint32_t i = 0; i < h->targets.count; i++) {
		struct history_target *target = h->targets.items[i].item;

		if (target->book == from)
			target->book = into;
	}
}

/* A thread that has no node yet must have its place before anything is moved. */
static bool make_threads(struct history *h, struct book *into, const struct book *from)
{
	for (uint32_t i = 0; i < from->thread_count; i++)
		if (from->threads[i].live && book_thread_named(into, &h->budget, &from->threads[i]) == THREAD_NONE)
			return false;
	return true;
}

bool history_merge_books(struct history *h, struct book *into, struct book *from)
{
	uint32_t *map = make_threads(h, into, from) ? map_nodes(h, into, from) : NULL;

	if (!map)
		return false;
	for (int level = 0; level < HISTORY_LEVELS; level++)
		merge_queues(h, into, from, level, map);
	merge_open(h, into, from, map);
	if (from->alive)
		move_writers(h, into, from, map);
	h->steps[from->alive ? HISTORY_MERGED_ALIVE : HISTORY_MERGED_ENDED]++;
	into->targets += from->targets;
	into->alive += from->alive;
	book_free(from, &h->symbols);
	free(map);
	return true;
}
