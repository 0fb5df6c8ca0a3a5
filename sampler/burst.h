/* SPDX-License-Identifier: Apache-2.0 */
/* Looks between two ticks of a fixed rate, none of which is a sample. A thread that runs coroutines is seen whole in one look of three, and what is
 * called on top of them is learnt from thousands: unthrottled within a second, at 100 Hz not in minutes, and meanwhile most samples are put off until
 * they are lost (owed.h). So behind a sample that is put off the thread is looked at some times more. What that shows is learnt, and what is owed to a
 * function is paid at the first whole stack with it innermost. There is credit for it, a share of the time. Unthrottled there are looks enough, but brackets
 * (bracket.h) now and then. */
#ifndef SAMPLED_SAMPLER_BURST_H
#define SAMPLED_SAMPLER_BURST_H

#include <stdint.h>

#include "sampler/thread.h"

struct target;
struct walker;

struct burst {           /* of a process; zeroed to begin with */
	uint64_t most_ns;     /* that one may take */
	int64_t credit_ns;    /* earned, and not used yet; below 0: used before it was earned */
	uint64_t first_ns;    /* of what was earned, the part for the beginning */
	struct pystack stack; /* owned; of the look before */
};

/* A tick of a process: what it earns is a share of the interval in nanoseconds, split among the `count` processes that are read at it. Unthrottled (0) none. */
void burst_earn(struct burst *burst, uint64_t interval_ns, uint32_t count);
/* Looks at the thread until nothing is owed any more, or the time or the credit is used up. t->seen is none of the tick's any more. */
void burst_look(struct target *target, struct thread *t, struct walker *w);
/* At high rates, where a sample is the function's that ran, and seldom whole when that is short: a look of another moment, which is no sample, either, for what it
 * shows of calls. So all ways that lead to a function become known alike, and not first those that are met most. */
void burst_learn(struct target *target, struct thread *t, struct walker *w);
/* Before a process is let go that is read at a fixed rate: looks until nothing is owed any more, or until this time. */
void burst_settle(struct target *target, uint64_t end_ns);

#endif
