/* SPDX-License-Identifier: Apache-2.0 */
/* struct profile: what everything above the aggregator works on. An owned, self-contained set of call trees, process →
 * interpreter → thread → tree, with sampling facts and losses. A snapshot, a merge and an imported file are all
 * profiles. Once handed out it does not change; exporters only walk it. */
#ifndef SAMPLED_AGGREGATOR_PROFILE_H
#define SAMPLED_AGGREGATOR_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/record.h"

/* The places of a node's values. A profile that we sampled has all of these, the last two if the
 * kernel told them. An imported one has VALUE_SAMPLES always, its weight, what
 * shares are of, at VALUE_WALL (none: the samples themselves), and whatever else it brings in the places behind; profile.values names
 * them, and profile_has() tells whether a place holds what its name here says. */
enum value_index {
	VALUE_SAMPLES, /* count: one thread seen at one tick */
	VALUE_WALL,    /* nanoseconds; so are all below: the time of the samples that were in that state */
	VALUE_RUNNABLE, /* running, or waiting for a CPU */
	VALUE_GIL,
	VALUE_GIL_WAIT,
	VALUE_IDLE,
	VALUE_UNKNOWN,
	VALUE_GC,
	VALUE_EXCEPTION,
	VALUE_CPU,      /* on a CPU, as the kernel counted, where it told (REC_TIME) */
	VALUE_RUN_WAIT, /* runnable, and waiting for a CPU; so too */
	VALUE_COUNT
};

struct value_type {
	const char *name; /* "samples", "wall", "runnable", … */
	const char *unit; /* "count" or "nanoseconds" */
};

/* Our own, by enum value_index; static. */
extern const struct value_type profile_value_types[VALUE_COUNT];

struct symbol {
	const char *name; /* UTF-8, NUL-terminated, owned by the profile; "" never: "<unknown>" */
	const char *file; /* "" when there is none */
	/* FRAME_NATIVE: the file it is mapped from, as the target saw it ("[vdso]", "" for none), and its build id in hexadecimal; else "",
	 * never NULL. A mapping itself, whose frames have no names yet, has `mapped`: its nodes' `line` is then struct frame's `where`, its name
	 * the file's without folders, and first_line tells it from others with the same module and build id (record_mapping_key()). */
	const char *module, *build_id;
	uint64_t mapped_from, mapped_to; /* of a mapping: which part of the file was seen mapped; 0, 0: unknown */
	bool mapped;
	uint32_t first_line;
	uint8_t kind;  /* enum frame_kind */
	uint8_t flags; /* SYMBOL_*; of a mapping MAPPING_* */
};

/* Nodes of one tree lie in one array; node 0 is the root (frame unused). 0 as child or sibling: none. A parent's index
 * is always below its children's. Values are self values: of samples that ended in this node; totals are computed by
 * profile_totals(). */
struct node {
	uint32_t parent, child, sibling;
	uint32_t symbol; /* index into profile.symbols */
	uint32_t line;   /* 0: unknown */
	uint32_t pad;
	uint64_t self[VALUE_COUNT];
};

/* Consecutive samples of a thread that are alike, in the order of time. */
struct run {
	uint64_t t_first_ns; /* CLOCK_MONOTONIC of the first sample */
	uint64_t weight_ns;  /* of one sample may be hours: of a slow rate, or a target that was stopped */
	uint32_t span_ns;    /* from the first sample to the last */
	uint32_t node;       /* of the thread's tree: the innermost frame; 0: an empty stack */
	uint32_t status : 8; /* enum thread_status bits */
	uint32_t count : 24;
};

#define RUN_COUNT_MAX ((1u << 24) - 1)

struct thread_tree {
	uint32_t process;    /* index into profile.processes */
	int64_t interpreter; /* 0: the main one */
	uint64_t tid;        /* 0: unknown */
	bool is_main;
	char *name;                     /* NULL: none known */
	uint64_t t_first_ns, t_last_ns; /* of its samples; 0: none yet */
	struct node *nodes;
	uint32_t node_count; /* at least 1 */
	uint32_t depth_max;
	/* By when they end, where the profile has time order (profile.has_runs) and this was asked for; NULL: none. */
	struct run *runs;
	size_t run_count;
};

struct process {
	int32_t pid, parent_pid;
	uint64_t start_time;
	char *name;       /* command line */
	uint32_t version; /* 0x030b02; 0: unknown */
	bool ended;
	struct rec_facts facts; /* sampling facts and losses; head unused */
};

/* What an import has to say of itself besides: bad records, rates. */
struct note {
	const char *key; /* "skipped_records"; static */
	char *label;     /* "records skipped: no end"; owned */
	double number;
	bool loss; /* something is missing because of it */
};

/* Time that is in no tree, by the values of these names; ns. */
struct left_out {
	uint64_t wall, cpu, run_wait;
};

struct named;

struct profile {
	struct value_type values[VALUE_COUNT]; /* name NULL: there is no such value. Texts are static or in strings */
	struct note *notes;
	uint32_t note_count;
	bool imported; /* we did not sample it: there are no sampling facts, only notes */
	/* VALUE_SAMPLES does not count samples that are worth the same, but calls, rows or objects: what has room for one number has the weight */
	bool uncounted;
	bool has_runs; /* the threads have their runs: it can be written in formats that need time order */
	struct symbol *symbols;
	uint32_t symbol_count;
	struct thread_tree *threads;
	uint32_t thread_count;
	struct process *processes;
	uint32_t process_count;
	uint64_t t_start_ns, t_end_ns; /* CLOCK_MONOTONIC; of the window the profile stands for */
	uint64_t wall_start_ns;        /* CLOCK_REALTIME at t_start_ns */
	uint64_t interval_ns;          /* asked; 0: unthrottled */
	uint64_t sequence;             /* number of the snapshot, from 1; 0: the final one */
	const char *mode;              /* "wall", "cpu", "gil"; static */
	uint64_t filtered;             /* samples left out by mode, --no-idle, -t */
	uint64_t omitted;              /* samples left out by --omit */
	uint64_t out_of_memory;        /* samples that found no node */
	struct left_out left_out;      /* the time of these three: all that was sampled is that of the trees and this */
	uint64_t malformed_samples;    /* samples in records that made no sense and were left out */
	uint64_t malformed_records;    /* such records of any kind */
	struct named *named;           /* names of places in mappings, as it brought them (named.h); NULL: none */
	char *strings;                 /* arena of the symbols' texts */
	char *value_strings;           /* of values[], where they are not static; NULL: none */
};

/* At a REC_MARK and at the end, for what we sampled ourselves, each sample is accounted for:
 * facts.samples = sum of VALUE_SAMPLES + filtered + omitted + out_of_memory + malformed_samples.
 * symbols[] may hold entries that no node names. */

void profile_free(struct profile *profile);

/* Inclusive values of every node, nodes × VALUE_COUNT words, freed by the caller; NULL without memory. */
uint64_t *profile_totals(const struct thread_tree *tree);

/* Whether values[value] is what profile_value_types[value] says. */
bool profile_has(const struct profile *profile, enum value_index value);
/* What shares are of: VALUE_WALL, or VALUE_SAMPLES where there is no weight. */
enum value_index profile_weight(const struct profile *profile);

/* States that exclude one another: each moment of a thread is in exactly one. What holds the GIL is STATE_GIL, runnable or not; STATE_RUNNABLE neither
 * holds nor awaits it. docs/GLOSSARY.md has the words for them, the same in all outputs. */
enum state { STATE_GIL, STATE_GIL_WAIT, STATE_RUNNABLE, STATE_IDLE, STATE_UNKNOWN, STATE_COUNT };

/* How the time of these values splits into states, which add up to VALUE_WALL. */
void values_states(const uint64_t values[VALUE_COUNT], uint64_t ret_states[STATE_COUNT]);

/* What stands for a profile where there is room for whole numbers of one kind only: the samples, or, where these are uncounted, the weight. */
enum value_index profile_counted(const struct profile *profile);

/* Adds samples with this weight and STATUS_* bits to values; to a node's self values. */
void values_add(uint64_t values[VALUE_COUNT], uint64_t count, uint64_t weight_ns, unsigned status);
void node_add(struct node *node, uint64_t count, uint64_t weight_ns, unsigned status);

/* Adds the time in values that go into no tree. */
void left_out_add(struct left_out *left_out, const uint64_t values[VALUE_COUNT]);

/* Sum of one self value over all threads. */
uint64_t profile_sum(const struct profile *profile, enum value_index value);
/* Sampling facts of all processes added up (t_start the least, t_last the most, interval of the first that tells one). */
void profile_facts(const struct profile *profile, struct rec_facts *ret_facts);
/* Adds one process' facts to a sum of them. */
void rec_facts_add(struct rec_facts *sum, const struct rec_facts *facts);

#endif
