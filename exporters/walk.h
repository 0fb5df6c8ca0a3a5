/* SPDX-License-Identifier: Apache-2.0 */
/* Walking a thread's tree in pre-order without recursion: stacks are up to REC_DEPTH_MAX deep. */
#ifndef SAMPLED_EXPORTERS_WALK_H
#define SAMPLED_EXPORTERS_WALK_H

#include <stdint.h>

#include "aggregator/profile.h"

/* The node after `at` in pre-order, 0 at the end; begin with the root, 0. *ret_left (may be NULL): how many nodes were left
 * on the way, 0 when the next one is a child of `at`. */
static inline uint32_t walk_next(const struct thread_tree *tree, uint32_t at, uint32_t *ret_left)
{
	uint32_t left = 0;

	if (tree->nodes[at].child) {
		at = tree->nodes[at].child;
	} else {
		while (at && !tree->nodes[at].sibling) {
			at = tree->nodes[at].parent;
			left++;
		}
		left++;
		at = at ? tree->nodes[at].sibling : 0;
	}
	if (ret_left)
		*ret_left = left;
	return at;
}

#endif
