/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics that report shows, on call graphs made by hand; that pstats itself prints the same is for tests/integration/test_report.py. */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exporters/stats_sort.h"
#include "exporters/stats_tables.h"
#include "tests/unit/build_profile.h"

static uint32_t add(struct callgraph *graph, const char *file, uint32_t line, const char *name)
{
	return callgraph_function(graph, name, strlen(name), file, strlen(file), line);
}

static uint32_t add_sums(struct callgraph *graph, const char *file, uint32_t line, const char *name,
                         struct call_sums sums)
{
	uint32_t index = add(graph, file, line, name);

	callgraph_give_sums(graph, index);
	call_sums_add(&graph->functions[index].sums, &sums);
	graph->sampled_s += sums.self_s;
	return index;
}

static void add_call(struct callgraph *graph, uint32_t caller, uint32_t callee, struct call_sums sums)
{
	call_sums_add(&callgraph_edge(graph, caller, callee)->sums, &sums);
}

/* Of the calls of two functions at the same line of two files named alike one is left when directories are stripped. The caller without sums
 * is met first, so that the order of functions is not that of entries. */
static void make_graph(struct callgraph *graph)
{
	uint32_t outside, main_, work, twin, len;

	callgraph_init(graph);
	outside = add(graph, "c/y.py", 7, "outside");
	twin = add(graph, "b/x.py", 10, "work");
	main_ = add_sums(graph, "a/x.py", 1, "main", (struct call_sums){1, 1, .5, 3});
	work = add_sums(graph, "a/x.py", 10, "work", (struct call_sums){1, 3, 1, 2});
	add_sums(graph, "b/x.py", 10, "work", (struct call_sums){2, 2, .25, .25});
	len = add_sums(graph, "", 0, "<built-in method len>", (struct call_sums){10, 10, .75, .75});
	add_call(graph, outside, main_, (struct call_sums){1, 1, .5, 3});
	add_call(graph, main_, work, (struct call_sums){1, 1, .5, 2});
	add_call(graph, work, work, (struct call_sums){1, 2, .5, 1});
	add_call(graph, main_, twin, (struct call_sums){2, 2, .25, .25});
	add_call(graph, work, len, (struct call_sums){6, 6, .5, .5});
	add_call(graph, twin, len, (struct call_sums){4, 4, .25, .25});
}

static void sort(struct stats *stats, const char *words)
{
	struct stats_order order = {0};

	for (const char *word = words; *words; word = words) {
		words += strcspn(words, ",");
		cr_assert_eq(stats_order_add(&order, word, (size_t)(words - word)), 0, "%s", word);
		words += *words == ',';
	}
	cr_assert_eq(stats_sort(stats, &order), 0);
}

enum what { STATS, CALLERS, CALLEES, JSON, JSON_CALLERS, CSV, CSV_CALLERS, CSV_CALLEES };

static int write_as(enum what what, const struct stats_view *view, struct writer *to)
{
	switch (what) {
	case STATS:
		return stats_print(view, to);
	case CALLERS:
	case CALLEES:
		return stats_print_calls(view, what == CALLERS, to);
	case JSON:
	case JSON_CALLERS:
		return stats_write_json(view, what == JSON ? 0 : STATS_CALLERS, to);
	default:
		return stats_write_csv(view, what == CSV ? 0 : what == CSV_CALLERS ? STATS_CALLERS : STATS_CALLEES, to);
	}
}

/* The caller frees it. */
static char *written_as(enum what what, const struct stats_view *view)
{
	static struct writer to;
	int fd = memfd_create("written", MFD_CLOEXEC);
	char *text;

	writer_open_fd(&to, fd);
	cr_assert_eq(write_as(what, view, &to), 0);
	cr_assert_eq(writer_close(&to, NULL), 0);
	text = calloc(1, to.bytes + 1);
	cr_assert_eq(pread(fd, text, to.bytes, 0), (ssize_t)to.bytes);
	close(fd);
	return text;
}

static void expect(enum what what, const struct stats_view *view, const char *expected)
{
	char *text = written_as(what, view);

	cr_assert_str_eq(text, expected);
	free(text);
}

/* A view of the graph's functions, sorted (order NULL: as they come). *stats is to be released. */
static struct stats_view view_of(struct stats *stats, const struct callgraph *graph, const char *order)
{
	cr_assert_eq(stats_make(stats, graph), 0);
	if (order)
		sort(stats, order);
	return (struct stats_view){.stats = stats, .files = ""};
}

Test(stats, table)
{
	struct callgraph graph;
	struct stats stats;
	struct stats_view view;

	make_graph(&graph);
	view = view_of(&stats, &graph, "tottime");
	view.files = "Sat Nov 21 22:37:41 2026    x.prof\n";
	expect(STATS, &view,
	       "Sat Nov 21 22:37:41 2026    x.prof\n"
	       "\n"
	       "         16 function calls (14 primitive calls) in 2.500 seconds\n"
	       "\n"
	       "   Ordered by: internal time\n"
	       "\n"
	       "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n"
	       "      3/1    1.000    0.333    2.000    2.000 a/x.py:10(work)\n"
	       "       10    0.750    0.075    0.750    0.075 {built-in method len}\n"
	       "        1    0.500    0.500    3.000    3.000 a/x.py:1(main)\n"
	       "        2    0.250    0.125    0.250    0.125 b/x.py:10(work)\n"
	       "\n"
	       "\n");
	stats_release(&stats);
	callgraph_release(&graph);
}

Test(stats, callers_and_callees)
{
	struct callgraph graph;
	struct stats stats;
	struct stats_view view;

	make_graph(&graph);
	view = view_of(&stats, &graph, NULL);
	expect(CALLERS, &view,
	       "   Random listing order was used\n"
	       "\n"
	       "Function               was called by...\n"
	       "                           ncalls  tottime  cumtime\n"
	       "a/x.py:1(main)         <-       1    0.500    3.000  c/y.py:7(outside)\n"
	       "a/x.py:10(work)        <-       1    0.500    2.000  a/x.py:1(main)\n"
	       "                              2/1    0.500    1.000  a/x.py:10(work)\n"
	       "b/x.py:10(work)        <-       2    0.250    0.250  a/x.py:1(main)\n"
	       "{built-in method len}  <-       6    0.500    0.500  a/x.py:10(work)\n"
	       "                                4    0.250    0.250  b/x.py:10(work)\n"
	       "\n"
	       "\n");
	expect(CALLEES, &view,
	       "   Random listing order was used\n"
	       "\n"
	       "Function               called...\n"
	       "                           ncalls  tottime  cumtime\n"
	       "a/x.py:1(main)         ->       1    0.500    2.000  a/x.py:10(work)\n"
	       "                                2    0.250    0.250  b/x.py:10(work)\n"
	       "a/x.py:10(work)        ->     2/1    0.500    1.000  a/x.py:10(work)\n"
	       "                                6    0.500    0.500  {built-in method len}\n"
	       "b/x.py:10(work)        ->       4    0.250    0.250  {built-in method len}\n"
	       "{built-in method len}  -> \n"
	       "\n"
	       "\n");
	graph.edges_are_counts = true;
	sort(&stats, "calls");
	view.limits = &(struct stats_limit){.kind = STATS_LIMIT_COUNT, .count = 2};
	view.limit_count = 1;
	buf_puts(&view.limits[0].shown, "2");
	expect(CALLERS, &view,
	       "   Ordered by: call count\n"
	       "   List reduced from 4 to 2 due to restriction <2>\n"
	       "\n"
	       "Function               was called by...\n"
	       "{built-in method len}  <- a/x.py:10(work)(6)    2.000\n"
	       "                          b/x.py:10(work)(4)    0.250\n"
	       "a/x.py:10(work)        <- a/x.py:1(main)(1)    3.000\n"
	       "                          a/x.py:10(work)(2)    2.000\n"
	       "\n"
	       "\n");
	buf_release(&view.limits[0].shown);
	stats_release(&stats);
	callgraph_release(&graph);
}

/* The listing's functions by the letters m(ain), w(ork), t(win), b(uilt-in). */
static void expect_order(struct stats *stats, const char *words, const char *order)
{
	char text[8] = "";

	sort(stats, words);
	for (uint32_t i = 0; i < stats->count; i++) {
		const struct callgraph_function *f = &stats->graph->functions[stats->listing[i]];

		text[i] = *callgraph_file(stats->graph, stats->listing[i]) == 'b' ? 't'
		          : f->line == 0                                          ? 'b'
		                         : *callgraph_name(stats->graph, stats->listing[i]);
	}
	cr_assert_str_eq(text, order, "%s", words);
}

Test(stats, every_key)
{
	struct callgraph graph;
	struct stats stats;

	make_graph(&graph);
	graph.functions[2].cpu_ns = 5; /* main */
	graph.functions[1].gil_ns = 7;    /* the twin */
	cr_assert_eq(stats_make(&stats, &graph), 0);
	cr_assert_eq(stats.calls, 16);
	cr_assert_eq(stats.primitive_calls, 14);
	expect_order(&stats, "calls", "bwtm");
	expect_order(&stats, "pcalls", "btmw"); /* main and work, once each, as they were entered */
	expect_order(&stats, "cumulative", "mwbt");
	expect_order(&stats, "time", "wbmt");
	expect_order(&stats, "file", "mwtb"); /* "~" is behind letters */
	expect_order(&stats, "line", "bmwt");
	expect_order(&stats, "name", "bmwt");
	expect_order(&stats, "nfl", "bmwt");
	expect_order(&stats, "stdname", "mwtb"); /* "a/x.py:1(" before "a/x.py:10" */
	expect_order(&stats, "line,time", "bmwt");
	expect_order(&stats, "name,calls", "bmwt");
	expect_order(&stats, "on_cpu", "mwtb");
	expect_order(&stats, "gil", "tmwb");
	expect_order(&stats, "-1", "mwtb");
	expect_order(&stats, "0", "bwtm");
	expect_order(&stats, "1", "wbmt");
	expect_order(&stats, "2", "mwbt");
	stats_reverse(&stats);
	cr_assert_eq(stats.listing[3], 2);
	sort(&stats, "");
	cr_assert(!stats.is_sorted);
	stats_reverse(&stats);
	cr_assert_eq(stats.listing[0], 2, "nothing to reverse");
	stats_release(&stats);
	callgraph_release(&graph);
}

static int key_of(const char *word)
{
	struct stats_order order = {0};
	int err = stats_order_add(&order, word, strlen(word));

	return err ? err : (int)order.keys[0];
}

/* By hand from Stats.get_sort_arg_defs(): "cu" stays cumtime's, while "c", "cum", "n" and "t" are two words'. */
Test(stats, abbreviations_are_those_of_pstats)
{
	static const char *const none[] = {"", "x", "callss", "o", "g", "on", "sa", "-", "-2", "3", "ncalls "};
	static const char *const several[] = {"c", "cum", "n", "t"};
	static const struct {
		const char *word;
		enum stats_key key;
	} some[] = {
		{"ca", STATS_CALLS},        {"nc", STATS_CALLS}, {"cu", STATS_CUMULATIVE}, {"cumt", STATS_CUMULATIVE},
		{"cumu", STATS_CUMULATIVE}, {"f", STATS_FILE},   {"m", STATS_FILE},        {"l", STATS_LINE},
		{"na", STATS_NAME},         {"nf", STATS_NFL},   {"p", STATS_PCALLS},      {"s", STATS_STDNAME},
		{"ti", STATS_TIME},         {"to", STATS_TIME},  {"samples", STATS_CALLS}, {"on_cpu", STATS_ON_CPU},
		{"gil", STATS_GIL},
	};
	struct stats_order order = {0};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		cr_assert_eq(key_of(none[i]), -ENOENT, "%s", none[i]);
	for (size_t i = 0; i < sizeof(several) / sizeof(several[0]); i++)
		cr_assert_eq(key_of(several[i]), -ENOTUNIQ, "%s", several[i]);
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		cr_assert_eq(key_of(some[i].word), (int)some[i].key, "%s", some[i].word);
	for (int i = 0; i < STATS_KEYS_MAX; i++)
		cr_assert_eq(stats_order_add(&order, "time", 4), 0);
	cr_assert_eq(stats_order_add(&order, "time", 4), -E2BIG);
}

static void expect_limit(const struct stats *stats, const char *text, uint32_t left, const char *message)
{
	struct stats_limit limit;
	struct stats_selection selection;
	int err = stats_limit_read(&limit, text);

	cr_assert(err == 0 || err == -EINVAL, "%s: %d", text, err);
	cr_assert_eq(stats_select(&selection, stats, &limit, 1), 0);
	cr_assert_eq(selection.count, left, "%s: %u", text, selection.count);
	cr_assert_str_eq(strchr(buf_text(&selection.message), '\n') + 1, message);
	stats_selection_release(&selection);
	stats_limit_release(&limit);
}

Test(stats, restrictions)
{
	struct callgraph graph;
	struct stats stats;
	struct stats_limit limit;

	make_graph(&graph);
	cr_assert_eq(stats_make(&stats, &graph), 0);
	expect_limit(&stats, "3", 3, "   List reduced from 4 to 3 due to restriction <3>\n");
	expect_limit(&stats, "0", 0, "   List reduced from 4 to 0 due to restriction <0>\n");
	expect_limit(&stats, "+0_1", 1, "   List reduced from 4 to 1 due to restriction <1>\n");
	expect_limit(&stats, "4", 4, "");
	expect_limit(&stats, "-1", 4, "");
	expect_limit(&stats, "99999999999999999999999", 4, "");
	expect_limit(&stats, ".5", 2, "   List reduced from 4 to 2 due to restriction <0.5>\n");
	expect_limit(&stats, "0.37", 1, "   List reduced from 4 to 1 due to restriction <0.37>\n"); /* int(1.48 + .5) */
	expect_limit(&stats, "0.38", 2, "   List reduced from 4 to 2 due to restriction <0.38>\n"); /* int(1.52 + .5) */
	expect_limit(&stats, "1e-5", 0, "   List reduced from 4 to 0 due to restriction <1e-05>\n");
	expect_limit(&stats, "0.0", 0, "   List reduced from 4 to 0 due to restriction <0.0>\n");
	expect_limit(&stats, "1.0", 4, "");
	expect_limit(&stats, "nan", 4, "");
	expect_limit(&stats, "work", 2, "   List reduced from 4 to 2 due to restriction <'work'>\n");
	expect_limit(&stats, "^a/.*:\\d\\(", 1,
	             "   List reduced from 4 to 1 due to restriction <'^a/.*:\\\\d\\\\('>\n");
	expect_limit(&stats, "\\d\\D", 3, "   List reduced from 4 to 3 due to restriction <'\\\\d\\\\D'>\n");
	expect_limit(&stats, "{built", 1, "   List reduced from 4 to 1 due to restriction <'{built'>\n");
	expect_limit(&stats, "n}$", 1, "   List reduced from 4 to 1 due to restriction <'n}$'>\n");
	expect_limit(&stats, "(?:ma|le)i?n", 2, "   List reduced from 4 to 2 due to restriction <'(?:ma|le)i?n'>\n");
	expect_limit(&stats, "10{1}\\(", 2, "   List reduced from 4 to 2 due to restriction <'10{1}\\\\('>\n");
	expect_limit(&stats, "[{]b", 1, "   List reduced from 4 to 1 due to restriction <'[{]b'>\n");
	expect_limit(&stats, "'", 0, "   List reduced from 4 to 0 due to restriction <\"'\">\n");
	expect_limit(&stats, "'\"", 0, "   List reduced from 4 to 0 due to restriction <'\\'\"'>\n");
	expect_limit(&stats, "\x1b\n\xff", 0, "   List reduced from 4 to 0 due to restriction <'\\x1b\\n\\udcff'>\n");
	expect_limit(&stats, "(", 4, "   <Invalid regular expression '('>\n");
	expect_limit(&stats, "[", 4, "   <Invalid regular expression '['>\n");
	expect_limit(&stats, "[^", 4, "   <Invalid regular expression '[^'>\n");
	expect_limit(&stats, "0x3", 0, "   List reduced from 4 to 0 due to restriction <'0x3'>\n");
	cr_assert_eq(stats_limit_read(&limit, "1.5"), -ERANGE);
	stats_limit_release(&limit);
	cr_assert_eq(stats_limit_read(&limit, "-inf"), -ERANGE);
	stats_limit_release(&limit);
	stats_release(&stats);
	callgraph_release(&graph);
}

Test(stats, stripped_of_directories)
{
	struct callgraph graph, stripped, sampled;
	struct stats stats;
	struct stats_view view;

	make_graph(&graph);
	cr_assert_eq(stats_strip_dirs(&stripped, &graph), 0);
	view = view_of(&stats, &stripped, NULL);
	/* The built-in's ten calls came from two functions that are one now: pstats keeps the last caller's four. */
	expect(CALLERS, &view,
	       "   Random listing order was used\n"
	       "\n"
	       "Function               was called by...\n"
	       "                           ncalls  tottime  cumtime\n"
	       "x.py:1(main)           <-       1    0.500    3.000  y.py:7(outside)\n"
	       "x.py:10(work)          <-       3    0.750    2.250  x.py:1(main)\n"
	       "                              2/1    0.500    1.000  x.py:10(work)\n"
	       "{built-in method len}  <-       4    0.250    0.250  x.py:10(work)\n"
	       "\n"
	       "\n");
	cr_assert_eq(stats.count, 3);
	cr_assert_eq(stats.calls, 16);
	stats_release(&stats);
	graph.from_samples = true;
	cr_assert_eq(stats_strip_dirs(&sampled, &graph), 0);
	for (uint32_t i = 0; i < sampled.edge_count; i++)
		if (*callgraph_name(&sampled, sampled.edges[i].callee) == '<')
			cr_assert_eq(sampled.edges[i].sums.calls, 10, "samples are all kept");
	callgraph_release(&sampled);
	callgraph_release(&stripped);
	callgraph_release(&graph);
}

static const char hostile[] = "\x1b[2J\xe2\x80\xae\xff\"a,b\"\r\n=1+1";

Test(stats, hostile_names_and_odd_numbers)
{
	struct callgraph graph;
	struct stats stats;
	struct stats_view view;
	char *text;

	callgraph_init(&graph);
	add_sums(&graph, "\x9b.py", 4294967295, hostile, (struct call_sums){0, 0, NAN, INFINITY});
	callgraph_function(&graph, "a\0b", 3, "~\0", 2, 0);
	callgraph_give_sums(&graph, 1);
	add_sums(&graph, "", 0, "", (struct call_sums){UINT64_MAX, UINT64_MAX, 1e300, -1});
	add_sums(&graph, "", 0, "<", (struct call_sums){1, 1, 0, 0});
	view = view_of(&stats, &graph, "time,cumt,name,file");
	text = written_as(STATS, &view);
	cr_assert(strstr(text, "        0      nan               inf          "
	                       "\xef\xbf\xbd.py:4294967295(\xef\xbf\xbd[2J\xef\xbf\xbd\xef\xbf\xbd\"a,b\""),
	          "%s", text);
	cr_assert(strstr(text, "~\xef\xbf\xbd:0(a\xef\xbf\xbd"
	                       "b)\n"));
	for (const char *c = text; *c; c++)
		cr_assert(*c == '\n' || (unsigned char)*c >= 0x20);
	free(text);
	text = written_as(CSV, &view);
	cr_assert(strstr(text, ",,inf") == NULL && strstr(text, "\r\n0,0,,,,,\xef\xbf\xbd.py,4294967295,\"\x1b["
	                                                        "2J\xe2\x80\xae\xef\xbf\xbd\"\"a,b\"\"\r\n=1+1\"\r\n"),
	          "%s", text);
	free(text);
	view.safe = true;
	text = written_as(CSV, &view);
	cr_assert_null(strchr(text, '\x1b'));
	free(text);
	text = written_as(JSON_CALLERS, &view);
	cr_assert(strstr(text, "\"tottime\": null"));
	cr_assert_null(strchr(text, '\x1b'));
	free(text);
	stats_release(&stats);
	callgraph_release(&graph);
}

Test(stats, nothing)
{
	struct callgraph graph;
	struct stats stats;
	struct stats_view view;

	callgraph_init(&graph);
	view = view_of(&stats, &graph, "time");
	expect(STATS, &view, "         0 function calls in 0.000 seconds\n\n");
	expect(CALLERS, &view, "");
	expect(CSV_CALLEES, &view,
	       "file,line,function,callee_file,callee_line,callee_function,ncalls,pcalls,tottime,cumtime\r\n");
	expect(JSON, &view,
	       "{\"counts\": \"calls\", \"unit\": \"seconds\", \"ncalls\": 0, \"pcalls\": 0, \"tottime\": 0, "
	       "\"facts\": [], "
	       "\"message\": \"   Ordered by: internal time\\u000a\", \"functions\": [\n]}\n");
	stats_release(&stats);
	callgraph_release(&graph);
}

/* Two threads; f recurs in 16 samples of 37; five have no frame. */
Test(stats, samples_say_that_they_are)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 1, "x"), t = built_thread(p, process, 0, 1, "Main"),
		 f = built_symbol(p, "f", "m.py", 1), node;
	struct callgraph graph;
	struct stats stats;
	struct stats_view view;
	char *text;

	node = built_child(p, t, 0, f, 2);
	built_sample(p, t, node, 16, STATUS_RUNNABLE | STATUS_GIL);
	built_sample(p, t, built_child(p, t, node, f, 3), 16, STATUS_RUNNABLE);
	built_sample(p, built_thread(p, process, 0, 2, NULL), 0, 5, STATUS_IDLE);
	p->processes[process].facts.lost[LOSS_TORN] = 3;
	p->processes[process].facts.attempts += 3;
	built_cpu_time(p);
	callgraph_init(&graph);
	cr_assert_eq(callgraph_add_profile(&graph, p), 0);
	view = view_of(&stats, &graph, "gil");
	view.on_cpu = view.gil = true;
	text = written_as(STATS, &view);
	cr_assert(strstr(text, "         53 frames sampled (37 primitive ones) in 37.000 milliseconds\n         from "
	                       "samples: the first column counts samples"),
	          "%s", text);
	cr_assert(strstr(text, "lost: torn: 3 (7.5 %)"), "%s", text);
	cr_assert_null(strstr(text, "not readable"), "what did not happen is left out: %s", text);
	cr_assert(strstr(text,
	                 "   Ordered by: internal time holding the GIL\n\n"
	                 " nsamples  tottime persample cumtime persample   on_cpu      gil filename:lineno(function)\n"
	                 "    48/32   32.000    0.667   32.000    1.000   22.400   16.000 m.py:1(f)\n"
	                 "        5    5.000    1.000    5.000    1.000    0.000    0.000 {no frames}\n"),
	          "%s", text);
	free(text);
	expect(CSV_CALLERS, &view,
	       "file,line,function,caller_file,caller_line,caller_function,nsamples,psamples,tottime,cumtime\r\n"
	       "m.py,1,f,m.py,1,f,16,16,0.016,0.016\r\n");
	expect(CSV, &view,
	       "nsamples,psamples,tottime,tottime_percall,cumtime,cumtime_percall,on_cpu,gil,file,line,function\r\n"
	       "48,32,0.032,0.0006666666666666666,0.032,0.001,0.0224,0.016,m.py,1,f\r\n"
	       "5,5,0.005,0.001,0.005,0.001,0,0,~,0,<no frames>\r\n");
	stats_release(&stats);
	callgraph_release(&graph);
	built_free(p);
}
