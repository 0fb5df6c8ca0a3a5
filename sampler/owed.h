/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that are owed. A coroutine that runs for a microsecond has yielded by the time its frame can be copied: at the instant of the
 * sample it is known which function ran, but not on which line, nor who awaits it. To read again until a stack is whole would favour
 * what stands longer. So the sample waits for the next whole stack of the thread with this function innermost, and is counted there,
 * with its own time and status: every function gets its share, and every stack shown is one that the thread had. A table by thread and
 * function. */
#ifndef SAMPLED_SAMPLER_OWED_H
#define SAMPLED_SAMPLER_OWED_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/target.h"

/* The function that ran, as a hash, where the walk of w->plan ended at C that led on to what was not found (w->outside); 0: unknown. */
uint64_t owed_current(struct walker *w, struct thread *t);
/* The innermost function of t->seen. */
uint64_t owed_leaf(const struct walker *w, const struct thread *t);
/* Puts samples off. False: too many are. */
bool owed_add(struct target *target, const struct owed *samples);
bool owed_any(struct target *target, const struct thread *t, uint64_t function);
/* Counts what is owed to this function at the stack in t->seen. */
void owed_pay(struct target *target, struct thread *t, uint64_t function);
/* Those of this thread (NULL: of all), or older than ten seconds, are lost as torn. */
void owed_lose(struct target *target, const struct thread *t);
void owed_lose_old(struct target *target, uint64_t now_ns);

#endif
