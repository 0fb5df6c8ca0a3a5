/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of a recording's reader, shared by the files that make it up: recording_read.c (the whole, what was counted),
 * recording_read_threads.c (who is sampled), recording_read_runs.c (symbols, stacks and runs) and recording_read_names.c (native
 * symbols, and what they are called). */
#ifndef SAMPLED_EXPORTERS_RECORDING_READER_H
#define SAMPLED_EXPORTERS_RECORDING_READER_H

#include "aggregator/spread.h"
#include "aggregator/symbols.h"
#include "exporters/recording_unblock.h"

struct read_symbol {
	uint32_t symbol; /* the builder's */
	uint32_t first_line;
};

struct read_stack {
	uint32_t parent, symbol, line, depth;
};

struct read_thread {
	uint32_t thread; /* the builder's; BUILDER_NONE: there is no memory for it */
	bool live, has_run, excluded;
	bool touched; /* it is in the reader's `touched` */
	uint32_t process, next, stack;
	unsigned status;
	int64_t t_last, due;
	struct thread_tree like; /* name owned */
	uint32_t **pages; /* owned: [stack / PAGE_STACKS][stack % PAGE_STACKS] is a node + 1; 0: not looked up yet */
	uint32_t page_count;
	struct spread spread; /* of its runs since its last TIME */
};

struct window_facts;

struct read_process {
	uint32_t process; /* the builder's */
	uint64_t facts[FACTS_FIELDS];
	struct window_facts *window; /* owned; NULL: none was asked for, or there were no facts yet */
	uint64_t window_samples;     /* in it */
	bool has_facts;
	uint64_t samples_since, runs_since; /* behind the last facts */
	uint32_t thread_count, fold_at;
	uint32_t folded;  /* the builder's thread of those that ended; BUILDER_NONE: none yet */
	struct buf ended; /* uint32_t: the builder's threads that have ended and were not folded yet */
};

struct reader {
	struct block_reader blocks;
	struct builder *to;
	uint64_t until; /* sequence of the mark to stop at; 0: none */
	bool has_session, ended, at_mark, has_weight, has_time;
	struct budget budget; /* no bound: what it is for is bounded by itself */
	uint64_t realtime_offset_ns, base_ns, mark_ns, run_count, run_last_ns; /* of all runs, the latest end */
	int64_t unit_ns, interval_units;
	uint64_t tally[TALLY_FIELDS];
	struct buf symbols, stacks, files,
		texts;               /* struct read_symbol, struct read_stack, struct text, and the files' bytes */
	struct buf name_texts;       /* of the frames, each with its NUL */
	struct buf mappings;         /* uint32_t: the builder's symbols */
	struct buf frames;           /* of what places are called (recording_read_names.c) */
	struct buf processes;        /* struct read_process */
	struct read_thread *threads; /* owned */
	uint32_t thread_count, thread_room;
	uint32_t last_symbol, last_thread;
	int64_t last_first;
	struct ticks ticks;
	struct buf touched;   /* uint32_t: the threads with pages, or a last stack, of the tables at hand */
	uint64_t pages_bytes; /* of all threads */
	uint32_t *chain;      /* owned: room for the stacks that one look-up walks */
};

/* Where the time goes of what lies outside of the window; that of what is left out else goes to BUILDER_NONE. */
#define NODE_OUTSIDE (BUILDER_NONE - 1)

struct text {
	size_t off, bytes;
};

#define COUNT(buf, type) ((uint32_t)((buf).bytes / sizeof(type)))

static inline struct read_process *process_at(const struct reader *r, uint64_t index)
{
	return index < COUNT(r->processes, struct read_process) ? (struct read_process *)r->processes.data + index
	                                                        : NULL;
}

/* A target's facts have changed: what they are around the ends of the window is kept. False: no memory. */
bool reader_window_facts(struct reader *r, struct read_process *process);
/* Makes them those of the window alone. */
void reader_window_cut(const struct reader *r, struct read_process *process);

/* Each reads an item's body, or a run's fields. False: it makes no sense. */
bool reader_target(struct reader *r, struct cursor *c);
bool reader_thread(struct reader *r, struct cursor *c);
bool reader_symbol(struct reader *r, struct cursor *c);
bool reader_mapping(struct reader *r, struct cursor *c);
bool reader_frame(struct reader *r, struct cursor *c);
bool reader_named(struct reader *r, struct cursor *c);
/* The builder's symbol for a native one, of which the item's last fields are still to be read. */
uint32_t reader_native_symbol(struct reader *r, struct cursor *c, const struct symbol_content *like);
bool reader_stack(struct reader *r, struct cursor *c);
bool reader_rest(struct reader *r, struct cursor *c);
bool reader_time(struct reader *r, struct cursor *c);
bool reader_stack_time(struct reader *r, struct cursor *c);
bool reader_run(struct reader *r, unsigned tag);
/* No symbols, files and stacks any more. */
bool reader_begin_tables(struct reader *r);
/* A thread that is over, and of which nothing was wanted, is not in the profile. */
void reader_drop_if_excluded(struct reader *r, struct read_thread *t);
/* What is known of where stacks are in a thread's tree. */
void reader_forget_nodes(struct reader *r, struct read_thread *t);

#endif
