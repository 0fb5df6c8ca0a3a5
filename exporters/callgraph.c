/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/callgraph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void callgraph_init(struct callgraph *graph)
{
	*graph = (struct callgraph){.is_time = true, .unit = "seconds"};
}

void callgraph_set_unit(struct callgraph *graph, const char *unit)
{
	graph->is_time = strcmp(unit, "seconds") == 0;
	snprintf(graph->unit, sizeof(graph->unit), "%s", unit);
}

void callgraph_release(struct callgraph *graph)
{
	text_set_release(&graph->texts);
	pair_set_release(&graph->edge_set);
	pair_set_release(&graph->place_set);
	pair_set_release(&graph->function_set);
	line_costs_release(&graph->self_lines);
	line_costs_release(&graph->call_lines);
	buf_release(&graph->facts);
	free(graph->functions);
	free(graph->edges);
	graph->functions = NULL;
	graph->edges = NULL;
}

/* Room for one more of `count`; false: no memory. */
static bool make_room(void **array, uint32_t count, uint32_t *room, size_t bytes)
{
	uint32_t more = *room ? *room * 2 : 64;
	void *larger;

	if (count < *room)
		return true;
	larger = more < INTERN_FAILED / 2 ? realloc(*array, more * bytes) : NULL;
	if (!larger)
		return false;
	*array = larger;
	*room = more;
	return true;
}

static uint32_t fail(struct callgraph *graph)
{
	graph->err = -ENOMEM;
	return INTERN_FAILED;
}

uint32_t callgraph_function(struct callgraph *graph, const char *name, size_t name_bytes, const char *file,
                            size_t file_bytes, uint32_t line)
{
	const char *slash = graph->strip_dirs ? memrchr(file, '/', file_bytes) : NULL;
	size_t skipped = slash ? (size_t)(slash - file) + 1 : 0;
	uint32_t name_number = text_set_add(&graph->texts, name, name_bytes);
	uint32_t file_number = text_set_add(&graph->texts, file + skipped, file_bytes - skipped), place, index;

	if (graph->err || name_number == INTERN_FAILED || file_number == INTERN_FAILED)
		return fail(graph);
	place = pair_set_add(&graph->place_set, name_number, file_number);
	if (place == INTERN_FAILED || !make_room((void **)&graph->functions, graph->function_count,
	                                         &graph->function_room, sizeof(*graph->functions)))
		return fail(graph);
	index = pair_set_add(&graph->function_set, place, line);
	if (index == INTERN_FAILED)
		return fail(graph);
	if (index == graph->function_count)
		graph->functions[graph->function_count++] =
			(struct callgraph_function){.name = name_number, .file = file_number, .line = line};
	return index;
}

void callgraph_set_module(struct callgraph *graph, uint32_t function, const char *module)
{
	uint32_t number;

	if (graph->err || !module[0] || graph->functions[function].module)
		return;
	number = text_set_add(&graph->texts, module, strlen(module));
	if (number == INTERN_FAILED)
		graph->err = -ENOMEM;
	else
		graph->functions[function].module = number + 1;
}

struct callgraph_edge *callgraph_edge(struct callgraph *graph, uint32_t caller, uint32_t callee)
{
	uint32_t index = INTERN_FAILED;

	if (!graph->err &&
	    make_room((void **)&graph->edges, graph->edge_count, &graph->edge_room, sizeof(*graph->edges)))
		index = pair_set_add(&graph->edge_set, caller, callee);
	if (index == INTERN_FAILED) {
		fail(graph);
		return NULL;
	}
	if (index == graph->edge_count)
		graph->edges[graph->edge_count++] = (struct callgraph_edge){.caller = caller, .callee = callee};
	return &graph->edges[index];
}

const char *callgraph_name(const struct callgraph *graph, uint32_t function)
{
	return text_set_get(&graph->texts, graph->functions[function].name, NULL);
}

const char *callgraph_file(const struct callgraph *graph, uint32_t function)
{
	return text_set_get(&graph->texts, graph->functions[function].file, NULL);
}

void callgraph_give_sums(struct callgraph *graph, uint32_t function)
{
	struct callgraph_function *f = &graph->functions[function];

	if (f->has_sums)
		return;
	f->has_sums = true;
	f->entry = graph->entry_count++;
}

void call_sums_add(struct call_sums *to, const struct call_sums *from)
{
	to->primitive_calls = call_count_add(to->primitive_calls, from->primitive_calls);
	to->calls = call_count_add(to->calls, from->calls);
	to->self_s += from->self_s;
	to->total_s += from->total_s;
}

int callgraph_sort_edges(const struct callgraph *graph, bool by_caller, uint32_t **ret_first, uint32_t **ret_edges)
{
	uint32_t *first = calloc(graph->function_count + (size_t)2, sizeof(*first));
	uint32_t *edges = calloc(graph->edge_count + (size_t)1, sizeof(*edges));

	if (!first || !edges) {
		free(first);
		free(edges);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < graph->edge_count; i++)
		first[(by_caller ? graph->edges[i].caller : graph->edges[i].callee) + 2]++;
	for (uint32_t i = 2; i < graph->function_count + 1; i++)
		first[i + 1] += first[i];
	/* first[f + 1] is where f's next edge goes, and in the end where they end. */
	for (uint32_t i = 0; i < graph->edge_count; i++)
		edges[first[(by_caller ? graph->edges[i].caller : graph->edges[i].callee) + 1]++] = i;
	*ret_first = first;
	*ret_edges = edges;
	return 0;
}

void callgraph_fact(struct callgraph *graph, const char *label, const char *text)
{
	utf8_add_safe(&graph->facts, label);
	buf_puts(&graph->facts, ": ");
	utf8_add_safe(&graph->facts, text);
	buf_putc(&graph->facts, '\n');
	if (graph->facts.err)
		graph->err = graph->facts.err;
}

/* numbers: what the rows are of, in the other graph and then in this one. */
static int add_lines(struct line_costs *to, const struct line_costs *from, const uint32_t *numbers)
{
	int err = 0;

	for (uint32_t i = 0; i < from->places.count && !err; i++) {
		struct line_cost row = from->rows[i];

		row.of = numbers[row.of];
		err = line_costs_add(to, &row);
	}
	return err;
}

int callgraph_add(struct callgraph *graph, const struct callgraph *other)
{
	uint32_t *functions = calloc(other->function_count + (size_t)1, sizeof(*functions));
	uint32_t *entries = calloc(other->entry_count + (size_t)1, sizeof(*entries));
	uint32_t *edges = calloc(other->edge_count + (size_t)1, sizeof(*edges));

	if (!functions || !entries || !edges) {
		free(functions);
		free(entries);
		free(edges);
		return graph->err = -ENOMEM;
	}
	if (graph->function_count == 0)
		callgraph_set_unit(graph, other->unit);
	graph->has_samples = other->has_samples && (graph->function_count == 0 || graph->has_samples);
	graph->has_cpu = other->has_cpu && (graph->function_count == 0 || graph->has_cpu);
	for (uint32_t i = 0; i < other->function_count && !graph->err; i++) {
		const struct callgraph_function *from = &other->functions[i];
		size_t name_bytes, file_bytes;
		const char *name = text_set_get(&other->texts, from->name, &name_bytes);
		const char *file = text_set_get(&other->texts, from->file, &file_bytes);
		struct callgraph_function *to;

		functions[i] = callgraph_function(graph, name, name_bytes, file, file_bytes, from->line);
		if (functions[i] == INTERN_FAILED)
			break;
		if (from->module)
			callgraph_set_module(graph, functions[i], text_set_get(&other->texts, from->module - 1, NULL));
		to = &graph->functions[functions[i]];
		call_sums_add(&to->sums, &from->sums);
		if (from->has_sums)
			entries[from->entry] = functions[i];
		to->self_samples += from->self_samples;
		to->gil_ns += from->gil_ns;
		to->cpu_ns += from->cpu_ns;
		to->cpu_total_ns += from->cpu_total_ns;
	}
	for (uint32_t i = 0; i < other->entry_count && !graph->err; i++)
		callgraph_give_sums(graph, entries[i]);
	for (uint32_t i = 0; i < other->edge_count && !graph->err; i++) {
		const struct callgraph_edge *from = &other->edges[i];
		struct callgraph_edge *edge = callgraph_edge(graph, functions[from->caller], functions[from->callee]);

		if (!edge)
			break;
		edges[i] = (uint32_t)(edge - graph->edges);
		call_sums_add(&edge->sums, &from->sums);
		edge->outer_samples += from->outer_samples;
		edge->outer_cpu_ns += from->outer_cpu_ns;
		edge->outer_s += from->outer_s;
	}
	graph->sampled_s += other->sampled_s;
	graph->from_samples |= other->from_samples;
	graph->edges_are_counts |= other->edges_are_counts;
	if (!graph->err)
		graph->err = add_lines(&graph->self_lines, &other->self_lines, functions);
	if (!graph->err)
		graph->err = add_lines(&graph->call_lines, &other->call_lines, edges);
	buf_add(&graph->facts, other->facts.data, other->facts.bytes);
	if (graph->facts.err)
		graph->err = graph->facts.err;
	free(functions);
	free(entries);
	free(edges);
	return graph->err;
}
