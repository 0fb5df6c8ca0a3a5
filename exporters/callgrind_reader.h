/* SPDX-License-Identifier: Apache-2.0 */
/* The state of callgrind's reader: its lines (callgrind_read.c), and the call graph that they make (callgrind_graph.c). */
#ifndef SAMPLED_EXPORTERS_CALLGRIND_READER_H
#define SAMPLED_EXPORTERS_CALLGRIND_READER_H

#include "exporters/callgraph.h"
#include "exporters/callgrind_parts.h"

/* Of all costs: sums stay below 2^64. */
#define CALLGRIND_SUM_MAX (UINT64_C(1) << 62)

struct callgrind_reader {
	struct callgraph *graph;
	struct fault *fault;
	struct buf line;
	struct callgrind_names names;
	struct buf homes; /* uint32_t, of each function: the one whose code it is, inlined; INTERN_FAILED: its own */
	char events[256]; /* the line that names them */
	struct callgrind_events columns;
	struct callgrind_positions positions;
	uint32_t file, home_file, object; /* texts of graph; INTERN_FAILED: none */
	uint32_t name;                    /* of the function at hand; INTERN_FAILED: none yet */
	uint32_t function;                /* of it in the file at hand; INTERN_FAILED: it has no cost there yet */
	uint32_t callee_file, callee_object, callee;
	uint64_t calls; /* of the cost line that comes next; 0: it is of the function itself */
	uint64_t sum, file_total, line_number, bad, first_bad;
	bool is_ours;
};

/* All that return int: 0, or -errno with the reader's fault filled. */
int callgrind_no_memory(const struct callgrind_reader *r);
/* Names are the reader's; INTERN_FAILED: there are too many functions, or no memory. */
uint32_t callgrind_add_function(struct callgrind_reader *r, uint32_t name, uint32_t file, uint32_t object);
/* Of a file of ours: what begins the stacks, no function. */
bool callgrind_is_root(const struct callgrind_reader *r, uint32_t name);
/* The function at hand, in the file at hand, is r->function. */
int callgrind_find_function(struct callgrind_reader *r);
/* Why there was none. */
int callgrind_no_function(const struct callgrind_reader *r);
/* Where a function begins, for people: what calls of it say, or else its first line with a cost. */
void callgrind_set_line(struct callgraph_function *function, uint32_t line, bool is_said);
int callgrind_add_self(struct callgrind_reader *r, const struct callgrind_cost *cost);
int callgrind_add_call(struct callgrind_reader *r, const struct callgrind_cost *cost);
/* When all lines are read: what functions cost with what they call. */
int callgrind_add_totals(struct callgrind_reader *r);

#endif
