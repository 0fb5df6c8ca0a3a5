/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a target, shared by the files of the sampler that work on it; everyone else uses sampler.h. */
#ifndef SAMPLED_SAMPLER_TARGET_H
#define SAMPLED_SAMPLER_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "sampler/codes.h"
#include "sampler/discover.h"
#include "sampler/edges.h"
#include "sampler/mailbox.h"
#include "sampler/near.h"
#include "sampler/plan.h"
#include "sampler/record.h"
#include "sampler/remote.h"
#include "sampler/ring.h"
#include "sampler/sampler.h"
#include "sampler/stop.h"
#include "sampler/symtab.h"
#include "sampler/thread.h"
#include "sampler/values/values.h"
#include "sampler/walk.h"

#define GIL_BYTES_MAX 256u
#define OPCODES       256u

struct gil_seen { /* of a GIL when it was read last */
	bool known;
	raddr_t holder;     /* thread state of its last holder */
	uint64_t holder_id; /* pthread_self() of that one; 0: unknown */
	uint64_t former_id; /* of the one who had it before, where it changed hands but once; else 0 */
	uint64_t switches;
	uint64_t t_waits_ns; /* when the words that waiting threads change were last seen to change */
	uint8_t waits[GIL_BYTES_MAX];
};

struct interp {
	raddr_t addr;
	raddr_t gil; /* its GIL's struct; 0: none yet */
	int64_t id;
	struct gil_seen gil_seen;
	uint32_t piece_gil, piece_threads, piece_collecting, piece_gc_frame, piece_generation;
	uint64_t generation;      /* of its code objects, plus 1; 0: the version has no such count */
	uint64_t t_generation_ns; /* when it was last read */
	uint64_t t_freed_ns;      /* when it was first seen to be what it is */
	bool collecting;
	raddr_t gc_frame; /* then: the frame that started it; 0: the version does not tell, or none did */
};

/* A process that has just been forked holds its parent's thread numbers until the kernel lets it run: the lists are read anew every 2 ms until then, this
 * many times. On C libraries that are not known it stays so. */
enum { TIDS_SOUGHT_MAX = 50 };

struct target {
	struct letter letter; /* first: it is handed over, and back */
	struct remote remote;
	struct pyproc proc;
	uint32_t id; /* in records */
	const struct sampler_options *options;
	uint64_t interval_ns; /* at which it is read now; 0: unthrottled. What was asked for is in its facts */
	uint32_t group;
	enum command_line command_line; /* how it is shown */
	struct symtab *symbols; /* the sampler's */
	struct ring *ring;      /* the sampler's */
	struct codes *codes;
	struct edges *edges;
	struct plan plan;        /* the whole process' */
	struct plan again;       /* one thread's, read again */
	struct pystack spare;    /* a sample while its calls are being proved */
	struct pystack first_copy;
	struct near near;
	struct interp *interps;
	uint32_t interp_count;
	struct thread **threads;
	uint32_t thread_count, thread_room;
	struct thread **awake; /* those that the next tick reads: all but the still ones (still.h) */
	uint32_t awake_count, awake_room;
	bool awake_stale;                 /* to be made anew */
	uint32_t shared_count; /* states that are not their system thread's only one, or foreign (current.h) */
	bool tids_known;                  /* of some threads: one that has none is not in this process */
	uint32_t tids_sought;             /* listings that found none, up to TIDS_SOUGHT_MAX */
	uint32_t still_count;             /* that are sampled without being read */
	uint64_t base_ns; /* the deadline of this tick, before jitter: what weights are differences of, but unthrottled */
	uint64_t t_passed_ns, base_passed_ns; /* of the latest tick */
	uint64_t passed_ticks, passed_ns; /* of ticks since the beginning */
	uint64_t t_looked_ns;             /* when some of the still ones were last looked at */
	uint32_t look_next;
	uint32_t gc_symbol, shutdown_symbol, truncated_symbol, unreadable_symbol, native_symbol, cut_symbol; /* special frames */
	bool shuts_down;          /* the main thread was seen to collect what is left, its last frame gone */
	uint32_t *opcode_symbols; /* owned; of each opcode, 0: not met yet. NULL: not asked for */
	struct values *values;    /* of variables, which are read with the stacks (dump); NULL: they are not asked for. Not owned */
	raddr_t none;             /* the object None; 0: not met yet */
	struct exact *exact;      /* NULL: threads are read while they run */
	uint64_t tick;
	uint64_t t_listed_ns;  /* when the lists of interpreters and threads were last compared */
	uint64_t t_watched_ns; /* when interpreters' words (thread list, collecting) were last read */
	uint64_t t_checked_ns; /* when the memory was last known to be this program's */
	uint64_t t_facts_ns;
	struct cputime_files cputime_files;
	uint32_t name_next; /* index of the thread whose name is looked at next */
	uint64_t due_ns;    /* next deadline */
	uint32_t piece_gil;
	raddr_t gil_holder; /* thread state, to 3.11 */
	uint64_t random;
	struct rec_facts facts; /* head unused until it is written */
	uint32_t blind_ticks;   /* consecutive ones in which the lists made no sense */
	uint64_t t_seen_ns;     /* the first of these, or the latest in which they did */
	bool configured;        /* target_configure() */
	bool execed;            /* its memory is another program's now */
	bool attached;          /* its REC_TARGET is in the stream */
};

/* targetread.c: reads the threads that may have moved into target->plan, and the lists anew when they changed. 0; -ESRCH: it is gone; -ESTALE: its
 * memory makes no sense any more, as after exec; or another -errno. */
int target_read(struct target *target, uint64_t now_ns);
/* targetlist.c: the interpreters and threads that there are. */
/* Reads the lists anew. 0, -EAGAIN (they were changing), -ESRCH. */
int target_list(struct target *target, uint64_t now_ns);
/* Compares the lists with the copy just read; true: they may have changed. */
bool target_list_changed(const struct target *target);
/* Whether the copy of a thread state is still this thread's: its memory, and pthread_self(), are soon used again for another one. */
bool target_is_same_thread(const struct pyabi *abi, const struct thread *t, const uint8_t *head);
void target_free_threads(struct target *target);
/* NULL: not in the list. */
struct interp *target_interp(const struct target *target, raddr_t addr);
/* Whether the interpreter's count of freed code objects has to be read again. */
bool target_generation_is_due(const struct target *target, raddr_t interp, uint64_t now_ns);
/* Makes the plan read the interpreter's count of freed code objects, last of all; PLAN_FULL where the version has none, or it is
 * not due. */
uint32_t target_plan_generation(const struct target *target, raddr_t interp, struct plan *plan, uint64_t now_ns);
/* What the plan read, or, where it was not due, what was noted last; 0: none. */
uint64_t target_generation(const struct target *target, raddr_t interp, const struct plan *plan, uint32_t piece);
/* Notes what the plan read. */
void target_take_generation(const struct target *target, raddr_t interp, const struct plan *plan, uint32_t piece,
                            uint64_t now_ns);
/* Finds or renews names that are due, a few at a time, and announces threads. */
void target_name_threads(struct target *target, uint64_t now_ns);

/* Where a tick lies in the time that weights are parts of. At a rate that is its deadline: a sample stands for its interval, wherever
 * in it the jitter puts it, or what a program does late in each interval would weigh more. */
static inline uint64_t target_base_ns(const struct target *target, uint64_t now_ns)
{
	return target->interval_ns ? target->base_ns : now_ns;
}
/* sample.c: one tick of one target, the deadline of which was base_ns. 0, -ESRCH: it is gone, -ESTALE: its memory makes no sense any more, as after exec. */
int target_tick(struct target *target, uint64_t now_ns, uint64_t base_ns);
/* attempt.c: a sample stands for no more than this. */
uint64_t sample_most_ns(const struct target *target);
/* Notes the time since the thread's previous attempt: what a sample now stands for. What is longer ago than two intervals was not sampled. */
uint64_t sample_weight(struct target *target, struct thread *t, uint64_t now_ns);
/* Counts a sample as lost, by the error. */
void sample_lose(struct target *target, int err, uint64_t weight_ns);
/* Whether the thread state is none of a thread of this process: fork() left it behind, or its thread does not run yet. */
bool sample_is_gone(const struct target *target, const struct thread *t);
/* Whether this tick has a sample of the thread state: its thread lives, and runs in it. */
bool sample_is_due(const struct target *target, struct thread *t);
/* Reads the thread once, as it moves, and judges the stack. 0 or -errno. */
int sample_moving(struct target *target, struct thread *t, struct walker *w, uint16_t *ret_status);

/* runs.c: samples become records. */
struct sample { /* one, or several of the same stack */
	uint16_t status;
	uint32_t count;
	uint64_t t_first_ns, now_ns, weight_ns;
};

/* Takes the stack in t->seen as a sample. */
void run_add(struct target *target, struct thread *t, const struct sample *sample);
/* Takes this one, of Python's and native frames, while t->seen has Python's; `before` has the latest such one, and is exchanged with it. */
void run_add_merged(struct target *target, struct thread *t, struct pystack *merged, struct pystack *before,
                    uint16_t flags, const struct sample *sample);
/* One more sample of the latest stack. */
void run_repeat(struct target *target, struct thread *t, const struct sample *sample);
/* Writes the run in progress, if any. */
void run_close(struct target *target, struct thread *t);
void runs_close_all(struct target *target);
/* Also writes the CPU time of all threads: at marks, and at the end. */
void runs_settle(struct target *target);
/* Closes a run older than 100 ms; such of all threads that are read. */
void run_close_if_due(struct target *target, struct thread *t, uint64_t now_ns);
void runs_close_due(struct target *target, uint64_t now_ns);
/* A still thread's status is another from now on. */
void run_change_status(struct target *target, struct thread *t, uint16_t status);
/* Forgets retired code: closes runs that may name it, then drops it. */
void runs_retire_codes(struct target *target);
bool target_announce(struct target *target, enum target_event event, uint64_t now_ns);
void target_write_facts(struct target *target);
bool thread_announce(struct target *target, struct thread *t);
/* Tells the consumer that an announced thread is no more. */
void thread_end(struct target *target, struct thread *t);

/* cputime.c: writes the CPU time that the thread has used. A system thread with a state in each of several interpreters is asked for all of them at
 * once. */
void thread_write_time(struct target *target, struct thread *t);

/* target.c: gives an opened target what it needs to be sampled, at the options' interval unless target_configure() gave it its own;
 * options, symbols, ring and stopper stay the caller's. 0 or -ENOMEM. */
int target_adopt(struct target *target, const struct sampler_options *options, struct symtab *symbols,
                 struct ring *ring, struct stopper *stopper, uint32_t id);
/* Gives back the memory that only reads need: it is parked. */
void target_slim(struct target *target);
/* Writes what is left, and that the target ended; gives all symbols back. */
void target_finish(struct target *target, uint64_t now_ns, enum target_event event);

#endif
