/* SPDX-License-Identifier: Apache-2.0 */
/* What one walk up a data stack finds outside it (3.11+): frames of generators and coroutines, and shims, by the chain of links that leads
 * down from the current frame, or from a frame of the data stack.
 *
 * A coroutine that runs for a microsecond has often yielded before its frame is read, and its link is cleared then. But what awaits it
 * names it: on top of the awaiter's value stack lies the coroutine itself, from when it began until it ends. So of one that is
 * suspended, the frame that it last linked to is its awaiter still, if that one, suspended as well, names it. */
#ifndef SAMPLED_SAMPLER_LINKS_H
#define SAMPLED_SAMPLER_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/walk.h"

#define LINKS_MAX 128u

struct link {
	raddr_t frame, previous;
	const uint8_t *bytes; /* of the copy; NULL: a shim that is no more */
	uint32_t count;
	bool shim;
	bool yielded; /* it was suspended by the time it was read; of a shim: no more, and remembered */
};

struct links {
	struct walker *w;
	struct thread *t;
	struct link link[LINKS_MAX];
	uint32_t count;
};

/* The copy of a generator's frame, or of a shim, and how many bytes it has; it is read now where it was not with the rest. NULL: what lies
 * there is neither, or too much was read so. */
const uint8_t *links_copy(struct walker *w, struct thread *t, raddr_t frame, uint32_t *ret_bytes);

static inline void links_init(struct links *l, struct walker *w, struct thread *t)
{
	l->w = w;
	l->t = t;
	l->count = 0;
}

/* Notes what the chain from this frame on has outside the data stack, down to the frame of the data stack that it is linked to: that
 * one's address; 0: it leads nowhere, or was noted before. */
raddr_t links_follow(struct links *l, raddr_t frame);
/* The same for the whole chain of the current frame. */
void links_chase(struct links *l, raddr_t current);
/* The shim, or the generator's frame, that links back to `caller`; NULL: none. */
const struct link *links_to(const struct links *l, bool shim, raddr_t caller);
const struct link *links_find(const struct links *l, raddr_t frame);
/* Whether this frame names what `callee` belongs to as what it awaits, or iterates over. */
bool link_awaits(const struct pyabi *abi, const struct link *link, raddr_t callee);
/* Whether the caller of this frame, of which `count` bytes were copied, resumes another generator, or none: its value stack holds one on top, and this
 * one nowhere. C can have resumed it for a caller that did not give it to C, but not for one that gave it another. Since 3.14 it is stored how much of the value
 * stack is in use, before C is called; where nothing lies on top, C has not been called yet, or has returned. To 3.13 all of it counts. */
bool links_resumes_another(const struct walker *w, const struct thread *t, const struct pyframe *callee, const uint8_t *bytes, uint32_t count);
/* How much of a frame that executes this code has to be read to tell: with its value stack, unless that is very large. */
uint32_t links_caller_bytes(const struct walker *w, raddr_t caller);
/* Notes of all frames of t->seen whether that is so (struct pyframe, foreign). */
void links_note_foreign(const struct walker *w, struct thread *t);
/* Where a frame that is suspended at `offset` stood while what it awaits was running. False: it awaits nothing. */
bool awaited_at(const struct code *code, int64_t offset, int64_t *ret_offset);
/* Reads the frames of the calls in t->seen from the outermost generator's on once more, the innermost first and all in one go, and marks the calls that are
 * proven by that. */
void links_prove(struct walker *w, struct thread *t);

#endif
