/* SPDX-License-Identifier: Apache-2.0 */
/* A call tree that grows: one array of nodes, parents before children, in the very form in which profiles carry it, so that a
 * snapshot is one copy. A child is found through a hash table over (parent, symbol, line): equally fast at a node of
 * two children and at one of ten thousand. */
#ifndef SAMPLED_AGGREGATOR_TREE_H
#define SAMPLED_AGGREGATOR_TREE_H

#include <stdint.h>

#include "aggregator/lookup.h"
#include "aggregator/profile.h"
#include "aggregator/symbols.h"
#include "base/hash.h"

struct tree {
	/* Owned; node.symbol is a slot of struct symbols, of which each node but the root holds a reference. */
	struct node *nodes;
	uint32_t count, room;
	struct lookup children; /* hash of (parent, symbol, line) → node */
};

/* No node: there was no memory for it. */
#define NODE_NONE LOOKUP_NONE

/* What a child is found by. */
static inline uint32_t tree_child_hash(uint32_t parent, uint32_t symbol, uint32_t line)
{
	return (uint32_t)hash_u64(((uint64_t)parent << 32 | symbol) ^ line * UINT64_C(0x9e3779b97f4a7c15));
}

/* A tree with its root. 0 or -ENOMEM. The root's array is charged even when the bound is reached. */
int tree_init(struct tree *tree, struct budget *budget);
/* The symbols must be those that the nodes were made with. */
void tree_release(struct tree *tree, struct symbols *symbols);

/* The child of `parent`, made when there is none yet; NODE_NONE when that fails for want of memory. */
uint32_t tree_child(struct tree *tree, struct symbols *symbols, uint32_t parent, uint32_t symbol, uint32_t line);
/* Adds all of `from` to `tree`, node by node. Returns the samples whose node found no memory (0: all were moved). */
uint64_t tree_merge(struct tree *tree, struct symbols *symbols, const struct tree *from);

#endif
