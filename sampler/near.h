/* SPDX-License-Identifier: Apache-2.0 */
/* The standing reader: ticks that are taken on the CPU which the holder of the GIL runs on. While the sampler's thread has that CPU, the target's has not, and
 * stands wherever it was interrupted: its frames are copied as of one instant, whatever they are made of, nothing is torn, and what is seen does not depend on
 * how long it lasts. No stop is asked for and no signal sent; the target waits for its CPU as it does when any other program wakes up there, for 20 to 100 µs.
 * Only a thread that wakes at once, and gives the CPU back at once, may do that (turns.h). All ticks are such as far as the budget of each CPU goes (visits.h). */
#ifndef SAMPLED_SAMPLER_NEAR_H
#define SAMPLED_SAMPLER_NEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "sampler/affinity.h"
#include "sampler/thread.h"

struct target;
struct walker;

struct near {
	struct affinity *affinity; /* the sampler thread's; NULL: none */
	uint32_t thread;           /* id of the one that is visited, or was last seen to run; 0: none yet */
	uint64_t slices;           /* so many turns had the kernel given it when its CPU was gone to last */
	uint64_t slept_tick;       /* in which it was not to be met, since it slept */
	uint64_t stood_tick;       /* in which it stood while it was read; then: */
	struct copy copy;          /* its pieces in target->again */
	uint16_t status;
	uint64_t generation;       /* recheck_generation() */
	uint64_t t_there_ns;       /* the latest visit began */
	bool is_there;             /* it goes on: the rest of the tick is done there, too */
};

/* A target more, in the sampler's thread, which is kept off the CPUs that it is bound to but for these ticks. */
void near_join(struct target *target, struct affinity *affinity);
/* The sampler's thread has come so many nanoseconds late. Where it has to wait for its turn, as behind real-time programs, it keeps away from that CPU for a while. */
void near_woke(struct target *target, uint64_t late_ns, uint64_t now_ns);
/* The status of a thread has become known. */
void near_note(struct target *target, const struct thread *t, uint16_t status);
/* Who holds a GIL now, as the target's memory says; with several, a different one each tick. NULL: nobody, or it is not to be told. */
struct thread *near_find_holder(const struct target *target);
/* A tick begins. Goes to the CPU on which the holder of the GIL runs, if the budget allows, and looks at that thread as it stands, before all else. Leaves
 * that CPU at once where the budget is short. False: it was not there. */
bool near_begin(struct target *target, struct walker *w);
/* The tick ends: what it took of the target's time is counted. */
void near_end(struct target *target);
/* Whether it stood while it was read in this tick. */
bool near_stood(const struct target *target, const struct thread *t);
/* Whether it slept when this tick began and has not run since, so that whatever was read of it meanwhile is of one instant. Asks the kernel. */
bool near_slept(const struct target *target, struct thread *t);
/* Where it stood: what was read and walked, as it was before others were: its stack is in t->seen, in whole, the copy in target->again. */
void near_recall(struct target *target, struct thread *t, struct walker *w, uint16_t *ret_status);
/* A thread that has not had the GIL since the tick began stands, too, wherever it is: it is read as such, into t->seen. False: it may have moved. */
bool near_read_waiting(struct target *target, struct thread *t, struct walker *w, uint16_t *ret_status);
/* There will be none of it any more. */
void near_leave(struct target *target);

#endif
