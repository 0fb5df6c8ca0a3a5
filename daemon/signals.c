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

const sigset_t *signals_at_start(void)
{
	return &at_start;
}
