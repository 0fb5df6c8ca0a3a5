/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the service within its CPU budget: told now and then how much CPU time has been used, it says which part of the deadlines to keep. What
 * sampling costs falls with the rate; what the rest costs (looking at the host's processes, clients) does not, and leaves so much less. */
#ifndef SAMPLED_DAEMON_GOVERNOR_H
#define SAMPLED_DAEMON_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

enum { GOVERNOR_LOOKS = 10 }; /* the share is that of so many looks, one a second */

struct governor {
	double budget; /* of one core; 0: none */
	uint64_t used_ns[GOVERNOR_LOOKS + 1], sampling_ns[GOVERNOR_LOOKS + 1], t_ns[GOVERNOR_LOOKS + 1];
	unsigned looks;    /* ever */
	unsigned settled;  /* looks since the slowdown changed */
	uint32_t slowdown; /* only each so manieth deadline is kept; at least 1 */
	double share;      /* of one core, over the last looks */
	double sampling;   /* of that, what sampling took */
};

void governor_init(struct governor *governor, double budget);
/* CPU time so far: of the process, and of that, what sampling took. True: slowdown is another now. */
bool governor_look(struct governor *governor, uint64_t now_ns, uint64_t used_ns, uint64_t sampling_ns);

#endif
