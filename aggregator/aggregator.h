/* SPDX-License-Identifier: Apache-2.0 */
/* The aggregator: takes records from the ring, in one thread, and builds per-thread call trees. */
#ifndef SAMPLED_AGGREGATOR_AGGREGATOR_H
#define SAMPLED_AGGREGATOR_AGGREGATOR_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/profile.h"
#include "sampler/ring.h"

struct aggregator;

enum sample_mode { MODE_WALL, MODE_CPU, MODE_GIL, MODE_EXCEPTION, SAMPLE_MODES };

/* By enum sample_mode: as options, configurations and profiles name them. */
extern const char *const sample_mode_names[SAMPLE_MODES];

/* Whether a sample with these STATUS_* bits counts; idle: in wall mode, idle ones do. */
bool sample_is_wanted(enum sample_mode mode, bool idle, unsigned status);

/* From how many threads of one process on the trees of ended ones become one, and how many more before it is done again, so that the search costs
 * little per thread. */
enum { FOLD_THREADS = 1024, FOLD_STEP = 256 };

struct thread_filter { /* name matches exactly, or tid when name is NULL */
	const char *name;
	uint64_t tid;
};

/* What became of a record that was taken in. */
struct record_fate {
	bool counted;  /* REC_STACK: its samples are in the tree; else they were left out, and counted as such */
	uint32_t cut;  /* REC_STACK: so many frames at the root's side --stop cut off */
	bool excluded; /* REC_THREAD: by the thread filter */
	uint64_t cpu_ns, wait_ns; /* REC_TIME: so much went to stacks in the tree */
	uint64_t left_cpu_ns, left_wait_ns; /* REC_TIME: so much to those that were left out */
};

/* What was counted of all records so far. */
struct tally {
	uint64_t filtered, omitted, out_of_memory, malformed_samples, malformed_records;
	struct left_out left_out; /* time, of the first three */
	uint64_t attached_ns, first_ns, last_ns; /* first attachment, first and last sample; 0: none yet */
};

struct aggregator_options {
	enum sample_mode mode; /* which samples count: all, runnable ones, GIL holders, those handling an exception */
	bool idle;             /* in wall mode: idle samples count */
	const regex_t *omit;   /* NULL: none. Drops a sample that holds a frame whose file matches */
	/* NULL: none. Cuts the frames outside (root-side of) the outermost frame whose file or name matches. */
	const regex_t *stop;
	const struct thread_filter *threads; /* NULL: all */
	size_t thread_filter_count;
	uint64_t interval_ns;
	uint64_t memory_max_bytes; /* bound on trees and symbols; 0: none */
	/* NULL: none. Told of each record that aggregator_feed() took in (a stack that found no memory too), in the same thread; and, by the thread
	 * below, with NULL, at least each 50 ms while there is none. */
	void (*on_record)(void *context, const struct rec_head *record, const struct record_fate *fate);
	void *on_record_context;
};

/* Options are copied, the list of thread filters too; regexes, names and the ring stay the caller's and must outlive it.
 * 0 or -ENOMEM. */
int aggregator_new(struct aggregator **ret_aggregator, const struct aggregator_options *options);
/* Not while its thread runs. */
void aggregator_free(struct aggregator *aggregator);

/* Takes in one record. Not thread-safe; what the thread below calls, and what tests and readers call directly.
 * 0, -EPROTO (the record makes no sense; it is left out), -ENOMEM. */
int aggregator_feed(struct aggregator *aggregator, const struct rec_head *record);
/* An owned copy of all trees as they are now. Right after a REC_MARK its sequence and end are the mark's; else the sequence
 * is 0. Threads that the filter excludes are left out. Threads that ended are kept, but when a process has many threads
 * (over 1,024), the trees of those whose end was told (THREAD_ENDED) become one, named "(ended threads)". Same thread as
 * feed. 0 or -ENOMEM. */
int aggregator_profile(struct aggregator *aggregator, struct profile **ret_profile);

/* Starts the thread that drains `ring` until it is closed and empty. When a REC_MARK comes by, the profile at exactly
 * that record is made and handed to on_mark (in the aggregator's thread, which goes on only when it returns: so it
 * should only pass it on), which then owns it; NULL when there was no memory for it. All signals are blocked in the thread.
 * on_mark may be NULL. 0 or -errno. */
int aggregator_start(struct aggregator *aggregator, struct ring *ring,
                     void (*on_mark)(void *context, uint64_t sequence, struct profile *profile), void *context);
/* Waits for the thread's end (the ring was closed). Then aggregator_profile() gives the final profile. */
void aggregator_join(struct aggregator *aggregator);
/* What is counted so far, and CLOCK_REALTIME - CLOCK_MONOTONIC as profiles have it. Same thread as feed. */
void aggregator_tally(const struct aggregator *aggregator, struct tally *ret_tally);
uint64_t aggregator_realtime_offset_ns(const struct aggregator *aggregator);
/* Samples taken in so far; any thread. */
uint64_t aggregator_samples(const struct aggregator *aggregator);

#endif
