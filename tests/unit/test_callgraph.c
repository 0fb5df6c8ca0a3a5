/* SPDX-License-Identifier: Apache-2.0 */
/* The call graph of a profile: recursion counts once, and the sums agree with each other and with a plain count over all stacks. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/callgraph.h"
#include "tests/unit/build_profile.h"
#include "tests/unit/written_graph.h"

static void expect_near(double value, double expected, const char *what)
{
	cr_assert(fabs(value - expected) < 1e-9, "%s: %.12g, not %.12g", what, value, expected);
}

/* Samples are of a millisecond each. */
static void expect_function(const struct callgraph *graph, const char *name, uint64_t primitive, uint64_t calls,
                            uint64_t self)
{
	const struct callgraph_function *f = graph_function(graph, name);

	cr_assert_eq(f->sums.primitive_calls, primitive, "%s", name);
	cr_assert_eq(f->sums.calls, calls, "%s", name);
	cr_assert_eq(f->self_samples, self, "%s", name);
	expect_near(f->sums.total_s, (double)primitive / 1e3, name);
	expect_near(f->sums.self_s, (double)self / 1e3, name);
	cr_assert(f->has_sums);
}

static void expect_edge(const struct callgraph *graph, const char *caller, const char *callee, uint64_t primitive,
                        uint64_t calls, uint64_t outer)
{
	const struct callgraph_edge *edge = graph_edge(graph, caller, callee);

	cr_assert_not_null(edge, "%s does not call %s", caller, callee);
	cr_assert_eq(edge->sums.primitive_calls, primitive, "%s → %s", caller, callee);
	cr_assert_eq(edge->sums.calls, calls, "%s → %s", caller, callee);
	cr_assert_eq(edge->outer_samples, outer, "%s → %s", caller, callee);
	expect_near(edge->sums.total_s, (double)primitive / 1e3, callee);
	expect_near(edge->outer_s, (double)outer / 1e3, callee);
}

static struct profile *new_profile(uint32_t *ret_thread)
{
	struct profile *p = built_new();

	*ret_thread = built_thread(p, built_process(p, 10, "python3"), 0, 10, "MainThread");
	return p;
}

static void make_graph(struct callgraph *graph, struct profile *p)
{
	callgraph_init(graph);
	cr_assert_eq(callgraph_add_profile(graph, p), 0);
	cr_assert(graph->from_samples && graph->has_samples);
}

Test(callgraph, an_empty_profile_is_an_empty_graph)
{
	struct profile *p = built_new();
	struct callgraph graph;

	make_graph(&graph, p);
	cr_assert_eq(graph.function_count, 0);
	cr_assert_eq(graph.edge_count, 0);
	expect_near(graph.sampled_s, 0, "sampled");
	callgraph_release(&graph);
	built_free(p);
}

Test(callgraph, direct_recursion_counts_once)
{
	uint32_t t, main_node, one, two, three, fib;
	struct profile *p = new_profile(&t);
	struct callgraph graph;

	fib = built_symbol(p, "fib", "a.py", 5);
	main_node = built_child(p, t, 0, built_symbol(p, "main", "a.py", 1), 2);
	one = built_child(p, t, main_node, fib, 6);
	two = built_child(p, t, one, fib, 7); /* another line: the same function */
	three = built_child(p, t, two, fib, 6);
	built_sample(p, t, three, 10, STATUS_RUNNABLE);
	built_sample(p, t, two, 5, STATUS_GIL);
	built_sample(p, t, main_node, 2, 0);
	make_graph(&graph, p);
	expect_function(&graph, "main", 17, 17, 2);
	expect_function(&graph, "fib", 15, 15 + 15 + 10, 15);
	expect_edge(&graph, "main", "fib", 15, 15, 15);
	expect_edge(&graph, "fib", "fib", 15, 25, 0);
	cr_assert_eq(graph.edge_count, 2);
	cr_assert_eq(graph_function(&graph, "fib")->gil_ns, 5000000);
	expect_near(graph.sampled_s, 0.017, "sampled");
	callgraph_release(&graph);
	built_free(p);
}

Test(callgraph, mutual_recursion_counts_once)
{
	uint32_t t, a, b, node;
	struct profile *p = new_profile(&t);
	struct callgraph graph;

	a = built_symbol(p, "a", "a.py", 1);
	b = built_symbol(p, "b", "a.py", 5);
	node = built_child(p, t, built_child(p, t, built_child(p, t, 0, a, 2), b, 6), a, 2);
	built_sample(p, t, node, 2, 0);
	built_sample(p, t, built_child(p, t, node, b, 6), 8, 0);
	make_graph(&graph, p);
	expect_function(&graph, "a", 10, 20, 2);
	expect_function(&graph, "b", 10, 18, 8);
	expect_edge(&graph, "a", "b", 10, 18, 10);
	expect_edge(&graph, "b", "a", 10, 10, 0);
	callgraph_release(&graph);
	built_free(p);
}

Test(callgraph, deepest_recursion)
{
	uint32_t t, f, at = 0;
	struct profile *p = new_profile(&t);
	struct callgraph graph;

	f = built_symbol(p, "f", "a.py", 1);
	for (unsigned i = 0; i < REC_DEPTH_MAX; i++)
		at = built_child(p, t, at, f, 2);
	built_sample(p, t, at, 3, 0);
	make_graph(&graph, p);
	expect_function(&graph, "f", 3, 3 * (uint64_t)REC_DEPTH_MAX, 3);
	expect_edge(&graph, "f", "f", 3, 3 * ((uint64_t)REC_DEPTH_MAX - 1), 0);
	callgraph_release(&graph);
	built_free(p);
}

Test(callgraph, threads_are_added_up_and_do_not_mix)
{
	uint32_t t, other, f, g;
	struct profile *p = new_profile(&t);
	struct callgraph graph;

	other = built_thread(p, 0, 0, 11, NULL);
	f = built_symbol(p, "f", "a.py", 1);
	g = built_symbol(p, "g", "a.py", 5);
	built_sample(p, t, built_child(p, t, built_child(p, t, 0, f, 2), g, 6), 4, 0);
	built_sample(p, other, built_child(p, other, built_child(p, other, 0, g, 6), f, 2), 6, 0);
	built_sample(p, other, 0, 5, STATUS_IDLE); /* no frames */
	make_graph(&graph, p);
	expect_function(&graph, "f", 10, 10, 6);
	expect_function(&graph, "g", 10, 10, 4);
	expect_function(&graph, CALLGRAPH_EMPTY, 5, 5, 5);
	expect_edge(&graph, "f", "g", 4, 4, 4);
	expect_edge(&graph, "g", "f", 6, 6, 6);
	expect_near(graph.sampled_s, 0.015, "sampled");
	callgraph_release(&graph);
	built_free(p);
}

/* Symbols of the same content are one function; unused ones have no sums. */
Test(callgraph, functions_are_told_apart_by_content)
{
	uint32_t t;
	struct profile *p = new_profile(&t);
	struct callgraph graph;

	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "a.py", 1), 2), 1, 0);
	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "a.py", 1), 3), 2, 0);
	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "g", "a.py", 9), 3), 4, 0);
	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "h", "b.py", 9), 3), 8, 0);
	built_symbol(p, "unused", "a.py", 1);
	make_graph(&graph, p);
	expect_function(&graph, "f", 3, 3, 3);
	expect_function(&graph, "g", 4, 4, 4);
	cr_assert_not(graph_function(&graph, "unused")->has_sums);
	callgraph_release(&graph);
	built_free(p);
}

Test(callgraph, without_a_weight_samples_are_what_shares_are_of)
{
	uint32_t t;
	struct profile *p = new_profile(&t);
	struct callgraph graph;

	for (size_t v = VALUE_WALL; v < VALUE_COUNT; v++)
		p->values[v] = (struct value_type){0};
	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "a.py", 1), 2), 7, 0);
	make_graph(&graph, p);
	cr_assert_not(graph.is_time);
	cr_assert_str_eq(graph.unit, "samples");
	expect_near(graph_function(&graph, "f")->sums.total_s, 7, "total");
	expect_near(graph.sampled_s, 7, "sampled");
	cr_assert_eq(graph_function(&graph, "f")->gil_ns, 0);
	callgraph_release(&graph);
	built_free(p);
}

/* Trees at random, of few functions, so that there is recursion of all kinds. */
static struct profile *random_profile(uint32_t functions, uint32_t nodes)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 1, "x"), seed = 99;

	for (uint32_t i = 0; i < functions; i++)
		built_symbol(p, (char[]){(char)('a' + i), '\0'}, "r.py", i + 1);
	for (uint32_t t = 0; t < 3; t++) {
		uint32_t thread = built_thread(p, process, 0, t + 1, NULL);

		while (p->threads[thread].node_count < nodes) {
			uint32_t parent, node;

			seed = seed * 1664525 + 1013904223;
			parent = (seed >> 8) % p->threads[thread].node_count;
			node = built_child(p, thread, parent, (seed >> 20) % functions, (seed >> 16) % 3);
			if (seed % 3)
				built_sample(p, thread, node, seed % 7 + 1, 0);
		}
	}
	return p;
}

/* How many samples hold each function, counted stack by stack. */
static void count_stacks(const struct profile *p, uint64_t *totals)
{
	for (uint32_t t = 0; t < p->thread_count; t++)
		for (uint32_t n = 1; n < p->threads[t].node_count; n++) {
			const struct node *nodes = p->threads[t].nodes;
			uint64_t seen = 0;

			for (uint32_t at = n; at; at = nodes[at].parent)
				seen |= UINT64_C(1) << nodes[at].symbol;
			for (uint32_t f = 0; f < p->symbol_count; f++)
				totals[f] += seen >> f & 1 ? nodes[n].self[VALUE_SAMPLES] : 0;
		}
}

Test(callgraph, sums_agree_with_a_count_over_all_stacks)
{
	enum { FUNCTIONS = 9 };
	struct profile *p = random_profile(FUNCTIONS, 2000);
	uint64_t totals[FUNCTIONS] = {0}, called[FUNCTIONS] = {0}, roots[FUNCTIONS] = {0}, self = 0;
	struct callgraph graph;

	make_graph(&graph, p);
	count_stacks(p, totals);
	for (uint32_t i = 0; i < graph.edge_count; i++) {
		const struct callgraph_edge *edge = &graph.edges[i];

		called[edge->callee] += edge->outer_samples;
		cr_assert_leq(edge->outer_samples, edge->sums.primitive_calls);
		cr_assert_leq(edge->sums.primitive_calls, edge->sums.calls);
		cr_assert_leq(edge->sums.primitive_calls, graph.functions[edge->callee].sums.primitive_calls);
		cr_assert_leq(edge->sums.primitive_calls, graph.functions[edge->caller].sums.primitive_calls);
	}
	for (uint32_t t = 0; t < p->thread_count; t++) {
		uint64_t *all = profile_totals(&p->threads[t]);

		for (uint32_t n = p->threads[t].nodes[0].child; n; n = p->threads[t].nodes[n].sibling)
			roots[p->threads[t].nodes[n].symbol] += all[(size_t)n * VALUE_COUNT + VALUE_SAMPLES];
		free(all);
	}
	for (uint32_t f = 0; f < FUNCTIONS; f++) { /* symbols are functions here, in the same order */
		expect_function(&graph, (char[]){(char)('a' + f), '\0'}, totals[f], graph.functions[f].sums.calls,
		                graph.functions[f].self_samples);
		cr_assert_eq(called[f] + roots[f], totals[f]);
		self += graph.functions[f].self_samples;
		cr_assert(graph.functions[f].sums.total_s <= graph.sampled_s + 1e-9);
	}
	cr_assert_eq(self, profile_sum(p, VALUE_SAMPLES));
	expect_near(graph.sampled_s, (double)profile_sum(p, VALUE_WALL) / 1e9, "sampled");
	callgraph_release(&graph);
	built_free(p);
}

/* A line that is not known is the first one of the function. */
Test(callgraph, lines_add_up_to_functions_and_edges)
{
	struct profile *p = random_profile(9, 2000);
	struct callgraph graph;
	struct line_cost *self, *calls;

	make_graph(&graph, p);
	cr_assert_eq(graph.self_lines.places.count + graph.call_lines.places.count, 0); /* nobody asked for them */
	callgraph_release(&graph);
	callgraph_init(&graph);
	graph.with_lines = true;
	cr_assert_eq(callgraph_add_profile(&graph, p), 0);
	self = line_costs_sorted(&graph.self_lines);
	calls = line_costs_sorted(&graph.call_lines);
	for (uint32_t f = 0; f < graph.function_count; f++) {
		uint32_t count;
		const struct line_cost *rows = line_costs_of(self, graph.self_lines.places.count, f, &count);
		uint64_t samples = 0;

		for (uint32_t i = 0; i < count; i++) {
			cr_assert(rows[i].of == f && rows[i].line > 0 && (i == 0 || rows[i].line > rows[i - 1].line));
			cr_assert_eq(rows[i].weight, rows[i].samples * 1000000);
			samples += rows[i].samples;
		}
		cr_assert_eq(samples, graph.functions[f].self_samples);
	}
	for (uint32_t e = 0; e < graph.edge_count; e++) {
		uint32_t count;
		const struct line_cost *rows = line_costs_of(calls, graph.call_lines.places.count, e, &count);
		uint64_t samples = 0, frames = 0;

		for (uint32_t i = 0; i < count; i++) {
			cr_assert_eq(rows[i].weight, rows[i].samples * 1000000);
			samples += rows[i].samples;
			frames += rows[i].calls;
		}
		cr_assert_eq(samples, graph.edges[e].outer_samples);
		cr_assert_eq(frames, graph.edges[e].sums.calls);
	}
	free(self);
	free(calls);
	callgraph_release(&graph);
	built_free(p);
}

Test(callgraph, two_added_are_twice_as_much)
{
	struct profile *p = random_profile(5, 300);
	struct callgraph one, sum;

	make_graph(&one, p);
	callgraph_init(&sum);
	cr_assert_eq(callgraph_add(&sum, &one), 0);
	cr_assert_eq(callgraph_add(&sum, &one), 0);
	cr_assert(sum.has_samples && sum.from_samples && sum.is_time);
	cr_assert_eq(sum.function_count, one.function_count);
	cr_assert_eq(sum.edge_count, one.edge_count);
	for (uint32_t i = 0; i < one.function_count; i++) {
		cr_assert_eq(sum.functions[i].sums.calls, 2 * one.functions[i].sums.calls);
		cr_assert_eq(sum.functions[i].self_samples, 2 * one.functions[i].self_samples);
	}
	for (uint32_t i = 0; i < one.edge_count; i++)
		cr_assert_eq(sum.edges[i].outer_samples, 2 * one.edges[i].outer_samples);
	expect_near(sum.sampled_s, 2 * one.sampled_s, "sampled");
	cr_assert_eq(sum.facts.bytes, 2 * one.facts.bytes);
	callgraph_release(&one);
	callgraph_release(&sum);
	built_free(p);
}

Test(callgraph, files_by_their_last_part)
{
	struct callgraph one, stripped;
	struct call_sums sums = {.primitive_calls = 1, .calls = 2, .self_s = 0.5, .total_s = 1};

	callgraph_init(&one);
	for (int i = 0; i < 2; i++) {
		uint32_t f = callgraph_function(&one, "f", 1, i ? "/x/a.py" : "/y/a.py", 7, 3);

		one.functions[f].has_sums = true;
		call_sums_add(&one.functions[f].sums, &sums);
		call_sums_add(&callgraph_edge(&one, 0, f)->sums, &sums);
	}
	callgraph_init(&stripped);
	stripped.strip_dirs = true;
	cr_assert_eq(callgraph_add(&stripped, &one), 0);
	cr_assert_eq(stripped.function_count, 1);
	cr_assert_eq(stripped.edge_count, 1);
	cr_assert_str_eq(callgraph_file(&stripped, 0), "a.py");
	cr_assert_eq(stripped.functions[0].sums.calls, 4);
	cr_assert_eq(stripped.edges[0].sums.calls, 4);
	callgraph_release(&one);
	callgraph_release(&stripped);
}

Test(callgraph, edges_by_caller_and_by_callee)
{
	static const uint32_t calls[][2] = {{0, 2}, {1, 2}, {0, 1}, {2, 2}};
	uint32_t *first, *edges;
	struct callgraph graph;

	callgraph_init(&graph);
	for (uint32_t i = 0; i < 3; i++)
		callgraph_function(&graph, "f", 1, "a.py", 4, i);
	for (size_t i = 0; i < 4; i++)
		callgraph_edge(&graph, calls[i][0], calls[i][1]);
	cr_assert_eq(callgraph_sort_edges(&graph, true, &first, &edges), 0);
	cr_assert_arr_eq(first, ((uint32_t[]){0, 2, 3, 4}), 4 * sizeof(*first));
	cr_assert_arr_eq(edges, ((uint32_t[]){0, 2, 1, 3}), 4 * sizeof(*edges));
	free(first);
	free(edges);
	cr_assert_eq(callgraph_sort_edges(&graph, false, &first, &edges), 0);
	cr_assert_arr_eq(first, ((uint32_t[]){0, 0, 1, 4}), 4 * sizeof(*first));
	cr_assert_arr_eq(edges, ((uint32_t[]){2, 0, 1, 3}), 4 * sizeof(*edges));
	free(first);
	free(edges);
	callgraph_release(&graph);
}
