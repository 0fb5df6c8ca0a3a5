/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several functions ran. Where the thread state's words name an instant (running.h), functions look alike whose frames begin and end at the same
 * places; and when frames are copied, 0.4 µs later, another one may lie there. What the stacks showed that were met whole is remembered (ends.h), with
 * the calls that led there: what ended last is what its caller has called last, of what it has passed by now. Where that holds for several, the copies, each of
 * which is of one instant, too, tell how often each is met; so often each is told in the end. What is always still there when it is copied is told then, and
 * only then: how long it runs is too long to be counted on, as that of a thread that waits for the GIL in one of them. */
#ifndef SAMPLED_SAMPLER_LOOKALIKE_H
#define SAMPLED_SAMPLER_LOOKALIKE_H

#include "sampler/running.h"

/* What the thread state says of its instant. */
struct instant {
	raddr_t current, end; /* as in struct end */
	raddr_t loop; /* to 3.12: as in struct end */
	raddr_t generator, generator_code; /* the innermost generator's frame, 0: there is none; and its code, 0: not known */
};

/* Remembers where the innermost frames of the whole stack in t->seen end, and what had called them. `proven`: its calls are known; else its generators may
 * not stand where it shows them. */
void lookalike_learn(const struct walker *w, const struct thread *t, bool proven);

/* The same for a look at an instant, before it is told who ran then. In some of them it is counted which lay there when the frames were copied. */
void lookalike_count(const struct walker *w, const struct thread *t);

/* What is remembered to end there, and at the current frame at all; code 0: nothing. */
struct running lookalike_find(const struct walker *w, const struct thread *t, const struct instant *instant);
struct running lookalike_at(const struct walker *w, const struct thread *t, const struct instant *instant);
/* What lies there now looks like what ran: it, or what looks alike and ended since. */
struct running lookalike_other(const struct walker *w, const struct thread *t, const struct instant *instant, struct running now);

/* To 3.12: a function that C called has its frame a while before and behind its run of the interpreter's loop, for which its caller's is still, or again, the
 * current one; CPython, too, counts that as the caller's time. It; or what ends where it begins, and is known to run in the loop of that instant, where it is not. */
struct running lookalike_in_loop(const struct walker *w, const struct thread *t, const struct instant *instant, struct running now);

#endif
