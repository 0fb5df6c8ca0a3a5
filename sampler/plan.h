/* SPDX-License-Identifier: Apache-2.0 */
/* What to read of a target in one go: pieces of its memory, copied into one local block by as few system calls as the
 * kernel allows. Built anew for every read, out of arrays that only grow. */
#ifndef SAMPLED_SAMPLER_PLAN_H
#define SAMPLED_SAMPLER_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/remote.h"

struct piece {
	raddr_t from;
	uint32_t bytes;
	uint32_t at; /* in plan.memory */
	bool ok;     /* was read whole */
};

struct segment { /* pieces that lie close together and are read as one: a segment costs what 4 KiB of bytes cost */
	raddr_t from;
	uint32_t bytes;
	uint32_t at;
	uint32_t first; /* index of its first piece; the others follow */
};

struct plan {
	struct piece *pieces;
	uint32_t count;
	struct segment *segments; /* no more than pieces */
	uint32_t segment_count;
	uint32_t closed; /* pieces are not added to the segments before this one (plan_begin_look()) */
	uint32_t room; /* of each of these arrays */
	uint8_t *memory; /* aligned to REMOTE_LINE; a segment lies in its lines as its source does */
	uint32_t used_bytes, room_bytes;
	struct iovec *local, *from; /* a segment each */
	uint64_t usual_ns;          /* what a read of it takes, on the average of late */
	uint64_t took_ns;           /* what the latest read took */
	bool slow;                  /* the latest one took much longer, as one does that was interrupted */
	uint64_t usual_piece_ns;    /* the same for a piece of plan_put() */
	bool slow_fetch;
	/* Cumulative, for the sampling facts. */
	uint64_t reads, read_segments, read_bytes, read_ns;
};

#define PLAN_FULL    UINT32_MAX
#define PLAN_PADDING REMOTE_LINE /* bytes: a segment takes up to so many more than are read */
#define PLAN_PUT_GAP 128u /* bytes between two pieces of plan_put() that are read along */

enum plan_put {
	PLAN_SINGLY,   /* a segment for each piece, in their order: copies of instants that follow one another */
	PLAN_TOGETHER, /* one for those that follow one another in the list, and lie together */
};

void plan_release(struct plan *p);
/* Gives its memory back; what it counted stays. */
void plan_slim(struct plan *p);

static inline void plan_clear(struct plan *p)
{
	p->count = p->segment_count = p->closed = 0;
	p->used_bytes = 0;
}

/* Adds a piece; its index, or PLAN_FULL without memory or past the bound of 64 MiB. Where it lies at or shortly behind the piece
 * added before it, the two are read as one segment. */
uint32_t plan_add(struct plan *p, raddr_t from, uint32_t bytes);

/* What is added from here on is a copy of its own, read behind what was added before, also where it is of the same memory. */
static inline void plan_begin_look(struct plan *p)
{
	p->closed = p->segment_count;
}

/* Reads all pieces and notes which came. 0, or -ESRCH, -EPERM when nothing can be read any more. */
int plan_read(struct plan *p, const struct remote *r);

/* The same; the clock was read just before, and is not read again: that takes as long as a tenth of a short read. usual_ns: what reads of
 * this kind take, kept by the caller; a plan's own kind is compared with the plan's own. */
int plan_read_from(struct plan *p, const struct remote *r, uint64_t started_ns, uint64_t *usual_ns);
/* After plan_read(): room for so many bytes. False: out of memory. */
bool plan_reserve(struct plan *p, uint32_t bytes);
/* After that: adds these pieces, and reads them now, in one go. The index of the first, or PLAN_FULL where there is no room; *ret_read: how
 * many segments were read, or -errno. */
uint32_t plan_put(struct plan *p, const struct remote *r, const struct iovec *from, uint32_t count, enum plan_put put, int *ret_read);

/* A piece's bytes, or NULL when it was not read. Valid until the next plan_add() or plan_reserve(). */
static inline const uint8_t *plan_bytes(const struct plan *p, uint32_t index)
{
	return index < p->count && p->pieces[index].ok ? p->memory + p->pieces[index].at : NULL;
}

#endif
