/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values of the variables in the frames of threads: `dump --locals`. Off the sampling path.
 *
 * A value is the text of repr(), as far as that can be told from memory alone: no code of the target runs. Everything is bounded, and what was cut
 * says so. */
#ifndef SAMPLED_SAMPLER_VALUES_VALUES_H
#define SAMPLED_SAMPLER_VALUES_VALUES_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "sampler/values/quiet.h"

struct pyproc;
struct pystack;
struct target;
struct thread;

enum { VALUES_OFF, VALUES_SHORT, VALUES_LONG }; /* LONG: more of each, and the attributes of instances */

struct values_options {
	unsigned level;
	bool secrets; /* show what looks secret, too */
};

struct local {
	char *name, *value, *type; /* owned; UTF-8. A value that is not known has type "" */
	bool argument;
};

struct frame_locals {
	uint64_t frame;        /* its address */
	uint32_t symbol, line; /* as in struct frame: which frame it is */
	bool gone;             /* the frame was left while it was read; nothing of it is known */
	uint32_t left_out;     /* variables that there was no room for */
	struct local *items;   /* owned: arguments first, then in the code's order; unbound ones are left out */
	uint32_t count, room;
};

struct thread_locals {
	uint32_t thread;             /* id */
	bool stopped;                /* it stood for it */
	bool whole;                  /* all values are of the stack's own instant: the thread stood, or its process did not run */
	struct frame_locals *frames; /* owned; Python frames, outermost first */
	uint32_t count;
};

struct values {
	struct values_options options;
	struct thread_locals *threads; /* owned */
	uint32_t count;
	uint64_t reads, bytes; /* spent so far */
	pid_t holder;               /* of the GIL, when values_begin() was called; 0: not known, or none */
	struct quiet before, after; /* it, or else all threads: then, and when all was read */
	cpu_set_t cpus;             /* where the calling thread might run before it went to a CPU; … */
	bool went;                  /* … it did */
	int err;               /* 0 or -ENOMEM */
};

/* Whether values of this version can be read. */
bool values_supported(const struct pyproc *proc);

enum values_stand {
	STAND_STOPPED, /* nothing moves: what is read once is right */
	STAND_MOVING,  /* it is believed what is read alike several times */
};

/* Reads the variables of a stack of the thread, in place of what was known of it. */
void values_take(struct values *values, const struct target *target, const struct thread *t, const struct pystack *stack,
                 enum values_stand stand);
/* Before stacks are read whose variables are then wanted. `go`: where a thread runs, to its CPU, so that it stands meanwhile; values_leave() goes back. */
void values_begin(struct values *values, const struct target *target, bool go);
void values_leave(struct values *values);
/* As values_take(), of the latest stacks of all threads but those that were stopped for it. False: the process ran since values_begin(), and stacks
 * and variables may be read again; with `last` it is believed what is read alike several times. */
bool values_take_all(struct values *values, const struct target *target, bool last);
/* NULL: none. */
const struct thread_locals *values_of(const struct values *values, uint32_t thread);
void values_release(struct values *values);

#endif
