/* SPDX-License-Identifier: Apache-2.0 */
/* The call graph of a profile: each thread's tree walked once, with a count of the frames of each function, and calls of each edge, that are
 * open on the way, so that recursion counts once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "exporters/callgraph.h"
#include "exporters/facts.h"
#include "exporters/walk.h"

struct folding {
	struct callgraph *graph;
	const struct profile *profile;
	const struct thread_tree *tree;
	const uint64_t *totals;
	const uint32_t *functions; /* of each symbol */
	uint32_t *open_functions;  /* frames of each on the path from the root to here */
	uint32_t *open_edges;      /* calls of each … */
	uint32_t open_edges_room;
	uint32_t *edge_of; /* of each node: index + 1; 0: it is called by nobody */
	enum value_index by;
	double scale; /* of a unit of the weight, in the graph's */
};

static bool reserve_open_edges(struct folding *f)
{
	uint32_t room = f->graph->edge_room, *larger;

	if (f->open_edges && room <= f->open_edges_room)
		return true;
	larger = realloc(f->open_edges, room * sizeof(*larger));
	if (!larger)
		return false;
	memset(larger + f->open_edges_room, 0, (room - f->open_edges_room) * sizeof(*larger));
	f->open_edges = larger;
	f->open_edges_room = room;
	return true;
}

static void leave(struct folding *f, uint32_t n)
{
	f->open_functions[f->functions[f->tree->nodes[n].symbol]]--;
	if (f->edge_of[n])
		f->open_edges[f->edge_of[n] - 1]--;
}

static struct call_sums sums_of(const struct folding *f, uint32_t n, bool is_open)
{
	const uint64_t *totals = f->totals + (size_t)n * VALUE_COUNT;

	return (struct call_sums){
		.primitive_calls = is_open ? 0 : (int64_t)totals[VALUE_SAMPLES],
		.calls = (int64_t)totals[VALUE_SAMPLES],
		.self_s = (double)f->tree->nodes[n].self[f->by] * f->scale,
		.total_s = is_open ? 0 : (double)totals[f->by] * f->scale,
	};
}

static uint32_t line_of(const struct folding *f, uint32_t n)
{
	const struct node *node = &f->tree->nodes[n];

	return node->line ? node->line : f->profile->symbols[node->symbol].first_line;
}

static uint64_t cpu_of(const struct folding *f, const uint64_t *values)
{
	return profile_has(f->profile, VALUE_CPU) ? values[VALUE_CPU] : 0;
}

static int add_self_line(struct folding *f, uint32_t n)
{
	const struct node *node = &f->tree->nodes[n];

	if (!f->graph->with_lines ||
	    (node->self[VALUE_SAMPLES] == 0 && node->self[f->by] == 0 && cpu_of(f, node->self) == 0))
		return 0;
	return line_costs_add(&f->graph->self_lines, &(struct line_cost){.of = f->functions[node->symbol],
	                                                                 .line = line_of(f, n),
	                                                                 .samples = node->self[VALUE_SAMPLES],
	                                                                 .weight = node->self[f->by],
	                                                                 .cpu_ns = cpu_of(f, node->self)});
}

/* is_open: an outer frame of the callee has these samples already. */
static int add_call_line(struct folding *f, uint32_t n, uint32_t edge, bool is_open)
{
	const uint64_t *totals = f->totals + (size_t)n * VALUE_COUNT;

	if (!f->graph->with_lines)
		return 0;
	return line_costs_add(&f->graph->call_lines, &(struct line_cost){.of = edge,
	                                                                 .line = line_of(f, f->tree->nodes[n].parent),
	                                                                 .calls = totals[VALUE_SAMPLES],
	                                                                 .samples = is_open ? 0 : totals[VALUE_SAMPLES],
	                                                                 .weight = is_open ? 0 : totals[f->by],
	                                                                 .cpu_ns = is_open ? 0 : cpu_of(f, totals)});
}

static int enter(struct folding *f, uint32_t n)
{
	const struct node *node = &f->tree->nodes[n];
	struct callgraph_function *function = &f->graph->functions[f->functions[node->symbol]];
	uint32_t *open = &f->open_functions[f->functions[node->symbol]];
	struct call_sums sums = sums_of(f, n, *open > 0);
	uint64_t outer_cpu_ns;

	callgraph_give_sums(f->graph, f->functions[node->symbol]);
	function->self_samples += node->self[VALUE_SAMPLES];
	call_sums_add(&function->sums, &sums);
	if (profile_has(f->profile, VALUE_GIL))
		function->gil_ns += node->self[VALUE_GIL];
	outer_cpu_ns = *open > 0 ? 0 : cpu_of(f, f->totals + (size_t)n * VALUE_COUNT);
	function->cpu_ns += cpu_of(f, node->self);
	function->cpu_total_ns += outer_cpu_ns;
	f->graph->sampled_s += sums.self_s;
	if (add_self_line(f, n))
		return -ENOMEM;
	if (node->parent) {
		struct call_sums outer = sums;
		struct callgraph_edge *edge = callgraph_edge(
			f->graph, f->functions[f->tree->nodes[node->parent].symbol], f->functions[node->symbol]);
		uint32_t index;

		if (!edge || !reserve_open_edges(f))
			return -ENOMEM;
		index = (uint32_t)(edge - f->graph->edges);
		if (add_call_line(f, n, index, *open > 0))
			return -ENOMEM;
		sums = sums_of(f, n, f->open_edges[index] > 0);
		call_sums_add(&edge->sums, &sums);
		edge->outer_samples += (uint64_t)outer.primitive_calls;
		edge->outer_s += outer.total_s;
		edge->outer_cpu_ns += outer_cpu_ns;
		f->open_edges[index]++;
		f->edge_of[n] = index + 1;
	}
	(*open)++;
	return 0;
}

static int fold_tree(struct folding *f, const struct thread_tree *tree)
{
	uint64_t *totals = profile_totals(tree);
	uint32_t at = 0, next, left;
	int err = 0;

	f->tree = tree;
	f->totals = totals;
	f->edge_of = calloc(tree->node_count, sizeof(*f->edge_of));
	if (!totals || !f->edge_of)
		err = -ENOMEM;
	while (!err && (next = walk_next(tree, at, &left)) != 0) {
		for (; left > 0; left--) {
			leave(f, at);
			at = tree->nodes[at].parent;
		}
		err = enter(f, next);
		at = next;
	}
	for (; at && !err; at = tree->nodes[at].parent)
		leave(f, at);
	free(totals);
	free(f->edge_of);
	return err;
}

static int add_empty_stacks(struct folding *f)
{
	struct node sum = {0};
	struct callgraph_function *function;
	struct call_sums sums;
	uint32_t index;

	for (uint32_t i = 0; i < f->profile->thread_count; i++)
		for (size_t v = 0; v < VALUE_COUNT; v++)
			sum.self[v] += f->profile->threads[i].nodes[0].self[v];
	if (sum.self[VALUE_SAMPLES] == 0 && sum.self[f->by] == 0 && cpu_of(f, sum.self) == 0)
		return 0;
	index = callgraph_function(f->graph, CALLGRAPH_EMPTY, strlen(CALLGRAPH_EMPTY), "", 0, 0);
	if (index == INTERN_FAILED)
		return -ENOMEM;
	function = &f->graph->functions[index];
	sums = (struct call_sums){.primitive_calls = (int64_t)sum.self[VALUE_SAMPLES],
	                          .calls = (int64_t)sum.self[VALUE_SAMPLES],
	                          .self_s = (double)sum.self[f->by] * f->scale,
	                          .total_s = (double)sum.self[f->by] * f->scale};
	call_sums_add(&function->sums, &sums);
	callgraph_give_sums(f->graph, index);
	function->self_samples += sum.self[VALUE_SAMPLES];
	if (profile_has(f->profile, VALUE_GIL))
		function->gil_ns += sum.self[VALUE_GIL];
	function->cpu_ns += cpu_of(f, sum.self);
	function->cpu_total_ns += cpu_of(f, sum.self);
	f->graph->sampled_s += sums.self_s;
	return 0;
}

static int add_facts(struct callgraph *graph, const struct profile *profile)
{
	struct facts *facts = malloc(sizeof(*facts));

	if (!facts)
		return -ENOMEM;
	facts_make(facts, profile);
	for (size_t i = 0; i < facts->count; i++)
		callgraph_fact(graph, facts->items[i].label, facts->items[i].text);
	free(facts);
	return graph->err;
}

const char *callgraph_unit_of(const struct profile *profile)
{
	enum value_index by = profile_weight(profile);
	const char *unit = profile->values[by].unit;

	if (by == VALUE_SAMPLES)
		return "samples";
	if (strcmp(unit, "nanoseconds") == 0)
		return "seconds";
	return strcmp(unit, "count") == 0 ? profile->values[by].name : unit;
}

int callgraph_add_profile(struct callgraph *graph, const struct profile *profile)
{
	struct folding f = {.graph = graph, .profile = profile, .by = profile_weight(profile)};
	uint32_t *functions = calloc(profile->symbol_count + (size_t)1, sizeof(*functions));
	int err = functions ? 0 : -ENOMEM;

	callgraph_set_unit(graph, callgraph_unit_of(profile));
	graph->process = graph->function_count == 0 && profile->process_count == 1 ? profile->processes : NULL;
	graph->has_samples = graph->function_count == 0 || graph->has_samples;
	graph->has_cpu = profile_has(profile, VALUE_CPU) && (graph->function_count == 0 || graph->has_cpu);
	graph->from_samples = true;
	f.scale = graph->is_time ? 1 / (double)NS_PER_S : 1;
	f.functions = functions;
	/* Functions that no node names are left out below: only what is entered has sums. */
	for (uint32_t i = 0; i < profile->symbol_count && !err; i++) {
		const struct symbol *symbol = &profile->symbols[i];

		functions[i] = callgraph_function(graph, symbol->name, strlen(symbol->name), symbol->file,
		                                  strlen(symbol->file), symbol->first_line);
		if (!graph->err)
			callgraph_set_module(graph, functions[i], symbol->module);
		err = graph->err;
	}
	f.open_functions = calloc(graph->function_count + (size_t)1, sizeof(*f.open_functions));
	if (!f.open_functions)
		err = -ENOMEM;
	for (uint32_t i = 0; i < profile->thread_count && !err; i++)
		err = fold_tree(&f, &profile->threads[i]);
	if (!err)
		err = add_empty_stacks(&f);
	if (!err)
		err = add_facts(graph, profile);
	free(functions);
	free(f.open_functions);
	free(f.open_edges);
	if (err)
		graph->err = err;
	return err;
}
