/* SPDX-License-Identifier: Apache-2.0 */
/* What a coroutine links to is polled for (3.11+). One that runs for a microsecond has yielded by the time that its links were followed, and where
 * a system call takes longer than its step, nearly always. But where its frame lies is known from such a look, and it can be read again and again,
 * until it runs. */
#ifndef SAMPLED_SAMPLER_POLLING_H
#define SAMPLED_SAMPLER_POLLING_H

#include "sampler/target.h"

/* Reads the frames that had yielded whenever they were met, and remembers what those that run now are linked to. False: none does. */
bool polling_links(struct target *target, struct walker *w, struct thread *t);

#endif
