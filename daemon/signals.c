/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/signals.h"

#include <stddef.h>

static sigset_t at_start;

void signals_block_all(void)
{
	static const int taken[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGUSR1};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		sigaddset(&set, taken[i]);
	sigprocmask(SIG_BLOCK, &set, &at_start);
}

void signals_take(const sigset_t *taken)
{
	sigset_t set = at_start;

	if (taken)
		sigorset(&set, &set, taken);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

void signals_add_stops(sigset_t *set)
{
	sigaddset(set, SIGTSTP);
	sigaddset(set, SIGTTIN);
	sigaddset(set, SIGTTOU);
}

void signals_hold_stops(bool hold)
{
	sigset_t set;

	sigemptyset(&set);
	signals_add_stops(&set);
	sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

const sigset_t *signals_at_start(void)
{
	return &at_start;
}
