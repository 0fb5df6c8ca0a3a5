/* SPDX-License-Identifier: Apache-2.0 */
/* How much time visits may take from the programs on each CPU, and from which CPUs the sampler's thread keeps away since it had to wait there. */
#ifndef SAMPLED_SAMPLER_VISITS_H
#define SAMPLED_SAMPLER_VISITS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct visit_cpu {
	uint64_t t_ns;     /* up to here its credit is earned; 0: none was spent yet */
	int64_t credit_ns; /* below zero: the latest visit took longer than there was */
	uint64_t until_ns; /* not visited before */
	uint64_t away_ns;  /* how long it was kept away from last */
	uint32_t waits;    /* visits in a row that had to wait */
};

struct visits {
	uint32_t budget_ppm; /* of each CPU's time */
	struct visit_cpu cpus[CPU_SETSIZE];
};

void visits_begin(struct visits *visits, uint32_t budget_ppm);
/* Whether a visit to this CPU is within its budget now, and not too soon after the thread had to wait there. */
bool visits_allowed(struct visits *visits, int cpu, uint64_t now_ns);
/* Whether what a visit takes at this rate is so far below the budget that the thread may do the rest of its work there, too. */
bool visits_have_plenty(struct visits *visits, int cpu, uint64_t now_ns);
/* A visit took so long. */
void visits_spend(struct visits *visits, int cpu, uint64_t took_ns, uint64_t now_ns);
/* The thread waited so long for its turn on a CPU; `most_ns` is what does no harm. False: it is to keep away from there. */
bool visits_waited(struct visits *visits, int cpu, uint64_t waited_ns, uint64_t most_ns, uint64_t now_ns);

#endif
