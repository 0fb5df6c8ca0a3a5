/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of a recording's writer, shared by the files that make it up: recording_write.c (its life, who is sampled, what was counted),
 * recording_write_symbols.c, recording_write_runs.c (stacks and runs) and recording_write_names.c (what native frames are called). */
#ifndef SAMPLED_EXPORTERS_RECORDING_STATE_H
#define SAMPLED_EXPORTERS_RECORDING_STATE_H

#include "aggregator/lookup.h"
#include "aggregator/symbols.h"
#include "exporters/intern.h"
#include "exporters/recording_block.h"

/* A symbol of the sampler's. */
struct known_symbol {
	char *text; /* owned: name, file, module, build id; NULL: a free slot */
	uint32_t id, name_bytes, file_bytes, module_bytes, build_id_bytes;
	uint32_t first_line; /* of a mapping: 0 */
	uint32_t key;        /* of a mapping: what its first_line is elsewhere */
	uint64_t mapped_from, mapped_to;
	bool mapped;
	uint32_t number, epoch; /* in the file, if the epoch is the writer's */
	uint32_t next_free;     /* of a free slot: slot + 1 */
	uint8_t kind, flags;
};

struct path_frame {
	uint32_t id, line; /* the sampler's symbol */
	uint32_t stack;    /* its number in the file, as far as the thread's path goes */
};

struct known_thread {
	uint32_t id; /* 0: a free slot */
	uint32_t next_free;
	struct path_frame *frames; /* owned */
	uint32_t depth, room;
	uint32_t cut, path_depth, path_epoch; /* frames[cut … path_depth) have their stacks */
	bool has_run;
	uint32_t stack, stack_epoch, next; /* next: the thread of the run that came behind this one's last */
	unsigned status;
	int64_t t_last, due;
	int64_t rest_ns; /* of the weights: what rounding left */
};

struct known_target {
	uint32_t id;
	struct rec_facts facts; /* as in the file */
};

/* A stack: a frame on another stack. */
struct stack_key {
	uint32_t parent, id, line;
};

struct recording_writer {
	struct block_writer block;
	struct buf body; /* of the item in the making */
	struct recording_options options;
	int64_t unit_ns, interval_units;
	struct known_symbol *symbols;
	uint32_t symbol_count, symbol_room, free_symbol;
	struct lookup symbol_ids;
	struct known_thread *threads;
	uint32_t thread_count, thread_room, free_thread;
	struct lookup thread_ids;
	struct known_target *targets;
	uint32_t target_count, target_room;
	struct lookup target_ids;
	uint64_t tally[TALLY_FIELDS]; /* as in the file */
	/* Until the next RESET. */
	uint32_t epoch, symbols_written, last_symbol, stack_count; /* stacks[0] is the empty one */
	struct stack_key *stacks;
	uint32_t stack_room;
	struct lookup children; /* hash of the key → stack */
	struct text_set files;
	/* Of the runs. */
	uint64_t base_ns;   /* 0: none yet */
	int64_t last_first; /* when the last run began, in units */
	uint32_t last_thread;
	struct ticks ticks;
};

/* Notes an error, which sticks. */
void recording_fail(struct recording_writer *w, int err);
struct buf *recording_items(struct recording_writer *w);
/* An item: its body is put into what recording_begin() returns, and is in the block after recording_end(). */
struct buf *recording_begin(struct recording_writer *w);
void recording_end(struct recording_writer *w, enum item type);
void recording_put_text(struct buf *to, const char *text, size_t bytes);
void recording_write_empty(struct recording_writer *w, enum item type);

void recording_take_mapping(struct recording_writer *w, const struct rec_mapping *record);
void recording_take_symbol(struct recording_writer *w, const struct rec_symbol *record);
/* The number of a symbol in the file, which is written into it when it is not there yet. NULL: it is not known any more. */
uint32_t recording_write_symbol(struct recording_writer *w, struct known_symbol *symbol);
void recording_take_forget(struct recording_writer *w, const struct rec_forget *record);
void recording_take_stack(struct recording_writer *w, const struct rec_stack *record, const struct record_fate *fate);

#endif
