/* SPDX-License-Identifier: Apache-2.0 */
/* One slice of one tree, in bytes. All numbers are varints (7 bits a byte, low ones first), differences that may be negative are zigzag:
 *
 *     head       bit 0: by a pattern; bit 1: facts differ from what is foretold; bits 2–7: slices between this entry and the one before,
 *                63: 63 and as many more as the number behind it says
 *     nodes      by a pattern: its number, and how far count and weight of each of its nodes are from the pattern's own
 *                else: bytes of what follows, and in it for each node, in their order:
 *                    how far its number is from that of the node before
 *                    tag: bit 0: count and weight are those of the node before; bit 1: every value is 0 or the weight;
 *                         bits 2–10: which of VALUE_RUNNABLE … VALUE_RUN_WAIT are not 0
 *                    count, weight, if bit 0 is not set
 *                    if bit 1 is not set: which of them are the weight; then the others
 *     facts      which ones differ (bit by enum history_fact), then how far each is from what is foretold
 *
 * Foretold: samples are those of the nodes and those lost here; attempts the samples and those lost; ticks the largest count of a node; runs
 * as many as there are nodes with samples; all else 0.
 *
 * A pattern is a set of nodes that were alike in two slices running: all have the same count and weight, and each value of a node is 0 or the
 * weight. That is what a parked process looks like. */
#ifndef SAMPLED_AGGREGATOR_HISTORY_ENTRY_H
#define SAMPLED_AGGREGATOR_HISTORY_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/history_sums.h"
#include "base/buf.h"

struct pattern_node {
	uint32_t node;
	uint32_t present; /* bit v: VALUE_RUNNABLE + v is the weight */
};

struct pattern {
	uint32_t hash, count;
	uint64_t samples, weight_ns; /* of each node when it was first seen: entries say how far they are from these */
	struct pattern_node nodes[];
};

/* All zeros is an empty set. Entries name patterns by their places. */
struct patterns {
	struct pattern **items; /* owned */
	uint32_t count, room;
	uint32_t last_hash; /* of the last slice, if it could have been a pattern; 0: it could not */
	uint64_t bytes;     /* of them all */
};

/* An entry that has been found. */
struct entry {
	uint64_t gap; /* slices between it and the one before */
	bool by_pattern, has_facts;
	uint32_t pattern;
	uint64_t more_samples, more_ns; /* than the pattern's */
	const uint8_t *nodes, *nodes_end, *facts, *end;
};

void patterns_release(struct patterns *patterns, struct budget *budget);

/* Appends the sums, which are sorted, as an entry. 0 or -ENOMEM. */
int entry_write(struct buf *to, struct patterns *patterns, struct budget *budget, const struct sums *sums,
                uint64_t gap);
/* The entry at `at`, which entry_write() made; its end is the next one's beginning. */
struct entry entry_read(const uint8_t *at);
/* Adds the entry to sums, its nodes by their new numbers where there is a map. The samples that found no memory are returned, and added to the facts
 * as such. */
uint64_t entry_add(const struct entry *entry, const struct patterns *patterns, const uint32_t *map, struct sums *to);
/* Sets marks[node] for each of the entry's nodes. */
void entry_mark(const struct entry *entry, const struct patterns *patterns, uint32_t *marks);

#endif
