/* SPDX-License-Identifier: Apache-2.0 */
/* Which signals are blocked, from main()'s first line on: a signal that comes before its command is ready for it waits, and does what the manual says
 * then. Main thread only, before there are others. */
#ifndef SAMPLED_DAEMON_SIGNALS_H
#define SAMPLED_DAEMON_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Blocks all that any command takes, and SIGPIPE: a reader that goes away is an error of the write, which is reported, not a silent end. Blocked rather
 * than ignored: run's command is to find the disposition as it was. */
void signals_block_all(void);
/* Leaves blocked what this command takes (NULL: nothing), and SIGPIPE; the others are as they were at the start. */
void signals_take(const sigset_t *taken);
/* SIGTSTP, SIGTTIN and SIGTTOU, which stop a process by default. */
void signals_add_stops(sigset_t *set);
/* Whether these wait: while threads of other processes are held. For main threads without an event loop. */
void signals_hold_stops(bool hold);
/* The mask as it was at the start: what a program that we start is to have. */
const sigset_t *signals_at_start(void);

#endif
