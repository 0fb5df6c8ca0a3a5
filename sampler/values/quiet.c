/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that waits has not run as long as the kernel's counts of its turns are the same (/proc/PID/task/TID/schedstat). Of one that can run they are the
 * same as well while it runs; but where it is to run on the CPU that we had all the while, it did not. The process' CPU clock tells neither:
 * it is brought up to date at the kernel's ticks. */
#include "sampler/values/quiet.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "sampler/procfs.h"

enum { TASKS_MAX = 1 << 15, LINE_MAX_BYTES = 128 };

static int read_turns(const char *path, struct quiet_task *task)
{
	struct buf text = {0};
	int err = proc_read_file(path, &text, LINE_MAX_BYTES);

	if (!err && sscanf(buf_text(&text), "%" SCNu64 " %" SCNu64 " %" SCNu64, &task->ran_ns, &task->waited_ns, &task->turns) != 3)
		err = -EPROTO;
	buf_release(&text);
	return err;
}

static int look_at(struct quiet *quiet, pid_t pid, pid_t tid)
{
	struct quiet_task task = {.tid = tid};
	struct proc_stat stat;
	char path[64];
	int err;

	if (quiet->count == quiet->room) {
		uint32_t room = quiet->room ? 2 * quiet->room : 16;
		struct quiet_task *tasks = realloc(quiet->tasks, room * sizeof(*tasks));

		if (!tasks || room > TASKS_MAX)
			return -ENOMEM;
		quiet->tasks = tasks;
		quiet->room = room;
	}
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	err = read_turns(path, &task); /* before its state: it has had no turn since then */
	if (!err)
		err = proc_stat_read(&stat, pid, tid);
	if (err)
		return err;
	task.stands = stat.state != 'R' || (int)stat.cpu == sched_getcpu();
	if (stat.state == 'R' && quiet->cpu < 0)
		quiet->cpu = (int)stat.cpu;
	quiet->stands &= task.stands;
	quiet->tasks[quiet->count++] = task;
	return 0;
}

int quiet_look(struct quiet *quiet, pid_t pid, pid_t tid)
{
	struct quiet_task own;
	struct dirent *entry;
	char path[32];
	DIR *dir;
	int err = read_turns("/proc/thread-self/schedstat", &own);

	quiet->count = 0;
	quiet->cpu = -1;
	quiet->stands = true;
	if (err)
		return err;
	quiet->own_turns = own.turns;
	if (tid)
		return look_at(quiet, pid, tid);
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			err = look_at(quiet, pid, (pid_t)atoi(entry->d_name));
	closedir(dir);
	return err;
}

bool quiet_stood(const struct quiet *before, const struct quiet *after)
{
	bool on_our_cpu = before->cpu >= 0 || after->cpu >= 0;

	if (!before->stands || !after->stands || before->count != after->count || before->count == 0 ||
	    (on_our_cpu && before->own_turns != after->own_turns))
		return false;
	for (uint32_t i = 0; i < before->count; i++) {
		const struct quiet_task *a = &before->tasks[i], *b = &after->tasks[i];

		if (a->tid != b->tid || a->turns != b->turns || a->ran_ns != b->ran_ns)
			return false;
	}
	return true;
}

void quiet_release(struct quiet *quiet)
{
	free(quiet->tasks);
	quiet->tasks = NULL;
	quiet->count = quiet->room = 0;
}
