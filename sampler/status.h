/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread is doing: GIL, waiting, running, idle, collecting. */
#ifndef SAMPLED_SAMPLER_STATUS_H
#define SAMPLED_SAMPLER_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/target.h"

/* The status bits of a thread whose copy is in w->plan and whose stack is in t->seen. 0, or -ESRCH: the system thread is
 * gone, and its thread state with it, or soon. */
int status_of(struct target *target, struct thread *t, const struct walker *w, uint16_t *ret_status);

/* The system thread is gone: the next look at the list takes whoever has its thread state for another thread. */
void status_gone(struct target *target, struct thread *t);

/* The status of a still thread, asked of the kernel when that is due: the longer it has not changed, the more seldom, but soon where a
 * thread has begun or ended to wait for the GIL. False: the system thread is gone. */
bool status_of_still(struct target *target, struct thread *t, uint64_t now_ns, uint16_t *ret_status);

/* Whether the kernel will be asked about the thread at the next sample. */
bool status_is_due(const struct thread *t, uint64_t now_ns);

#endif
