/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/formats.h"
#include "tests/unit/written_graph.h"

static struct callgraph graph;
static struct fault fault;

static int read_text_graph(const char *text)
{
	cr_assert(callgrind_detect((const unsigned char *)text, strlen(text)), "%s", text);
	return read_graph(text, strlen(text), "callgrind", &graph, &fault);
}

static void expect_sums(const char *name, uint64_t calls, double self, double total)
{
	const struct callgraph_function *f = graph_function(&graph, name);

	cr_assert_eq(f->sums.calls, calls, "%s: %zu", name, (size_t)f->sums.calls);
	cr_assert_eq(f->sums.self_s, self, "%s: %g", name, f->sums.self_s);
	cr_assert_eq(f->sums.total_s, total, "%s: %g", name, f->sums.total_s);
}

Test(callgrind_read, least)
{
	cr_assert_eq(read_text_graph("version: 1\ncreator: callgrind-3.19.0\npid: 14542\ncmd:  ./a.out 22223\npart: 1\n"
	                             "events: Ir\nfl=a.c\nfn=main\n16 400\n18 20\n"),
	             0);
	cr_assert_eq(graph.function_count, 1);
	expect_sums("main", 0, 420, 420);
	cr_assert_eq(graph.functions[0].line, 16);
	cr_assert_str_eq(graph.unit, "Ir");
	cr_assert_eq(graph.self_lines.places.count, 2);
	cr_assert_eq(graph.self_lines.rows[0].weight, 400);
	callgraph_release(&graph);
}

/* Of Valgrind's manual: numbered names, inlined code, a call into another object, relative positions. */
Test(callgrind_read, numbered_names_and_relative_positions)
{
	cr_assert_eq(read_text_graph("# callgrind format\nevents: Cycles Instructions\npositions: instr line\n\n"
	                             "ob=(1) a.out\nfl=(1) main.c\nfn=(1) main\n0x10 16 400 3\n"
	                             "cfn=(2) twice\ncalls=2 0x50 +4\n+3 * 300\n"
	                             "jcnd=1/2 +6 *\n* *\n"
	                             "fi=(2) inlined.h\n-1 2 40\nfe=(1)\n+2 +15 5\n"
	                             "cob=(2) lib.so\ncfi=(3) lib.c\ncfn=(3) far\ncalls=1 0x90 7\n* * 50\n\n"
	                             "fn=(2)\n0x50 20 300\n"
	                             "cfn=(2)\ncalls=1 * *\n* * 100\n\n"
	                             "ob=(2)\nfl=(3)\nfn=(3)\n0x90 7 50\ntotals: 795 3\n"),
	             0);
	expect_sums("twice", 3, 300, 300);
	expect_sums("far", 1, 50, 50);
	cr_assert_eq(graph.functions[1].sums.primitive_calls, 2, "a call by itself is none");
	cr_assert_eq(graph.function_count, 4);
	cr_assert_str_eq(callgraph_name(&graph, 2), "main");
	cr_assert_str_eq(callgraph_file(&graph, 2), "inlined.h");
	cr_assert_eq(graph.functions[2].sums.self_s, 40);
	cr_assert_eq(graph.functions[0].sums.total_s, 795);
	cr_assert_eq(graph.functions[1].line, 20);
	cr_assert_eq(graph.self_lines.rows[2].line, 17, "%u", graph.self_lines.rows[2].line);
	cr_assert_not_null(strstr(buf_text(&graph.facts), "Instructions"));
	cr_assert_null(strstr(buf_text(&graph.facts), "make no sense"));
	callgraph_release(&graph);
}

Test(callgrind_read, the_value_that_is_asked_for)
{
	static const char text[] = "events: Samples Time_ns\nfn=a\n1 2 3000000000\n";
	static struct input in;

	cr_assert_eq(read_text_graph(text), 0);
	cr_assert_str_eq(graph.unit, "seconds");
	expect_sums("a", 0, 3, 3);
	callgraph_release(&graph);
	callgraph_init(&graph);
	graph.value = "samples";
	cr_assert_eq(input_open_bytes(&in, text, strlen(text)), 0);
	cr_assert_eq(callgrind_read(&in, &graph, &fault), 0);
	input_close(&in);
	cr_assert_str_eq(graph.unit, "samples");
	expect_sums("a", 0, 2, 2);
	callgraph_release(&graph);
	callgraph_init(&graph);
	graph.value = "Ir";
	cr_assert_eq(input_open_bytes(&in, text, strlen(text)), 0);
	cr_assert_eq(callgrind_read(&in, &graph, &fault), -EINVAL);
	cr_assert_str_eq(fault.why, "it has no value Ir; its values: Samples Time_ns");
	input_close(&in);
	callgraph_release(&graph);
}

Test(callgrind_read, what_is_none)
{
	static const char *const others[] = {"", "a;b 3\n", "fn=main\n1 2\n", "events: Ir\n1 2\n",
	                                     "text\nevents: Ir\nfn=a\n"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_assert_not(callgrind_detect((const unsigned char *)others[i], strlen(others[i])), "%zu", i);
	cr_assert_eq(read_text_graph("events: Ir\nfl=a.c\nfn=main\nx y\n"), -EPROTO);
	cr_assert_str_eq(fault.why, "it has no function with a cost");
	callgraph_release(&graph);
}
