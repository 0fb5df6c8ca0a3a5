/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells of a living process. */
#include "sampler/host.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/permission.h"

enum { PF_KTHREAD = 0x00200000 }; /* <linux/sched.h>, not exported to programs */

static int check(const struct remote *r, struct proc_stat *ret_stat, struct fault *fault)
{
	char byte;
	int err = proc_stat_read(ret_stat, r->pid, 0);

	if (err == -ESRCH)
		return fault_set(fault, -ESRCH, "", "no such process");
	if (err == -EACCES || err == -EPERM)
		return permission_explain(r->pid, fault);
	if (err)
		return fault_set(fault, err, "", "/proc/%d/stat cannot be read: %s", (int)r->pid, strerror(-err));
	if (ret_stat->flags & PF_KTHREAD)
		return fault_set(fault, -ENOEXEC, "", "it is a kernel thread, not a Python process");
	if (ret_stat->state == 'Z' || ret_stat->state == 'X')
		return fault_set(fault, -ESRCH, "", "it has exited, and waits for its parent to notice");
	/* Address 0 is not mapped: EFAULT says that we may read. */
	err = remote_read(r, 0, &byte, 1);
	if (err == -EPERM || err == -EACCES)
		return permission_explain(r->pid, fault);
	return err == -ESRCH ? fault_set(fault, -ESRCH, "", "no such process") : 0;
}

static bool is_same(const struct remote *r, uint64_t start_time)
{
	struct proc_stat stat;

	return proc_stat_read(&stat, r->pid, 0) == 0 && stat.start_time == start_time;
}

static int ns_pid(const struct remote *r, pid_t *ret_ns_pid)
{
	return proc_ns_pid(r->pid, ret_ns_pid);
}

static int maps_each(const struct remote *r, int (*fn)(void *context, const struct proc_map *map), void *context)
{
	return proc_maps_each(r->pid, fn, context);
}

static int open_mapped(const struct remote *r, const struct proc_map *map)
{
	return proc_open_mapped(r->pid, map);
}

static int command_line(const struct remote *r, enum command_line how, char *to, size_t room)
{
	struct buf arguments = {0};
	int err = room ? proc_arguments(r->pid, &arguments) : -EINVAL;

	if (!err)
		command_line_show(to, room, arguments.data, arguments.bytes, how);
	buf_release(&arguments);
	return err;
}

static uint64_t program(const struct remote *r)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)r->pid);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* The kernel wrote its path as seen from our root, which may lie above the target's. */
static void name_file(const struct remote *r, const char *path, char *to, size_t room)
{
	char link[64], root[PATH_MAX];
	ssize_t bytes;

	snprintf(link, sizeof(link), "/proc/%d/root", (int)r->pid);
	bytes = readlink(link, root, sizeof(root) - 1);
	if (bytes > 1 && strncmp(path, root, (size_t)bytes) == 0 && path[bytes] == '/')
		path += bytes;
	snprintf(to, room, "%s", path);
}

/* Where C libraries keep a thread's number behind pthread_self(), in struct pthread: glibc (nptl/descr.h), and musl
 * (src/internal/pthread_impl.h). What is read there is believed if the process has such a thread. */
#if defined(__x86_64__)
static const uint32_t tid_offs[] = {720, 48};
#elif defined(__aarch64__)
static const uint32_t tid_offs[] = {208, 32};
#endif

/* A thread of the process, as it numbers itself, in our pid namespace; 0: it has no such thread. */
static pid_t living_tid(const struct remote *r, pid_t own_pid, pid_t ns_tid)
{
	struct proc_stat stat;
	pid_t tid = ns_tid;

	if (ns_tid <= 0 || (own_pid != r->pid && proc_ns_tid(r->pid, ns_tid, &tid) != 0))
		return 0;
	return proc_stat_read(&stat, r->pid, tid) == 0 && stat.state != 'Z' && stat.state != 'X' ? tid : 0;
}

/* The C library's number is renewed by fork(), and taken away from the threads that fork() leaves behind. The interpreter's is renewed only
 * where the program calls PyOS_AfterFork_Child(). */
static pid_t find_tid(const struct remote *r, pid_t own_pid, uint64_t pthread_self, pid_t ns_tid)
{
	for (size_t i = 0; pthread_self != 0 && i < sizeof(tid_offs) / sizeof(tid_offs[0]); i++) {
		int32_t kept;
		pid_t tid = remote_read_i32(r, pthread_self + tid_offs[i], &kept) == 0 ? living_tid(r, own_pid, kept) : 0;

		if (tid > 0)
			return tid;
	}
	return living_tid(r, own_pid, ns_tid);
}

static uint64_t thread_start(const struct remote *r, pid_t tid)
{
	struct proc_stat stat;

	return proc_stat_read(&stat, r->pid, tid) == 0 ? stat.start_time : 0;
}

static void open_oncpu(const struct remote *r, struct oncpu *o, pid_t tid)
{
	oncpu_open(o, r->pid, tid);
}

static bool registers(const struct remote *r, pid_t tid, struct unwind_regs *ret_regs)
{
	(void)r;
	(void)tid;
	(void)ret_regs;
	return false;
}

const struct host host_process = {
	.check = check,
	.is_same = is_same,
	.ns_pid = ns_pid,
	.maps_each = maps_each,
	.open_mapped = open_mapped,
	.command_line = command_line,
	.program = program,
	.name_file = name_file,
	.find_tid = find_tid,
	.thread_start = thread_start,
	.open_oncpu = open_oncpu,
	.registers = registers,
};

const struct host *host_of(const struct remote *r)
{
	return r->core ? &host_core : &host_process;
}
