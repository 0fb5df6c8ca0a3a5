/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder of the service: what all targets did, for as long back as a bound on memory allows.
 *
 * It takes in the same records as the aggregator. Each target has one call tree, whose nodes hold no values; time is cut into slices, and a slice
 * is, for each target that did anything in it, a short list of (node, values) and of the differences of its facts. A process that is parked costs
 * some ten bytes a slice. Sums over slices are exact, whatever was merged.
 *
 * At the bound the oldest gives way first: slices become slices of a minute, then of ten; lines fold into functions, and ended threads of a
 * process into one; targets of one group that have ended become one, then living ones; the oldest slices are dropped. No level of age gives way
 * while it has less than its share of the memory, so that what is recent stays fine. All of it is counted (struct history_stats).
 *
 * One thread at a time; the caller sees to that. */
#ifndef SAMPLED_AGGREGATOR_HISTORY_H
#define SAMPLED_AGGREGATOR_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/aggregator.h"
#include "aggregator/profile.h"
#include "sampler/record.h"

struct history;

/* How old a slice's detail is: as closed; of a minute; of ten minutes; of ten minutes, by function. */
enum history_level { HISTORY_FINE, HISTORY_MINUTE, HISTORY_TEN_MINUTES, HISTORY_FOLDED, HISTORY_LEVELS };

/* What was done to stay within the bound. */
enum history_step {
	HISTORY_MERGED_MINUTE,  /* slices that became part of one of a minute */
	HISTORY_MERGED_TEN,     /* … of ten minutes */
	HISTORY_FOLDED_LINES,   /* slices whose lines became functions */
	HISTORY_MERGED_ENDED,   /* targets that had ended, and became part of their group's */
	HISTORY_MERGED_ALIVE,   /* living ones */
	HISTORY_DROPPED_SLICES, /* the oldest slices */
	HISTORY_STEPS
};

struct history_stats {
	uint64_t used_bytes, max_bytes;        /* max_bytes 0: no bound */
	uint64_t slices[HISTORY_LEVELS];       /* closed ones there are */
	uint64_t slice_bytes[HISTORY_LEVELS];  /* in them */
	uint64_t slices_closed;                /* ever */
	uint64_t oldest_ns;                    /* CLOCK_MONOTONIC of what is there; 0: nothing */
	uint32_t targets_alive, targets_ended; /* that have a tree of their own; merged ones have not */
	uint32_t targets_merged;               /* that went into another's tree, which is still there */
	uint32_t trees;
	uint64_t nodes, symbols, threads; /* of all trees; threads: known in them */
	uint64_t steps[HISTORY_STEPS];
	uint64_t compactions;
	uint64_t out_of_memory; /* samples that found no memory */
	uint64_t dropped; /* samples in slices that were dropped: within the bound's rules, not a loss of sampling */
	uint64_t malformed_samples; /* samples in records that made no sense */
	uint64_t malformed_records;
};

struct history_options {
	uint64_t memory_max_bytes; /* of trees, symbols, slices and live threads; 0: no bound */
};

/* Which part of the history. All zero: all of it. */
struct history_query {
	/* CLOCK_MONOTONIC. 0: from the beginning; to now, with the open slice. A slice that overlaps is taken whole. */
	uint64_t from_ns, to_ns;
	int32_t pid;         /* 0: all */
	uint64_t start_time; /* of the pid; 0: whichever */
	bool by_group;       /* only this group */
	uint32_t group;
	bool merge; /* into one tree: one process, threads by their names */
};

/* 0 or -ENOMEM. */
int history_new(struct history **ret_history, const struct history_options *options);
void history_free(struct history *history);

/* Which samples of a group's targets count from now on; those that do not are counted as filtered. Else all do. 0 or -ENOMEM. */
int history_set_mode(struct history *history, uint32_t group, enum sample_mode mode);

/* Another bound from now on: a lower one is kept to from the end of the open slice on. */
void history_set_memory(struct history *history, uint64_t memory_max_bytes);

/* Takes in one record. 0, -EPROTO (the record makes no sense; it is left out), -ENOMEM (counted). */
int history_feed(struct history *history, const struct rec_head *record);
/* Ends the slice that is open, and opens the next: to be called when a REC_MARK has been fed, with its time, since samples and facts agree there.
 * 0 or -ENOMEM: samples of it were lost, and counted. */
int history_close_slice(struct history *history, uint64_t t_ns);

/* The profile of a part, owned by the caller. Its t_start_ns and t_end_ns say which time it truly stands for; notes say what was merged, folded or
 * dropped in it. Without anything in it, a profile without processes. 0 or -ENOMEM. */
int history_profile(const struct history *history, const struct history_query *query, struct profile **ret_profile);

/* Sums of the values, by enum value_index, in a part. 0 or -ENOMEM. */
int history_sums(const struct history *history, const struct history_query *query, uint64_t ret_values[VALUE_COUNT]);
/* The share, 0 to 1, of a part's wall time in which a function of this name was on the stack; 0 where there is no time. 0 or -ENOMEM. */
int history_function_share(const struct history *history, const struct history_query *query, const char *name,
                           double *ret_share);

/* A process that has a part of its own. */
struct history_process {
	int32_t pid;
	uint64_t start_time;
	const char *name; /* command line */
	uint32_t group;
	uint32_t version;
	bool ended;
	struct rec_facts facts; /* its last: since it was attached */
};

/* Calls take() with each; what it returns, if not 0, ends this and is returned. */
int history_each_process(const struct history *history,
                         int (*take)(void *context, const struct history_process *process), void *context);
/* The sums of the facts of all that was ever fed; without target, interval and times. */
void history_total(const struct history *history, struct rec_facts *ret_facts);

void history_stats(const struct history *history, struct history_stats *ret_stats);
extern const char *const history_step_names[HISTORY_STEPS];   /* "merged_minute", … */
extern const char *const history_level_names[HISTORY_LEVELS]; /* "fine", … */

#endif
