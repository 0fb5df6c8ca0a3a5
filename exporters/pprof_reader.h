/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of pprof files while it reads: the file's samples one after the other, and what they are taken for (types, stacks, threads). */
#ifndef SAMPLED_EXPORTERS_PPROF_READER_H
#define SAMPLED_EXPORTERS_PPROF_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/builder.h"
#include "base/buf.h"
#include "exporters/intern.h"
#include "exporters/pprof_said.h"
#include "exporters/pprof_tables.h"
#include "exporters/protobuf.h"

enum { PPROF_PROCESSES_MAX = 4096 };

struct pprof_column {
	uint32_t place; /* enum value_index; BUILDER_NONE: left out */
	uint64_t scale; /* to nanoseconds, where it is a time */
	uint64_t sum;
};

/* What went wrong in samples. */
struct pprof_doubts {
	uint64_t misfits;    /* not as many values as types */
	uint64_t negative;   /* values */
	uint64_t overflows;  /* values that do not fit into the sum */
	uint64_t references; /* to locations, functions or strings that are not there */
	uint64_t deep;       /* stacks that were cut */
	uint64_t labels;     /* that are not kept */
	uint64_t processes;  /* samples of processes beyond PPROF_PROCESSES_MAX */
};

struct pprof_frame {
	uint32_t symbol, line;
};

struct pprof_reader {
	struct pprof_tables tables;
	struct pprof_said said;
	struct builder *to;
	struct pb_stream stream;
	struct pprof_column columns[PPROF_TYPES_MAX];
	unsigned column_count;
	bool count_records; /* no type counts samples */
	uint32_t process;   /* of samples without a pid; BUILDER_NONE: none yet */
	struct pair_set pids;
	uint32_t pid_processes[PPROF_PROCESSES_MAX]; /* by number in pids */
	struct pprof_doubts doubts;
	struct buf text;
	/* The sample at hand. */
	struct buf ids; /* uint64_t, leaf first, as many as fit */
	uint64_t id_count, value_count;
	int64_t values[PPROF_TYPES_MAX];
	uint64_t tid, pid;
	uint64_t thread_name; /* string */
	/* The thread of the sample before, and what it was known by. */
	uint32_t thread;
	uint64_t last_tid, last_pid, last_name;
	struct pprof_frame frames[REC_DEPTH_MAX];
};

/* Gives each type of values a place in the profile, or none, and says in notes which were chosen and which left out. Before the first sample. */
void pprof_place_types(struct pprof_reader *reader);

/* Where the stack in reader->ids ends in the thread's tree, to which it is added. */
uint32_t pprof_find_node(struct pprof_reader *reader, uint32_t thread);

/* The processes that the file's comments name, in their order. Before the first sample. */
void pprof_place_processes(struct pprof_reader *reader);
/* Takes a label of the sample at hand: into tid, pid or thread_name, or it is counted. 0 or -EPROTO. */
int pprof_take_label(struct pprof_reader *reader, struct pb_message label);
/* The thread of the sample at hand, by these; added when it is new. */
uint32_t pprof_find_thread(struct pprof_reader *reader);

#endif
