/* SPDX-License-Identifier: Apache-2.0 */
/* One Python thread of a target: where its frames were last seen, the run of identical samples in progress, and what
 * the consumer already has of its stack. The sampler thread's alone. */
#ifndef SAMPLED_SAMPLER_THREAD_H
#define SAMPLED_SAMPLER_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/frames.h"
#include "sampler/oncpu.h"
#include "sampler/plan.h"
#include "sampler/record.h"

#define CHUNKS_MAX 2048u
/* Where the first frame of a chunk begins: in the oldest chunk a slot is skipped (push_chunk, Python/pystate.c). */
#define CHUNK_FIRST 32u
#define CHUNK_NEXT 24u
#define CFRAMES_MAX 8u

struct chunk { /* a piece of the data stack: 3.11+ */
	raddr_t base;
	uint32_t size_bytes;
	uint32_t copy_bytes; /* how much of it a sample reads */
};

struct heap_frame { /* a frame, or shim, outside the data stack that a sample reads by itself */
	raddr_t frame;
	uint64_t used_tick;
};

/* Where in a plan a thread's copy lies: indices of pieces. The guess may have grown since. */
struct copy {
	uint32_t head;
	uint32_t cframes, cframe_count;
	uint32_t chunks, chunk_count;
	uint32_t heap, heap_count;
	bool reversed; /* the heap frames come in the opposite order */
};

/* The piece that holds the copy of the k-th heap frame of the guess. */
static inline uint32_t copy_heap_piece(const struct copy *copy, uint32_t k)
{
	return copy->heap + (copy->reversed ? copy->heap_count - 1 - k : k);
}

struct run {
	uint32_t count; /* 0: none in progress */
	uint16_t status, flags;
	uint64_t t_first_ns, t_last_ns, weight_ns;
};

struct thread {
	raddr_t tstate;
	raddr_t interp;
	uint32_t id; /* in records */
	bool announced; /* its REC_THREAD is in the stream */
	pid_t tid;
	uint64_t thread_id; /* pthread_self() of the thread */
	uint64_t native_id; /* its tid as the target sees it; 0 where the version does not keep it */
	uint64_t start_time; /* clock ticks since boot; 0: not asked yet, or unknown */
	uint64_t name_checked_ns, name_wait_ns;
	char name[64];

	/* The guess: what the next sample reads. */
	struct heap_frame cframes[CFRAMES_MAX]; /* 3.11, 3.12: one for each nesting of C calls; `frame` is its address */
	uint32_t cframe_count;
	raddr_t root_link;    /* what the outermost frame's previous was when it was last traced to the end */
	bool root_link_known;
	struct chunk *chunks; /* oldest first */
	uint32_t chunk_count, chunk_room;
	struct heap_frame *heap;
	uint32_t heap_count, heap_room;

	struct copy copy;

	struct pystack seen;      /* of the sample being taken */
	struct pystack last;      /* of the latest accepted sample */
	raddr_t last_current;     /* what the thread state named as current frame at the latest walk */
	raddr_t last_leaf;        /* the leaf found in it */
	uint64_t empty_tick;      /* in which the stack was first seen empty, and no other way since; 0: never */
	bool leaf_runs;           /* it says so of itself */
	bool leads_on;            /* where that leaf stands, C was seen to lead on to further frames */
	bool agreed;              /* that they are the same, or that the chain decided */

	struct run run;
	struct frame *frames; /* the run's stack, outermost first */
	uint32_t depth, room;
	struct frame *sent; /* the stack of the latest record that the consumer got */
	uint32_t sent_depth, sent_room;

	uint64_t t_attempt_ns; /* of the previous attempt; 0: none */
	struct oncpu oncpu;
	uint64_t gil_waited_ns; /* when it was last seen blocked on the GIL */
};

/* Adds what this thread's sample must read and notes in t->copy where it will be. Heap frames are read outermost first, or
 * last where `reversed`. False: out of memory. */
bool thread_plan(struct thread *t, const struct pyabi *abi, struct plan *plan, bool reversed);
/* Puts the frames of t->seen first in the guess, outermost first. */
void thread_order_heap(struct thread *t, uint64_t tick);
/* Notes that the frame at this address, outside the data stack, belongs to the guess. False: out of memory or bound. */
bool thread_want(struct thread *t, raddr_t frame, uint64_t tick);
/* Notes that the thread state points to this cframe now; the one longest unused makes room. */
void thread_want_cframe(struct thread *t, raddr_t cframe, uint64_t tick);
/* Forgets heap frames not used for long. */
void thread_prune(struct thread *t, uint64_t tick);
/* Finds the chunks of the data stack anew, from the newest back. 0 or -errno. */
int thread_find_chunks(struct thread *t, const struct remote *r, raddr_t newest);
void thread_release(struct thread *t);

bool stack_push(struct pystack *stack, struct pyframe frame);

#endif
