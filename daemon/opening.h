/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLED_DAEMON_OPENING_H
#define SAMPLED_DAEMON_OPENING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"
#include "sampler/sampler.h"

/* As target_open(), with failures in the user's words: refusals are explained, a thread's number is told from a
 * process', and fault->why is never empty. */
int opening_try(struct target **ret_target, pid_t pid, struct fault *fault);

/* The same, but goes on for as long as patience_ns while the interpreter is still starting. */
int opening_wait(struct target **ret_target, pid_t pid, uint64_t patience_ns, struct fault *fault);

/* Whether we may stop threads at all. 0, or -EPERM with *fault filled. */
int opening_check_ptrace(struct fault *fault);
/* The same for those of one process, which only one tracer at a time may do. */
int opening_check_stops(pid_t pid, struct fault *fault);

/* The failure is one that time may mend: a Python that is starting. */
bool opening_is_early(int err);

#endif
