/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of `sampled doctor`: doctor.c has the command and the process, doctor_host.c the machine, doctor_container.c the container around us. */
#ifndef SAMPLED_DAEMON_DOCTOR_H
#define SAMPLED_DAEMON_DOCTOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "sampler/sampler.h"

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL };

struct doctor {
	bool color;
	bool failed; /* a finding was VERDICT_FAIL */
	int err;     /* the first -errno of printing */
};

/* Prints one finding; mend: what helps, or what it costs, "" or NULL for none. */
__attribute__((format(printf, 4, 5))) void doctor_line(struct doctor *doctor, enum verdict verdict, const char *mend,
                                                       const char *finding, ...);

/* Everything about the host and ourselves. */
void doctor_host(struct doctor *doctor);
/* How a process' namespaces and root directory differ from ours. */
void doctor_namespaces(struct doctor *doctor, pid_t pid);
/* Whether the kernel tells what a thread does. */
void doctor_cpu_data(struct doctor *doctor, pid_t pid, pid_t tid);
/* What the container that we run in lacks, in its runtime's words; nothing outside of one. */
void doctor_container(struct doctor *doctor);
/* Whether threads can be stopped and native stacks be had: on this host; of a process. */
void doctor_host_native(struct doctor *doctor);
void doctor_native(struct doctor *doctor, struct target *target);

#endif
