/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics of a call graph as Python's pstats shows them: its functions with their standard names, in an order, and what calls what.
 * Where versions of pstats differ this follows the newest (3.15). */
#ifndef SAMPLED_EXPORTERS_STATS_H
#define SAMPLED_EXPORTERS_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "exporters/callgraph.h"

/* A function's standard name: "file:line(function)"; what has no place in a file: its name, with pstats' braces for built-ins. */
struct stats_name {
	size_t raw_off, raw_bytes;   /* as in the profile: sorted and matched by */
	size_t safe_off, safe_bytes; /* for a terminal */
	uint32_t characters;         /* of the safe one: what tables are aligned by */
};

struct stats {
	const struct callgraph *graph; /* the caller's; not changed while this lives */
	struct stats_name *names; /* of every function of the graph, those that were only ever named as callers too */
	struct buf texts;         /* what names point into */
	uint32_t *listing;        /* functions that have sums, in the order that was asked for */
	uint32_t count;           /* of them */
	bool is_sorted;           /* false: they are in the profile's order */
	struct buf order;         /* "internal time, function name" */
	int64_t calls, primitive_calls;
};

/* 0 or -ENOMEM. */
int stats_make(struct stats *ret_stats, const struct callgraph *graph);
void stats_release(struct stats *stats);
/* Ends in a NUL, and may hold some. */
const char *stats_raw_name(const struct stats *stats, uint32_t function, size_t *ret_bytes);
/* As pstats has it: "~" where there is none. It may hold NULs, and ends in one. */
const char *stats_file(const struct stats *stats, uint32_t function, size_t *ret_bytes);
/* Not NUL-terminated. */
const char *stats_safe_name(const struct stats *stats, uint32_t function, size_t *ret_bytes);

/* The next line of the graph's facts, without its end; *at is 0 at first. NULL: there are no more. */
const char *stats_fact(const struct callgraph *graph, size_t *at, size_t *ret_bytes);

/* A call graph with files by their last part. Functions that become alike are added up. Of two callers of one function that become alike
 * pstats keeps the last one only: so do graphs that were read from its files, so that both show the same. 0 or -ENOMEM; *ret_graph is to be
 * released either way. */
int stats_strip_dirs(struct callgraph *ret_graph, const struct callgraph *graph);

/* Calls by one of their ends: those of function f are edges[starts[f] … starts[f + 1]), sorted by the other end as pstats does. */
struct stats_calls {
	uint32_t *starts, *edges;
};

/* by_callee: who calls each function; otherwise whom it calls. 0 or -ENOMEM. */
int stats_calls_make(struct stats_calls *ret_calls, const struct stats *stats, bool by_callee);
void stats_calls_release(struct stats_calls *calls);
/* Compare functions as Python compares their files, names and standard names: by code points. */
int stats_compare_files(const struct stats *stats, uint32_t left, uint32_t right);
int stats_compare_function_names(const struct stats *stats, uint32_t left, uint32_t right);
int stats_compare_names(const struct stats *stats, uint32_t left, uint32_t right);
/* Compares functions as Python compares the tuples (file, line, name). */
int stats_compare_functions(const struct stats *stats, uint32_t left, uint32_t right);

#endif
