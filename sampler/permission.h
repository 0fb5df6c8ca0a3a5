/* SPDX-License-Identifier: Apache-2.0 */
/* Why a process may not be read, in words; for errors and for `doctor`. */
#ifndef SAMPLED_SAMPLER_PERMISSION_H
#define SAMPLED_SAMPLER_PERMISSION_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/fault.h"

/* What decides, gathered apart from the wording so that the wording can be tested. */
struct permission {
	int ptrace_scope;     /* of the Yama security module: 0 to 3; -1: not there */
	bool have_ptrace_cap; /* CAP_SYS_PTRACE is in our effective set */
	uid_t our_uid;        /* effective */
	uid_t its_uid;        /* real */
	bool its_uid_known;
	bool same_uids; /* all of its user ids are ours: what the kernel asks for */
	bool dumpable;  /* /proc/PID/maps belongs to its user, not to root */
};

void permission_gather(struct permission *ret_permission, pid_t pid);

/* Fills *fault with -EPERM and the likeliest reason. */
int permission_fault(const struct permission *permission, struct fault *fault);

/* Both, for a pid. Returns -EPERM. */
int permission_explain(pid_t pid, struct fault *fault);

#endif
