/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the interpreter in a process: which CPython it is, where its runtime lies, and what layout it has. */
#ifndef SAMPLED_SAMPLER_DISCOVER_H
#define SAMPLED_SAMPLER_DISCOVER_H

#include <sys/types.h>

#include "base/fault.h"
#include "sampler/pyabi/pyabi.h"
#include "sampler/remote.h"

struct pyproc {
	pid_t pid;    /* in our pid namespace */
	pid_t ns_pid; /* in its own, innermost one */
	pid_t parent_pid;
	uint64_t start_time;   /* clock ticks since boot: with pid, the process' identity */
	uint32_t version;      /* 0x030b02 is 3.11.2 */
	char version_text[32]; /* "3.11.2", "3.15.0rc1" */
	struct pyabi abi;      /* validated */
	raddr_t runtime;       /* _PyRuntime; 0 in 3.6 */
	raddr_t interp_head;   /* address of the pointer to the newest interpreter, all versions */
	raddr_t finalizing;    /* address of the pointer that is set as the program ends; 3.6: 0 */
	raddr_t gil_current;   /* address of the holder's pointer: 3.6 to 3.11; else 0 */
	raddr_t gil;           /* the GIL's struct, to 3.11; 3.12+ 0: each interpreter points to its own */
	raddr_t collecting;    /* address of the i32, to 3.8; else 0 */
	char found_by[256];    /* how, for `doctor`: "symbol _PyRuntime in /usr/bin/python3.11 (.dynsym)" */
	char binary[256];      /* the file that holds the interpreter, as the target sees it */
};

/* As remote_open(), and says why it failed: -ESRCH no such process, -EPERM with the likeliest reason. */
int discover_open(struct remote *ret_remote, pid_t pid, struct fault *fault);

/* Finds and validates. `r` is open on pid. 0, or -errno with *fault filled: -ESRCH gone, -EPERM not permitted, -ENOEXEC
 * not a Python (or a kernel thread), -EAGAIN a Python that is not initialised yet, -ENOTSUP its version is not supported,
 * -EPROTO its data failed validation. */
int discover(struct pyproc *ret_proc, const struct remote *r, struct fault *fault);

#endif
