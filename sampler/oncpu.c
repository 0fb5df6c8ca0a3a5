/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/oncpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/procfs.h"

static int open_of(pid_t pid, pid_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

void oncpu_open(struct oncpu *o, pid_t pid, pid_t tid)
{
	*o = (struct oncpu){.pid = pid, .tid = tid, .syscall_fd = -1, .stat_fd = -1};
	if (tid <= 0)
		return;
	o->syscall_fd = open_of(pid, tid, "syscall");
	if (o->syscall_fd < 0)
		o->stat_fd = open_of(pid, tid, "stat");
}

void oncpu_release(struct oncpu *o)
{
	if (o->syscall_fd >= 0)
		close(o->syscall_fd);
	if (o->stat_fd >= 0)
		close(o->stat_fd);
	o->syscall_fd = o->stat_fd = -1;
}

/* "running", "-1 SP PC" (blocked outside a system call, as in a page fault), or "NR ARG0 … ARG5 SP PC"
 * (fs/proc/base.c, proc_pid_syscall). */
void oncpu_parse_syscall(struct oncpu *o, const char *text, uint64_t bytes)
{
	char line[64];
	char *end;
	long number;

	if (bytes >= sizeof(line))
		bytes = sizeof(line) - 1;
	memcpy(line, text, bytes);
	line[bytes] = '\0';
	if (strncmp(line, "running", 7) == 0) {
		o->state = ONCPU_RUNNABLE;
		return;
	}
	number = strtol(line, &end, 10);
	if (end == line) {
		o->state = ONCPU_UNKNOWN;
		return;
	}
	o->state = ONCPU_BLOCKED;
	if (number == SYS_futex) {
		o->state = ONCPU_BLOCKED_FUTEX;
		o->futex = strtoull(end, NULL, 16);
	}
}

static int ask_stat(struct oncpu *o)
{
	struct proc_stat stat;
	char text[1024];
	ssize_t bytes = pread(o->stat_fd, text, sizeof(text), 0);

	if (bytes <= 0)
		return bytes < 0 && errno != ESRCH ? -errno : -ESRCH;
	if (proc_stat_parse(&stat, text, (size_t)bytes) != 0)
		return -EPROTO;
	o->state = stat.state == 'R' ? ONCPU_RUNNABLE : ONCPU_BLOCKED;
	return 0;
}

int oncpu_ask(struct oncpu *o, uint64_t now_ns)
{
	char text[256];
	ssize_t bytes;

	o->asked_ns = now_ns;
	if (o->syscall_fd < 0) {
		o->state = ONCPU_UNKNOWN;
		return o->stat_fd >= 0 ? ask_stat(o) : 0;
	}
	bytes = pread(o->syscall_fd, text, sizeof(text), 0);
	if (bytes > 0) {
		oncpu_parse_syscall(o, text, (uint64_t)bytes);
		return 0;
	}
	o->state = ONCPU_UNKNOWN;
	if (bytes == 0 || errno == ESRCH)
		return -ESRCH;
	close(o->syscall_fd); /* it could be opened, but not read: as much as stat tells, then */
	o->syscall_fd = -1;
	o->stat_fd = open_of(o->pid, o->tid, "stat");
	return o->stat_fd >= 0 ? ask_stat(o) : 0;
}
