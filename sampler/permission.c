/* SPDX-License-Identifier: Apache-2.0 */
/* The rules are those of ptrace(2), "Ptrace access mode checking", and of the Yama module
 * (Documentation/admin-guide/LSM/Yama.rst in the kernel). */
#include "sampler/permission.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/procfs.h"

enum {
	STATUS_BYTES_MAX = 16 * 1024,
	CAP_SYS_PTRACE_BIT = 19, /* <linux/capability.h> */
};

static int read_ptrace_scope(void)
{
	struct buf text = {0};
	int scope = -1;

	if (proc_read_file("/proc/sys/kernel/yama/ptrace_scope", &text, 16) == 0 && text.bytes && text.data[0] >= '0' &&
	    text.data[0] <= '3')
		scope = text.data[0] - '0';
	buf_release(&text);
	return scope;
}

/* The value of a line of a status file ("Uid:", "CapEff:"), or NULL. The name's newlines are escaped by the kernel. */
static const char *status_line(struct buf *text, pid_t pid, const char *key)
{
	const char *at;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	text->bytes = 0;
	if (proc_read_file(path, text, STATUS_BYTES_MAX))
		return NULL;
	at = strstr(buf_text(text), key);
	return at ? at + strlen(key) : NULL;
}

void permission_gather(struct permission *ret_permission, pid_t pid)
{
	struct permission p = {.ptrace_scope = read_ptrace_scope(), .our_uid = geteuid(), .dumpable = true};
	struct buf text = {0};
	struct stat st;
	char path[64];
	const char *at = status_line(&text, getpid(), "\nCapEff:");

	if (at)
		p.have_ptrace_cap = (strtoull(at, NULL, 16) >> CAP_SYS_PTRACE_BIT) & 1;
	at = status_line(&text, pid, "\nUid:");
	if (at) {
		unsigned real, effective, saved;

		if (sscanf(at, "%u %u %u", &real, &effective, &saved) == 3) {
			p.its_uid = real;
			p.its_uid_known = true;
			p.same_uids = real == p.our_uid && effective == p.our_uid && saved == p.our_uid;
		}
	}
	buf_release(&text);
	/* The directory itself always belongs to the user; the files in it to root when the process is not dumpable. */
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	if (p.its_uid_known && stat(path, &st) == 0)
		p.dumpable = st.st_uid == p.its_uid || p.its_uid == 0;
	*ret_permission = p;
}

int permission_fault(const struct permission *p, struct fault *fault)
{
	static const char why[] = "not permitted";
	static const char cap[] = "run as root, or give sampled the capability CAP_SYS_PTRACE";
	char hint[sizeof(fault->hint)];

	if (p->ptrace_scope == 3)
		return fault_set(fault, -EPERM, "ptrace_scope is 3: no process may be attached until reboot", why);
	if (p->have_ptrace_cap)
		return fault_set(fault, -EPERM,
		                 "CAP_SYS_PTRACE is there, but not in the process' user namespace, or a security "
		                 "module forbids it",
		                 why);
	if (p->its_uid_known && !p->same_uids) {
		if (p->its_uid == p->our_uid)
			snprintf(hint, sizeof(hint), "it is a set-user-ID program: %s", cap);
		else
			snprintf(hint, sizeof(hint), "it belongs to user %u, and you are user %u: %s",
			         (unsigned)p->its_uid, (unsigned)p->our_uid, cap);
		return fault_set(fault, -EPERM, hint, why);
	}
	if (!p->dumpable)
		snprintf(hint, sizeof(hint), "the process has made itself not dumpable: %s", cap);
	else if (p->ptrace_scope == 2)
		snprintf(hint, sizeof(hint), "ptrace_scope is 2: only with CAP_SYS_PTRACE: %s", cap);
	else if (p->ptrace_scope == 1)
		snprintf(hint, sizeof(hint),
		         "ptrace_scope is 1: only a process' own ancestors may read it: %s, or use `sampled run`", cap);
	else
		snprintf(hint, sizeof(hint), "a security module or seccomp filter forbids it: %s", cap);
	return fault_set(fault, -EPERM, hint, why);
}

int permission_explain(pid_t pid, struct fault *fault)
{
	struct permission permission;

	permission_gather(&permission, pid);
	return permission_fault(&permission, fault);
}
