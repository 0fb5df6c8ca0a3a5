/* SPDX-License-Identifier: Apache-2.0 */
/* --subprocesses. Children are polled for, since being told of them (the proc connector, ptrace) takes privileges or
 * stops the target. One that lives shorter than the time between two looks is missed. */
#include "daemon/children.h"

#include "sampler/procfs.h"

enum {
	CHILDREN_MAX = 1024, /* of one process at one look; the rest is found at later ones, as these come and go */
	THREADS_FEW = 64,    /* so many lists of children cost little */
};

void children_scan(struct targets *targets, bool thorough)
{
	pid_t children[CHILDREN_MAX];

	/* New members stand at the end of the list, so that their own children are found in the same pass. */
	for (size_t i = 0; i < targets->count; i++) {
		int count = proc_children(targets->members[i].pid, thorough ? SIZE_MAX : THREADS_FEW, children,
		                          CHILDREN_MAX);

		for (int j = 0; j < count && j < CHILDREN_MAX; j++) {
			struct proc_stat stat;

			/* Already ended, or waiting to be reaped: nothing to see, and no error. */
			if (proc_stat_read(&stat, children[j], 0) || stat.state == 'Z' || stat.state == 'X')
				continue;
			targets_add(targets, children[j], MEMBER_CHILD);
		}
	}
}
