/* SPDX-License-Identifier: Apache-2.0 */
/* Targets that are read at the same deadlines: one wake-up serves all of an interval.
 *
 * A process that did not run did not move. Its CPU clock (clock_gettime() on its clock id: 0.2 µs) moves when one of its threads is
 * switched out and at scheduler ticks (update_curr(), kernel/sched/fair.c). So where it stands still over an interval of two scheduler
 * ticks or more, every stack in the process is what it was when it was last read: the tick is credited instead of taken (still.h). Each
 * seat has what that takes, so that a tick of hundreds of parked processes touches one array and no target.
 *
 * What runs for less than a scheduler tick at a time is not seen by that clock until it is over. So a process is parked only when it has
 * stood for half a second: one that works a little ten times a second is read at each tick. And the longer it has been parked, the
 * more seldom its clock is read, each 128th of that time, but at least at each eighth tick; the CPU time that the clock then tells
 * of was not idle, and is counted as not sampled.
 *
 * The sampler thread's alone. */
#ifndef SAMPLED_SAMPLER_PACE_H
#define SAMPLED_SAMPLER_PACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct stop;
struct target;

struct seat {
	struct target *target; /* owned */
	clockid_t clock;
	bool has_clock;
	bool parked;
	uint8_t skip;          /* so many ticks are credited before its clock is read again */
	uint32_t parked_ticks; /* in a row */
	uint64_t cpu_ns;       /* its CPU clock, when it was last read: if then the process was too, just before */
	uint64_t t_moved_ns;   /* when that was first seen to be what it is */
	uint64_t ticks;        /* credited since the last account, the latest at t_ns … */
	uint64_t t_ns, base_ns; /* … and its deadline */
	uint64_t late, missed, saved; /* deadlines since then */
};

struct pace {
	uint64_t interval_ns; /* asked; 0: unthrottled */
	uint64_t step_ns;     /* from the last deadline that was kept to the next one; at first the interval */
	uint64_t base_ns;     /* the next deadline, before jitter */
	uint64_t due_ns;      /* … and with it */
	struct seat *seats;   /* owned */
	uint32_t count, room;
};

/* One for each interval that there is. */
struct paces {
	struct pace *items; /* owned */
	uint32_t count, room;
	uint64_t random; /* state of the jitter; never 0 */
};

/* What a tick needs to know besides. */
struct pace_tick {
	uint64_t scheduler_tick_ns; /* pace_scheduler_tick_ns() */
	uint32_t slowdown;          /* only each so manieth deadline is kept */
	/* Takes a target that has come to its end with this -errno. */
	void (*ended)(void *context, struct target *target, int err);
	void *context;
};

/* The kernel's scheduler tick in nanoseconds; 0: a process' CPU clock may stand while it runs (CPUs without ticks), or it is not known. */
uint64_t pace_scheduler_tick_ns(void);

/* Takes a target in; it is the pace's then. 0 or -ENOMEM. */
int pace_add(struct pace *pace, struct target *target);
/* One deadline, at now_ns: reads or credits all targets. */
void pace_tick(struct pace *pace, const struct pace_tick *tick, uint64_t now_ns);

/* The pace of this interval, made when there is none yet; NULL without memory. */
struct pace *paces_find(struct paces *paces, uint64_t interval_ns);
/* Sets when it is due: at its deadline; with jitter, anywhere from there to the next, so that a program that goes in step with the
 * interval is met at all that it does. */
void paces_set_due(struct paces *paces, struct pace *pace, bool jitter);
/* The one that is due first; there must be one. */
struct pace *paces_next(struct paces *paces);
/* Those without targets go. */
void paces_drop_empty(struct paces *paces);
/* Takes this process' target out, with all accounts written; NULL: there is none. */
struct target *paces_remove(struct paces *paces, pid_t pid, uint64_t start_time);
/* Gives a stop that has come late to the target it is of. False: to none of these. */
bool paces_take_late(struct paces *paces, struct stop *stop);
/* Writes everything that is in progress, with the facts. */
void paces_flush(struct paces *paces);
/* The same, and that sampling has ended. */
void paces_finish(struct paces *paces);
void paces_release(struct paces *paces);

#endif
