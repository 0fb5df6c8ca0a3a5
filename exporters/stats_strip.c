/* SPDX-License-Identifier: Apache-2.0 */
/* pstats' strip_dirs() on a call graph. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/stats.h"

/* The new graph strips by itself. */
static uint32_t add_stripped(struct callgraph *to, const struct callgraph *from, uint32_t function)
{
	const struct callgraph_function *f = &from->functions[function];
	size_t name_bytes, file_bytes;
	const char *name = text_set_get(&from->texts, f->name, &name_bytes);
	const char *file = text_set_get(&from->texts, f->file, &file_bytes);

	return callgraph_function(to, name, name_bytes, file, file_bytes, f->line);
}

/* by_entry has room for the functions with sums, which keep their order: so floats are added in pstats' order too. */
static void strip_functions(struct callgraph *to, const struct callgraph *from, uint32_t *new_index, uint32_t *by_entry)
{
	for (uint32_t i = 0; i < from->function_count && !to->err; i++) {
		new_index[i] = add_stripped(to, from, i);
		if (from->functions[i].has_sums)
			by_entry[from->functions[i].entry] = i;
	}
	for (uint32_t i = 0; i < from->entry_count && !to->err; i++) {
		const struct callgraph_function *f = &from->functions[by_entry[i]];
		struct callgraph_function *new = &to->functions[new_index[by_entry[i]]];

		callgraph_give_sums(to, new_index[by_entry[i]]);
		call_sums_add(&new->sums, &f->sums);
		new->self_samples += f->self_samples;
		new->cpu_ns += f->cpu_ns;
		new->gil_ns += f->gil_ns;
	}
}

/* Edge by edge, but of those that one function has from callers that become alike only the last, unless all are kept. */
static int strip_edges(struct callgraph *to, const struct callgraph *from, const uint32_t *new_index, bool keep_all)
{
	struct pair_set seen = {0}; /* (new caller, old callee) */
	uint32_t *last = calloc(from->edge_count + (size_t)1, sizeof(*last)), *place = NULL;
	int err = 0;

	place = calloc(from->edge_count + (size_t)1, sizeof(*place));
	if (!last || !place)
		err = -ENOMEM;
	for (uint32_t i = 0; i < from->edge_count && !err; i++) {
		place[i] = pair_set_add(&seen, new_index[from->edges[i].caller], from->edges[i].callee);
		if (place[i] == INTERN_FAILED)
			err = -ENOMEM;
		else
			last[place[i]] = i;
	}
	for (uint32_t i = 0; i < from->edge_count && !err; i++) {
		const struct callgraph_edge *edge = &from->edges[i];
		struct callgraph_edge *new;

		if (!keep_all && last[place[i]] != i)
			continue;
		new = callgraph_edge(to, new_index[edge->caller], new_index[edge->callee]);
		if (!new) {
			err = -ENOMEM;
			break;
		}
		call_sums_add(&new->sums, &edge->sums);
		new->outer_samples += edge->outer_samples;
		new->outer_s += edge->outer_s;
	}
	pair_set_release(&seen);
	free(last);
	free(place);
	return err;
}

int stats_strip_dirs(struct callgraph *ret_graph, const struct callgraph *graph)
{
	uint32_t *new_index = calloc(graph->function_count + (size_t)1, sizeof(*new_index));
	uint32_t *by_entry = calloc(graph->entry_count + (size_t)1, sizeof(*by_entry));
	int err = new_index && by_entry ? 0 : -ENOMEM;

	callgraph_init(ret_graph);
	ret_graph->strip_dirs = true;
	if (!err) {
		strip_functions(ret_graph, graph, new_index, by_entry);
		err = ret_graph->err;
	}
	if (!err)
		err = strip_edges(ret_graph, graph, new_index, graph->from_samples);
	ret_graph->strip_dirs = false; /* what is added later comes as it is, as in pstats */
	buf_add(&ret_graph->facts, graph->facts.data, graph->facts.bytes);
	if (!err)
		err = ret_graph->facts.err;
	ret_graph->sampled_s = graph->sampled_s;
	ret_graph->from_samples = graph->from_samples;
	ret_graph->has_samples = graph->has_samples;
	ret_graph->edges_are_counts = graph->edges_are_counts;
	callgraph_set_unit(ret_graph, graph->unit);
	free(new_index);
	free(by_entry);
	return err;
}
