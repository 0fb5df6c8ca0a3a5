/* SPDX-License-Identifier: Apache-2.0 */
/* What a core tells where a living process is asked by way of the kernel. Its numbers may be another process' by now, so that nothing
 * is looked up in /proc. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "sampler/core.h"
#include "sampler/host.h"

static int check(const struct remote *r, struct proc_stat *ret_stat, struct fault *fault)
{
	(void)fault;
	*ret_stat = (struct proc_stat){.parent_pid = core_process(r->core)->parent_pid};
	return 0;
}

static bool is_same(const struct remote *r, uint64_t start_time)
{
	(void)r;
	(void)start_time;
	return true;
}

static int ns_pid(const struct remote *r, pid_t *ret_ns_pid)
{
	*ret_ns_pid = r->pid;
	return 0;
}

static int maps_each(const struct remote *r, int (*fn)(void *context, const struct proc_map *map), void *context)
{
	return core_maps_each(r->core, fn, context);
}

static int open_mapped(const struct remote *r, const struct proc_map *map)
{
	return core_open_mapped(r->core, map);
}

static int command_line(const struct remote *r, enum command_line how, char *to, size_t room)
{
	const struct core_process *process = core_process(r->core);

	if (room == 0)
		return -EINVAL;
	if (!core_command_line(r->core, how, to, room))
		command_line_show(to, room, process->arguments, strlen(process->arguments), how);
	return 0;
}

static uint64_t program(const struct remote *r)
{
	return core_program(r->core);
}

static void name_file(const struct remote *r, const char *path, char *to, size_t room)
{
	(void)r;
	snprintf(to, room, "%s", path);
}

static pid_t find_tid(const struct remote *r, pid_t own_pid, uint64_t pthread_self, pid_t ns_tid)
{
	const struct core_thread *thread;

	(void)own_pid;
	if (ns_tid == 0)
		return 0;
	thread = core_find_thread(r->core, pthread_self, ns_tid);
	return thread ? thread->tid : 0;
}

static uint64_t thread_start(const struct remote *r, pid_t tid)
{
	(void)r;
	(void)tid;
	return 0;
}

/* A thread that was stopped while it waited in a system call has the call's number, and that it is to be made again, or was
 * interrupted, in its registers. Whether another one ran cannot be told. */
static void open_oncpu(const struct remote *r, struct oncpu *o, pid_t tid)
{
	const struct core_thread *thread = tid > 0 ? core_find_thread(r->core, 0, tid) : NULL;
	enum oncpu_state state = ONCPU_UNKNOWN;
	uint64_t futex = 0;

#if defined(__x86_64__)
	enum { RAX = 10, RDI = 14, ORIG_RAX = 15 }; /* of struct user_regs_struct */
	/* EINTR, and what the kernel keeps to itself: ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK
	 * (include/linux/errno.h) */
	static const int interrupted[] = {4, 512, 513, 514, 516};

	for (size_t i = 0; thread && i < sizeof(interrupted) / sizeof(interrupted[0]); i++) {
		if ((int64_t)thread->registers[ORIG_RAX] < 0 || (int64_t)thread->registers[RAX] != -interrupted[i])
			continue;
		state = thread->registers[ORIG_RAX] == SYS_futex ? ONCPU_BLOCKED_FUTEX : ONCPU_BLOCKED;
		futex = thread->registers[RDI];
	}
#else
	(void)thread; /* the call's first argument, on which the GIL's waiters are told from others, is not in a core */
#endif
	oncpu_fix(o, tid, state, futex);
}

static bool registers(const struct remote *r, pid_t tid, struct unwind_regs *ret_regs)
{
	const struct core_thread *thread = tid > 0 ? core_find_thread(r->core, 0, tid) : NULL;
	struct user_regs_struct user;

	if (!thread)
		return false;
	static_assert(sizeof(user) == sizeof(thread->registers), "elf_gregset_t is its words");
	memcpy(&user, thread->registers, sizeof(user));
	regs_take(ret_regs, &user);
	return true;
}

const struct host host_core = {
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
