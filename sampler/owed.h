/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that are owed. A coroutine that runs for a microsecond has yielded by the time its frame can be copied: at the instant of the
 * sample it is known which function ran, but not on which line, nor who awaits it. To read again until a stack is whole would favour
 * what stands longer. So the sample waits for the next whole stack of the thread with this function innermost, and is counted there,
 * with its own time and status: every function gets its share, and every stack shown is one that the thread had. Where no such stack is met in
 * time, one that had the function further out stands in for it, up to there. A table by thread and function. */
#ifndef SAMPLED_SAMPLER_OWED_H
#define SAMPLED_SAMPLER_OWED_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/handled.h"
#include "sampler/target.h"

struct ran { /* functions, as hashes of what their code says; 0: not known */
	uint64_t function;
	uint64_t context; /* what else is told of it: where it lay on the data stack, and called by which generator; or, where it is a generator's, what had resumed it */
	enum handled handled; /* as the function ran, and not when its stack is met */
};

/* What the latest look tells of what ran; of the function itself only where the look `failed`. */
struct ran owed_told(struct walker *w, struct thread *t, bool failed);
/* The innermost function of t->seen. */
uint64_t owed_leaf(const struct walker *w, const struct thread *t);
/* Puts samples off. NULL: too many are. Valid until the next change. */
struct owed *owed_add(struct target *target, const struct owed *samples);
bool owed_any(struct target *target, const struct thread *t, uint64_t function, uint64_t now_ns);
/* Whether anything of this thread is owed. */
bool owed_by(const struct target *target, const struct thread *t);
/* Puts this tick's sample off. -EINPROGRESS: done; 0: it is to be counted at the stack in t->seen (w->whole), of a moment later, since nothing can be
 * kept that would stand in if no better one is met; else -EAGAIN. */
int owed_put_off(struct target *target, struct thread *t, const struct walker *w, struct ran ran, uint64_t weight_ns, uint16_t *ret_status);
/* Counts what is owed to this function at the stack in t->seen, of this status. */
void owed_pay(struct target *target, struct thread *t, uint64_t function, uint16_t status, uint64_t now_ns);
/* Keeps of the whole stack in t->seen what may have to stand in for one that is not met: up to each function that is owed samples. */
void owed_note_through(struct target *target, const struct thread *t);
/* Code objects were retired from the cache: what is kept of stacks that name them goes. */
void owed_forget(struct target *target);
/* Those of this thread (NULL: of all), or older than ten seconds, are counted at what is kept of a stack that had their function, or lost as torn. */
void owed_lose(struct target *target, const struct thread *t);
void owed_lose_old(struct target *target, uint64_t now_ns);

#endif
