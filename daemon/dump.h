/* SPDX-License-Identifier: Apache-2.0 */
/* What one sample of every thread of a process says, read back from the ring's records. */
#ifndef SAMPLED_DAEMON_DUMP_H
#define SAMPLED_DAEMON_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/writer.h"
#include "sampler/record.h"
#include "sampler/sampler.h"

struct dump_symbol {
	char *name; /* owned; NULL: no such symbol */
	char *file; /* owned */
	uint32_t first_line;
};

struct dump_thread {
	uint32_t id;
	int64_t interpreter;
	uint64_t tid; /* 0: unknown */
	bool is_main;
	char *name;      /* owned; NULL: none known */
	bool sampled;    /* the rest is known */
	uint16_t status; /* enum thread_status bits */
	bool truncated;
	struct frame *frames; /* owned; root first */
	uint32_t depth;
};

struct dump {
	struct dump_symbol *symbols; /* by id; owned */
	uint32_t symbol_room;
	struct dump_thread *threads; /* owned; main interpreter first, in it the main thread first */
	uint32_t thread_count;
	struct rec_facts facts; /* head unused */
	uint32_t left_out;      /* records that made no sense */
};

/* Takes in one record of the stream. 0, or -ENOMEM. One that makes no sense is left out and counted; when it is a
 * stack, its thread has none until the next whole one. */
int dump_feed(struct dump *dump, const struct rec_head *record);
/* Samples every thread once. 0 or -errno (-ESRCH: gone meanwhile). */
int dump_take(struct dump *ret_dump, struct target *target);
void dump_release(struct dump *dump);

/* For people: leaf first, with source lines where sources are readable. For programs: the same as one JSON object. */
void dump_print_text(const struct dump *dump, const struct pyproc *proc, bool color, struct writer *to);
void dump_print_json(const struct dump *dump, const struct pyproc *proc, struct writer *to);

#endif
