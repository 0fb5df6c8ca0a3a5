/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a thread is runnable, and what it waits in when it is not, as the kernel tells: /proc/PID/task/TID/syscall, kept
 * open (it says "running", or the system call and its arguments), else the state in .../stat. */
#ifndef SAMPLED_SAMPLER_ONCPU_H
#define SAMPLED_SAMPLER_ONCPU_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum oncpu_state {
	ONCPU_UNKNOWN,
	ONCPU_RUNNABLE,
	ONCPU_BLOCKED,
	ONCPU_BLOCKED_FUTEX, /* blocked; `futex` holds the address it waits on */
};

struct oncpu {
	pid_t pid, tid;
	int syscall_fd; /* -1: not to be had */
	int stat_fd;    /* -1: not needed or not to be had */
	enum oncpu_state state;
	uint64_t futex;
	uint64_t asked_ns; /* when state was found out */
};

/* Opens what the thread's state will be read from. Never fails: what cannot be had is unknown. */
void oncpu_open(struct oncpu *o, pid_t pid, pid_t tid);
void oncpu_release(struct oncpu *o);
/* Asks the kernel. -ESRCH: the thread is gone. */
int oncpu_ask(struct oncpu *o, uint64_t now_ns);

/* Parses the text of a syscall file; pure, for tests. */
void oncpu_parse_syscall(struct oncpu *o, const char *text, uint64_t bytes);

#endif
