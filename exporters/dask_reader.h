/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of Dask's profiles while it reads: the parser fills the nodes of one tree, which goes to the builder when it is whole. */
#ifndef SAMPLED_EXPORTERS_DASK_READER_H
#define SAMPLED_EXPORTERS_DASK_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/builder.h"
#include "base/buf.h"
#include "base/fault.h"
#include "exporters/intern.h"

enum { DASK_NODES_MAX = 1 << 24 }; /* of one tree */

/* A node as the file has it. Texts are numbers in texts, INTERN_FAILED: not there. */
struct dask_node {
	uint32_t parent, identifier, name, filename, line;
	uint32_t place; /* in the builder's tree */
	uint64_t count, below;
	bool has_count;
};

struct dask_reader {
	struct builder *to;
	struct buf levels; /* struct level, the parser's own */
	struct buf nodes;  /* struct dask_node, of the tree at hand; parents first */
	struct text_set texts;
	uint32_t thread;
	uint64_t time_ns, first_ns, trees, untimed, repaired, sum;
	bool in_history, has_time; /* has_time: of the entry at hand */
	bool moved;                /* the parser called since the last look */
	bool is_weight;            /* the counts are the weight, no samples */
	uint32_t value, unit;      /* what the counts are, in texts; INTERN_FAILED: samples */
	const char *why;           /* static; NULL: nothing is wrong */
	struct fault *fault;       /* the caller's: says it, too */
};

static inline struct dask_node *dask_raw(struct dask_reader *reader, uint32_t node)
{
	return (struct dask_node *)(void *)reader->nodes.data + node;
}

/* What a callback of the parser returns to end the parsing: 0. The first reason stands. */
int dask_stop(struct dask_reader *reader, const char *why);

/* The tree at hand into the builder; the next one may begin. As a callback of the parser: 0 ends the parsing. */
int dask_end_tree(struct dask_reader *reader);

#endif
