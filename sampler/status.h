/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread is doing: GIL, waiting, running, idle, collecting. */
#ifndef SAMPLED_SAMPLER_STATUS_H
#define SAMPLED_SAMPLER_STATUS_H

#include <stdint.h>

#include "sampler/target.h"

/* The status bits of a thread whose copy is in w->plan and whose stack is in t->seen. 0, or -ESRCH: the system thread is
 * gone, and its thread state with it, or soon. */
int status_of(struct target *target, struct thread *t, const struct walker *w, uint16_t *ret_status);

#endif
