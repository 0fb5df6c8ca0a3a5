/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "exporters/formats.h"
#include "tests/unit/written_graph.h"

#define META "{\"type\":\"meta\",\"v\":0,\"run_id\":\"1f\",\"sample_interval_usec\":500}\n"
#define TEXTS                                                                                                          \
	"{\"type\":\"string_table\",\"v\":0,\"strings\":[{\"str_id\":0,\"value\":\"app.py\"},"                         \
	"{\"str_id\":1,\"value\":\"main\"},{\"str_id\":5,\"value\":\"work\"}]}\n"
#define FRAMES                                                                                                         \
	"{\"type\":\"frame_table\",\"v\":0,\"frames\":[{\"frame_id\":0,\"path_str_id\":0,\"func_str_id\":1,\"line\":"  \
	"3},"                                                                                                          \
	"{\"frame_id\":1,\"path_str_id\":0,\"func_str_id\":5,\"line\":7,\"col\":4},"                                   \
	"{\"frame_id\":2,\"path_str_id\":0,\"func_str_id\":5,\"line\":7,\"col\":9}]}\n"
#define SUMS                                                                                                           \
	"{\"type\":\"agg\",\"v\":0,\"kind\":\"frame\",\"entries\":[{\"frame_id\":0,\"self\":2,\"cumulative\":10},"     \
	"{\"frame_id\":1,\"self\":5,\"cumulative\":5},{\"frame_id\":2,\"self\":3,\"cumulative\":3}]}\n"
#define OTHERS                                                                                                         \
	"{\"type\":\"agg\",\"v\":0,\"kind\":\"opcode\",\"entries\":[{\"frame_id\":0,\"self\":90,\"cumulative\":90}]}"  \
	"\n"
#define END "{\"type\":\"end\",\"v\":0}\n"

static struct callgraph graph;
static struct fault fault;

static int read_totals(const char *text)
{
	fault = (struct fault){0};
	return read_graph(text, strlen(text), "tachyon-jsonl", &graph, &fault);
}

static void expect_refused(const char *text, const char *why)
{
	cr_assert_eq(read_totals(text), -EPROTO, "%s", text);
	cr_assert_eq(strncmp(fault.why, why, strlen(why)), 0, "%s", fault.why); /* at which byte, too */
	callgraph_release(&graph);
}

Test(tachyon_totals, samples_of_lines)
{
	static const char text[] = META TEXTS FRAMES SUMS OTHERS END;
	const struct callgraph_function *work;

	cr_assert(tachyon_totals_detect((const unsigned char *)text, strlen(text)));
	cr_assert_eq(read_totals(text), 0, "%s", fault.why);
	cr_assert_eq(graph.function_count, 2, "columns alone tell no functions apart");
	work = graph_function(&graph, "work");
	cr_assert_eq(work->line, 7);
	cr_assert_str_eq(callgraph_file(&graph, (uint32_t)(work - graph.functions)), "app.py");
	cr_assert_eq(work->sums.calls, 8);
	cr_assert_eq(work->sums.primitive_calls, 8);
	cr_assert_eq(work->self_samples, 8);
	cr_assert_float_eq(work->sums.self_s, 8 * 500e-6, 1e-12);
	cr_assert_float_eq(work->sums.total_s, 8 * 500e-6, 1e-12);
	cr_assert_float_eq(graph_function(&graph, "main")->sums.self_s, 2 * 500e-6, 1e-12);
	cr_assert_float_eq(graph_function(&graph, "main")->sums.total_s, 10 * 500e-6, 1e-12);
	cr_assert_float_eq(graph.sampled_s, 10 * 500e-6, 1e-12);
	cr_assert(graph.from_samples, "its counts are no calls");
	cr_assert_eq(graph.entry_count, 2);
	cr_assert_eq(graph.edge_count, 0);
	cr_assert_str_eq(buf_text(&graph.facts), "samples: 10\n");
	callgraph_release(&graph);
}

Test(tachyon_totals, an_interval_that_makes_no_sense_is_a_millisecond)
{
	cr_assert_eq(
		read_totals("{\"type\":\"meta\",\"v\":0,\"run_id\":\"1f\",\"sample_interval_usec\":0}\n" TEXTS FRAMES
	                            SUMS END),
		0);
	cr_assert_float_eq(graph.sampled_s, 10 * 1e-3, 1e-12);
	callgraph_release(&graph);
}

Test(tachyon_totals, what_is_refused)
{
	expect_refused(META TEXTS FRAMES SUMS, "it was not written to its end");
	expect_refused(TEXTS END, "its first record is not \"meta\"");
	expect_refused(META "{\"kind\":1}\n" END, "a line of it is no record");
	expect_refused(META "{\"type\":\"agg\",\"v\":1}\n" END, "its records are of a later version than 0");
	expect_refused(META FRAMES END, "a line of its frames makes no sense");
	expect_refused(META TEXTS SUMS END, "a line of its totals makes no sense");
	expect_refused(META
	               "{\"type\":\"string_table\",\"v\":0,\"strings\":[{\"str_id\":16777216,\"value\":\"x\"}]}\n" END,
	               "a line of its texts makes no sense");
	expect_refused(META TEXTS FRAMES "{\"type\":\"agg\",\"v\":0,\"kind\":\"frame\",\"entries\":[{\"frame_id\":0,"
	                                 "\"self\":-1,\"cumulative\":1}]}\n" END,
	               "a line of its totals makes no sense");
}
