/* SPDX-License-Identifier: Apache-2.0 */
/* The call graph of a callgrind file, from its costs.
 *
 * As callgrind_annotate has it, a function is a name in a file: code that was inlined from another file is a function of its own there, which
 * the function around it calls.
 *
 * A function's total is what its calls cost, those by itself left out; of one that nobody calls, what it costs itself and its calls. In a
 * cycle of functions calls count what is in them again: no total is above the whole. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "exporters/callgrind_reader.h"

enum {
	FUNCTIONS_MAX = 1 << 22,
	EDGES_MAX = 1 << 24,
	NAME_ROOT = 6, /* bytes of "<root>" */
};

int callgrind_no_memory(const struct callgrind_reader *r)
{
	return fault_set(r->fault, -ENOMEM, "", "out of memory");
}

/* --- functions --- */

static uint32_t *home_of(const struct callgrind_reader *r, uint32_t function)
{
	return (uint32_t *)(void *)r->homes.data + function;
}

/* "???" is how callgrind says that it does not know. */
uint32_t callgrind_add_function(struct callgrind_reader *r, uint32_t name, uint32_t file, uint32_t object)
{
	struct span name_text = callgrind_name(&r->names, name), file_text = callgrind_name(&r->names, file);
	struct span object_text = callgrind_name(&r->names, object);
	uint32_t none = INTERN_FAILED, function;
	struct buf module = {0};

	if (file_text.bytes == 3 && memcmp(file_text.at, "???", 3) == 0)
		file_text.bytes = 0;
	if (r->graph->function_count >= FUNCTIONS_MAX)
		return INTERN_FAILED;
	function = callgraph_function(r->graph, name_text.at, name_text.bytes, file_text.at, file_text.bytes, 0);
	if (function == INTERN_FAILED)
		return function;
	while (r->homes.bytes / sizeof(none) < r->graph->function_count && !r->homes.err)
		buf_add(&r->homes, &none, sizeof(none));
	if (object_text.bytes > 0 && object_text.at[0] != '?') {
		utf8_add_valid(&module, object_text.at, object_text.bytes);
		callgraph_set_module(r->graph, function, buf_text(&module));
	}
	buf_release(&module);
	return r->homes.err ? INTERN_FAILED : function;
}

bool callgrind_is_root(const struct callgrind_reader *r, uint32_t name)
{
	struct span text = callgrind_name(&r->names, name);

	return r->is_ours && text.bytes == NAME_ROOT && memcmp(text.at, "<root>", NAME_ROOT) == 0;
}

int callgrind_no_function(const struct callgrind_reader *r)
{
	return r->graph->err || r->homes.err ? callgrind_no_memory(r)
	                                     : fault_set(r->fault, -EPROTO, "", "it has more than 4 million functions");
}

int callgrind_find_function(struct callgrind_reader *r)
{
	uint32_t home;

	if (r->function != INTERN_FAILED)
		return 0;
	r->function = callgrind_add_function(r, r->name, r->file, r->object);
	home = r->file == r->home_file ? r->function : callgrind_add_function(r, r->name, r->home_file, r->object);
	if (r->function == INTERN_FAILED || home == INTERN_FAILED)
		return callgrind_no_function(r);
	callgraph_give_sums(r->graph, home);
	callgraph_give_sums(r->graph, r->function);
	if (home != r->function)
		*home_of(r, r->function) = home;
	return 0;
}

/* --- costs --- */

void callgrind_set_line(struct callgraph_function *function, uint32_t line, bool is_said)
{
	if (line && (is_said || function->line == 0))
		function->line = line;
}

int callgrind_add_self(struct callgrind_reader *r, const struct callgrind_cost *cost)
{
	struct callgraph_function *function = &r->graph->functions[r->function];
	struct line_cost row = {.of = r->function,
	                        .line = r->positions.line,
	                        .samples = cost->samples,
	                        .weight = cost->weight,
	                        .cpu_ns = cost->cpu_ns};

	function->sums.self_s += (double)cost->weight * r->columns.scale;
	function->self_samples += cost->samples;
	function->cpu_ns += cost->cpu_ns;
	r->sum += cost->weight;
	if (r->sum > CALLGRIND_SUM_MAX)
		return fault_set(r->fault, -EPROTO, "", "its costs are too large, at line %" PRIu64, r->line_number);
	return line_costs_add(&r->graph->self_lines, &row) ? callgrind_no_memory(r) : 0;
}

/* What <root> calls begins a stack: it has no caller. */
static int add_root_call(struct callgrind_reader *r, const struct callgrind_cost *cost)
{
	struct callgraph_function *callee = &r->graph->functions[r->callee];

	callgraph_give_sums(r->graph, r->callee);
	callee->sums.total_s += (double)cost->weight * r->columns.scale;
	callee->sums.primitive_calls += (int64_t)cost->samples;
	callee->cpu_total_ns += cost->cpu_ns;
	return 0;
}

int callgrind_add_call(struct callgrind_reader *r, const struct callgrind_cost *cost)
{
	double seconds = (double)cost->weight * r->columns.scale;
	bool is_recursive = r->callee == r->function;
	struct callgraph_edge *edge;
	struct line_cost row = {.line = r->positions.line,
	                        .calls = r->calls,
	                        .samples = cost->samples,
	                        .weight = cost->weight,
	                        .cpu_ns = cost->cpu_ns};

	if (callgrind_is_root(r, r->name))
		return add_root_call(r, cost);
	if (r->graph->edge_count >= EDGES_MAX)
		return fault_set(r->fault, -EPROTO, "", "its calls are too many, at line %" PRIu64, r->line_number);
	edge = callgraph_edge(r->graph, r->function, r->callee);
	if (!edge)
		return callgrind_no_memory(r);
	callgraph_give_sums(r->graph, r->callee);
	edge->sums.calls += (int64_t)r->calls;
	edge->sums.primitive_calls += is_recursive ? 0 : (int64_t)r->calls;
	edge->sums.total_s += seconds;
	edge->outer_s += is_recursive ? 0 : seconds;
	edge->outer_samples += cost->samples;
	edge->outer_cpu_ns += cost->cpu_ns;
	row.of = (uint32_t)(edge - r->graph->edges);
	return line_costs_add(&r->graph->call_lines, &row) ? callgrind_no_memory(r) : 0;
}

/* --- totals --- */

struct called {
	double s; /* what calls of a function by others cost */
	bool any;
};

/* Of a function that nobody calls: its own cost and that of its calls. */
static void add_uncalled(struct callgrind_reader *r, const struct called *called)
{
	for (uint32_t i = 0; i < r->graph->function_count; i++)
		if (!called[i].any)
			r->graph->functions[i].sums.total_s += r->graph->functions[i].sums.self_s;
	for (uint32_t i = 0; i < r->graph->edge_count; i++) {
		const struct callgraph_edge *edge = &r->graph->edges[i];

		if (!called[edge->caller].any)
			r->graph->functions[edge->caller].sums.total_s += edge->outer_s;
	}
}

/* Code that was inlined is called by the function around it. What is called by itself, too, has its callers. */
static int add_inlined(struct callgrind_reader *r, const struct called *called)
{
	for (uint32_t i = 0; i < r->homes.bytes / sizeof(uint32_t); i++) {
		uint32_t home = *home_of(r, i);
		struct callgraph_edge *edge;
		double total_s = r->graph->functions[i].sums.total_s;

		if (home == INTERN_FAILED || called[i].any)
			continue;
		edge = r->graph->edge_count < EDGES_MAX ? callgraph_edge(r->graph, home, i) : NULL;
		if (!edge)
			return callgrind_no_memory(r);
		edge->sums.total_s += total_s;
		edge->outer_s += total_s;
		if (!called[home].any)
			r->graph->functions[home].sums.total_s += total_s;
	}
	return 0;
}

/* What a caller had of a callee's own cost is not said: as much as it had of its total. */
static void share_self(struct callgraph *graph)
{
	for (uint32_t i = 0; i < graph->edge_count; i++) {
		struct callgraph_edge *edge = &graph->edges[i];
		const struct call_sums *callee = &graph->functions[edge->callee].sums;
		double share = callee->total_s > 0 ? edge->outer_s / callee->total_s : 0;

		edge->sums.self_s = callee->self_s * (share > 1 ? 1 : share);
	}
}

int callgrind_add_totals(struct callgrind_reader *r)
{
	struct callgraph *graph = r->graph;
	struct called *called = calloc(graph->function_count + (size_t)1, sizeof(*called));
	int err;

	if (!called)
		return callgrind_no_memory(r);
	for (uint32_t i = 0; i < graph->function_count; i++) /* by <root> */
		called[i].any = graph->functions[i].sums.total_s > 0 || graph->functions[i].sums.primitive_calls > 0;
	for (uint32_t i = 0; i < graph->edge_count; i++) {
		const struct callgraph_edge *edge = &graph->edges[i];
		struct callgraph_function *callee = &graph->functions[edge->callee];

		callee->sums.calls += edge->sums.calls;
		callee->sums.primitive_calls += r->is_ours ? (int64_t)edge->outer_samples : edge->sums.primitive_calls;
		callee->cpu_total_ns += edge->outer_cpu_ns;
		called[edge->callee].any |= edge->sums.primitive_calls > 0;
		called[edge->callee].s += edge->outer_s;
	}
	add_uncalled(r, called);
	err = add_inlined(r, called);
	graph->sampled_s = (double)r->sum * r->columns.scale;
	for (uint32_t i = 0; i < graph->function_count; i++) {
		struct call_sums *sums = &graph->functions[i].sums;

		sums->total_s += called[i].s;
		if (sums->total_s < sums->self_s)
			sums->total_s = sums->self_s;
		if (sums->total_s > graph->sampled_s)
			sums->total_s = graph->sampled_s;
	}
	share_self(graph);
	free(called);
	return err;
}
