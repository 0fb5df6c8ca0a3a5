/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs the sampler thread may run on. Between visits (near.h) not those that its targets are bound to: on one CPU with its target, each tick would wait
 * until the kernel takes the target's turn away. A hint, no more: where nothing else is left, or a mask cannot be read, all stays as it is. */
#ifndef SAMPLED_SAMPLER_AFFINITY_H
#define SAMPLED_SAMPLER_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/visits.h"

struct affinity {
	cpu_set_t own;  /* where the thread might run when it began */
	cpu_set_t left; /* of these, what no target is bound to */
	bool known;
	bool at_once; /* the thread is let in at once when it wakes on a CPU that others want, too */
	int at;       /* the CPU that it is bound to by affinity_go(); -1: none */
	struct visits visits;
};

/* In the thread in question, and so is the next. */
void affinity_begin(struct affinity *affinity);
/* Takes note of one target more. One that may run wherever we may is not bound. */
void affinity_avoid(struct affinity *affinity, pid_t target);
/* Goes to this CPU, and stays there. False: it may not run there. */
bool affinity_go(struct affinity *affinity, int cpu);
/* Whether the thread still runs on the CPU that it went to: a mask may be changed for us, as with cpusets, or by taskset. */
bool affinity_is_there(const struct affinity *affinity);
/* Leaves that CPU: may run again on any other that no target is bound to. */
void affinity_leave(struct affinity *affinity);

#endif
