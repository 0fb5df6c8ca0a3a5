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

/* "SP PC" of a syscall file is not longer: two numbers of 64 bits, "0x" before each, a blank and a line's end. */
#define ONCPU_PLACE_MAX 38

struct oncpu {
	pid_t pid, tid;
	int syscall_fd; /* -1: not to be had */
	int stat_fd, schedstat_fd; /* -1: not needed so far or not to be had */
	bool fixed;     /* state is what it was, for good: nobody is asked */
	enum oncpu_state state;
	int32_t number;              /* of the system call it was blocked in; see oncpu_number() */
	uint8_t place_bytes;         /* of place; 0: the kernel said neither this nor number */
	char place[ONCPU_PLACE_MAX]; /* end of the text: stack pointer and program counter, parsed when asked for */
	uint64_t futex;
	uint64_t asked_ns; /* when state was found out */
};

/* Opens what the thread's state will be read from. Never fails: what cannot be had is unknown. */
void oncpu_open(struct oncpu *o, pid_t pid, pid_t tid);
/* A thread of a core: what is known of it. */
void oncpu_fix(struct oncpu *o, pid_t tid, enum oncpu_state state, uint64_t futex);
void oncpu_release(struct oncpu *o);
/* Asks the kernel. -ESRCH: the thread is gone. */
int oncpu_ask(struct oncpu *o, uint64_t now_ns);

/* The CPU that a thread runs on, or is to run on, which makes room for others. -EAGAIN: it does neither; -EPERM: it makes no
 * room, being of real time; or another -errno. */
int oncpu_where(struct oncpu *o);
/* How often the kernel gave the thread a CPU: as long as it is the same, a thread that did not run has not run. False: not to be had. */
bool oncpu_slices(struct oncpu *o, uint64_t *ret_slices);
/* Closes what only these two need. */
void oncpu_spare(struct oncpu *o);
/* The system call that a blocked thread is in; -1: outside one, as in a page fault. False: it is not blocked, or this was not told. */
bool oncpu_number(const struct oncpu *o, int32_t *ret_number);
/* Where in its own code a blocked thread is. False: it is not blocked, or this was not told. */
bool oncpu_place(const struct oncpu *o, uint64_t *ret_sp, uint64_t *ret_pc);

/* Parses the text of a syscall file; pure, for tests. */
void oncpu_parse_syscall(struct oncpu *o, const char *text, uint64_t bytes);

#endif
