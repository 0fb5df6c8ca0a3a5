/* SPDX-License-Identifier: Apache-2.0 */
/* The [trigger] sections at work: told of each target's slice, they say when a dump is due. Nothing but what is passed in is looked at, the time
 * least of all, and memory is bounded. One thread at a time.
 *
 * A trigger fires when a target has reached its threshold in each slice for so long, and at most once in `every`, whichever the target. */
#ifndef SAMPLED_DAEMON_TRIGGERS_H
#define SAMPLED_DAEMON_TRIGGERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/config.h"

/* Pairs of a trigger and a target above its threshold that are followed; further ones are counted, and taken up when there is room. */
enum { TRIGGERS_FOLLOWED_MAX = 1024 };

struct triggers;

/* What a target did in a slice. */
struct trigger_slice {
	pid_t pid;
	uint64_t start_time;
	size_t rule;             /* index in the configuration */
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC */
	double cpu;              /* share of one core; below 0: not known, as below */
	double gil_wait; /* of the time in which its threads held the GIL or waited for it, the share of waiting */
	/* Share of its samples that hold a function; asked only where a trigger wants it. */
	double (*function_share)(void *context, const char *function);
	void *context;
};

/* A dump that is due. */
struct trigger_due {
	size_t trigger; /* index in the configuration */
	pid_t pid;
	uint64_t start_time;
	uint64_t last_ns; /* so much up to now; 0: all */
	double value;     /* that was reached */
};

/* The configuration must outlive it. 0 or -ENOMEM. */
int triggers_new(struct triggers **ret_triggers, const struct config *config);
void triggers_free(struct triggers *triggers);
/* Triggers of the same names go on where they were in another configuration: what they counted, when they fired, whom they follow. */
void triggers_carry_over(struct triggers *to, const struct triggers *from);

/* Slices of a target come in the order of time. due() is called for each dump that is to be made now. */
void triggers_feed(struct triggers *triggers, const struct trigger_slice *slice,
                   void (*due)(void *context, const struct trigger_due *due), void *context);

struct trigger_counts {
	uint64_t fired;
	uint64_t suppressed; /* times a target stayed above for long enough, and `every` was not over */
};

struct trigger_counts triggers_counts(const struct triggers *triggers, size_t trigger);
/* Slices of targets above a threshold that were not followed, since there were too many. */
uint64_t triggers_unfollowed(const struct triggers *triggers);

#endif
