/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/opening.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "sampler/permission.h"
#include "sampler/procfs.h"
#include "sampler/stop.h"

/* The number behind "\nKEY:\t" in /proc/PID/status, or what it is otherwise. */
static pid_t status_number(pid_t pid, const char *key, pid_t otherwise)
{
	struct buf status = {0};
	const char *line = NULL;
	char path[64];
	pid_t number = otherwise;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (proc_read_file(path, &status, 64 * 1024) == 0)
		line = strstr(buf_text(&status), key);
	if (line)
		number = atoi(line + strlen(key));
	buf_release(&status);
	return number;
}

/* /proc hides threads from listings, but opens them by number as if they were processes. */
static pid_t leader_of(pid_t pid)
{
	return status_number(pid, "\nTgid:\t", pid);
}

int opening_check_ptrace(struct fault *fault)
{
	int err = stop_check();

	if (!err)
		return 0;
	if (status_number(getpid(), "\nSeccomp:\t", 0) > 0)
		return fault_set(fault, -EPERM, "that of a container: allow ptrace in it, or go without --blocking and --native",
		                 "a seccomp filter forbids sampled to stop threads");
	return fault_set(fault, -EPERM, "go without --blocking and --native", "ptrace is refused: %s", strerror(-err));
}

int opening_check_stops(pid_t pid, struct fault *fault)
{
	pid_t tracer = status_number(pid, "\nTracerPid:\t", 0);
	int err = opening_check_ptrace(fault);

	if (err || tracer == 0)
		return err;
	return fault_set(fault, -EPERM, "a debugger or strace: end it, or go without --blocking and --native",
	                 "process %d traces it, and only one may stop its threads", (int)tracer);
}

int opening_try(struct target **ret_target, pid_t pid, struct fault *fault)
{
	pid_t leader = leader_of(pid);
	char hint[64];
	int err;

	fault->why[0] = fault->hint[0] = '\0';
	if (leader != pid) {
		snprintf(hint, sizeof(hint), "use that number, and -t %d for this thread", (int)pid);
		return fault_set(fault, -ESRCH, hint, "it is a thread of process %d", (int)leader);
	}
	err = target_open(ret_target, pid, fault);
	if ((err == -EPERM || err == -EACCES) && fault->hint[0] == '\0')
		permission_explain(pid, fault);
	else if (err && fault->why[0] == '\0')
		fault_set(fault, err, "", "%s", strerror(-err));
	return err;
}

bool opening_is_early(int err)
{
	/* Half-built structures fail validation. */
	return err == -EAGAIN || err == -EPROTO;
}

int opening_wait(struct target **ret_target, pid_t pid, uint64_t patience_ns, struct fault *fault)
{
	uint64_t until_ns = clock_now_ns() + patience_ns;

	for (;;) {
		struct timespec pause = clock_to_timespec(5 * NS_PER_MS);
		int err = opening_try(ret_target, pid, fault);

		if (!opening_is_early(err) || clock_now_ns() >= until_ns)
			return err;
		nanosleep(&pause, NULL);
	}
}
