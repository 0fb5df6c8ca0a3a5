/* SPDX-License-Identifier: Apache-2.0 */
/* At the bound: what gives way, and in which order.
 *
 * What living targets take besides their slices is given. The rest of the bound is shared by the four levels of slices and the targets that have
 * ended, in equal parts: the first of these, from fine to folded, that has more than its part gives way, oldest first. Since together they have
 * more than all, one of them does. Where that is not enough, because trees alone take the bound, each gives all it can. */
#include <stdlib.h>

#include "aggregator/history_state.h"
#include "base/clock.h"

enum { SHARES = HISTORY_LEVELS + 1 };

uint64_t history_goal_bytes(const struct history *h)
{
	return h->budget.max_bytes - h->budget.max_bytes / 16;
}

static void drop_if_worn(struct history *h, struct book *book)
{
	uint64_t bytes = call_tree_bytes(&book->tree);

	for (int i = 0; i < HISTORY_LEVELS; i++)
		bytes += book->queues[i].memory_bytes;
	if (book->removed_bytes > bytes / 4 + 1024)
		history_compact(h, book);
}

/* Takes the entries of a book up to this slice off a level, into sums. */
static void take_entries(struct history *h, struct book *book, int level, uint64_t end, struct sums *sums)
{
	struct queue *queue = &book->queues[level];
	uint64_t number;

	while (queue_front(queue, &number) && number < end) {
		struct entry entry = queue_first(queue);

		h->out_of_memory += entry_add(&entry, &book->patterns, NULL, sums);
		queue_pop(queue, &h->budget);
	}
}

/* --- slices --- */

/* How many of the oldest slices make one of that length, or 0: they are too few. Any two will do, if they need not be `whole`. */
static uint32_t count_for(const struct level *level, uint64_t length_ns, bool whole)
{
	uint64_t from_ns = level->count ? level_slice(level, level->first)->from_ns : 0;

	for (uint32_t n = 0; n < level->count; n++) {
		const struct slice *slice = level_slice(level, level->first + n);

		if (slice->to_ns - from_ns + (slice->to_ns - slice->from_ns) / 2 >= length_ns)
			return n + 1;
	}
	return !whole && level->count >= 2 ? level->count : 0;
}

/* What is taken off a level goes to the next. */
static void move_entries(struct history *h, struct book *book, int level, uint64_t end, uint64_t number)
{
	struct sums *sums = &h->scratch[0];

	take_entries(h, book, level, end, sums);
	if (sums_is_empty(sums))
		return;
	if (level + 1 == HISTORY_FOLDED) {
		book_fold(book, &h->symbols, (struct fold){.lines = true, .ended = true}, sums, &h->scratch[1]);
		book->removed_bytes += (uint64_t)sums->count * CALL_NODE_BYTES;
		sums = &h->scratch[1];
	}
	sums_sort(sums);
	if (queue_push(&book->queues[level + 1], &h->budget, &book->patterns, sums, number, &h->bytes))
		h->out_of_memory += sums_samples(sums);
	sums_clear(&h->scratch[0]);
	sums_clear(&h->scratch[1]);
}

/* The oldest slices of a level become one of the next. */
static bool merge_slices(struct history *h, int level, bool whole)
{
	static const uint64_t lengths_ns[] = {60 * NS_PER_S, 600 * NS_PER_S, 0};
	struct level *from = &h->levels[level];
	uint32_t count = level + 1 == HISTORY_FOLDED ? from->count > 0 : count_for(from, lengths_ns[level], whole);
	uint64_t end = from->first + count, number;
	struct slice slice;

	if (count == 0)
		return false;
	slice = *level_slice(from, from->first);
	for (uint32_t i = 1; i < count; i++) {
		const struct slice *next = level_slice(from, from->first + i);

		slice.to_ns = next->to_ns;
		slice.malformed_samples += next->malformed_samples;
		slice.malformed_records += next->malformed_records;
	}
	number = level_push(&h->levels[level + 1], &h->budget, &slice);
	if (number == UINT64_MAX)
		return false;
	for (uint32_t i = 0; i < h->book_count; i++) {
		move_entries(h, h->books[i], level, end, number);
		if (level + 1 == HISTORY_FOLDED)
			drop_if_worn(h, h->books[i]);
	}
	level_pop(from, count);
	h->steps[HISTORY_MERGED_MINUTE + level] += count;
	return true;
}

static bool drop_slice(struct history *h, int level)
{
	struct level *from = &h->levels[level];
	struct sums *sums = &h->scratch[0];

	if (from->count == 0)
		return false;
	for (uint32_t i = 0; i < h->book_count; i++) {
		struct book *book = h->books[i];

		take_entries(h, book, level, from->first + 1, sums);
		h->dropped += sums_samples(sums);
		book->removed_bytes += (uint64_t)sums->count * CALL_NODE_BYTES;
		sums_clear(sums);
		drop_if_worn(h, book);
	}
	level_pop(from, 1);
	h->steps[HISTORY_DROPPED_SLICES]++;
	history_drop_over(h);
	return true;
}

static bool drop_oldest(struct history *h)
{
	for (int level = HISTORY_LEVELS; level-- > 0;)
		if (drop_slice(h, level))
			return true;
	return false;
}

/* --- targets --- */

/* The first book that can take what another one has, of those before it. */
static struct book *find_like(struct history *h, uint32_t end, const struct book *book)
{
	for (uint32_t i = 0; i < end; i++)
		if (h->books[i] && h->books[i]->group == book->group && (h->books[i]->alive > 0) == (book->alive > 0))
			return h->books[i];
	return NULL;
}

/* Of the targets that are alive, or have ended, the older half becomes one by group. False: there are no two. */
static bool merge_targets(struct history *h, bool alive)
{
	uint32_t most = 0, kept = 0, seen = 0, merged = 0;

	for (uint32_t i = 0; i < h->book_count; i++)
		most += (h->books[i]->alive > 0) == alive;
	most = most / 2 + 1;
	for (uint32_t i = 0; i < h->book_count && seen < most; i++) {
		struct book *into;

		if ((h->books[i]->alive > 0) != alive)
			continue;
		seen++;
		into = find_like(h, i, h->books[i]);
		if (!into || !history_merge_books(h, into, h->books[i]))
			continue;
		h->books[i] = NULL;
		merged++;
	}
	for (uint32_t i = 0; i < h->book_count; i++)
		if (h->books[i])
			h->books[kept++] = h->books[i];
	h->book_count = kept;
	return merged > 0;
}

/* --- all of it --- */

struct use {
	uint64_t levels_bytes[HISTORY_LEVELS], ended_bytes, other_bytes;
};

static struct use measure(const struct history *h)
{
	struct use use = {.other_bytes = h->budget.used_bytes};

	for (uint32_t i = 0; i < h->book_count; i++) {
		for (int level = 0; level < HISTORY_LEVELS; level++)
			use.levels_bytes[level] += h->books[i]->queues[level].memory_bytes;
		if (h->books[i]->alive == 0)
			use.ended_bytes += book_fixed_bytes(h->books[i]);
	}
	for (int level = 0; level < HISTORY_LEVELS; level++)
		use.other_bytes -= use.levels_bytes[level];
	use.other_bytes -= use.ended_bytes;
	return use;
}

/* Before what is recent is dropped: trees that lost more than an eighth. */
static bool compact_any(struct history *h)
{
	bool any = false;

	for (uint32_t i = 0; i < h->book_count; i++)
		if (h->books[i]->removed_bytes > call_tree_bytes(&h->books[i]->tree) / 8) {
			history_compact(h, h->books[i]);
			any |= h->books[i]->removed_bytes == 0;
		}
	return any;
}

/* One step; false: there is none left. */
static bool give_way(struct history *h, uint64_t goal_bytes)
{
	struct use use = measure(h);
	uint64_t share_bytes = use.other_bytes < goal_bytes ? (goal_bytes - use.other_bytes) / SHARES : 0;

	for (int level = HISTORY_FINE; level < HISTORY_FOLDED; level++)
		if (use.levels_bytes[level] >= share_bytes && merge_slices(h, level, true))
			return true;
	if (use.ended_bytes >= share_bytes && merge_targets(h, false))
		return true;
	if (use.other_bytes > goal_bytes / 4 * 3 && merge_targets(h, true))
		return true;
	if (use.levels_bytes[HISTORY_FOLDED] >= share_bytes && drop_slice(h, HISTORY_FOLDED))
		return true;
	for (int level = HISTORY_FINE; level < HISTORY_FOLDED; level++)
		if (merge_slices(h, level, false))
			return true;
	return merge_targets(h, false) || compact_any(h) || drop_oldest(h);
}

void history_shrink(struct history *h)
{
	uint64_t goal_bytes = history_goal_bytes(h), max_bytes = h->budget.max_bytes;

	if (max_bytes == 0 || h->budget.used_bytes <= goal_bytes)
		return;
	h->budget.max_bytes = 0; /* what is made on the way to less is not refused */
	while (h->budget.used_bytes > goal_bytes && give_way(h, goal_bytes))
		;
	for (uint32_t i = 0; h->budget.used_bytes > goal_bytes && i < h->book_count; i++)
		history_compact(h, h->books[i]);
	sums_release(&h->scratch[0]);
	sums_release(&h->scratch[1]);
	buf_release(&h->bytes);
	h->stuck = h->budget.used_bytes > goal_bytes;
	h->budget.max_bytes = max_bytes;
}
