/* SPDX-License-Identifier: Apache-2.0 */
/* A call tree without values: what slices name. Nodes lie in one array, parents before children; node 0 is the root, its children stand for
 * threads, and all below for frames. */
#ifndef SAMPLED_AGGREGATOR_HISTORY_TREE_H
#define SAMPLED_AGGREGATOR_HISTORY_TREE_H

#include <stdint.h>

#include "aggregator/lookup.h"
#include "aggregator/symbols.h"

struct call_node {
	uint32_t parent;
	uint32_t
		symbol; /* a slot of struct symbols, of which the node holds a reference; below the root: a thread's number */
	uint32_t line; /* 0: unknown, or folded */
};

struct call_tree {
	struct call_node *nodes; /* owned */
	uint32_t count, room;
	struct lookup children; /* hash of (parent, symbol, line) → node */
};

/* What a node costs: itself and its entry in the table of children. */
enum { CALL_NODE_BYTES = sizeof(struct call_node) + LOOKUP_ENTRY_BYTES };

#define CALL_NONE LOOKUP_NONE

/* A tree with its root. 0 or -ENOMEM. */
int call_tree_init(struct call_tree *tree, struct budget *budget);
void call_tree_release(struct call_tree *tree, struct symbols *symbols);
/* The child of `parent`, made when there is none yet; CALL_NONE when that fails for want of memory. */
uint32_t call_tree_child(struct call_tree *tree, struct symbols *symbols, uint32_t parent, uint32_t symbol,
                         uint32_t line);
/* Leaves only the nodes that are marked, and those above them. marks has a word for each node: not 0 for one that stays; in the end it is the node's
 * new number. 0 or -ENOMEM (all is as before). */
int call_tree_compact(struct call_tree *tree, struct symbols *symbols, uint32_t *marks);

static inline uint64_t call_tree_bytes(const struct call_tree *tree)
{
	return (uint64_t)tree->room * CALL_NODE_BYTES;
}

#endif
