/* SPDX-License-Identifier: Apache-2.0 */
/* The history's insides, shared by the files that make it up: history.c (its life; records in), history_targets.c (those that name a
 * process or a thread), history_close.c (the end of a slice),
 * history_shrink.c and history_merge.c (at the bound), history_window.c (sums out) and history_profile.c (profiles out). All of it belongs to one
 * thread at a time. */
#ifndef SAMPLED_AGGREGATOR_HISTORY_STATE_H
#define SAMPLED_AGGREGATOR_HISTORY_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/budget.h"
#include "aggregator/history.h"
#include "aggregator/history_book.h"
#include "aggregator/keyed.h"
#include "aggregator/stack.h"
#include "aggregator/symbols.h"
#include "base/buf.h"

struct slice {
	uint64_t from_ns, to_ns;
	uint64_t malformed_samples; /* of which it is not known whose they were */
	uint64_t malformed_records;
};

/* The slices of one level, oldest first: slices[head … head + count), numbered from `first` on. */
struct level {
	struct slice *slices; /* owned */
	uint32_t head, count, room;
	uint64_t first;
};

/* A process as the records name it. */
struct history_target {
	struct book *book;
	struct rec_facts facts; /* its last */
	bool ended;
};

/* A thread as the records name it, with its latest stack. */
struct history_thread {
	struct history_target *target;
	uint32_t thread; /* of the book */
	uint32_t node;   /* the thread's, in the book's tree; 0: none yet */
	bool ended;
	/* Of its samples in which it was runnable, since its CPU time was told last: of all, and of those that count. */
	uint64_t ran_ns, ran_wanted_ns;
	struct stack stack;
};

/* What they cost; the stack is charged besides. */
enum {
	HISTORY_TARGET_BYTES = sizeof(struct history_target) + KEYED_ITEM_BYTES,
	HISTORY_THREAD_BYTES = sizeof(struct history_thread) + KEYED_ITEM_BYTES,
};

struct history {
	struct budget budget;
	struct symbols symbols;
	uint8_t *modes;       /* owned; enum sample_mode of each group below mode_count; of the others all samples count */
	uint32_t mode_count;
	struct keyed targets; /* struct history_target, owned */
	struct keyed threads; /* struct history_thread, owned */
	bool has_time;        /* the kernel told CPU time: a REC_TIME came */
	bool any_ended;       /* some of them are over, and go when the slice is closed */
	struct book **books;  /* owned, in the order in which they were begun */
	uint32_t book_count, book_room;
	struct level levels[HISTORY_LEVELS];
	struct slice open;      /* to_ns: the youngest sample */
	struct sums scratch[2]; /* for whoever needs some within one call; left empty. Not charged */
	struct buf bytes;       /* the same, for making entries */
	bool stuck;             /* nothing more can give way, until a slice is closed */
	uint64_t slices_closed, compactions, out_of_memory, dropped, malformed_samples, malformed_records;
	uint64_t steps[HISTORY_STEPS];
	uint64_t total[FACT_COUNT]; /* of all that was ever fed */
};

/* The history begins with the first time that a record names. */
static inline void history_begin_at(struct history *h, uint64_t t_ns)
{
	if (h->open.from_ns == 0)
		h->open.from_ns = h->open.to_ns = t_ns;
}

/* Records in. 0 or -errno; -EPROTO: the record cannot be. */
int history_feed_target(struct history *h, const struct rec_target *record);
int history_feed_thread(struct history *h, const struct rec_thread *record);

/* What the bound is kept below when a slice is closed, so that the next one finds room. */
uint64_t history_goal_bytes(const struct history *history);
/* Gives way until the goal is met, or nothing more can. */
void history_shrink(struct history *history);
/* Compacts a book, and tells those who hold numbers of its nodes. */
void history_compact(struct history *history, struct book *book);
/* All of `from` goes into `into`, and it is freed; the caller takes it off the list. False: there was no memory for that, and all is as before. */
bool history_merge_books(struct history *history, struct book *into, struct book *from);
/* Frees the books that hold nothing, and into which nobody writes. */
void history_drop_over(struct history *history);
void history_free_thread(struct history *history, struct history_thread *thread);

/* Appends a slice. Its number, or UINT64_MAX: no memory. */
uint64_t level_push(struct level *level, struct budget *budget, const struct slice *slice);
/* Takes the oldest `count` off. */
void level_pop(struct level *level, uint32_t count);

static inline const struct slice *level_slice(const struct level *level, uint64_t number)
{
	return &level->slices[level->head + (number - level->first)];
}

/* Which slices of a level a query asks for: [first, end). The open slice is asked for where to_ns allows. */
void level_window(const struct level *level, const struct history_query *query, uint64_t *ret_first, uint64_t *ret_end);
bool history_open_asked(const struct history *history, const struct history_query *query);
/* Calls take() with the sums of what is asked for of each book; it may change them. What it returns, if not 0, ends this and is returned. */
int history_each_book(const struct history *history, const struct history_query *query,
                      int (*take)(void *context, const struct book *book, struct sums *sums), void *context);

#endif
