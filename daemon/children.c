/* SPDX-License-Identifier: Apache-2.0 */
/* --subprocesses. Children are polled for, since being told of them (the proc connector, ptrace) takes privileges or
 * stops the target. One that lives shorter than the time between two looks is missed. */
#include "daemon/children.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/helper.h"
#include "daemon/error.h"
#include "daemon/opening.h"
#include "sampler/procfs.h"

enum {
	OPENINGS_MAX = 4,    /* of children of one process that run another program than it does, at one look */
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

void children_say_left_behind(struct targets *targets)
{
	size_t count = 0;

	for (size_t i = 0; i < targets->count; i++)
		count += targets->members[i].sampled && targets->members[i].pid != targets->command;
	if (count == 0 || targets->left_behind_reported)
		return;
	targets->left_behind_reported = true;
	error_note("the command has ended; processes that it left behind are still sampled: %zu (Ctrl-C stops and writes)",
	           count);
}

/* The file that the process runs. */
static bool read_program(pid_t pid, struct stat *ret_st)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return stat(path, ret_st) == 0;
}

static bool runs(pid_t pid, const struct stat *program)
{
	struct stat st;

	return read_program(pid, &st) && st.st_dev == program->st_dev && st.st_ino == program->st_ino;
}

static bool opens(pid_t pid)
{
	struct target *target;
	struct fault fault;

	if (opening_try(&target, pid, &fault))
		return false;
	target_free(target);
	return true;
}

size_t children_pythons(pid_t pid, pid_t *ret_pids, size_t room)
{
	pid_t children[CHILDREN_MAX];
	int count = proc_children(pid, THREADS_FEW, children, CHILDREN_MAX), opened = 0;
	struct stat program;
	size_t found = 0;

	if (!read_program(pid, &program))
		return 0;
	for (int i = 0; i < count && i < CHILDREN_MAX && found < room; i++)
		if (!has_ended(children[i]) &&
		    (runs(children[i], &program) || (opened++ < OPENINGS_MAX && opens(children[i]))))
			ret_pids[found++] = children[i];
	return found;
}

static bool is_member(const struct targets *targets, pid_t pid)
{
	for (size_t i = 0; i < targets->count; i++)
		if (targets->members[i].pid == pid)
			return true;
	return false;
}

void children_note_missed(struct targets *targets)
{
	pid_t pythons[CHILDREN_MAX];

	for (size_t i = 0; i < targets->count; i++) {
		const struct member *m = &targets->members[i];
		size_t count = m->sampled ? children_pythons(m->pid, pythons, CHILDREN_MAX) : 0, missed = 0;

		for (size_t j = 0; j < count; j++)
			missed += !is_member(targets, pythons[j]);
		if (missed > targets->missed_children) {
			targets->missed_children = missed;
			targets->missed_parent = m->pid;
		}
	}
}

void children_say_missed(pid_t pid, size_t count)
{
	error_note("process %d has children that are Pythons, too, and are not shown: %zu (--subprocesses shows them)", (int)pid,
	           count);
}
