/* SPDX-License-Identifier: Apache-2.0 */
/* One Python thread of a target: where its frames were last seen, the run of identical samples in progress, and what
 * the consumer already has of its stack. The sampler thread's alone. */
#ifndef SAMPLED_SAMPLER_THREAD_H
#define SAMPLED_SAMPLER_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/apart.h"
#include "sampler/cputime.h"
#include "sampler/frames.h"
#include "sampler/oncpu.h"
#include "sampler/plan.h"
#include "sampler/record.h"

#define CHUNKS_MAX 2048u
/* Where the first frame of a chunk begins: in the oldest chunk a slot is skipped (push_chunk, Python/pystate.c). */
#define CHUNK_FIRST 32u
#define CHUNK_NEXT  24u
#define CFRAMES_MAX 8u
#define ITEMS_MAX   8u

struct chunk { /* a piece of the data stack: 3.11+ */
	raddr_t base;
	uint32_t size_bytes;
	uint32_t copy_bytes; /* how much of it a sample reads */
	uint8_t *last;       /* owned; what the latest accepted sample's copy of it was, `last_bytes` long */
	uint32_t last_bytes, last_room;
};

struct heap_frame { /* a frame, or cframe, that a sample reads by itself */
	raddr_t frame;
	uint64_t used_tick;
	uint32_t bytes; /* of it, in the next copy; 0: its head */
};

/* Where in a plan a thread's copy lies: indices of pieces. The guess may have grown since. */
struct copy {
	uint32_t head;
	uint32_t cframes, cframe_count;
	uint32_t items, item_count;
	uint32_t chunks, chunk_count;
	uint32_t same_chunks; /* so many are as they were at the latest accepted sample, … */
	uint32_t same_bytes;  /* … and so much of the next one */
	struct apart_copy apart;
	uint32_t heap, heap_count; /* to 3.10 */
};

/* The piece that holds the copy of the k-th heap frame of the guess. */
static inline uint32_t copy_heap_piece(const struct copy *copy, uint32_t k)
{
	return copy->heap + k;
}

#define PLAIN_SHIMS 4u

/* The outermost frames of a stack that lie on the data stack, each called by the one before: directly, or, so many of them at most, by C
 * through a shim that is steady (apart.h; 3.14+). */
struct plain {
	uint32_t count;
	uint32_t shims; /* so many were */
	uint32_t called_by_c[PLAIN_SHIMS]; /* their indices, outermost first */
};

struct run {
	uint32_t count; /* 0: none in progress */
	uint16_t status, flags;
	uint64_t t_first_ns, t_last_ns, weight_ns;
};

struct thread {
	raddr_t tstate;
	raddr_t interp;
	uint32_t id;    /* in records */
	bool announced; /* its REC_THREAD is in the stream */
	pid_t tid;
	uint64_t thread_id;  /* pthread_self() of the thread */
	uint64_t native_id;  /* its tid as the target sees it; 0 where the version does not keep it */
	uint64_t start_time; /* clock ticks since boot; 0: not asked yet, or unknown */
	uint64_t name_checked_ns, name_wait_ns;
	char name[64];

	/* The guess: what the next sample reads. */
	struct heap_frame
		cframes[CFRAMES_MAX]; /* 3.11, 3.12: one for each nesting of C calls; `frame` is its address */
	uint32_t cframe_count;
	raddr_t items[ITEMS_MAX]; /* where its handled exceptions were noted, innermost first (handled.h) */
	uint32_t item_count;
	raddr_t root_link; /* what the outermost frame's previous was when it was last traced to the end */
	bool root_link_known;
	struct chunk *chunks; /* oldest first */
	uint32_t chunk_count, chunk_room;
	struct heap_frame *heap; /* to 3.10: all frames, outermost first */
	uint32_t heap_count, heap_room;
	struct apart *apart; /* owned; what lies outside the data stack (3.11+); NULL: nothing was met yet */

	struct copy copy;

	struct pystack seen; /* of the sample being taken */
	struct pystack last; /* of the latest accepted sample */
	uint32_t
		same; /* so many outermost frames of `seen` are those of `last`: the copies do not differ up to there */
	struct plain seen_plain, last_plain;
	struct plain on;   /* of the latest sample that was all plain: the shims that it lay on */
	uint32_t on_same;  /* so many samples in a row were, on the same ones; up to ON_SAME */
	uint64_t generation;             /* of code objects, at the latest accepted sample */
	uint64_t t_checked_ns;           /* when all its code objects were last looked at */
	struct disagreement {            /* of the latest walk */
		raddr_t current;         /* what the thread state named as current frame */
		raddr_t leaf;            /* what the frames did */
		int64_t offset;          /* of the leaf */
	} disagreement;
	uint32_t looks;      /* walks of it, up to a bound */
	uint32_t stands;     /* so many walks in a row disagreed in the same way */
	raddr_t left;        /* a frame above the leaf, or the leaf, that had been left; 0: none */
	bool leaf_left;      /* the leaf had been left when it was copied, but not when its caller was */
	bool leads_on;       /* where that leaf stands, C was seen to lead on to further frames */
	bool agreed;         /* that they are the same, or that the chain decided */
	bool late;     /* a part of it was read after the rest: it is no instant's, and teaches nothing by itself */
	bool recalled; /* a generator among it had yielded by then, or a shim was gone, and what it linked to is the one that was remembered */

	struct exact_thread *exact; /* owned; of samples of threads that stand (exact.h) */

	struct run run;
	struct frame *frames; /* the run's stack, outermost first */
	uint32_t depth, room;
	struct frame *sent; /* the stack of the latest record that the consumer got */
	uint32_t sent_depth, sent_room;

	bool collects; /* a frame of `last`, and so of `seen`, may say that the collector was started by it */
	bool taken;    /* a sample of it was taken in the tick that read it last */
	bool shadow;   /* … none, since it is no thread of its own */
	struct thread *sibling;       /* another state of the same system thread, in a ring (current.h); NULL: there is none */
	bool eldest;                  /* of that ring, the last in the list */
	bool outer;                   /* the system thread runs in another one now */
	bool entered;                 /* it runs in this one, which has frames then; … */
	bool nested;                  /* … and in this one, which was entered from it, or another */
	bool foreign;                 /* its ids are those of the thread that made it, whichever runs it */
	bool unplaced;                /* … and that one could not be found */
	raddr_t place, place_word;    /* then, to 3.10: where on a C stack its outermost frame is kept, and which that is */
	raddr_t stack_from, stack_to; /* … in 3.11 and 3.12: the C stack that it was found on */
	uint64_t t_sought_ns;
	bool still;    /* it cannot have moved since, and is not read (still.h) */
	bool parked;   /* … because the whole process cannot */
	uint16_t still_status, still_flags;
	uint64_t still_ticks, still_ns; /* of the target's, up to which its samples are in the run */
	uint64_t t_still_ns;            /* and when that was */

	/* Double reads of late, and those of them that were alike throughout. */
	uint32_t reads, alike;
	bool stood; /* the latest one was (frames on the heap) */

	uint64_t base_attempt_ns; /* target_base_ns() of the previous attempt; 0: none */
	struct oncpu oncpu;
	struct cputime cputime;
	uint64_t state_ns;      /* since when oncpu.state has been what it is */
	uint64_t gil_waited_ns; /* when it was last seen blocked on the GIL */
};

#define ON_SAME     32
#define FIRST_LOOKS 64 /* at a thread: what lies outside its data stack is not known yet */

/* Whether its stack has anything outside the data stack, now or lately, that comes and goes. The shims that a thread lies on as long as it runs, since 3.14 that of
 * Context.run() (Thread.run, Lib/threading.py), do not. */
static inline bool thread_is_apart(const struct thread *t)
{
	return apart_any(t->apart) && (t->on_same < ON_SAME || t->apart->count > t->on.shims);
}

/* Adds what this thread's sample must read and notes in t->copy where it will be. The data stack comes first, but for that: a line of
 * memory that was read stops the target for a moment when it next stores there, and what is copied in that moment is no random one.
 * Heap frames of versions that have no data stack are read outermost first, and what lies outside the data stack by address. False: out of memory. */
bool thread_plan(struct thread *t, const struct pyabi *abi, struct plan *plan, uint64_t tick);
/* Adds nothing but its state, which tells whether it is in the list still. */
void thread_plan_state(struct thread *t, const struct pyabi *abi, struct plan *plan);
/* Puts the frames of t->seen first in the guess, outermost first. False: out of memory or bound. */
bool thread_order_heap(struct thread *t, uint64_t tick);
/* Notes that the heap frame at this address belongs to the guess. False: out of memory or bound. */
bool thread_want(struct thread *t, raddr_t frame, uint64_t tick);
/* t->apart, made where there is none yet. NULL: out of memory. */
struct apart *thread_apart(struct thread *t);
/* Of this chunk a sample is to read at least so many bytes, which it has, and room to grow. */
void thread_want_chunk(struct chunk *chunk, uint64_t bytes);
/* Of the data stack a sample is to read the frame of so many bytes. False: it lies in no chunk, or is read already. */
bool thread_want_stack(struct thread *t, raddr_t frame, uint32_t bytes);
/* Whether an address lies in the data stack. */
bool thread_in_chunks(const struct thread *t, raddr_t addr);
/* Notes that the thread state points to this cframe now; the one longest unused makes room. */
void thread_want_cframe(struct thread *t, raddr_t cframe, uint64_t tick);
/* Forgets what was not used for long. */
void thread_prune(struct thread *t, uint64_t tick);
/* Keeps the copy of the data stack in this plan, which t->seen was found in, for thread_find_same(). */
void thread_keep_copy(struct thread *t, const struct plan *plan);
/* Notes the shims that an accepted sample lies on; `passed`: those that are steady were not read for it. */
void thread_note_on(struct thread *t, bool passed);
/* How many of the outermost frames of t->last, all of them plain, lie where this plan's copy is the same as the kept one. */
uint32_t thread_find_same(struct thread *t, const struct plan *plan, uint32_t frame_bytes);
/* Drops the chunks from the `count`th on. */
void thread_drop_chunks(struct thread *t, uint32_t count);
/* Finds the chunks of the data stack anew, from the newest back. 0 or -errno. */
int thread_find_chunks(struct thread *t, const struct remote *r, raddr_t newest);
/* Gives back the memory that only a read needs. */
void thread_slim(struct thread *t);
void thread_release(struct thread *t);

/* Counts a double read, and whether its two copies were alike throughout; of the latest so many. */
static inline void thread_count_read(struct thread *t, bool alike, uint32_t latest)
{
	t->reads++;
	t->alike += alike;
	if (t->reads > latest) {
		t->reads /= 2;
		t->alike /= 2;
	}
}

/* Whether so much moves in this thread that copies which are alike may be so by chance. */
static inline bool thread_moves(const struct thread *t)
{
	return t->alike < t->reads - t->reads / 8;
}

/* Leaves so many at most. */
static inline void plain_cut(struct plain *plain, uint32_t count)
{
	if (plain->count > count)
		plain->count = count;
	while (plain->shims > 0 && plain->called_by_c[plain->shims - 1] >= plain->count)
		plain->shims--;
}

bool stack_push(struct pystack *stack, struct pyframe frame);
/* The `count` outermost frames of another one. False: out of memory. */
bool stack_copy(struct pystack *stack, const struct pystack *from, uint32_t count);
/* The same without room to spare, for stacks that are kept by the hundred. */
bool stack_keep(struct pystack *stack, const struct pystack *from, uint32_t count);

#endif
