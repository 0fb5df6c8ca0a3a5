/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread's stack has outside the data stack (3.11+): frames of generators and coroutines, which lie in their objects, and the
 * shims through which C called Python. Those that most ticks meet are copied with the rest; another one is read when the walk comes to it,
 * together with those that it is remembered to be linked to. */
#ifndef SAMPLED_SAMPLER_APART_H
#define SAMPLED_SAMPLER_APART_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/plan.h"

#define APART_FRAMES   64u
#define APART_FETCHES  64u /* pieces that one look reads by themselves */
#define APART_PROVEN   16u
#define APART_BYTES    192u /* of a frame whose size is not known */
#define APART_FRAME_MAX 1024u /* of one that is larger, so much is read: what it awaits lies at the end of what it uses */
#define APART_NO_FRAME 256u
#define APART_LINKS    1024u

struct apart_frame {
	raddr_t frame;
	uint32_t bytes;  /* of it, with its value stack */
	uint32_t credit; /* grows with each tick that met it, falls with each other tick */
	uint64_t used_tick;
};

struct apart_none { /* what was read and was no frame */
	raddr_t addr;
	uint64_t tick;
};

struct apart_link { /* what a frame last linked back to */
	raddr_t frame, previous;
	uint32_t bytes; /* of the frame */
	bool shim;      /* it is one */
	uint8_t steady; /* so many readings in a row found it linked so; up to what apart_is_steady() asks for */
};

struct apart {
	uint32_t doubts;                         /* in so many looks more it is looked for what proves their calls */
	struct apart_frame frames[APART_FRAMES]; /* by address */
	uint32_t count;
	struct apart_link links[APART_LINKS]; /* by address; the latest few of a hash */
	struct apart_none none[APART_NO_FRAME]; /* by address; a later one takes the place of an earlier one */
};

/* Where in a plan the copies lie. */
struct apart_copy {
	uint32_t frames, frame_count;    /* pieces, by address */
	uint32_t fetched, fetched_count; /* pieces, a frame each */
	uint32_t proven_count;           /* calls that were seen while they were read (links_prove()) */
};

/* Whether the stack has anything outside the data stack now, or had lately. */
static inline bool apart_any(const struct apart *apart)
{
	return apart && apart->count > 0;
}

/* Whether this tick reads what proves the calls of what lies outside the data stack (links_prove()). */
bool apart_in_doubt(const struct apart *apart, uint64_t tick);
/* Adds the frames that many ticks meet, or that this one met, by address.
 * `apart` may be NULL. False: out of memory. */
bool apart_plan(const struct apart *apart, struct plan *plan, uint64_t tick, struct apart_copy *ret_copy);
/* The bytes at addr in the copies, or NULL; *ret_bytes: how many. What was fetched is newer. */
const uint8_t *apart_find(const struct apart_copy *copy, const struct plan *plan, raddr_t addr, uint32_t *ret_bytes);
/* Reads some more frames, in one go, and adds them to the copies. 0 or -errno; -ENOSPC: too many in one look. */
int apart_fetch(struct apart_copy *copy, struct plan *plan, const struct remote *remote, const struct iovec *frames,
                uint32_t count, enum plan_put put);
/* Notes that the stack has a frame there. */
void apart_note(struct apart *apart, raddr_t frame, uint32_t bytes, uint64_t tick);
/* A tick is over. */
void apart_age(struct apart *apart, uint64_t tick);
/* Remembers what a frame links back to; and what is remembered, or zeros. */
void apart_note_link(struct apart *apart, struct apart_link link);
struct apart_link apart_link(const struct apart *apart, raddr_t frame);
/* Whether a shim is known to lie there, and the latest readings all found it on top of this frame. */
bool apart_is_steady(const struct apart *apart, raddr_t shim, raddr_t caller);
/* Remembers for some ticks that what lies there is no frame; forgets it; and whether that is remembered. */
void apart_note_none(struct apart *apart, raddr_t addr, uint64_t tick);
void apart_forget_none(struct apart *apart, raddr_t addr);
bool apart_is_none(const struct apart *apart, raddr_t addr, uint64_t tick);

#endif
