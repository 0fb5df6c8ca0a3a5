/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/history_book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char ended_name[] = "(ended threads)";

int book_new(struct book **ret_book, struct budget *budget)
{
	struct book *book = calloc(1, sizeof(*book));

	if (!book)
		return -ENOMEM;
	if (call_tree_init(&book->tree, budget)) {
		free(book);
		return -ENOMEM;
	}
	budget_charge(budget, sizeof(*book));
	book->ended_at = THREAD_NONE;
	book->open.budget = budget;
	*ret_book = book;
	return 0;
}

static uint64_t text_bytes(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

uint64_t book_fixed_bytes(const struct book *book)
{
	uint64_t bytes = sizeof(*book) + call_tree_bytes(&book->tree) + book->patterns.bytes +
	                 book->thread_room * sizeof(*book->threads) + text_bytes(book->process.name) +
	                 book->open.room * sizeof(*book->open.items) +
	                 book->open.place_room * sizeof(*book->open.places);

	for (uint32_t i = 0; i < book->thread_count; i++)
		bytes += text_bytes(book->threads[i].name);
	return bytes;
}

void book_free(struct book *book, struct symbols *symbols)
{
	struct budget *budget = symbols->budget;

	for (uint32_t i = 0; i < book->thread_count; i++) {
		budget_give(budget, text_bytes(book->threads[i].name));
		free(book->threads[i].name);
	}
	budget_give(budget,
	            book->thread_room * sizeof(*book->threads) + sizeof(*book) + text_bytes(book->process.name));
	free(book->threads);
	free(book->process.name);
	for (int i = 0; i < HISTORY_LEVELS; i++)
		queue_release(&book->queues[i], budget);
	patterns_release(&book->patterns, budget);
	sums_release(&book->open);
	call_tree_release(&book->tree, symbols);
	free(book);
}

bool book_is_over(const struct book *book)
{
	uint32_t chunks = 0;

	for (int i = 0; i < HISTORY_LEVELS; i++)
		chunks += book->queues[i].count;
	return book->alive == 0 && chunks == 0 && sums_is_empty(&book->open);
}

/* --- threads --- */

/* A number that is free, or THREAD_NONE. */
static uint32_t free_thread(struct book *book, struct budget *budget)
{
	uint32_t more = book->thread_room / 4 + 4;
	struct book_thread *larger;

	if (book->thread_count < book->thread_room)
		return book->thread_count++;
	for (uint32_t i = 0; i < book->thread_count; i++)
		if (book->threads[i].is_free)
			return i;
	larger = more < THREAD_NONE / 4 ? realloc(book->threads, ((size_t)book->thread_room + more) * sizeof(*larger))
	                                : NULL;
	if (!larger)
		return THREAD_NONE;
	budget_charge(budget, more * sizeof(*larger));
	book->threads = larger;
	book->thread_room += more;
	return book->thread_count++;
}

uint32_t book_thread_add(struct book *book, struct budget *budget, const struct book_thread *like)
{
	char *name = like->name ? strdup(like->name) : NULL;
	uint32_t thread = !like->name || name ? free_thread(book, budget) : THREAD_NONE;

	if (thread == THREAD_NONE) {
		free(name);
		return THREAD_NONE;
	}
	budget_charge(budget, text_bytes(name));
	book->threads[thread] = (struct book_thread){.interpreter = like->interpreter,
	                                             .tid = like->tid,
	                                             .name = name,
	                                             .is_main = like->is_main,
	                                             .has_ended = like->has_ended};
	book->ended_threads += like->has_ended;
	return thread;
}

uint32_t book_thread_named(struct book *book, struct budget *budget, const struct book_thread *like)
{
	struct book_thread any = {.name = like->name, .is_main = like->is_main, .has_ended = like->has_ended};
	const char *name = like->name ? like->name : "";

	for (uint32_t i = 0; i < book->thread_count; i++) {
		struct book_thread *have = &book->threads[i];

		if (have->is_free || have->is_main != like->is_main || strcmp(have->name ? have->name : "", name) != 0)
			continue;
		have->tid = 0;
		have->interpreter = 0;
		if (have->has_ended && !like->has_ended) {
			have->has_ended = false;
			book->ended_threads--;
		}
		return i;
	}
	return book_thread_add(book, budget, &any);
}

int book_thread_rename(struct book *book, struct budget *budget, uint32_t thread, const char *name, size_t bytes)
{
	struct book_thread *kept = &book->threads[thread];
	char *copy;

	if (kept->name && strlen(kept->name) == bytes && memcmp(kept->name, name, bytes) == 0)
		return 0;
	copy = strndup(name, bytes);
	if (!copy)
		return -ENOMEM;
	budget_give(budget, text_bytes(kept->name));
	budget_charge(budget, text_bytes(copy));
	free(kept->name);
	kept->name = copy;
	return 0;
}

void book_thread_end(struct book *book, uint32_t thread)
{
	if (book->threads[thread].has_ended)
		return;
	book->threads[thread].has_ended = true;
	book->ended_threads++;
}

static void drop_thread(struct book *book, struct budget *budget, uint32_t thread)
{
	struct book_thread *kept = &book->threads[thread];

	book->ended_threads -= kept->has_ended;
	if (book->ended_at == thread)
		book->ended_at = THREAD_NONE;
	budget_give(budget, text_bytes(kept->name));
	free(kept->name);
	*kept = (struct book_thread){.is_free = true};
}

/* --- folding --- */

/* The thread that stands for those that have ended, made when there is none yet; THREAD_NONE. */
static uint32_t ended_thread(struct book *book, struct budget *budget)
{
	if (book->ended_at == THREAD_NONE)
		book->ended_at = book_thread_add(book, budget, &(struct book_thread){.name = (char *)ended_name});
	return book->ended_at;
}

static uint32_t fold_node(struct book *book, struct symbols *symbols, struct fold fold, const uint32_t *map, uint32_t i)
{
	struct call_node node = book->tree.nodes[i];
	uint32_t thread = node.symbol;

	if (node.parent)
		return call_tree_child(&book->tree, symbols, map[node.parent], node.symbol,
		                       fold.lines && !symbols->slots[node.symbol].mapped ? 0 : node.line);
	if (!fold.ended || !book->threads[thread].has_ended || book->threads[thread].live)
		return i;
	thread = ended_thread(book, symbols->budget);
	return thread == THREAD_NONE ? CALL_NONE : call_tree_child(&book->tree, symbols, 0, thread, 0);
}

void book_fold(struct book *book, struct symbols *symbols, struct fold fold, const struct sums *from, struct sums *to)
{
	uint32_t count = book->tree.count, *map = calloc(count, sizeof(*map));

	for (uint32_t i = 0; map && i < from->count; i++)
		for (uint32_t up = from->items[i].node; up && !map[up]; up = book->tree.nodes[up].parent)
			map[up] = 1;
	for (uint32_t i = 1; map && i < count; i++) {
		if (!map[i])
			continue;
		map[i] = fold_node(book, symbols, fold, map, i);
		if (map[i] == CALL_NONE)
			map[i] = i;
	}
	for (uint32_t i = 0; i < from->count; i++) {
		uint32_t node = from->items[i].node;
		uint64_t *values = sums_at(to, map ? map[node] : node);

		for (int v = 0; v < HISTORY_VALUES && values; v++)
			values[v] += from->items[i].values[v];
		if (!values)
			to->facts[FACT_OUT_OF_MEMORY] += from->items[i].values[VALUE_SAMPLES];
	}
	for (int i = 0; i < FACT_COUNT; i++)
		to->facts[i] += from->facts[i];
	free(map);
}

/* --- compacting --- */

static void mark_all(const struct book *book, uint32_t *marks)
{
	for (int level = 0; level < HISTORY_LEVELS; level++)
		for (struct cursor cursor = queue_seek(&book->queues[level], 0); cursor_next(&cursor);)
			entry_mark(&cursor.entry, &book->patterns, marks);
	for (uint32_t i = 0; i < book->open.count; i++)
		marks[book->open.items[i].node] = 1;
	for (uint32_t i = 1; i < book->tree.count; i++)
		if (book->tree.nodes[i].parent == 0 && book->threads[book->tree.nodes[i].symbol].live)
			marks[i] = 1;
}

/* Threads that no node stands for, and that nobody is. */
static void drop_threads(struct book *book, struct budget *budget)
{
	bool *named = calloc(book->thread_count + (size_t)1, sizeof(*named));

	if (!named)
		return;
	for (uint32_t i = 1; i < book->tree.count; i++)
		if (book->tree.nodes[i].parent == 0)
			named[book->tree.nodes[i].symbol] = true;
	for (uint32_t i = 0; i < book->thread_count; i++)
		if (!named[i] && !book->threads[i].is_free && !book->threads[i].live)
			drop_thread(book, budget, i);
	free(named);
}

int book_compact(struct book *book, struct symbols *symbols, struct sums *scratch, struct buf *bytes, uint64_t *lost,
                 uint32_t **ret_map)
{
	struct budget *budget = symbols->budget;
	uint32_t *map = calloc(book->tree.count, sizeof(*map));
	struct patterns before = book->patterns;

	if (!map)
		return -ENOMEM;
	mark_all(book, map);
	if (call_tree_compact(&book->tree, symbols, map)) {
		free(map);
		return -ENOMEM;
	}
	book->patterns = (struct patterns){0};
	for (int level = 0; level < HISTORY_LEVELS; level++) {
		struct queue *from = &book->queues[level], to = {.last = from->last};
		uint64_t number;

		while (queue_front(from, &number)) {
			struct entry entry = queue_first(from);

			entry_add(&entry, &before, map, scratch);
			queue_pop(from, budget);
			sums_sort(scratch);
			if (queue_push(&to, budget, &book->patterns, scratch, number, bytes))
				*lost += sums_samples(scratch);
			sums_clear(scratch);
		}
		queue_release(from, budget);
		*from = to;
	}
	patterns_release(&before, budget);
	sums_renumber(&book->open, map);
	drop_threads(book, budget);
	book->removed_bytes = 0;
	*ret_map = map;
	return 0;
}
