/* SPDX-License-Identifier: Apache-2.0 */
/* A book: the tree of one target, or of several that were merged, and its slices. */
#ifndef SAMPLED_AGGREGATOR_HISTORY_BOOK_H
#define SAMPLED_AGGREGATOR_HISTORY_BOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/history.h"
#include "aggregator/history_queue.h"
#include "aggregator/history_sums.h"
#include "aggregator/history_tree.h"
#include "aggregator/profile.h"
#include "aggregator/symbols.h"

/* Who a node below the root stands for. */
struct book_thread {
	int64_t interpreter;
	uint64_t tid;  /* 0: unknown, or several */
	char *name;    /* owned; NULL: none known */
	uint32_t live; /* struct history_thread that name it */
	bool is_main, has_ended;
	bool is_free; /* there is no such thread: its number may be used again */
};

struct book {
	struct process
		process; /* of its target; facts: of its last record. Of several: only the name may be used, which is NULL */
	uint32_t group;
	uint32_t alive;   /* targets that write into it */
	uint32_t targets; /* that ever did: over 1, they were merged */
	struct call_tree tree;
	struct book_thread *threads; /* owned */
	uint32_t thread_count, thread_room;
	uint32_t ended_threads; /* that have ended, of thread_count */
	uint32_t ended_at;      /* the thread that stands for ended ones; THREAD_NONE */
	struct patterns patterns;
	struct queue queues[HISTORY_LEVELS];
	struct sums open;       /* the slice that is not closed yet */
	uint64_t removed_bytes; /* of entries and nodes that have gone or are named no more, since it was compacted */
};

#define THREAD_NONE UINT32_MAX

/* 0 or -ENOMEM. */
int book_new(struct book **ret_book, struct budget *budget);
void book_free(struct book *book, struct symbols *symbols);

/* A new thread's number, or THREAD_NONE without memory. The name is copied; NULL: none. */
uint32_t book_thread_add(struct book *book, struct budget *budget, const struct book_thread *like);
/* The same; but one with this name and is_main, of whatever number, will do. */
uint32_t book_thread_named(struct book *book, struct budget *budget, const struct book_thread *like);
/* It has that name from now on. 0 or -ENOMEM. */
int book_thread_rename(struct book *book, struct budget *budget, uint32_t thread, const char *name, size_t bytes);
/* It has ended. */
void book_thread_end(struct book *book, uint32_t thread);

/* What it takes besides its slices. */
uint64_t book_fixed_bytes(const struct book *book);
/* Whether it holds nothing, and nobody writes into it. */
bool book_is_over(const struct book *book);

/* How nodes become others when slices are folded. */
struct fold {
	bool lines; /* they go */
	bool ended; /* threads that have ended become one */
};

/* Adds the items of `from` to `to` as they are when folded; from's facts, too. Nodes for which there is no memory stay as they are. */
void book_fold(struct book *book, struct symbols *symbols, struct fold fold, const struct sums *from, struct sums *to);

/* Leaves only nodes, threads and patterns that something names. The numbers of nodes change: *ret_map, which the caller frees, has the new
 * ones. `scratch` and `bytes` are for the time of the call; samples that found no memory are added to *lost. 0 or -ENOMEM (all is as before). */
int book_compact(struct book *book, struct symbols *symbols, struct sums *scratch, struct buf *bytes, uint64_t *lost,
                 uint32_t **ret_map);

#endif
