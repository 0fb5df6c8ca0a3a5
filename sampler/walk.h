/* SPDX-License-Identifier: Apache-2.0 */
/* From a thread's copied pieces to its stack, and the proof that it is one. */
#ifndef SAMPLED_SAMPLER_WALK_H
#define SAMPLED_SAMPLER_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/codes.h"
#include "sampler/edges.h"
#include "sampler/plan.h"
#include "sampler/pyabi/pyabi.h"
#include "sampler/record.h"
#include "sampler/remote.h"
#include "sampler/thread.h"

struct walker {
	const struct pyabi *abi;
	const struct remote *remote;
	struct codes *codes;
	struct edges *edges; /* the calls that are known */
	struct plan *plan; /* that holds the copy */
	uint64_t tick;
	uint64_t now_ns;
	bool exhausted; /* no more code can be decoded in this tick: reading again is in vain */
	raddr_t doubted; /* code that an instruction pointer does not lie in: what is cached may be of an object before it. 0: none */
	bool moves;           /* thread_moves() of the thread whose calls are asked about */
	enum retry_cause why; /* the thread has to be read again */
	bool chase;           /* the chain of the current frame leads to what else would not be found */
	bool refuted; /* the chain is none of a stack: by what its frames say of themselves, they did not call one another */
	bool grew;     /* the guess has grown: reading again is worth while */
	bool released; /* … and runs again: what is not in the copy is not to be had, and would be of another moment */
	bool stood;    /* the sample is of a thread that stood while it was read, and is exact */
	bool stands;   /* the thread was blocked or stopped while it was read: the current frame is what runs */
	uint32_t
		entries; /* of the latest chain: runs of the interpreter's loop that it takes, those without a visible frame, too */
};

#define STEADY_OF 8 /* of so many looks one reads a shim that was always met on the same frame */

/* Whether walk_up() does not read such shims in this look. To 3.13 a frame that C called does not say that it was left, and they are always read. */
static inline bool walk_passes_steady(const struct walker *w)
{
	return w->abi->call_mark != CALL_MARK_STACKTOP && w->tick % STEADY_OF != 0;
}

/* The copy of a frame wherever the thread's pieces have it, or NULL; hint: where in the guess to look first. *ret_bytes: how many
 * there are from its beginning on. */
const uint8_t *walk_copy(const struct walker *w, const struct thread *t, raddr_t frame, uint32_t hint,
                         uint32_t *ret_bytes);

/* The frame that the thread state names as current, from the copy. 0: none. -EAGAIN when it was not read. */
int walk_current(struct walker *w, struct thread *t, raddr_t *ret_current);

/* To 3.12: the run of the interpreter's loop that the thread is in (tstate.cframe), from the copy. 0: it is not told. */
raddr_t walk_loop(const struct walker *w, const struct thread *t);
/* The same where its current frame was copied, and is this one; else 0. */
raddr_t walk_loop_running(const struct walker *w, const struct thread *t, raddr_t frame);

/* The data stack, outermost frame first (3.11+): into t->seen. *ret_leaf is the innermost frame's address (0: empty
 * stack). 0, -EAGAIN (torn, or something outside the guess, which now belongs to it), -EPROTO (makes no sense). */
int walk_up(struct walker *w, struct thread *t, raddr_t current, raddr_t *ret_leaf);

/* The chain of previous pointers, from the current frame down, into t->seen: every version. What lies outside the copy is
 * followed in the target's memory, so that all of it belongs to the guess from then on; such a stack is not accepted.
 * 0, -EAGAIN (w->refuted: it cannot be one, by what its frames say of themselves), -EPROTO or -ENOMEM. */
int walk_chain(struct walker *w, struct thread *t, raddr_t current);

/* So many of the outermost frames are the same and stand at the same instructions; whether the next one is the same, too. */
uint32_t stack_alike(const struct pystack *a, const struct pystack *b, bool *ret_same_callee);

#endif
