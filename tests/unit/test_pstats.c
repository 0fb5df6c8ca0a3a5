/* SPDX-License-Identifier: Apache-2.0 */
/* pstats files: bytes as Python's marshal module writes them, and what is not. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/formats.h"
#include "tests/unit/build_profile.h"
#include "tests/unit/written_graph.h"

/* Little ends first. 0.5, 1.5 and 1.0 as doubles. */
#define HALF     "g\0\0\0\0\0\0\xe0\x3f"
#define ONE_HALF "g\0\0\0\0\0\0\xf8\x3f"
#define ONE      "g\0\0\0\0\0\0\xf0\x3f"
#define MAIN_KEY                                                                                                       \
	"(\3\0\0\0"                                                                                                    \
	"u\4\0\0\0a.py"                                                                                                \
	"i\1\0\0\0"                                                                                                    \
	"u\4\0\0\0main"
#define GC_KEY                                                                                                         \
	"(\3\0\0\0"                                                                                                    \
	"u\1\0\0\0~"                                                                                                   \
	"i\0\0\0\0"                                                                                                    \
	"u\4\0\0\0<GC>"
#define MAIN_ENTRY                                                                                                     \
	MAIN_KEY "(\5\0\0\0"                                                                                           \
		 "i\1\0\0\0"                                                                                           \
		 "i\1\0\0\0" HALF ONE_HALF "{0"
#define GC_CALLER                                                                                                      \
	MAIN_KEY "(\4\0\0\0"                                                                                           \
		 "i\3\0\0\0"                                                                                           \
		 "i\2\0\0\0" ONE ONE
#define GC_ENTRY                                                                                                       \
	GC_KEY "(\5\0\0\0"                                                                                             \
	       "i\2\0\0\0"                                                                                             \
	       "i\3\0\0\0" ONE ONE "{" GC_CALLER "0"

/* main called once, 0.5 s in itself; from it <GC> thrice, of which twice not within itself, 1 s. */
static const char golden[] = "{" MAIN_ENTRY GC_ENTRY "0";

static void make_golden(struct callgraph *graph)
{
	struct call_sums main_sums = {.primitive_calls = 1, .calls = 1, .self_s = 0.5, .total_s = 1.5};
	struct call_sums gc_sums = {.primitive_calls = 2, .calls = 3, .self_s = 1, .total_s = 1};
	uint32_t main_function, gc;

	callgraph_init(graph);
	main_function = callgraph_function(graph, "main", 4, "a.py", 4, 1);
	gc = callgraph_function(graph, "<GC>", 4, "", 0, 0);
	graph->functions[main_function].has_sums = graph->functions[gc].has_sums = true;
	graph->functions[main_function].sums = main_sums;
	graph->functions[gc].sums = gc_sums;
	callgraph_edge(graph, main_function, gc)->sums = gc_sums;
	graph->sampled_s = 1.5;
}

static void expect_sums(const struct call_sums *sums, int64_t primitive, int64_t calls, double self_s, double total_s)
{
	cr_assert_eq(sums->primitive_calls, primitive);
	cr_assert_eq(sums->calls, calls);
	cr_assert_eq(sums->self_s, self_s);
	cr_assert_eq(sums->total_s, total_s);
}

static void expect_golden(const struct callgraph *graph)
{
	cr_assert_eq(graph->function_count, 2);
	cr_assert_eq(graph->edge_count, 1);
	expect_sums(&graph_function(graph, "main")->sums, 1, 1, 0.5, 1.5);
	expect_sums(&graph_function(graph, "<GC>")->sums, 2, 3, 1, 1);
	expect_sums(&graph_edge(graph, "main", "<GC>")->sums, 2, 3, 1, 1);
	cr_assert_eq(graph_edge(graph, "main", "<GC>")->outer_s, 1);
	cr_assert_eq(graph_function(graph, "main")->line, 1);
	cr_assert_str_eq(callgraph_file(graph, 0), "a.py");
	cr_assert_str_eq(callgraph_file(graph, 1), "", "what has no file stands in ~");
	cr_assert_eq(graph->sampled_s, 1.5);
	cr_assert(graph->is_time);
}

static void refuse(const void *data, size_t bytes, const char *says)
{
	struct callgraph graph;
	struct fault fault = {0};

	cr_assert_eq(read_graph(data, bytes, "pstats", &graph, &fault), -EPROTO, "%s was taken", says);
	cr_assert(strstr(fault.why, says), "\"%s\" does not say \"%s\"", fault.why, says);
	callgraph_release(&graph);
}

#define REFUSE(text, says) refuse(text, sizeof(text) - 1, says)

Test(pstats, golden)
{
	struct callgraph graph;
	struct fault fault;
	size_t bytes;
	char *text;

	make_golden(&graph);
	text = written_graph(&graph, "pstats", &bytes);
	cr_assert_eq(bytes, sizeof(golden) - 1);
	cr_assert_arr_eq(text, golden, bytes);
	free(text);
	callgraph_release(&graph);
	cr_assert_eq(read_graph(golden, sizeof(golden) - 1, "pstats", &graph, &fault), 0);
	cr_assert_not(graph.from_samples);
	expect_golden(&graph);
	callgraph_release(&graph);
}

Test(pstats, a_profile_brings_its_accounting_behind_the_dictionary)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "x"), 0, 10, NULL);
	struct callgraph graph;
	struct fault fault;
	size_t bytes;
	char *text, *facts;

	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "a.py", 3), 4), 2, 0);
	built_sample(p, t, 0, 1, 0);
	p->processes[0].facts.lost[LOSS_TORN] = 7;
	text = written_graph_of(p, "pstats", &bytes);
	facts = memmem(text, bytes, "sampled: what was", 17);
	cr_assert_not_null(facts);
	cr_assert_eq(facts[-5], 'u');
	cr_assert_eq(facts[-6], '0', "the dictionary's end");
	cr_assert(strstr(facts, "\nlost: torn: 7 "));
	cr_assert_eq(read_graph(text, bytes, "pstats", &graph, &fault), 0);
	cr_assert(graph.from_samples);
	cr_assert(memmem(graph.facts.data, graph.facts.bytes, "lost: torn: 7 ", 14));
	expect_sums(&graph_function(&graph, "f")->sums, 2, 2, 0.002, 0.002);
	expect_sums(&graph_function(&graph, CALLGRAPH_EMPTY)->sums, 1, 1, 0.001, 0.001);
	free(text);
	callgraph_release(&graph);
	built_free(p);
}

Test(pstats, times_that_are_no_seconds_say_so)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "x"), 0, 10, NULL);
	struct callgraph graph;
	struct fault fault;
	size_t bytes;
	char *text;

	for (size_t v = VALUE_WALL; v < VALUE_COUNT; v++)
		p->values[v] = (struct value_type){0};
	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "a.py", 3), 4), 2, 0);
	text = written_graph_of(p, "pstats", &bytes);
	cr_assert_eq(read_graph(text, bytes, "pstats", &graph, &fault), 0);
	cr_assert_not(graph.is_time);
	cr_assert_str_eq(graph.unit, "samples");
	cr_assert_eq(graph.sampled_s, 2);
	free(text);
	callgraph_release(&graph);
	built_free(p);
}

/* pstats.Stats refuses an empty dictionary. */
Test(pstats, nothing_is_one_function_without_calls)
{
	struct profile *p = built_new();
	struct callgraph graph;
	struct fault fault;
	size_t bytes;
	char *text = written_graph_of(p, "pstats", &bytes);

	cr_assert_eq(read_graph(text, bytes, "pstats", &graph, &fault), 0);
	cr_assert_eq(graph.function_count, 1);
	expect_sums(&graph_function(&graph, "<no samples>")->sums, 0, 0, 0, 0);
	free(text);
	callgraph_release(&graph);
	built_free(p);
}

Test(pstats, whoever_calls_has_an_entry)
{
	struct callgraph graph, again;
	struct fault fault;
	size_t bytes;
	char *text;

	make_golden(&graph);
	graph.functions[0].has_sums = false;
	text = written_graph(&graph, "pstats", &bytes);
	cr_assert_eq(bytes, sizeof(golden) - 1);
	cr_assert_eq(read_graph(text, bytes, "pstats", &again, &fault), 0);
	cr_assert(graph_function(&again, "main")->has_sums);
	free(text);
	callgraph_release(&graph);
	callgraph_release(&again);
}

/* Lone surrogates stay, as Python writes them; what else is not UTF-8 would make it refuse the file. Large counts are long. */
Test(pstats, hostile_names_and_large_numbers)
{
	static const char name[] = "\xed\xb3\xbf\xff\xc3\xa9\0\"\n\xed\xb3",
			  expected[] = "u\x11\0\0\0\xed\xb3\xbf\xef\xbf\xbd\xc3\xa9\0\"\n\xef\xbf\xbd\xef\xbf\xbd";
	struct callgraph graph, again;
	struct fault fault;
	uint32_t f;
	size_t bytes;
	char *text;

	callgraph_init(&graph);
	f = callgraph_function(&graph, name, sizeof(name) - 1, "", 0, 4000000000);
	graph.functions[f].has_sums = true;
	graph.functions[f].sums =
		(struct call_sums){.primitive_calls = INT32_MAX, .calls = INT64_MAX, .self_s = 0.1, .total_s = 1e300};
	text = written_graph(&graph, "pstats", &bytes);
	cr_assert(memmem(text, bytes, expected, sizeof(expected) - 1));
	cr_assert(memmem(text, bytes,
	                 "i\xff\xff\xff\x7f"
	                 "l\5\0\0\0\xff\x7f\xff\x7f\xff\x7f\xff\x7f\7\0",
	                 20));
	cr_assert_eq(read_graph(text, bytes, "pstats", &again, &fault), 0);
	cr_assert_eq(again.functions[0].line, 4000000000);
	expect_sums(&again.functions[0].sums, INT32_MAX, INT64_MAX, 0.1, 1e300);
	free(text);
	callgraph_release(&graph);
	callgraph_release(&again);
}

/* As Python 3.4 and later write it: flags, references, short texts. Slots: 0 the dictionary, 1 the key, 2 "f.py", 3 the number 1, 4 "f". */
Test(pstats, references)
{
	static const char data[] = "\xfb"
				   "\xa9\3"
				   "\xfa\4f.py"
				   "\xe9\1\0\0\0"
				   "\xda\1f"
				   ")\5"
				   "r\3\0\0\0"
				   "r\3\0\0\0" ONE ONE "{"
				   "r\1\0\0\0"
				   ")\4"
				   "r\3\0\0\0"
				   "r\3\0\0\0" HALF HALF "0"
				   ")\3"
				   "r\2\0\0\0"
				   "I\2\0\0\0\0\0\0\0"
				   "A\1\0\0\0g"
				   "(\5\0\0\0"
				   "i\1\0\0\0"
				   "i\1\0\0\0"
				   "f\3"
				   "0.5"
				   "i\0\0\0\0"
				   "{0"
				   "0";
	struct callgraph graph;
	struct fault fault;

	cr_assert_eq(read_graph(data, sizeof(data) - 1, "pstats", &graph, &fault), 0, "%s", fault.why);
	cr_assert_eq(graph.function_count, 2);
	expect_sums(&graph_function(&graph, "f")->sums, 1, 1, 1, 1);
	expect_sums(&graph_edge(&graph, "f", "f")->sums, 1, 1, 0.5, 0.5);
	cr_assert_eq(graph_edge(&graph, "f", "f")->outer_s, 0);
	expect_sums(&graph_function(&graph, "g")->sums, 1, 1, 0.5, 0);
	cr_assert_eq(graph_function(&graph, "g")->line, 2);
	cr_assert_str_eq(callgraph_file(&graph, 1), "f.py");
	callgraph_release(&graph);
}

/* Interned texts are numbered there, and referred to by R. */
Test(pstats, python_2)
{
	static const char data[] = "{"
				   "(\3\0\0\0"
				   "t\4\0\0\0f.py"
				   "i\1\0\0\0"
				   "t\1\0\0\0f"
				   "(\5\0\0\0"
				   "i\1\0\0\0"
				   "i\1\0\0\0" ONE ONE "{"
				   "(\3\0\0\0"
				   "R\0\0\0\0"
				   "i\1\0\0\0"
				   "R\1\0\0\0"
				   "(\4\0\0\0"
				   "i\1\0\0\0"
				   "i\1\0\0\0" ONE ONE "0"
				   "0";
	struct callgraph graph;
	struct fault fault;

	cr_assert_eq(read_graph(data, sizeof(data) - 1, "pstats", &graph, &fault), 0, "%s", fault.why);
	cr_assert_eq(graph.function_count, 1);
	cr_assert_not_null(graph_edge(&graph, "f", "f"));
	callgraph_release(&graph);
}

/* Python 3.15's sampling profiler: two samples end in f, four hold it, of four seconds; three of them were called by g. */
Test(pstats, tachyon)
{
	static const char data[] = "{"
				   ")\3z\1ai\1\0\0\0z\1f"
				   ")\5i\2\0\0\0i\4\0\0\0" ONE "i\4\0\0\0"
				   "{"
				   ")\3z\1ai\2\0\0\0z\1g"
				   "i\3\0\0\0"
				   "0"
				   ")\1z\13__sampled__T"
				   "0";
	struct callgraph graph;
	struct fault fault;

	cr_assert_eq(read_graph(data, sizeof(data) - 1, "pstats", &graph, &fault), 0, "%s", fault.why);
	cr_assert(graph.from_samples);
	expect_sums(&graph_function(&graph, "f")->sums, 4, 4, 1, 4);
	expect_sums(&graph_edge(&graph, "g", "f")->sums, 3, 3, 0, 3);
	callgraph_release(&graph);
}

Test(pstats, detected_by_content)
{
	static const struct {
		const char *text;
		size_t bytes;
		bool is_pstats;
	} heads[] = {
		{golden, sizeof(golden) - 1, true},
		{"\xfb\xa9\3", 3, true},
		{"{)\1z", 4, true},
		{"{0", 2, true},
		{"{0u", 3, false},
		{"{\"a\": 1}", 8, false},
		{"{(\4\0\0\0", 6, false},
		{"{(\3\0", 4, false},
		{"(\3\0\0\0", 5, false},
		{"{", 1, false},
		{"", 0, false},
	};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		cr_assert_eq(pstats_detect((const unsigned char *)heads[i].text, heads[i].bytes), heads[i].is_pstats,
		             "%zu", i);
}

Test(pstats, malformed_is_refused_and_said)
{
	REFUSE("i\1\0\0\0", "no dictionary, at byte 5");
	REFUSE("{i\1\0\0\0", "a key is no function");
	REFUSE("{)\2z\1az\1b", "a key is no function");
	REFUSE("{)\3i\1\0\0\0", "a name is no text");
	REFUSE("{)\3z\1az\1b", "a line is no whole number");
	REFUSE("{)\3z\1ai\1\0\0\0z\1f)\4", "a function's values are not five");
	REFUSE("{)\3z\1ai\1\0\0\0z\1f)\5" HALF, "a count is no whole number");
	REFUSE("{)\3z\1ai\1\0\0\0z\1f)\5i\xfe\xff\xff\xff", "a count is below 0");
	REFUSE("{)\3z\1ai\1\0\0\0z\1f)\5i\1\0\0\0i\1\0\0\0g\0\0\0\0\0\0\xf8\x7f", "no finite number"); /* NaN */
	REFUSE("{)\3z\1ai\1\0\0\0z\1f)\5i\1\0\0\0i\1\0\0\0f\3abc", "a number cannot be read");
	REFUSE("{)\3z\1ai\1\0\0\0z\1f)\5i\1\0\0\0i\1\0\0\0" ONE ONE "N", "callers are no dictionary");
	REFUSE("{)\3z\1ai\1\0\0\0z\1f)\5i\1\0\0\0i\1\0\0\0" ONE ONE "{)\3z\1ai\1\0\0\0z\1f)\3",
	       "a caller's values are not four");
	REFUSE("{)\1z\1a{", "type that such files do not have");
	REFUSE("{[", "type that such files do not have");
	REFUSE("{c", "a key is no function");
	REFUSE("{)\3z\1ai\1\0\0\0c", "of no Python that is known");
	REFUSE("{)\3u\xff\xff\xff\xff", "a text is too long");
	REFUSE("{)\3u\xff\xff\1\0abc", "ends too early");
	REFUSE("{)\3z\1al\xff\xff\xff\x7f", "a number is too long");
	REFUSE("{)\3z\1al\1\0\0\0\xff\xff", "digit is out of range");
	REFUSE("{)\3r\0\0\0\0", "leads to nothing");
	REFUSE("{)\3R\0\0\0\0", "leads to nothing");
	REFUSE("\xfb\xa9\3r\1\0\0\0", "cannot be shared"); /* a key in itself */
	REFUSE("{((((((((((((", "a key is no function");
	REFUSE("{(\xff\xff\xff\xff", "a key is no function");
}

Test(pstats, cut_anywhere_it_is_refused)
{
	for (size_t bytes = 0; bytes < sizeof(golden) - 1; bytes++)
		refuse(golden, bytes, "it ends too early");
}

/* Whatever a byte becomes: read or refused in words. */
Test(pstats, any_byte_changed)
{
	char data[sizeof(golden) - 1];

	for (size_t at = 0; at < sizeof(data); at++)
		for (unsigned value = 0; value < 256; value++) {
			struct callgraph graph;
			struct fault fault = {0};
			int err;

			memcpy(data, golden, sizeof(data));
			data[at] = (char)value;
			err = read_graph(data, sizeof(data), "pstats", &graph, &fault);
			cr_assert(err == 0 || (err == -EPROTO && fault.why[0]), "byte %zu as %u: %d", at, value, err);
			callgraph_release(&graph);
		}
}

/* A key that stands there twice is added up, but no sum becomes infinite. */
Test(pstats, the_same_key_twice)
{
	static const char twice[] = "{" MAIN_ENTRY MAIN_ENTRY "0";
	static const char huge[] = "{" MAIN_KEY "(\5\0\0\0i\1\0\0\0i\1\0\0\0g\xff\xff\xff\xff\xff\xff\xef\x7f" ONE
				   "{0" MAIN_KEY "(\5\0\0\0i\1\0\0\0i\1\0\0\0g\xff\xff\xff\xff\xff\xff\xef\x7f" ONE "{0"
				   "0";
	struct callgraph graph;
	struct fault fault;

	cr_assert_eq(read_graph(twice, sizeof(twice) - 1, "pstats", &graph, &fault), 0);
	expect_sums(&graph_function(&graph, "main")->sums, 2, 2, 1, 3);
	callgraph_release(&graph);
	REFUSE(huge, "times are too large");
}

/* pyinstrument's files do not know how often functions were called. */
Test(pstats, calls_that_nobody_counted)
{
	static const char file[] = "{)\3z\1ai\1\0\0\0z\1f)\5i\xff\xff\xff\xffi\xff\xff\xff\xff" HALF HALF "{00";
	struct callgraph graph;
	struct fault fault;
	size_t bytes;
	char *text;

	cr_assert_eq(read_graph(file, sizeof(file) - 1, "pstats", &graph, &fault), 0, "%s", fault.why);
	expect_sums(&graph_function(&graph, "f")->sums, -1, -1, 0.5, 0.5);
	text = written_graph(&graph, "pstats", &bytes);
	cr_assert_not_null(memmem(text, bytes, "i\xff\xff\xff\xffi\xff\xff\xff\xff", 10), "written as it was");
	free(text);
	callgraph_release(&graph);
}
