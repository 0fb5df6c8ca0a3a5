/* SPDX-License-Identifier: Apache-2.0 */
/* The threads and children of a process, and their numbers in its own pid namespace. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sampler/procfs.h"

enum {
	STATUS_BYTES_MAX = 16 * 1024,
	CHILDREN_BYTES_MAX = 4 * 1024 * 1024,
};

/* A whole decimal pid, or 0. */
static pid_t parse_pid(const char *text, char **ret_end)
{
	unsigned long value;

	*ret_end = (char *)text;
	if (*text < '1' || *text > '9')
		return 0;
	errno = 0;
	value = strtoul(text, ret_end, 10);
	return errno || value > INT_MAX ? 0 : (pid_t)value;
}

/* The last number of the line "NSpid:" in a status file: the id in the innermost namespace. Kernels without pid
 * namespaces write no such line; then the id is the same everywhere. */
static int read_innermost_id(const char *path, pid_t outer, pid_t *ret_id)
{
	struct buf text = {0};
	const char *at;
	char *end;
	pid_t id = outer;
	int err = proc_read_file(path, &text, STATUS_BYTES_MAX);

	if (err) {
		buf_release(&text);
		return err == -ENOENT ? -ESRCH : err;
	}
	/* The name comes first, but the kernel escapes newlines in it, so "\nNSpid:" cannot be forged. */
	at = strstr(buf_text(&text), "\nNSpid:");
	if (at) {
		at += strlen("\nNSpid:");
		while (*at == '\t' || *at == ' ') {
			pid_t next = parse_pid(at + 1, &end);

			if (next == 0)
				break;
			id = next;
			at = end;
		}
	}
	err = text.err;
	buf_release(&text);
	if (err == 0)
		*ret_id = id;
	return err;
}

int proc_ns_pid(pid_t pid, pid_t *ret_ns_pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return read_innermost_id(path, pid, ret_ns_pid);
}

static int task_innermost_id(pid_t pid, pid_t tid, pid_t *ret_id)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	return read_innermost_id(path, tid, ret_id);
}

int proc_ns_tid(pid_t pid, pid_t ns_tid, pid_t *ret_tid)
{
	struct dirent *entry;
	char path[64];
	DIR *tasks;
	pid_t id;
	int err = -ESRCH;

	/* The common case, no namespace: one file instead of all. */
	if (ns_tid > 0 && task_innermost_id(pid, ns_tid, &id) == 0 && id == ns_tid) {
		*ret_tid = ns_tid;
		return 0;
	}
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	if (!tasks)
		return errno == ENOENT ? -ESRCH : -errno;
	while (err && (entry = readdir(tasks))) {
		char *end;
		pid_t tid = parse_pid(entry->d_name, &end);

		if (tid == 0 || *end || task_innermost_id(pid, tid, &id) || id != ns_tid)
			continue;
		*ret_tid = tid;
		err = 0;
	}
	closedir(tasks);
	return err;
}

/* Adds the pids of one task's children file ("12 13 "). -ENOENT: no such file. */
static int add_children_of(pid_t pid, pid_t tid, pid_t *to, size_t room, size_t *count)
{
	struct buf text = {0};
	const char *at;
	char path[64];
	char *end;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
	err = proc_read_file(path, &text, CHILDREN_BYTES_MAX);
	for (at = buf_text(&text); err == 0;) {
		pid_t child = parse_pid(at, &end);

		if (child == 0)
			break;
		if (*count < room)
			to[*count] = child;
		++*count;
		at = *end == ' ' ? end + 1 : end;
	}
	buf_release(&text);
	return err;
}

/* For kernels built without CONFIG_PROC_CHILDREN: whose parent is it? */
static int scan_children(pid_t pid, pid_t *to, size_t room)
{
	struct dirent *entry;
	struct proc_stat stat;
	size_t count = 0;
	DIR *all = opendir("/proc");

	if (!all)
		return -errno;
	while ((entry = readdir(all)) && count < INT_MAX) {
		char *end;
		pid_t child = parse_pid(entry->d_name, &end);

		if (child == 0 || *end || proc_stat_read(&stat, child, 0) || stat.parent_pid != pid)
			continue;
		if (count < room)
			to[count] = child;
		count++;
	}
	closedir(all);
	return (int)count;
}

/* proc(5): a directory's links are its own two and one a subdirectory; so task has one a thread. */
static bool has_more_threads(pid_t pid, size_t threads_max)
{
	struct stat tasks;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return stat(path, &tasks) == 0 && tasks.st_nlink > 2 && tasks.st_nlink - 2 > threads_max;
}

int proc_children(pid_t pid, size_t threads_max, pid_t *ret_children, size_t room)
{
	struct dirent *entry;
	size_t count = 0, read_count = 0;
	char path[64];
	DIR *tasks;

	if (has_more_threads(pid, threads_max) && add_children_of(pid, pid, ret_children, room, &count) == 0)
		return (int)count;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	if (!tasks)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(tasks)) && count < INT_MAX) {
		char *end;
		pid_t tid = parse_pid(entry->d_name, &end);

		if (tid && !*end && add_children_of(pid, tid, ret_children, room, &count) == 0)
			read_count++;
	}
	closedir(tasks);
	return read_count ? (int)count : scan_children(pid, ret_children, room);
}
