/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a slice: what is open becomes entries, and what has ended goes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/history_state.h"

/* --- the ends of threads and targets --- */

void history_free_thread(struct history *h, struct history_thread *thread)
{
	stack_release(&thread->stack, &h->symbols);
	budget_give(&h->budget, HISTORY_THREAD_BYTES);
	free(thread);
}

void history_drop_over(struct history *h)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < h->book_count; i++)
		if (book_is_over(h->books[i]))
			book_free(h->books[i], &h->symbols);
		else
			h->books[kept++] = h->books[i];
	h->book_count = kept;
}

static void reap(struct history *h)
{
	for (uint32_t i = h->threads.count; i-- > 0;) {
		struct history_thread *thread = h->threads.items[i].item;
		struct book *book = thread->target->book;

		if (!thread->ended && !thread->target->ended)
			continue;
		if (--book->threads[thread->thread].live == 0)
			book_thread_end(book, thread->thread);
		history_free_thread(h, thread);
		keyed_remove(&h->threads, i);
	}
	for (uint32_t i = h->targets.count; i-- > 0;) {
		struct history_target *target = h->targets.items[i].item;

		if (!target->ended)
			continue;
		target->book->alive--;
		free(target);
		keyed_remove(&h->targets, i);
		budget_give(&h->budget, HISTORY_TARGET_BYTES);
	}
	h->any_ended = false;
}

/* --- the end of a slice --- */

/* Threads that came and went are told apart up to this many; of more, those that have ended are one. */
enum { ENDED_THREADS_MAX = 256 };

static int close_book(struct history *h, struct book *book, uint64_t number)
{
	struct sums *sums = &book->open;
	int err;

	if (sums_is_empty(sums))
		return 0;
	if (book->ended_threads > ENDED_THREADS_MAX) {
		sums = &h->scratch[0];
		book_fold(book, &h->symbols, (struct fold){.ended = true}, &book->open, sums);
		book->removed_bytes += (uint64_t)book->open.count * CALL_NODE_BYTES;
	}
	sums_sort(sums);
	err = queue_push(&book->queues[HISTORY_FINE], &h->budget, &book->patterns, sums, number, &h->bytes);
	sums_clear(&h->scratch[0]);
	if (err) /* it becomes part of the next slice */
		return err;
	if (book->alive > 0)
		sums_clear(&book->open);
	else
		sums_release(&book->open);
	return 0;
}

int history_close_slice(struct history *h, uint64_t t_ns)
{
	uint64_t number;
	int err = 0;

	if (t_ns < h->open.from_ns)
		t_ns = h->open.from_ns;
	if (h->open.from_ns == 0)
		h->open.from_ns = t_ns;
	h->open.to_ns = t_ns;
	number = level_push(&h->levels[HISTORY_FINE], &h->budget, &h->open);
	if (number == UINT64_MAX)
		return -ENOMEM; /* the slice stays open */
	if (h->any_ended)
		reap(h);
	for (uint32_t i = 0; i < h->book_count; i++) {
		int failed = close_book(h, h->books[i], number);

		err = err ? err : failed;
	}
	h->slices_closed++;
	history_drop_over(h); /* what ended without a sample */
	h->open = (struct slice){.from_ns = t_ns, .to_ns = t_ns};
	h->stuck = false;
	history_shrink(h);
	return err;
}

/* --- levels --- */

uint64_t level_push(struct level *level, struct budget *budget, const struct slice *slice)
{
	if (level->head + level->count == level->room && level->head > level->room / 2) {
		memmove(level->slices, level->slices + level->head, level->count * sizeof(*slice));
		level->head = 0;
	}
	if (level->head + level->count == level->room) {
		uint32_t more = level->room / 4 + 16;
		struct slice *larger = realloc(level->slices, ((size_t)level->room + more) * sizeof(*larger));

		if (!larger)
			return UINT64_MAX;
		budget_charge(budget, more * sizeof(*larger));
		level->slices = larger;
		level->room += more;
	}
	level->slices[level->head + level->count] = *slice;
	return level->first + level->count++;
}

void level_pop(struct level *level, uint32_t count)
{
	level->head += count;
	level->count -= count;
	level->first += count;
}
