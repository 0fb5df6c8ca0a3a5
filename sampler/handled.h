/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a thread handles an exception: sys.exc_info() would say one, in whatever function or generator it was caught. */
#ifndef SAMPLED_SAMPLER_HANDLED_H
#define SAMPLED_SAMPLER_HANDLED_H

#include "sampler/target.h"

enum handled { HANDLED_UNKNOWN, HANDLED_NONE, HANDLED_ANY };

/* By the thread's copy in `plan`. Unknown: it has gone on, read it again. Where the exception is noted is read with the next
 * copy; what is met for the first time (a generator) is read now. */
enum handled handled_ask(struct target *target, struct thread *t, const struct plan *plan);

#endif
