/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/build_profile.h"
#include "tests/unit/written_graph.h"

/* What stands behind the facts, of which there are many. */
static void expect_body(const struct profile *p, const char *process, const char *body)
{
	char *text = written_graph_of(p, "callgrind", NULL), *positions = strstr(text, "positions:"), head[128];
	int bytes = snprintf(head, sizeof(head), "# callgrind format\nversion: 1\ncreator: sampled\n%sdesc: ", process);

	cr_assert_eq(strncmp(text, head, (size_t)bytes), 0);
	cr_assert_not_null(positions);
	cr_assert_str_eq(positions, body);
	free(text);
}

/* main 2 samples in itself and 10 in a ⇄ b, which a begins; another thread begins with b and has 5 samples, 1 has no frames. The cost of a call
 * is that of the callee's outermost frames: b's 10 + 5 are all its inclusive cost. Costs stand on the lines of the frames. */
Test(callgrind, golden_with_recursion)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 10, "x"), t = built_thread(p, process, 0, 10, NULL),
		 other = built_thread(p, process, 0, 11, NULL);
	uint32_t a = built_symbol(p, "a", "r.py", 5), b = built_symbol(p, "b", "r.py", 9), top, node;

	top = built_child(p, t, 0, built_symbol(p, "main", "m.py", 1), 2);
	built_sample(p, t, top, 2, 0);
	node = built_child(p, t, built_child(p, t, top, a, 6), b, 10);
	built_sample(p, t, node, 3, 0);
	built_sample(p, t, built_child(p, t, node, a, 6), 7, 0);
	built_sample(p, other, built_child(p, other, 0, b, 10), 5, 0);
	built_sample(p, other, 0, 1, 0);
	expect_body(p, "pid: 10\ncmd: x\n",
	            "positions: line\n"
	            "event: Samples : Samples\n"
	            "event: Time_ns : Time in nanoseconds\n"
	            "events: Samples Time_ns\n"
	            "summary: 18 18000000\n"
	            "\n"
	            "fl=(0) ???\n"
	            "fn=(0) <root>\n"
	            "0 0 0\n"
	            "cfi=(2) r.py\n"
	            "cfn=(2) b\n"
	            "calls=5 9\n"
	            "0 5 5000000\n"
	            "cfi=(5) m.py\n"
	            "cfn=(3) main\n"
	            "calls=12 1\n"
	            "0 12 12000000\n"
	            "cfi=(7) ???\n"
	            "cfn=(4) <no frames>\n"
	            "calls=1 0\n"
	            "0 1 1000000\n"
	            "\n"
	            "fl=(2)\n"
	            "fn=(1) a\n"
	            "6 7 7000000\n"
	            "cfi=(2)\n"
	            "cfn=(2)\n"
	            "calls=10 9\n"
	            "6 10 10000000\n"
	            "\n"
	            "fl=(2)\n"
	            "fn=(2)\n"
	            "10 8 8000000\n"
	            "cfi=(2)\n"
	            "cfn=(1)\n"
	            "calls=7 5\n"
	            "10 0 0\n"
	            "\n"
	            "fl=(5)\n"
	            "fn=(3)\n"
	            "2 2 2000000\n"
	            "cfi=(2)\n"
	            "cfn=(1)\n"
	            "calls=10 5\n"
	            "2 10 10000000\n"
	            "\n"
	            "fl=(7)\n"
	            "fn=(4)\n"
	            "0 1 1000000\n"
	            "\n"
	            "totals: 18 18000000\n");
	built_free(p);
}

/* f, of line 3, has samples on two of its lines, of two threads, and on no known one, and calls g on three; what g calls g again counts where
 * it is called, at no cost. */
Test(callgrind, lines_of_samples_and_of_calls)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 10, "x"), t = built_thread(p, process, 0, 10, NULL),
		 other = built_thread(p, process, 0, 11, NULL);
	uint32_t f = built_symbol(p, "f", "f.py", 3), g = built_symbol(p, "g", "g.py", 7), node;
	char *text, *body;

	built_sample(p, t, built_child(p, t, 0, f, 5), 2, 0);
	built_sample(p, t, built_child(p, t, 0, f, 4), 1, 0);
	built_sample(p, other, built_child(p, other, 0, f, 5), 3, 0);
	built_sample(p, t, built_child(p, t, 0, f, 0), 4, 0);
	node = built_child(p, t, built_child(p, t, 0, f, 5), g, 8);
	built_sample(p, t, node, 10, 0);
	built_sample(p, t, built_child(p, t, node, g, 9), 20, 0);
	built_sample(p, other, built_child(p, other, built_child(p, other, 0, f, 6), g, 8), 30, 0);
	built_sample(p, other, built_child(p, other, built_child(p, other, 0, f, 0), g, 8), 40, 0);
	text = written_graph_of(p, "callgrind", NULL);
	body = strstr(text, "\nfl=(2)");
	cr_assert_not_null(body);
	cr_assert_str_eq(body, "\nfl=(2)\nfn=(1)\n"
	                       "3 4 4000000\n"
	                       "4 1 1000000\n"
	                       "5 5 5000000\n"
	                       "cfi=(4) g.py\ncfn=(2) g\ncalls=40 7\n3 40 40000000\n"
	                       "cfi=(4)\ncfn=(2)\ncalls=30 7\n5 30 30000000\n"
	                       "cfi=(4)\ncfn=(2)\ncalls=30 7\n6 30 30000000\n"
	                       "\nfl=(4)\nfn=(2)\n"
	                       "8 80 80000000\n"
	                       "9 20 20000000\n"
	                       "cfi=(4)\ncfn=(2)\ncalls=20 7\n8 0 0\n"
	                       "\ntotals: 110 110000000\n");
	free(text);
	built_free(p);
}

/* What the kernel counted is an event of its own: main calls f calls f, of 7 ms a ten. */
Test(callgrind, cpu_time_is_an_event)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "x"), 0, 10, NULL), f = built_symbol(p, "f", "f.py", 3), top,
		 node;

	top = built_child(p, t, 0, built_symbol(p, "main", "m.py", 1), 2);
	node = built_child(p, t, top, f, 4);
	built_sample(p, t, node, 10, STATUS_RUNNABLE);
	built_sample(p, t, built_child(p, t, node, f, 5), 20, STATUS_RUNNABLE);
	built_sample(p, t, 0, 10, STATUS_RUNNABLE);
	built_cpu_time(p);
	expect_body(p, "pid: 10\ncmd: x\n",
	            "positions: line\n"
	            "event: Samples : Samples\n"
	            "event: Time_ns : Time in nanoseconds\n"
	            "event: Cpu_ns : CPU time in nanoseconds\n"
	            "events: Samples Time_ns Cpu_ns\n"
	            "summary: 40 40000000 28000000\n"
	            "\n"
	            "fl=(0) ???\nfn=(0) <root>\n0 0 0 0\n"
	            "cfi=(4) m.py\ncfn=(2) main\ncalls=30 1\n0 30 30000000 21000000\n"
	            "cfi=(6) ???\ncfn=(3) <no frames>\ncalls=10 0\n0 10 10000000 7000000\n"
	            "\n"
	            "fl=(2) f.py\nfn=(1) f\n4 10 10000000 7000000\n5 20 20000000 14000000\n"
	            "cfi=(2)\ncfn=(1)\ncalls=20 3\n4 0 0 0\n"
	            "\n"
	            "fl=(4)\nfn=(2)\n1 0 0 0\n"
	            "cfi=(2)\ncfn=(1)\ncalls=30 3\n2 30 30000000 21000000\n"
	            "\n"
	            "fl=(6)\nfn=(3)\n0 10 10000000 7000000\n"
	            "\n"
	            "totals: 40 40000000 28000000\n");
	built_free(p);
}

/* Sums beyond what a double holds are rounded; the lines still add up to them. */
Test(callgrind, lines_add_up_to_the_rounded_sum)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "x"), 0, 10, NULL), f = built_symbol(p, "f", "f.py", 1);
	uint64_t sum = 0, weight, written;
	char *text, *at;
	uint32_t lines = 0;
	int bytes;

	for (uint32_t line = 1; line <= 9; line++) {
		uint32_t node = built_child(p, t, 0, f, line);

		built_sample(p, t, node, 1, 0);
		p->threads[t].nodes[node].self[VALUE_WALL] = (UINT64_C(1) << 53) + 2 * line + 1;
	}
	text = written_graph_of(p, "callgrind", NULL);
	at = strstr(text, "\nfl=(2)\nfn=(1)\n");
	cr_assert_not_null(at);
	for (at += strlen("\nfl=(2)\nfn=(1)\n"); sscanf(at, "%*u 1 %" SCNu64 "\n%n", &weight, &bytes) == 1;
	     at += bytes) {
		sum += weight;
		lines++;
	}
	cr_assert_eq(sscanf(at, "totals: 9 %" SCNu64, &written), 1);
	cr_assert_eq(lines, 9);
	cr_assert_eq(sum, written);
	free(text);
	built_free(p);
}

Test(callgrind, empty_profile_and_no_weight)
{
	struct profile *p = built_new();

	for (size_t v = VALUE_WALL; v < VALUE_COUNT; v++)
		p->values[v] = (struct value_type){0};
	expect_body(p, "",
	            "positions: line\nevent: Samples : Samples\nevents: Samples\nsummary: 0\n\nfl=(0) ???\nfn=(0) "
	            "<root>\n0 0\n\ntotals: 0\n");
	built_free(p);
}

/* Names stay on their line and are never blank; functions that only their line tells apart are told apart. */
Test(callgrind, hostile_names)
{
	static const char *const names[] = {"a\nfn=(1) x\r", " \t", "(7) seven", "\xff\xc3\xa9\xe2\x80\xae",
	                                    "same",          "same"};
	static const char *const expected[] = {"=(1) a fn=(1) x \n",           "=(2) ???\n",    "=(3) (7) seven\n",
	                                       "=(4) \xef\xbf\xbd\xc3\xa9 \n", "=(5) same:4\n", "=(6) same:5\n"};
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "x"), 0, 10, NULL);
	char *text;

	for (uint32_t i = 0; i < 6; i++)
		built_sample(p, t, built_child(p, t, 0, built_symbol(p, names[i], "x\n.py", i), 1), 1, 0);
	text = written_graph_of(p, "callgrind", NULL);
	for (size_t i = 0; i < 6; i++)
		cr_assert(strstr(text, expected[i]), "%s", expected[i]);
	cr_assert(strstr(text, ") x .py\n"));
	free(text);
	built_free(p);
}

/* Of a file of cProfile: seconds alone, its calls as they are, and none that costs twice. */
Test(callgrind, from_calls)
{
	struct callgraph graph;
	uint32_t f;
	char *text;

	callgraph_init(&graph);
	f = callgraph_function(&graph, "f", 1, "f.py", 4, 3);
	graph.functions[f].has_sums = true;
	graph.functions[f].sums = (struct call_sums){.primitive_calls = 1, .calls = 9, .self_s = 0.25, .total_s = 0.25};
	callgraph_edge(&graph, f, f)->sums = (struct call_sums){.primitive_calls = 2, .calls = 8, .total_s = 0.125};
	text = written_graph(&graph, "callgrind", NULL);
	cr_assert_str_eq(text, "# callgrind format\nversion: 1\ncreator: sampled\npositions: line\n"
	                       "event: Time_ns : Time in nanoseconds\nevents: Time_ns\nsummary: 250000000\n\n"
	                       "fl=(0) ???\nfn=(0) <root>\n0 0\ncfi=(2) f.py\ncfn=(1) f\ncalls=1 3\n0 250000000\n\n"
	                       "fl=(2)\nfn=(1)\n3 250000000\ncfi=(2)\ncfn=(1)\ncalls=8 3\n3 0\n\ntotals: 250000000\n");
	free(text);
	callgraph_release(&graph);
}
