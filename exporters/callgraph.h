/* SPDX-License-Identifier: Apache-2.0 */
/* A call graph: functions with their totals, and which calls which. What pstats, callgrind and DOT write and the report shows; derived from any
 * profile, or read from a file that has no more than this (pstats). Lines are told apart where a format asks for it, and of a profile only.
 *
 * Where samples are counted they stand in for calls: primitive_calls is the samples that hold the function at least once, calls its frames over
 * all samples. Times are doubles in seconds, as in pstats files, so that what was read is written unchanged. */
#ifndef SAMPLED_EXPORTERS_CALLGRAPH_H
#define SAMPLED_EXPORTERS_CALLGRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/profile.h"
#include "base/buf.h"
#include "exporters/intern.h"
#include "exporters/line_costs.h"

struct call_sums {
	int64_t primitive_calls, calls; /* of each function or call -1 where they are unknown, as pyinstrument writes it: sums of that are as in pstats */
	double self_s;  /* pstats' tottime: in the function itself */
	double total_s; /* pstats' cumtime: with what it calls; recursion counts once */
};

struct callgraph_function {
	uint32_t name, file; /* numbers in texts */
	uint32_t line;       /* of its definition; 0: unknown */
	uint32_t module;     /* of native code, a number in texts + 1: of the first that was added; 0: none */
	bool has_sums;       /* false: only ever named as a caller */
	uint32_t entry;      /* of those with sums, the how manyth to get them: the order of the file */
	struct call_sums sums;
	uint64_t self_samples;      /* samples that end in it; 0 where the graph has none (has_samples) */
	uint64_t gil_ns;            /* self; 0 where the profile has no such value */
	uint64_t cpu_ns,
		cpu_total_ns; /* on a CPU as the kernel counted, itself and with what it calls; 0 where has_cpu is false */
};

struct callgraph_edge {
	uint32_t caller, callee; /* indices of functions */
	struct call_sums sums;   /* of the callee, as far as this caller called it; each counted once a sample */
	/* Of these, the samples whose outermost frame of the callee was called by this caller: over all callers, and no caller, they add up to the
	 * callee's total, also under recursion. What was read from a file has them by what the file says. */
	uint64_t outer_samples, outer_cpu_ns;
	double outer_s;
};

struct callgraph {
	struct text_set texts;
	struct callgraph_function *functions; /* owned */
	uint32_t function_count, function_room;
	uint32_t entry_count;         /* functions with sums */
	struct callgraph_edge *edges; /* owned; in the order in which they were first met */
	uint32_t edge_count, edge_room;
	struct pair_set edge_set;     /* (caller, callee) → index of edge */
	struct pair_set place_set;    /* (name, file) → number */
	struct pair_set function_set; /* (that number, line) → index of function */
	double sampled_s;             /* all self times */
	bool from_samples;            /* calls are counts of samples, not of calls */
	bool has_samples;             /* self_samples and outer_samples are known: it was made from profiles */
	bool has_cpu;                 /* cpu_ns, cpu_total_ns and outer_cpu_ns are known */
	bool edges_are_counts; /* the file had counts of calls for edges and nothing else; their times are guessed */
	bool strip_dirs;       /* files go in by their last part; set it before the first function */
	const char *value;     /* which of a file's values is to be read; NULL: the file's own choice. Set it before reading; the caller's */
	/* Where the profile's costs lie, if with_lines says so before it is added: parts of the functions' self values, and of the edges' calls and
	 * outer values. What has no rows here has no known lines; an unknown line is the first of its function. Readers add what they know in any case. */
	bool with_lines;
	struct line_costs self_lines, call_lines; /* of functions and edges, by index */
	struct buf facts; /* lines for people, each "label: text\n" and safe to print: what was sampled and lost */
	bool is_time;     /* the times are seconds; false: the weight has another unit, see unit */
	char unit[72];    /* of self_s and total_s: "seconds", or what the profile's weight is counted in */
	const struct process *process; /* the profile's, where it has one only; NULL: none, several, or not known */
	int err;                       /* sticky: -ENOMEM */
};

#define CALLGRAPH_EMPTY "<no frames>"

void callgraph_init(struct callgraph *graph);
void callgraph_release(struct callgraph *graph);
/* The index of the function with this content, added without sums when there is none yet; INTERN_FAILED: no memory. */
uint32_t callgraph_function(struct callgraph *graph, const char *name, size_t name_bytes, const char *file,
                            size_t file_bytes, uint32_t line);
/* The function has this module, unless it has one already or it is "". */
void callgraph_set_module(struct callgraph *graph, uint32_t function, const char *module);
/* The same of an edge. The pointer is good until the next one. NULL: no memory. */
struct callgraph_edge *callgraph_edge(struct callgraph *graph, uint32_t caller, uint32_t callee);
/* Texts may hold anything, NULs too, where they were read from a file; these two end at the first one. */
const char *callgraph_name(const struct callgraph *graph, uint32_t function);
const char *callgraph_file(const struct callgraph *graph, uint32_t function);

/* The edges of each function next to each other, by caller or by callee: those of function f are edges[first[f] … first[f + 1]), indices of
 * graph->edges in their order. Both are the caller's to free. 0 or -ENOMEM. */
int callgraph_sort_edges(const struct callgraph *graph, bool by_caller, uint32_t **ret_first, uint32_t **ret_edges);
/* "seconds", which is time, or any other text, of which 71 bytes are kept. */
void callgraph_set_unit(struct callgraph *graph, const char *unit);
/* Makes a function one that has sums. */
void callgraph_give_sums(struct callgraph *graph, uint32_t function);
/* Adds sums that mean the same. */
void call_sums_add(struct call_sums *to, const struct call_sums *from);
/* Adds "label: text" to the facts, made safe. */
void callgraph_fact(struct callgraph *graph, const char *label, const char *text);

/* What the amounts of a profile are counted in, in a graph: "seconds", "samples", "bytes", or the name of what is counted. The profile's, or static. */
const char *callgraph_unit_of(const struct profile *profile);
/* Adds a profile to a graph, by its weight (profile_weight()). Samples with an empty stack become the
 * function CALLGRAPH_EMPTY, so that self times add up. 0 or -ENOMEM. */
int callgraph_add_profile(struct callgraph *graph, const struct profile *profile);
/* Adds another graph, as pstats.Stats.add() does: calls and times are added up. It has the same unit, unless the first has no functions yet. */
int callgraph_add(struct callgraph *graph, const struct callgraph *other);

/* Counts of a file may be anything, below zero too: a sum that is too large for a number is the largest, or the least, that there is. */
static inline int64_t call_count_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

#endif
