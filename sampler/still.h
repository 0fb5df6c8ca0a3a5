/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that cannot have moved since they were last read.
 *
 * Only the holder of the GIL changes Python frames. The GIL counts its changes of hands (switch_number in struct
 * _gil_runtime_state, Include/internal/pycore_gil.h; raised in take_gil(), Python/ceval_gil.c, before the new holder goes on, where
 * it is not the last one again). So as long as that count stands, every thread but the last holder stands as well, and need not be
 * read: of a process of 500 threads the frames of one are copied, and of two where the count was raised by one. Such a thread is still; its samples go on without being taken one
 * by one. What the kernel says of it is asked more seldom the longer it stays the same. */
#ifndef SAMPLED_SAMPLER_STILL_H
#define SAMPLED_SAMPLER_STILL_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/target.h"

/* Lists those that are not still, where that has changed. 0, or -ENOMEM. */
int still_list_awake(struct target *target);
/* Adds the GILs to what is read, where there is a thread that could be still. */
void still_plan(struct target *target);
/* After that was read: wakes the threads that may have moved, `all`: if any may. True: there are such, which have to be read as well. */
bool still_wake_moved(struct target *target, uint64_t now_ns, bool all);
/* Whether it is worth asking whether a thread stands: it did not have its GIL when the GILs were read in this tick. */
bool still_may_stand(const struct target *target, const struct thread *t);
/* Whether a thread has stood since the GILs were read in this tick; asks the target. */
bool still_proved(const struct target *target, const struct thread *t);
/* A tick of so much time passes for all that are still: `most_ns` of it can be sampled. */
void still_pass(struct target *target, uint64_t now_ns, uint64_t most_ns);
/* At the end of a tick: those of the threads read in it that stand from now on become still. */
void still_settle(struct target *target);
/* Looks at a few of them: their status, and runs that are due. */
void still_look(struct target *target, uint64_t now_ns);
/* Adds the samples that passed to the thread's run. */
void still_account(struct target *target, struct thread *t);
/* All are to be read again in the next tick. */
void still_wake_all(struct target *target);

/* A whole process that has not run since it was read (its CPU clock, see seat.h) is parked: all its threads are still then, and
 * their samples are credited, without a read or a question to the kernel. */
/* Whether the latest tick left nothing open, so that it may be parked. */
bool still_can_park(const struct target *target);
void still_park(struct target *target);
/* So many ticks passed since then, or since the last such account, the latest at t_ns with the deadline base_ns; ran_ns of CPU time proved to have been used
 * meanwhile, which is not sampled. */
void still_credit(struct target *target, uint64_t ticks, uint64_t t_ns, uint64_t base_ns, uint64_t ran_ns);
/* After still_credit(): its threads are read again, but for those that the GIL proves still. */
void still_unpark(struct target *target);

#endif
