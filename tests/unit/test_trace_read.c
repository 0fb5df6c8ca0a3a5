/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/read_back.h"
#include "tests/unit/written.h"

/* What comes of it as lines of the text style, times in their values. */
static struct profile *read_events(const char *events)
{
	char text[8192];

	snprintf(text, sizeof(text), "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[%s]}", events);
	return read_text("chrome", text);
}

/* The self time of the function at the end of this path, "a;b"; UINT64_MAX: there is none such. *ret_count (NULL: not asked): its calls. */
static uint64_t self_ns(const struct profile *p, uint32_t thread, const char *path, uint64_t *ret_count)
{
	const struct thread_tree *tree = &p->threads[thread];

	for (uint32_t n = 1; n < tree->node_count; n++) {
		char made[512] = "";

		for (uint32_t at = n; at; at = tree->nodes[at].parent) {
			char before[512];

			strcpy(before, made);
			snprintf(made, sizeof(made), "%.200s%s%.200s", p->symbols[tree->nodes[at].symbol].name,
			         before[0] ? ";" : "", before);
		}
		if (strcmp(made, path) == 0) {
			if (ret_count)
				*ret_count = tree->nodes[n].self[VALUE_SAMPLES];
			return tree->nodes[n].self[VALUE_WALL];
		}
	}
	return UINT64_MAX;
}

#define X(name, ts, dur) "{\"ph\":\"X\",\"pid\":7,\"tid\":8,\"name\":\"" name "\",\"ts\":" ts ",\"dur\":" dur "}"
#define B(name, ts)      "{\"ph\":\"B\",\"pid\":7,\"tid\":8,\"name\":\"" name "\",\"ts\":" ts "}"
#define E(ts)            "{\"ph\":\"E\",\"pid\":7,\"tid\":8,\"ts\":" ts "}"

Test(trace_read, complete_events_in_any_order)
{
	struct profile *p =
		read_events(X("b", "1.5", "2.25") "," X("a", "1", "10") "," X("b", "5", "1") "," X("a", "20", "0.5"));
	uint64_t count;

	cr_assert_eq(self_ns(p, 0, "a", &count), 10000 - 2250 - 1000 + 500);
	cr_assert_eq(count, 2); /* a count is a call */
	cr_assert_eq(self_ns(p, 0, "a;b", &count), 3250);
	cr_assert_eq(count, 2);
	cr_assert_eq(p->threads[0].tid, 8);
	cr_assert_eq(p->processes[0].pid, 7);
	cr_assert_eq(p->t_end_ns - p->t_start_ns, 19500);
	profile_free(p);
}

Test(trace_read, begins_and_ends_and_spans_within)
{
	struct profile *p = read_events(B("a", "0") "," X("x", "1", "1") "," B("b", "4") "," E("6") "," E("10"));

	cr_assert_eq(self_ns(p, 0, "a", NULL), 7000);
	cr_assert_eq(self_ns(p, 0, "a;x", NULL), 1000);
	cr_assert_eq(self_ns(p, 0, "a;b", NULL), 2000);
	profile_free(p);
}

Test(trace_read, what_does_not_nest_is_cut_and_said)
{
	struct profile *p = read_events(X("a", "0", "100") "," X("b", "50", "100") "," E("70") "," B("c", "200") "," B(
		"d", "210") "," E("230"));

	cr_assert_eq(self_ns(p, 0, "a", NULL), 50000);
	cr_assert_eq(self_ns(p, 0, "a;b", NULL), 50000);
	cr_assert_eq(note_of(p, "clipped_calls"), 1);
	cr_assert_eq(note_of(p, "without_begin"), 1);
	cr_assert_eq(note_of(p, "left_open"), 1); /* c, to the last event */
	cr_assert_eq(self_ns(p, 0, "c", NULL), 10000);
	cr_assert_eq(self_ns(p, 0, "c;d", NULL), 20000);
	profile_free(p);
}

Test(trace_read, other_events)
{
	struct profile *p =
		read_events(X("a", "0", "1") ",{\"ph\":\"b\",\"id\":1,\"pid\":7,\"tid\":8,\"ts\":0,\"name\":\"q\"},{"
	                                     "\"ph\":\"i\",\"ts\":3},{\"ph\":\"C\"},"
	                                     "{\"ph\":\"X\",\"name\":\"no time\",\"pid\":7},{\"ph\":\"?\"},17,"
	                                     "{\"ph\":\"X\",\"cat\":\"Trace\",\"pid\":\"Spans\",\"tid\":\"PyTorch "
	                                     "Profiler\",\"ts\":0,\"dur\":9,\"name\":\"P\"}");

	cr_assert_eq(note_of(p, "asynchronous"), 1);
	cr_assert_eq(note_of(p, "passed_over"), 3);
	cr_assert_eq(note_of(p, "bad_events"), 3);
	cr_assert_eq(p->thread_count, 1);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 1);
	profile_free(p);
}

static void expect_place(const char *event, const char *name, const char *file, uint32_t line)
{
	struct profile *p = read_events(event);
	const struct node *node = &p->threads[0].nodes[1];

	cr_assert_str_eq(p->symbols[node->symbol].name, name);
	cr_assert_str_eq(p->symbols[node->symbol].file, file);
	cr_assert_eq(node->line, line);
	profile_free(p);
}

Test(trace_read, places_as_profilers_write_them)
{
	expect_place(X("f (/srv/a.py:12)", "1", "1"), "f", "/srv/a.py", 12);
	expect_place(X("torch/nn/modules/module.py(1501): _call_impl", "1", "1"), "_call_impl",
	             "torch/nn/modules/module.py", 1501);
	expect_place(X("<built-in method add (x) of T>", "1", "1"), "<built-in method add (x) of T>", "", 0);
	expect_place(X("void at::native::elementwise<4, (a)>(int, char)", "1", "1"),
	             "void at::native::elementwise<4, (a)>(int, char)", "", 0);
	expect_place(X("gzip (libz.so.1)", "1", "1"), "gzip", "libz.so.1", 0);
	expect_place("{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":1,\"name\":\"g\",\"args\":{\"filename\":\"/"
	             "b.py\",\"line\":3}}",
	             "g", "/b.py", 3);
}

Test(trace_read, names_of_threads_and_processes_come_late)
{
	struct profile *p = read_events(
		X("a", "0",
	          "1") ",{\"ph\":\"M\",\"pid\":7,\"tid\":8,\"name\":\"thread_name\",\"args\":{\"name\":\"worker\"}},"
		       "{\"ph\":\"M\",\"pid\":7,\"name\":\"process_name\",\"args\":{\"name\":\"python\"}}");

	cr_assert_str_eq(p->threads[0].name, "worker");
	cr_assert_str_eq(p->processes[0].name, "python");
	profile_free(p);
}

/* "the ] at the end is optional", and a killed writer leaves less. */
Test(trace_read, an_array_that_is_not_closed)
{
	static const char *const ends[] = {"]", "", ",", ",{\"ph\":\"X\",\"na", "\n,\n"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		char text[512];
		struct profile *p;

		snprintf(text, sizeof(text), "[%s%s", X("a", "0", "1"), ends[i]);
		p = read_text("chrome", text);
		cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 1);
		cr_assert_eq(note_of(p, "cut_file"), i ? 1 : -1);
		profile_free(p);
	}
}

static void refuse(const char *text, const char *why)
{
	struct profile *p;
	struct fault fault = {0};

	cr_assert_eq(read_as(&p, "chrome", text, strlen(text), NULL, &fault), -EPROTO, "%s", text);
	cr_assert(strstr(fault.why, why), "%s: %s", text, fault.why);
}

Test(trace_read, refused)
{
	refuse("", "EOF");
	refuse("{}", "no calls");
	refuse("{\"traceEvents\":[]}", "no calls");
	refuse("[1,2,}", "at byte");
}

/* In time order each stretch of a stack is a run, and their weights are the time. */
Test(trace_read, time_order)
{
	const char text[] = "[" X("b", "2", "2") "," X("a", "0", "10") "]";
	struct profile *p;
	struct fault fault;

	cr_assert_eq(read_back(&p, "chrome", text, strlen(text), &(struct builder_options){.runs = true}, &fault), 0);
	cr_assert_eq(p->threads[0].run_count, 3);
	cr_assert_eq(p->threads[0].runs[0].weight_ns, 2000);
	cr_assert_eq(p->threads[0].runs[1].weight_ns, 2000);
	cr_assert_eq(p->threads[0].runs[2].weight_ns, 6000);
	cr_assert_eq(profile_sum(p, VALUE_WALL), 10000);
	profile_free(p);
	cr_assert_eq(read_back(&p, "chrome", text, strlen(text),
	                       &(struct builder_options){.from_ns = 1000, .to_ns = 5000}, &fault),
	             0);
	cr_assert_eq(profile_sum(p, VALUE_WALL), 4000);
	profile_free(p);
}

Test(trace_read, damaged)
{
	const char text[] = "{\"traceEvents\":[" B("a", "0") "," X("f (a.py:1)", "1", "1") "," E("10") "]}";

	read_damaged("chrome", text, strlen(text));
}
