/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler: one thread that reads all targets at their deadlines and writes what it saw into the ring.
 *
 * The main thread finds and opens targets (slow work: files, ELF, /proc) and hands them over; from then on they belong
 * to the sampler thread, until they come back through sampler_take_ended(). */
#ifndef SAMPLED_SAMPLER_SAMPLER_H
#define SAMPLED_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "sampler/command_line.h"
#include "sampler/discover.h"
#include "sampler/ring.h"

struct core;
struct sampler;
struct target;
struct values;

enum native_frames {
	NATIVE_OFF,
	NATIVE_MARKS,      /* no unwinding: a frame <native> wherever C called Python (3.11+) */
	NATIVE_CALLS,      /* all but the interpreter's own machinery, by name (exporters/names.h) */
	NATIVE_ALL,        /* all */
	NATIVE_LEAF,       /* those that the innermost Python frame called */
	NATIVE_EXTENSIONS, /* those outside the interpreter, the C library and the dynamic linker */
};

#define NATIVE_STACK_BYTES 65536u
#define VISIT_BUDGET_PPM   20000u /* by default: 2 % */

struct sampler_options {
	uint64_t interval_ns; /* between ticks of targets that have none of their own; 0: unthrottled */
	bool jitter;
	bool gc;       /* add a <GC> frame where the interpreter collects */
	uint32_t visit_budget_ppm; /* of each CPU's time, for visits to running threads (near.h); 0: none */
	bool realtime; /* ask for SCHED_FIFO; refused silently where not permitted, see sampler_is_realtime() */
	enum native_frames native;
	bool blocking;               /* a thread that runs is stopped while its Python frames are read */
	uint32_t native_stack_bytes; /* most that is copied of a thread's stack; 0: NATIVE_STACK_BYTES */
	bool opcodes;                /* a frame for the innermost Python frame's instruction */
	bool exceptions;             /* look whether a thread handles an exception: STATUS_EXCEPTION */
	bool cpu_time;               /* REC_TIME too */
	enum command_line command_line; /* of targets that target_configure() did not give their own */
};

/* Whether threads are stopped for it. */
static inline bool sampler_stops(const struct sampler_options *options)
{
	return options->blocking || options->native > NATIVE_MARKS;
}

/* Opens a process for sampling: discovery, then a first look at its threads. Main thread. 0 or -errno as discover(). */
int target_open(struct target **ret_target, pid_t pid, struct fault *fault);
/* The same of what a process left, for target_sample_once() only; the core stays the caller's, and must outlive the target. */
int target_open_core(struct target **ret_target, struct core *core, struct fault *fault);
void target_free(struct target *target);
const struct pyproc *target_proc(const struct target *target);
/* Whether native frames can be put among Python's in it: where the interpreter's loop lies is known. Before sampler_add(). */
bool target_knows_loop(struct target *target);
/* Gives a target an interval of its own (0: unthrottled), and what goes into its REC_TARGET: a group, and how its command line is shown. Before
 * sampler_add(). Targets of the same interval are read at the same ticks. */
void target_configure(struct target *target, uint64_t interval_ns, uint32_t group, enum command_line command_line);
/* Of an ended target: the process lives on, but runs another program now; it may be opened anew. */
bool target_is_execed(const struct target *target);

/* `ring` stays the caller's and must outlive the sampler. 0 or -errno. */
int sampler_new(struct sampler **ret_sampler, const struct sampler_options *options, struct ring *ring);
/* Starts the thread. */
int sampler_start(struct sampler *sampler, struct fault *fault);
/* Asks the thread to stop, waits for it; everything sampled is in the ring then, and the ring is closed. */
void sampler_stop(struct sampler *sampler);
void sampler_free(struct sampler *sampler);

/* Hands a target over to the sampler thread. Any thread. */
void sampler_add(struct sampler *sampler, struct target *target);
/* Main thread: a target that ended (exited, exec'd into something else), or NULL. The caller frees it. */
struct target *sampler_take_ended(struct sampler *sampler);
/* Asks for this process to be given back (sampler_take_ended()), if it is sampled. Any thread. 0 or -ENOMEM. */
int sampler_detach(struct sampler *sampler, pid_t pid, uint64_t start_time);
/* From now on only each `factor`th deadline is kept (1: all), and the others are counted as saved. Any thread. */
void sampler_slow_down(struct sampler *sampler, uint32_t factor);
/* A descriptor that becomes readable (an eventfd) when a target has ended. */
int sampler_event_fd(const struct sampler *sampler);
/* Asks for a REC_MARK with this sequence number: runs in progress are closed first. Any thread. */
void sampler_ask_mark(struct sampler *sampler, uint64_t sequence);
/* Stops this process by SIGTSTP, SIGTTIN or SIGTTOU, which are blocked in all threads, as soon as no thread of a target is held; 0: not any more, SIGCONT
 * came. Where threads are stopped (sampler_stops()). Main thread. */
void sampler_stop_process(struct sampler *sampler, int signal);
/* Grows while the thread goes round its loop, some ten times a second at least. Any thread. */
uint64_t sampler_beats(const struct sampler *sampler);
/* CPU time of the thread so far; 0: it does not run. Main thread. */
uint64_t sampler_cpu_ns(const struct sampler *sampler);
bool sampler_is_realtime(const struct sampler *sampler);

/* Reads every thread of a target once and writes the records into `ring`, in the calling thread, for `dump`; the target
 * must not have been handed over. Reads again until each thread's stack was whole in one read, for at most patience_ns. Of the
 * options, gc, native, blocking and opcodes matter. `values` takes what the variables in these stacks hold; NULL: not asked for. 0 or -errno. */
int target_sample_once(struct target *target, struct ring *ring, const struct sampler_options *options,
                       struct values *values, uint64_t patience_ns);
/* After that: the system call in which the thread of this id (struct rec_thread) was blocked. False: it was not, it was in none, or the kernel did not
 * tell. */
bool target_blocked_in(const struct target *target, uint32_t thread, int32_t *ret_number);

#endif
