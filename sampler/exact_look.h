/* SPDX-License-Identifier: Apache-2.0 */
/* One look at a thread that stands: everything of it in one read. For exact.c and near.c alone. */
#ifndef SAMPLED_SAMPLER_EXACT_LOOK_H
#define SAMPLED_SAMPLER_EXACT_LOOK_H

#include "sampler/exact.h"
#include "sampler/merge.h"
#include "sampler/unwind.h"

struct exact {
	struct stopper *stopper;
	struct modules *modules; /* NULL: Python frames alone */
	struct unwinder *unwinder;
	struct unwound unwound; /* frames: owned */
	struct pystack merged;
};

struct exact_thread {
	uint64_t slices;  /* times it was given a CPU, when it was last read */
	bool stood;       /* it was blocked then, and its sample was taken */
	uint16_t status;  /* of that sample */
	enum merged merged;
	uint32_t stack_bytes;  /* how much of its stack the next sample copies */
	raddr_t stack_end;     /* beyond it nothing could be read; 0: not met yet */
	struct pystack last;   /* the latest sample, of both kinds */
	struct sample waiting; /* samples for which a stop is to come late; count 0: none */
};

/* One look at a thread. */
struct look {
	struct unwind_regs regs;
	bool has_regs;
	uint32_t stack_piece, stack_pieces; /* in the plan */
};

/* What is kept of this thread, made at its first sample; freed with exact_thread_free(). NULL: out of memory. */
struct exact_thread *exact_of(const struct target *target, struct thread *t);
/* Of a running thread, which is stopped for it. `again`: a look failed, so that it stands until all was read. 0, -EAGAIN (not all was read, or it stood in the
 * middle of a change), or as stop_thread(). */
int exact_look_at_running(struct target *target, struct thread *t, struct walker *w, struct look *look, bool again);
/* Of a blocked one: -EAGAIN where it has run meanwhile. */
int exact_look_at_blocked(struct target *target, struct thread *t, struct walker *w, struct look *look);
/* Of one in a core. */
int exact_look_at_core(struct target *target, struct thread *t, struct walker *w, struct look *look);
/* Of one that stands anyway. */
int exact_look_at_standing(struct target *target, struct thread *t, struct walker *w, struct look *look);
/* Its native stack, from the copy; NULL: not to be had. Valid until the next one. */
struct unwound *exact_unwind(struct target *target, struct thread *t, const struct look *look);

#endif
