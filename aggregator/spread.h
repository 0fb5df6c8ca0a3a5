/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the CPU time is. The kernel counts it for a thread, in steps of some milliseconds; the samples say what the thread was at meanwhile. What
 * it used between two readings is given to the stacks sampled in between: to those seen on a CPU, by their weight; to those that waited for the GIL, as
 * much as they use while no others run, or what is more than the others were there for. If there was none of these, to those that held the GIL; else to
 * all. In whole nanoseconds, whose sum is exactly what was told. */
#ifndef SAMPLED_AGGREGATOR_SPREAD_H
#define SAMPLED_AGGREGATOR_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/budget.h"

struct spread_part {
	uint32_t node, rank;
	uint64_t weight_ns;
};

/* The stacks of a thread since its CPU time was told last. All zeros: none yet. */
struct spread {
	struct spread_part *parts; /* owned */
	uint32_t count, room;
	uint32_t rank;            /* the best of those in parts: on a CPU, there and waiting for the GIL, holding it, waiting for it, others */
	bool any;                 /* there was a stack, ever: … */
	uint32_t last;            /* … the latest one, whatever its rank */
	uint64_t cpu_ns, wait_ns; /* told, but there was no stack at all to give it to */
	struct {
		uint64_t cpu_ns, wait_ns, weight_ns;
	} alone; /* while some waited for the GIL and no others ran: decaying sums of what was told, and of their weight */
	uint64_t owed_ns; /* of those on a CPU, sampled but not told yet: the kernel counts at its ticks */
};

void spread_release(struct spread *spread, struct budget *budget);
/* Notes samples of this stack; `node` is handed back by spread_give(). Bounded: of very many different stacks, neighbours are joined; a bound on memory
 * that is reached joins them sooner. */
void spread_add(struct spread *spread, uint32_t node, uint64_t weight_ns, unsigned status, struct budget *budget);
typedef void spread_give_fn(void *context, uint32_t node, uint64_t cpu_ns, uint64_t wait_ns);
/* Gives this time to them, by calls of give(), and forgets them. */
void spread_give(struct spread *spread, uint64_t cpu_ns, uint64_t wait_ns, spread_give_fn *give, void *context);

#endif
