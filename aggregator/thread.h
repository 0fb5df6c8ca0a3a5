/* SPDX-License-Identifier: Apache-2.0 */
/* A thread as the aggregator follows it: its latest stack and its tree. */
#ifndef SAMPLED_AGGREGATOR_THREAD_H
#define SAMPLED_AGGREGATOR_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/aggregator.h"
#include "aggregator/spread.h"
#include "aggregator/stack.h"
#include "aggregator/symbols.h"
#include "aggregator/tree.h"
#include "sampler/record.h"

struct thread {
	uint32_t id;
	uint32_t process; /* index */
	int64_t interpreter;
	uint64_t tid;
	uint64_t start_time;
	bool is_main;
	bool has_ended;
	bool excluded;                  /* by the thread filter */
	char *name;                     /* owned; NULL: none known */
	uint64_t t_first_ns, t_last_ns; /* of the samples in its tree */
	uint32_t depth_max;
	struct stack stack;
	struct tree tree;
	struct spread spread; /* of stacks since its CPU time was told last */
};

/* What became of the samples of a run. */
enum taken { TAKEN_COUNTED, TAKEN_FILTERED, TAKEN_OMITTED, TAKEN_NO_MEMORY };

/* 0 or -ENOMEM. */
int thread_new(struct thread **ret_thread, uint32_t id, uint32_t process, struct budget *budget);
void thread_free(struct thread *thread, struct symbols *symbols);
/* Takes what a REC_THREAD, which has been checked, says of the thread; anew on each. 0 or -ENOMEM (all is as before). */
int thread_describe(struct thread *thread, const struct rec_thread *record, const struct aggregator_options *options);
/* Takes in a run. 0 and what became of it; -EPROTO: the record makes no sense; -ENOMEM: the stack could not be kept. */
int thread_take(struct thread *thread, struct symbols *symbols, const struct aggregator_options *options,
                const struct rec_stack *record, enum taken *ret_taken);

/* Gives the CPU time that a REC_TIME tells, and the time the thread waited for a CPU, to the stacks since the one before; what went to stacks that count is
 * noted in *fate. */
void thread_take_time(struct thread *thread, const struct rec_time *record, struct record_fate *fate);

#endif
