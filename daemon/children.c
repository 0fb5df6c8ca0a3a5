/* SPDX-License-Identifier: Apache-2.0 */
/* --subprocesses. Children are polled for, since being told of them (the proc connector, ptrace) takes privileges or
 * stops the target. One that lives shorter than the time between two looks is missed. */
#include "daemon/children.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/helper.h"
#include "sampler/procfs.h"

enum {
	CHILDREN_MAX = 1024, /* of one process at one look; the rest is found at later ones, as these come and go */
	THREADS_FEW = 64,    /* so many lists of children cost little */
};

/* Already ended, or waiting to be reaped: nothing to see, and no error. */
static bool has_ended(pid_t pid)
{
	struct proc_stat stat;

	return proc_stat_read(&stat, pid, 0) || stat.state == 'Z' || stat.state == 'X';
}

/* Those of the command's that its processes left behind are ours (run.c), and nobody else waits for their ends. */
static void scan_adopted(struct targets *targets)
{
	pid_t children[CHILDREN_MAX];
	int count = proc_children(getpid(), SIZE_MAX, children, CHILDREN_MAX);

	for (int i = 0; i < count && i < CHILDREN_MAX; i++) {
		if (children[i] == targets->command || helper_is(children[i]))
			continue;
		/* One that ended is not in a stop, which its tracer would have to hear of. */
		if (has_ended(children[i]))
			(void)waitpid(children[i], NULL, WNOHANG);
		else
			targets_add(targets, children[i], MEMBER_CHILD);
	}
}

void children_scan(struct targets *targets, bool thorough)
{
	pid_t children[CHILDREN_MAX];

	if (targets->command)
		scan_adopted(targets);

	/* New members stand at the end of the list, so that their own children are found in the same pass. */
	for (size_t i = 0; i < targets->count; i++) {
		int count = proc_children(targets->members[i].pid, thorough ? SIZE_MAX : THREADS_FEW, children,
		                          CHILDREN_MAX);

		for (int j = 0; j < count && j < CHILDREN_MAX; j++) {
			if (!has_ended(children[j]))
				targets_add(targets, children[j], MEMBER_CHILD);
		}
	}
}
