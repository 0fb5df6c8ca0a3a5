/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of threads that stand: `--blocking` and `--native`.
 *
 * A thread that runs is stopped while its frames and the top of its stack are copied, in one read; a blocked one is read as it is, and not again
 * until it has run: the kernel counts how often it gave the thread a CPU (/proc/PID/task/TID/schedstat, the third number:
 * Documentation/scheduler/sched-stats.rst). So what is read is one instant's and needs no proof of its calls; and the native stack can be
 * unwound from the copy, when the thread runs on already. */
#ifndef SAMPLED_SAMPLER_EXACT_H
#define SAMPLED_SAMPLER_EXACT_H

#include "sampler/stop.h"
#include "sampler/target.h"

struct exact;

/* What a target needs for it; target_adopt() was called before. `stopper` stays the caller's. 0 or -ENOMEM. */
int exact_new(struct exact **ret_exact, const struct target *target, struct stopper *stopper);
/* Gives the ids of mappings back. */
void exact_free(struct exact *exact);
void exact_thread_free(struct exact_thread *thread);
/* How many samples of it are neither taken nor lost: they wait for a stop that comes late. NULL is fine. */
uint32_t exact_thread_waiting(const struct exact_thread *thread);
/* What was kept of its latest sample is not to be used again. NULL is fine. */
void exact_thread_forget(struct exact_thread *thread);
/* Samples one thread: it is counted as taken or lost then. */
void exact_sample(struct target *target, struct thread *t, struct walker *w);
/* A stop that was given up has come: the thread has not run since it was asked for, so what it shows is what all samples since then would have.
 * True: it was one of this target's, and is released. */
bool exact_take_late(struct target *target, struct stop *stop);
/* The thread or its target has ended, or only sampling has: its samples that still wait for a stop are lost. */
void exact_end(struct target *target, struct thread *t, bool ended);
/* Where retired symbols are dropped: no stack that is kept names any. */
void exact_forget(struct exact *exact);

#endif
