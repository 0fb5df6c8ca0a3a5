/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks that are taken on the CPU which the target runs on. While the sampler's thread has that CPU, the target's has not, and stands wherever it was
 * interrupted: its frames are copied as of one instant, whatever they are made of, nothing is torn, and what is seen does not depend on how long it lasts. No
 * stop is asked for and no signal sent; the target waits for its CPU as it does when any other program wakes up there. Only what wakes at once, and gives
 * the CPU back at once, may do that (turns.h). It costs the target what the tick takes, 70 to 190 µs by machine, and not what a remote copy does, less than 1 µs: so all
 * ticks of low rates are such, but of high ones no more than a hundred a second, while samples wait for stacks that are torn in copies from afar. */
#ifndef SAMPLED_SAMPLER_NEAR_H
#define SAMPLED_SAMPLER_NEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "sampler/affinity.h"
#include "sampler/thread.h"

#define NEAR_EACH_NS (10 * NS_PER_MS) /* of intervals from here on all ticks are such, with one target */

struct target;
struct walker;

struct near {
	struct affinity *affinity; /* the sampler thread's; NULL: none */
	uint32_t thread;           /* id of the one that was last seen to run; 0: none yet */
	uint64_t slices;           /* so many turns had the kernel given it when its CPU was gone to last */
	uint64_t stood_tick;       /* in which it stood while it was read; then: */
	struct copy copy;          /* its pieces in target->again */
	uint16_t status;
	uint64_t generation;       /* recheck_generation() */
	uint64_t t_tried_ns, t_there_ns;
	uint64_t learnt;            /* calls, when it was tried last */
	uint32_t soon_used, others; /* of the ticks that come sooner while calls are being learnt; ticks at the usual rate */
};

/* A target more, in the sampler's thread, which is kept off the CPUs that it is bound to but for these ticks. */
void near_join(struct target *target, struct affinity *affinity);
/* The sampler's thread has come so many nanoseconds late. Where it has to wait for its turn, as behind real-time programs, it goes nowhere for a while. */
void near_woke(struct target *target, uint64_t late_ns, uint64_t now_ns);
/* The status of a thread has become known. */
void near_note(struct target *target, const struct thread *t, uint16_t status);
/* A tick begins. Where that is wanted, goes to the CPU that the target runs on, and looks at the thread as it stands, before all else. At high rates it
 * leaves that CPU at once. False: it was not wanted, or could not be. */
bool near_begin(struct target *target, struct walker *w);
/* Whether it stood while it was read in this tick. */
bool near_stood(const struct target *target, const struct thread *t);
/* Then: what was read and walked, as it was before others were: its stack is in t->seen, in whole, the copy in target->again. */
void near_recall(struct target *target, struct thread *t, struct walker *w, uint16_t *ret_status);
/* Whether such ticks are had, so that others need not find out what they will show. */
bool near_serves(const struct target *target, uint64_t now_ns);
/* There will be none of it any more. */
void near_leave(struct target *target);

#endif
