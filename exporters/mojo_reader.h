/* SPDX-License-Identifier: Apache-2.0 */
/* Austin's MOJO files while they are read: mojo_read.c takes events apart, mojo_samples.c makes samples of them. Functions that return int: 0, or -errno
 * with *fault filled. */
#ifndef SAMPLED_EXPORTERS_MOJO_READER_H
#define SAMPLED_EXPORTERS_MOJO_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/builder.h"
#include "base/buf.h"
#include "base/fault.h"
#include "exporters/input.h"
#include "exporters/intern.h"

struct mojo_frame {
	uint32_t symbol, line;
	bool native; /* above Python's own: no part of what STACK_REPEAT means */
};

struct mojo_thread {
	uint32_t thread; /* the builder's */
	struct buf last; /* uint32_t: frames of its last sample */
};

struct mojo {
	struct input *in;
	struct builder *to;
	struct fault *fault;
	uint64_t format; /* the version of it */
	struct text_set texts;
	struct text_set names;     /* process and key of a string: its numbers are those of name_texts */
	struct buf name_texts;     /* uint32_t, of texts */
	struct text_set keys;      /* process and key of a frame: its numbers are those of frames */
	struct buf frames;         /* struct mojo_frame */
	struct text_set who;       /* of threads: pid, interpreter and name */
	struct buf threads;        /* struct mojo_thread */
	struct pair_set processes; /* (pid, 0) */
	struct buf text;           /* the one read last */
	const char *metric;        /* "wall", "cpu", "memory"; static */
	uint32_t metric_value;     /* where it goes; BUILDER_NONE: not known yet */
	uint32_t gc;               /* the symbol <GC> */

	/* The sample at hand. */
	bool in_sample, idle, collects, invalid, has_metric;
	uint32_t process, thread; /* numbers in processes and threads */
	struct buf stack;  /* uint32_t: numbers in frames; UINT32_MAX: of the kernel, whose symbols are in kernel */
	struct buf kernel; /* uint32_t: the symbols of these */
	uint64_t metric_number, task_frames, sum;
	uint64_t samples, invalid_samples, deep, tasks;
};

static inline const struct mojo_frame *mojo_frame_at(const struct mojo *m, uint32_t index)
{
	return (const struct mojo_frame *)(const void *)m->frames.data + index;
}

static inline struct mojo_thread *mojo_thread_at(const struct mojo *m, uint32_t index)
{
	return (struct mojo_thread *)(void *)m->threads.data + index;
}

/* Refuses what was just read. */
int mojo_malformed(struct mojo *m, const char *what);

/* Of a thread of this process, whose name is in m->text. */
int mojo_begin_sample(struct mojo *m, int32_t pid, int64_t interpreter);
int mojo_end_sample(struct mojo *m);
/* One more frame of the sample's stack: a number in frames, or UINT32_MAX. */
int mojo_add_frame(struct mojo *m, uint32_t index);
/* The thread's last frames, without native ones at their end, come before those that were read. */
int mojo_repeat_stack(struct mojo *m);

#endif
