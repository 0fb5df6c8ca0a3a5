/* SPDX-License-Identifier: Apache-2.0 */
/* Stops single threads of other processes, for as long as it takes to copy what they were doing.
 *
 * Each stop is PTRACE_SEIZE, PTRACE_INTERRUPT, wait, …, PTRACE_DETACH (ptrace(2)): between stops nothing of the target is traced. A thread
 * that stays seized would have all of its signals wait for us, and a debugger could not attach. Should we die, the kernel ends what we
 * trace, and the thread runs on (exit_ptrace(), kernel/ptrace.c). A signal that arrives meanwhile is delivered by the detaching.
 *
 * Who stops a thread that waits in the kernel makes some system calls return EINTR: the caller stops only threads that run.
 *
 * All of it belongs to the one thread that stops: ptrace knows tracers by thread. */
#ifndef SAMPLED_SAMPLER_STOP_H
#define SAMPLED_SAMPLER_STOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/record.h"
#include "sampler/unwind.h"

enum { STOPS_PENDING_MAX = 64 };

struct stopper {
	struct pending_stop { /* asked for, and not reached in time */
		pid_t pid, tid;
		uint64_t t_looked_ns; /* when it was last seen not to have come */
	} pending[STOPS_PENDING_MAX];
	uint32_t pending_count;
};

struct stop { /* a thread that stands */
	pid_t pid, tid;
	uint64_t t_ran_ns; /* when it had not come to a stop yet */
	int signal;          /* on its way when it stopped, and delivered at its release; 0: none */
};

/* Once in a process that stops others: without it the kernel tells the main thread of each stop (SIGCHLD). */
void stop_prepare(void);

/* Whether ptrace may be called at all; a seccomp filter may forbid it. Nothing is done to any thread. 0, or what it fails with, as -errno. */
int stop_check(void);

/* Stops a thread. 0: it stands until stop_release(). -ESRCH: it is gone. -EPERM: it is traced by someone else, or may not be. -ETIMEDOUT: it did not
 * come to a stop within 5 ms; as soon as it does, stopper_take_late() has it. -EBUSY: too many of those. */
int stop_thread(struct stopper *stopper, pid_t pid, pid_t tid, struct stop *ret_stop);
/* Its registers; *ret_interrupted: it was in a system call that will fail with EINTR now. 0 or -errno. */
int stop_registers(const struct stop *stop, struct unwind_regs *ret_regs, bool *ret_interrupted);
/* Lets it run on, and counts the stop. */
void stop_release(struct stopper *stopper, struct stop *stop, struct rec_facts *facts);

/* Whether there are stops that were given up and may still come: stopper_take_late() is to be called within a millisecond. */
static inline bool stopper_is_waiting(const struct stopper *stopper)
{
	return stopper->pending_count > 0;
}
bool stopper_is_pending(const struct stopper *stopper, pid_t tid);
/* One that has come since it was given up; it is for stop_release(). False: there is none. */
bool stopper_take_late(struct stopper *stopper, struct stop *ret_stop);
/* Lets all go that have come late. */
void stopper_collect(struct stopper *stopper);

/* The bin of rec_facts.stop_bins for a stop of this length. */
uint32_t stop_bin(uint64_t length_ns);

#endif
