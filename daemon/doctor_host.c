/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "daemon/doctor.h"
#include "sampler/permission.h"
#include "sampler/procfs.h"
#include "sampler/pyabi/pyabi.h"
#include "sampler/turns.h"

/* What each capability is for, so that its absence has a meaning. */
static const struct {
	int number;
	const char *name, *cost;
} capabilities[] = {
	{CAP_SYS_PTRACE, "CAP_SYS_PTRACE",
         "without it only programs of the same user can be read, and what ptrace_scope allows; use sudo"},
	{CAP_SYS_NICE, "CAP_SYS_NICE", "without it --realtime is refused, and ticks come late on a busy machine"},
	{CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE",
         "without it, or CAP_SYS_ADMIN, a Python whose file was deleted or replaced can only be read through "
         "/proc/PID/exe"},
	{CAP_SETUID, "CAP_SETUID", "without it, and CAP_SETGID, source lines of other users' programs are not shown"},
};

static void check_kernel(struct doctor *d)
{
	struct utsname name;
	struct timespec resolution;

	if (uname(&name) == 0)
		doctor_line(d, VERDICT_OK, "", "kernel: %s %s, %s", name.sysname, name.release, name.machine);
	if (clock_getres(CLOCK_MONOTONIC, &resolution) != 0 || resolution.tv_sec || resolution.tv_nsec > 1000)
		doctor_line(d, VERDICT_WARN, "a kernel with CONFIG_HIGH_RES_TIMERS",
		            "timers are coarse: high rates are not reached");
}

/* On ourselves, which needs no permission: is the call there, and does no filter stand before it? */
static void check_reading(struct doctor *d)
{
	char from = 'x', to = 0;
	struct iovec local = {.iov_base = &to, .iov_len = 1}, remote = {.iov_base = &from, .iov_len = 1};

	if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1)
		doctor_line(d, VERDICT_OK, "", "process_vm_readv works");
	else
		doctor_line(d, VERDICT_WARN,
		            "a kernel with CONFIG_CROSS_MEMORY_ATTACH, a seccomp filter that lets it pass "
		            "(Kubernetes: securityContext.seccompProfile; Docker: --security-opt seccomp=FILE)",
		            "process_vm_readv does not work (%s): /proc/PID/mem is read instead, slower",
		            strerror(errno));
}

/* In a thread of its own: what is asked for stays asked for. */
static void *try_turns(void *ret_at_once)
{
	*(bool *)ret_at_once = turns_begin(false);
	return NULL;
}

static void check_visits(struct doctor *d)
{
	pthread_t thread;
	bool at_once = false;

	if (pthread_create(&thread, NULL, try_turns, &at_once) == 0)
		pthread_join(thread, NULL);
	if (at_once)
		doctor_line(d, VERDICT_OK, "", "exact stacks of running threads, without a stop: to be had");
	else
		doctor_line(d, VERDICT_WARN, "Linux 6.12 or later; --realtime where it is permitted (CAP_SYS_NICE); or --blocking",
		            "exact stacks of running threads, without a stop: not to be had");
}

static uint64_t effective_capabilities(void)
{
	struct buf status = {0};
	const char *line = NULL;
	uint64_t effective = 0;

	if (proc_read_file("/proc/self/status", &status, 64 * 1024) == 0)
		line = strstr(buf_text(&status), "\nCapEff:");
	if (line)
		effective = strtoull(line + strlen("\nCapEff:"), NULL, 16);
	buf_release(&status);
	return effective;
}

static void check_capabilities(struct doctor *d)
{
	uint64_t effective = effective_capabilities();

	for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++) {
		uint64_t enough = UINT64_C(1) << capabilities[i].number;

		if (capabilities[i].number == CAP_CHECKPOINT_RESTORE)
			enough |= UINT64_C(1) << CAP_SYS_ADMIN;
		if (effective & enough)
			doctor_line(d, VERDICT_OK, "", "capability %s", capabilities[i].name);
		else
			doctor_line(d, VERDICT_WARN, capabilities[i].cost, "no capability %s", capabilities[i].name);
	}
}

static void check_ptrace_scope(struct doctor *d)
{
	struct permission permission;

	permission_gather(&permission, getpid());
	switch (permission.ptrace_scope) {
	case -1:
		doctor_line(d, VERDICT_OK, "", "ptrace_scope: not there, nothing beyond the kernel's own rules");
		break;
	case 0:
		doctor_line(d, VERDICT_OK, "", "ptrace_scope is 0: programs of the same user can be read");
		break;
	case 1:
	case 2:
		doctor_line(
			d, permission.have_ptrace_cap ? VERDICT_OK : VERDICT_WARN,
			permission.have_ptrace_cap ? ""
						   : "use sudo, `sampled run`, or sysctl kernel.yama.ptrace_scope=0",
			permission.ptrace_scope == 1 ? "ptrace_scope is 1: only own children, or with CAP_SYS_PTRACE"
						     : "ptrace_scope is 2: only with CAP_SYS_PTRACE");
		break;
	default:
		doctor_line(d, VERDICT_FAIL, "set kernel.yama.ptrace_scope at boot, and reboot",
		            "ptrace_scope is 3: no process may be attached until reboot");
		break;
	}
}

/* Inode numbers of the first namespaces are fixed: include/linux/proc_ns.h. */
static void check_own_namespaces(struct doctor *d)
{
	static const struct {
		const char *path, *finding, *cost;
		ino_t first;
	} namespaces[] = {
		{"/proc/self/ns/pid", "in a pid namespace of its own", "only processes of this container can be seen",
	         0xEFFFFFFC},
		{"/proc/self/ns/user", "in a user namespace of its own", "only processes of this container can be read",
	         0xEFFFFFFD},
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++) {
		struct stat st;

		if (stat(namespaces[i].path, &st) == 0 && st.st_ino != namespaces[i].first) {
			doctor_line(d, VERDICT_WARN, namespaces[i].cost, "sampled runs %s", namespaces[i].finding);
			any = true;
		}
	}
	if (!any)
		doctor_line(d, VERDICT_OK, "", "sampled runs in the host's pid and user namespaces");
}

void doctor_namespaces(struct doctor *d, pid_t pid)
{
	static const char *const names[] = {"pid", "mnt", "user"};
	struct stat own_root, its_root;
	struct buf differ = {0};
	char path[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct stat own, its;

		snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		if (stat(path, &own) != 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, names[i]);
		if (stat(path, &its) == 0 && its.st_ino != own.st_ino)
			buf_printf(&differ, "%s%s", differ.bytes ? ", " : "", names[i]);
	}
	snprintf(path, sizeof(path), "/proc/%d/root/", (int)pid);
	if (stat("/", &own_root) == 0 && stat(path, &its_root) == 0 &&
	    (own_root.st_dev != its_root.st_dev || own_root.st_ino != its_root.st_ino))
		buf_printf(&differ, "%sroot directory", differ.bytes ? ", " : "");
	if (differ.bytes)
		doctor_line(d, VERDICT_OK, "its files are found through /proc/PID/root, its threads through NSpid",
		            "it has its own %s", buf_text(&differ));
	else
		doctor_line(d, VERDICT_OK, "", "it shares our namespaces and root directory");
	buf_release(&differ);
}

void doctor_cpu_data(struct doctor *d, pid_t pid, pid_t tid)
{
	struct buf text = {0};
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	err = proc_read_file(path, &text, 4096);
	if (!err) {
		doctor_line(d, VERDICT_OK, "", "on-CPU data: from /proc/PID/task/TID/syscall");
	} else {
		struct proc_stat stat;

		if (proc_stat_read(&stat, pid, tid) == 0)
			doctor_line(d, VERDICT_WARN,
			            "read from .../stat instead, slower; CAP_SYS_PTRACE or CONFIG_HAVE_ARCH_TRACEHOOK "
			            "would help",
			            "on-CPU data: /proc/PID/task/TID/syscall cannot be read: %s", strerror(-err));
		else
			doctor_line(d, VERDICT_WARN, "threads are shown as `unknown`",
			            "on-CPU data: the kernel does not tell");
	}
	buf_release(&text);
}

void doctor_host(struct doctor *d)
{
	check_kernel(d);
	check_reading(d);
	check_visits(d);
	check_capabilities(d);
	check_ptrace_scope(d);
	check_own_namespaces(d);
	doctor_container(d);
	doctor_cpu_data(d, getpid(), getpid());
	doctor_host_native(d);
	doctor_line(d, VERDICT_OK, "", "supported: Python %s", pyabi_supported());
}
