/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the sampler thread off the CPUs that its targets are bound to: on one CPU with its target, each tick would wait until the kernel
 * takes the target's turn away. A hint, no more: where nothing else is left, or a mask cannot be read, all stays as it is. */
#ifndef SAMPLED_SAMPLER_AFFINITY_H
#define SAMPLED_SAMPLER_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

struct affinity {
	cpu_set_t own;  /* where the thread might run when it began */
	cpu_set_t left; /* of these, what no target is bound to */
	bool known;
};

/* In the thread in question, and so is the next. */
void affinity_begin(struct affinity *affinity);
/* Takes note of one target more. One that may run wherever we may is not bound. */
void affinity_avoid(struct affinity *affinity, pid_t target);

#endif
