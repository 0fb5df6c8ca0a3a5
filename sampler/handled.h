/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a thread handles an exception: sys.exc_info() would say one, in whatever function or generator it was caught. */
#ifndef SAMPLED_SAMPLER_HANDLED_H
#define SAMPLED_SAMPLER_HANDLED_H

#include "sampler/target.h"

/* 1 or 0, by the thread's copy in `plan`; -EAGAIN: it has gone on, read it again. Where the exception is noted is read with the next
 * copy; what is met for the first time (a generator) is read now. */
int handled_any(struct target *target, struct thread *t, const struct plan *plan);

#endif
