/* SPDX-License-Identifier: Apache-2.0 */
/* The aggregator's insides, shared by the files that make it up: aggregator.c (its life and its thread), feed.c (records
 * in), fold.c (threads that ended) and snapshot.c (profiles out). All of it belongs to one thread at a time. */
#ifndef SAMPLED_AGGREGATOR_STATE_H
#define SAMPLED_AGGREGATOR_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "aggregator/aggregator.h"
#include "aggregator/budget.h"
#include "aggregator/lookup.h"
#include "aggregator/symbols.h"
#include "aggregator/thread.h"
#include "aggregator/tree.h"

/* A target. */
struct kept_process {
	struct process process;
	uint32_t thread_count; /* in aggregator.threads */
	uint32_t fold_at;      /* so many threads are looked through for ended ones */
	/* The trees of ended threads that were folded, as one. No nodes: none were. */
	struct tree ended;
	uint64_t ended_first_ns, ended_last_ns;
	uint32_t ended_depth_max;
};

struct aggregator {
	struct aggregator_options options; /* .threads is an own copy */
	struct budget budget;
	struct symbols symbols;
	struct thread **threads; /* in the order they were defined */
	uint32_t thread_count, thread_room;
	struct lookup thread_ids;
	struct kept_process *processes;
	uint32_t process_count, process_room;
	struct lookup target_ids;

	struct tally tally;
	bool has_time;                   /* the kernel told CPU time: a REC_TIME came */
	uint64_t realtime_offset_ns;     /* CLOCK_REALTIME - CLOCK_MONOTONIC when the aggregator was made */
	uint64_t mark_sequence, mark_ns; /* of the last record, if that was a mark; else 0 */
	_Atomic uint64_t samples;

	/* Of the thread; set by aggregator_start(). */
	pthread_t worker;
	struct ring *ring;
	void (*on_mark)(void *context, uint64_t sequence, struct profile *profile);
	void *context;
};

/* Folds the trees of a process' threads that have ended. Called when a process has reached its fold_at. */
void fold_ended_threads(struct aggregator *aggregator, uint32_t process);

#endif
