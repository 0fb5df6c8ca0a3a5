/* SPDX-License-Identifier: Apache-2.0 */
/* What a file of speedscope's format holds, while it is read: stacks as a tree of frame numbers, whose names may come later. Everything here is
 * called by the parser in speedscope_read.c. Functions that return int: 0, or -errno with *fault filled. */
#ifndef SAMPLED_EXPORTERS_SPEEDSCOPE_H
#define SAMPLED_EXPORTERS_SPEEDSCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/builder.h"
#include "base/buf.h"
#include "base/fault.h"
#include "exporters/intern.h"

enum speedscope_unit {
	UNIT_NONE, /* what counts is the samples */
	UNIT_NANOSECONDS,
	UNIT_MICROSECONDS,
	UNIT_MILLISECONDS,
	UNIT_SECONDS,
	UNIT_BYTES
};

struct speedscope_frame {
	uint32_t name, file; /* texts, plus 1; 0: none */
	uint32_t line;
};

struct speedscope_event {
	char type;
	bool has_at, has_frame;
	double at, frame;
};

/* Of a node. */
struct speedscope_value {
	double weight;
	uint64_t count;
};

/* A sample, or a stretch of time between events, where time order is asked for. */
struct speedscope_moment {
	uint32_t profile, node;
	uint64_t count;
	double weight;
};

struct speedscope_profile {
	enum speedscope_unit unit;
	uint32_t name, process, thread; /* texts, plus 1; 0: none */
	uint32_t root;                  /* node */
	int32_t pid;
	bool is_main;
	bool is_cpu;  /* not its samples: the CPU time of a thread that has another profile */
	bool counted; /* its counts were given */
	bool unordered; /* one of ours without runs: its rows are the tree's nodes */
	uint64_t tid;
	int64_t interpreter;
};

/* Rows one behind the other that belong to one node. */
struct speedscope_rows {
	uint32_t node, count;
};

/* A column of the profile that is being read: it goes to the nodes of the rows, which may come later. */
struct speedscope_column {
	struct buf early; /* double: values that came before the rows */
	uint64_t taken;
	size_t row; /* of rows, which the next one belongs to */
	uint32_t used;
};

struct speedscope { /* all zero: empty */
	struct text_set texts;
	struct buf frames;     /* struct speedscope_frame */
	struct pair_set nodes; /* (parent, frame); a profile's root: (UINT32_MAX, number of the profile) */
	struct buf values;     /* struct speedscope_value a node */
	struct buf profiles;   /* struct speedscope_profile */

	/* Of the profile that is being read. */
	struct speedscope_profile *profile; /* good until the next one begins */
	struct buf rows;                    /* struct speedscope_rows */
	uint64_t row_count;
	struct speedscope_column weights, counts;
	bool has_rows;
	uint32_t at, depth, too_deep; /* the stack that is being read; too_deep: frames that were left out */
	double at_time;
	bool has_time;
	double row_weight; /* of its first row */
	bool is_uneven;    /* its rows weigh differently, or it has events: they are no samples */

	bool keeps_moments;
	struct buf moments; /* struct speedscope_moment, of all profiles, by profile and time */
	size_t first_moment; /* of the profile that is being read */

	bool uncounted; /* of all profiles: some has rows that are no samples, and no counts (struct profile) */
	uint64_t bad_weights, cut_stacks, left_open;
};

static inline struct speedscope_value *speedscope_value_of(const struct speedscope *s, uint32_t node)
{
	return (struct speedscope_value *)(void *)s->values.data + node;
}

void speedscope_release(struct speedscope *s);
/* Keeps a text, cut to REC_TEXT_MAX, and gives its number plus 1. */
int speedscope_text(struct speedscope *s, const char *text, size_t bytes, uint32_t *ret_text, struct fault *fault);
int speedscope_frame(struct speedscope *s, const struct speedscope_frame *frame, struct fault *fault);
int speedscope_begin(struct speedscope *s, struct fault *fault);
int speedscope_unit(struct speedscope *s, const char *text, size_t bytes, struct fault *fault);
void speedscope_stack_begin(struct speedscope *s);
int speedscope_stack_frame(struct speedscope *s, double frame, struct fault *fault);
int speedscope_stack_end(struct speedscope *s, struct fault *fault);
int speedscope_samples_end(struct speedscope *s, struct fault *fault);
int speedscope_weight(struct speedscope *s, double weight, struct fault *fault);
int speedscope_count(struct speedscope *s, double count, struct fault *fault);
int speedscope_event(struct speedscope *s, const struct speedscope_event *event, struct fault *fault);
int speedscope_end(struct speedscope *s, struct fault *fault);
/* All that was read, into the builder. */
int speedscope_build(struct speedscope *s, struct builder *to, struct fault *fault);

#endif
