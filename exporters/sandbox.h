/* SPDX-License-Identifier: Apache-2.0 */
/* What the service's processes give up at their start: capabilities, new privileges by exec, and system calls that they
 * never make. Under systemd the unit has taken most of it already; started by hand, this is what stands between the
 * memory of other processes and a bug of ours. */
#ifndef SAMPLED_EXPORTERS_SANDBOX_H
#define SAMPLED_EXPORTERS_SANDBOX_H

#include <stdbool.h>

struct fault;

/* For the process that reads others: keeps CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, as far as it has them, and the user that
 * it runs as (root stays uid 0 without root's capabilities: it owns root's files, and no more). From then on no sockets but AF_UNIX, no
 * program can be started, no memory of others written, and ptrace(2) is refused unless may_trace (--blocking).
 *
 * Call it once, while the process has one thread: capabilities are a thread's own, and later threads inherit them. Libraries
 * that load at first use should have been used before where they need more than reading files.
 *
 * 0; -EBUSY more than one thread; -ENOPKG everything is in place but the filter of system calls, as libseccomp is not
 * installed: the caller says so and may go on; other -errno the process is not confined, and must end. *fault says why. */
int sandbox_reader(bool may_trace, struct fault *fault);

/* For the process that sends: no capability at all, no sight into other processes, no program can be started; sockets are
 * allowed. Called and returns as above. */
int sandbox_pusher(struct fault *fault);

/* For the process that names native frames from files that anyone may have made: no capability, and of system calls those that read files,
 * take memory and answer over a socket that is there. Called and returns as above. */
int sandbox_namer(struct fault *fault);

/* The first step of it alone, for the process that starts such ones: no capability, no new privileges. 0 or -errno with *fault. */
int sandbox_give_up(struct fault *fault);

#endif
