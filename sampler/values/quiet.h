/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a process, or the thread that holds its GIL, stood between two moments: then what was read in several calls between them is of one instant. */
#ifndef SAMPLED_SAMPLER_VALUES_QUIET_H
#define SAMPLED_SAMPLER_VALUES_QUIET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct quiet_task {
	pid_t tid;
	bool stands;  /* it waits, or is to run on the CPU that the caller had all the while */
	uint64_t ran_ns, waited_ns, turns; /* schedstat: while these are the same, it was given no CPU */
};

/* Threads of a process, as they were at one moment. */
struct quiet {
	struct quiet_task *tasks; /* owned */
	uint32_t count, room;
	bool stands;       /* none of them runs */
	int cpu;           /* where a thread that can run is: the caller may go there, and then has it stand; -1: there is none */
	uint64_t own_turns; /* of the calling thread */
};

/* Looks at this thread, or, with tid 0, at all. 0 or -errno; what was there is forgotten. */
int quiet_look(struct quiet *quiet, pid_t pid, pid_t tid);
/* Whether none of them ran from the first look to the second one. */
bool quiet_stood(const struct quiet *before, const struct quiet *after);
void quiet_release(struct quiet *quiet);

#endif
