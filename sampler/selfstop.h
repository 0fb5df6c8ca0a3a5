/* SPDX-License-Identifier: Apache-2.0 */
/* When this process itself is stopped: not while it holds a thread of another one, which would stand for as long.
 *
 * SIGTSTP (Ctrl-Z), SIGTTIN and SIGTTOU are blocked in all threads; the main thread is told of them (signalfd(2)) and asks here, and the thread that stops
 * others stops the process when it holds none. SIGSTOP cannot be blocked: a child of ours looks every 20 ms whether we stand while we hold, wakes us
 * (SIGCONT), and what SIGSTOP wanted is made up for when nothing is held. Nobody else than we can let a thread go that we trace (ptrace(2)). A freezer
 * of control groups stops the child as well: nothing can be done then. */
#ifndef SAMPLED_SAMPLER_SELFSTOP_H
#define SAMPLED_SAMPLER_SELFSTOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct selfstop {
	struct selfstop_page *page; /* shared with the watcher; NULL: nothing is ever held, and all below does nothing */
	pid_t watcher;
	_Atomic int asked; /* the signal; 0: none; -1: nobody holds, whoever asks stops the process itself */
};

/* Forks the watcher, which ends with the calling thread. 0 or -errno. */
int selfstop_init(struct selfstop *selfstop);
void selfstop_release(struct selfstop *selfstop);

/* Before the thread that holds is made: from here on it is asked. */
void selfstop_begin(struct selfstop *selfstop);
/* That thread: from here on it may hold. */
void selfstop_forbid(struct selfstop *selfstop);
/* It holds nothing: here the process is stopped, if that was asked for or prevented meanwhile. Returns after SIGCONT. */
void selfstop_allow(struct selfstop *selfstop);
/* The same for good, after that thread's end: whoever asks later is stopped at once. */
void selfstop_end(struct selfstop *selfstop);

/* Any thread: stops the process by this signal as soon as may be. 0: takes back what was asked (SIGCONT). */
void selfstop_ask(struct selfstop *selfstop, int signal);
bool selfstop_is_asked(const struct selfstop *selfstop);

#endif
