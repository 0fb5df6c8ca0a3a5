/* SPDX-License-Identifier: Apache-2.0 */
/* What --blocking and --native need. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/doctor.h"
#include "daemon/opening.h"
#include "sampler/stop.h"

/* On a child of our own, which needs no permission: does no filter stand before ptrace? */
static void check_stopping(struct doctor *d)
{
	struct stopper stopper = {.pending_count = 0};
	struct rec_facts facts = {0};
	struct stop stop;
	pid_t child = fork();
	int err;

	if (child < 0)
		return;
	if (child == 0) {
		pause();
		_exit(0);
	}
	err = stop_thread(&stopper, child, child, &stop);
	if (!err)
		stop_release(&stopper, &stop, &facts);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	if (!err || err == -ETIMEDOUT)
		doctor_line(d, VERDICT_OK, "", "threads can be stopped, for --blocking and --native");
	else
		doctor_line(d, VERDICT_WARN, "a seccomp filter that lets ptrace pass",
		            "threads cannot be stopped (%s): no --blocking, no --native", strerror(-err));
}

void doctor_host_native(struct doctor *d)
{
	check_stopping(d);
}

void doctor_native(struct doctor *d, struct target *target)
{
	struct fault fault;

	if (opening_check_stops(target_proc(target)->pid, &fault) != 0)
		doctor_line(d, VERDICT_WARN, fault.hint, "its threads cannot be stopped: %s", fault.why);
	else if (target_knows_loop(target))
		doctor_line(d, VERDICT_OK, "", "native stacks: where the interpreter's loop lies is known");
	else
		doctor_line(d, VERDICT_WARN, "--native shows Python's frames only",
		            "native stacks: where the interpreter's loop lies is not known");
}
