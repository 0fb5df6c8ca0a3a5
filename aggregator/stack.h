/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's latest stack, as the records tell it: each gives only the frames that differ from the record before. */
#ifndef SAMPLED_AGGREGATOR_STACK_H
#define SAMPLED_AGGREGATOR_STACK_H

#include <stdint.h>

#include "aggregator/symbols.h"
#include "sampler/record.h"

struct stack_frame {
	uint32_t symbol; /* a slot, of which the frame holds a reference; SYMBOL_LOST may stand here */
	uint32_t line;
};

/* The latest stack, whole and unfiltered, since the next record may share any part of it. What was found out about its
 * frames (their nodes, the first that matches --omit or --stop) is kept as far as the next stack shares it. */
struct stack {
	struct stack_frame *frames; /* owned; root first */
	uint32_t *path;             /* owned; node of each frame in [start, path_depth) */
	uint32_t depth, room;
	uint32_t start;      /* the outermost frame that --stop leaves */
	uint32_t path_depth; /* up to here the nodes are known */
	uint32_t omit_at;    /* the first frame that --omit matches; DEPTH_NONE */
	uint32_t stop_at;    /* the same of --stop */
};

#define DEPTH_NONE UINT32_MAX

/* An empty stack. */
void stack_init(struct stack *stack);
/* The symbols must be those that its records were taken with. */
void stack_release(struct stack *stack, struct symbols *symbols);
/* Makes the record's stack the latest one. 0; -EPROTO: the record makes no sense; -ENOMEM. What is kept after an error is right as far as it
 * goes. */
int stack_take(struct stack *stack, struct symbols *symbols, const struct rec_stack *record);

#endif
