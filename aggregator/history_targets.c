/* SPDX-License-Identifier: Apache-2.0 */
/* The processes and threads that records name: each has its book, and the thread's place in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/history_state.h"
#include "aggregator/records.h"

static int add_book(struct history *h, const struct rec_target *record, struct book **ret_book)
{
	struct book *book;
	int err;

	if (h->book_count == h->book_room) {
		uint32_t room = h->book_room ? h->book_room * 2 : 16;
		struct book **larger = realloc(h->books, room * sizeof(struct book *));

		if (!larger)
			return -ENOMEM;
		h->books = larger;
		h->book_room = room;
	}
	err = book_new(&book, &h->budget);
	if (err)
		return err;
	err = process_describe(&book->process, record);
	if (err) {
		book_free(book, &h->symbols);
		return err;
	}
	budget_charge(&h->budget, record->name_bytes ? record->name_bytes + 1 : 0);
	book->group = record->group;
	book->alive = book->targets = 1;
	h->books[h->book_count++] = book;
	*ret_book = book;
	return 0;
}

static int add_target(struct history *h, const struct rec_target *record)
{
	struct history_target *target = calloc(1, sizeof(*target));
	int err = target ? keyed_add(&h->targets, record->id, target) : -ENOMEM;

	if (!err) {
		budget_charge(&h->budget, HISTORY_TARGET_BYTES);
		err = add_book(h, record, &target->book);
		if (!err) {
			history_begin_at(h, record->t_ns);
			return 0;
		}
		keyed_remove(&h->targets, h->targets.count - 1);
		budget_give(&h->budget, HISTORY_TARGET_BYTES);
	}
	free(target);
	return err;
}

/* It is over; what it still says until the slice is closed is taken. */
static void end_target(struct history *h, struct history_target *target, const struct rec_target *record)
{
	if (target->ended)
		return;
	target->ended = h->any_ended = true;
	if (target->book->targets == 1)
		target->book->process.ended = record->event == TARGET_EXITED;
}

int history_feed_target(struct history *h, const struct rec_target *record)
{
	struct history_target *target = keyed_find(&h->targets, record->id);

	if (!target)
		return record->event == TARGET_ATTACHED || record->event == TARGET_EXECED ? add_target(h, record)
		                                                                          : -EPROTO;
	if (record->event == TARGET_ATTACHED)
		return -EPROTO; /* an id is never used twice */
	end_target(h, target, record);
	return 0;
}

static int describe_thread(struct history *h, struct history_thread *thread, const struct rec_thread *record)
{
	struct book *book = thread->target->book;
	struct book_thread *kept = &book->threads[thread->thread];

	if (book->targets == 1) { /* else it is one of several */
		if (record->name_bytes &&
		    book_thread_rename(book, &h->budget, thread->thread, record->text, record->name_bytes))
			return -ENOMEM;
		kept->tid = record->tid;
		kept->is_main = record->flags & THREAD_MAIN;
	}
	if (record->flags & THREAD_ENDED && !thread->ended) {
		thread->ended = h->any_ended = true;
		if (kept->live == 1)
			book_thread_end(book, thread->thread);
	}
	return 0;
}

static int add_thread(struct history *h, const struct rec_thread *record, struct history_target *target)
{
	struct history_thread *thread = calloc(1, sizeof(*thread));
	char *name = record->name_bytes ? strndup(record->text, record->name_bytes) : NULL;
	struct book_thread like = {.interpreter = record->interpreter,
	                           .tid = record->tid,
	                           .name = name,
	                           .is_main = record->flags & THREAD_MAIN};
	struct book *book = target->book;
	int err = -ENOMEM;

	if (thread && (name || !record->name_bytes)) {
		thread->target = target;
		stack_init(&thread->stack);
		thread->thread = book->targets == 1 ? book_thread_add(book, &h->budget, &like)
		                                    : book_thread_named(book, &h->budget, &like);
		if (thread->thread != THREAD_NONE)
			err = keyed_add(&h->threads, record->id, thread);
	}
	free(name);
	if (err) {
		free(thread);
		return err;
	}
	budget_charge(&h->budget, HISTORY_THREAD_BYTES);
	book->threads[thread->thread].live++;
	return describe_thread(h, thread, record);
}

int history_feed_thread(struct history *h, const struct rec_thread *record)
{
	struct history_target *target = keyed_find(&h->targets, record->target);
	struct history_thread *thread = keyed_find(&h->threads, record->id);

	if (!target)
		return -EPROTO;
	if (!thread)
		return add_thread(h, record, target);
	if (thread->target != target ||
	    (target->book->targets == 1 && target->book->threads[thread->thread].interpreter != record->interpreter))
		return -EPROTO;
	return describe_thread(h, thread, record);
}
