/* SPDX-License-Identifier: Apache-2.0 */
/* The tree that a still flame graph draws: threads joined below one root, lines folded into functions, and the places of what is wide
 * enough to be seen. The page does the same in its scripts (exporters/flamegraph/tree.js). */
#ifndef SAMPLED_EXPORTERS_SVG_TREE_H
#define SAMPLED_EXPORTERS_SVG_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/profile.h"
#include "exporters/difference.h"
#include "exporters/intern.h"

enum {
	SVG_ROWS_MAX = 400,    /* deeper frames are cut off and counted: a picture of 16,384 rows is none */
	SVG_THREAD = 1u << 31, /* a node's key: a thread's number, not a symbol's */
	SVG_ROOT = UINT32_MAX,
};

struct svg_node {
	uint32_t parent, key, depth;
	uint64_t weight[SIDES], samples[SIDES]; /* totals. Of a profile that is none of two only [AFTER] */
	double x[SIDES], width[SIDES];          /* shares of the root, 0 … 1; width 0: not drawn */
};

struct svg_tree {
	const struct profile *profile;
	const struct comparison *comparison; /* NULL: one profile */
	struct pair_set keys;                /* (parent, key) → node; 0 the root */
	struct svg_node *nodes;              /* owned; parents precede children */
	uint32_t count, room;
	uint32_t *order; /* owned: all but the root, siblings together, as they are drawn: by parent, widest first */
};

/* What does not fit at one place of the picture. */
struct svg_merged {
	uint32_t parent, frames;
	uint64_t weight, samples;
	double x, width;
};

/* Told by svg_tree_place(): what was not drawn by itself. */
struct svg_left_out {
	struct svg_merged *merged; /* owned: one "(other)" each, beside the siblings it stands for */
	uint32_t merged_count;
	uint64_t merged_frames;
	uint64_t cut_frames; /* deeper than SVG_ROWS_MAX */
	uint32_t rows;       /* drawn */
};

/* 0 or -ENOMEM. */
int svg_tree_make(struct svg_tree *ret_tree, const struct profile *profile, const struct comparison *comparison);
void svg_tree_release(struct svg_tree *tree);
/* Gives the nodes their places by one side's weight; narrower ones than `least` of the root are merged. 0 or -ENOMEM. */
int svg_tree_place(struct svg_tree *tree, enum side side, double least, struct svg_left_out *ret_left_out);

#endif
