/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/facts.h"
#include "exporters/functions.h"
#include "base/utf8.h"
#include "tests/unit/build_profile.h"
#include "tests/unit/written.h"

static char *report(struct profile *p)
{
	return written(p, "text", &(struct export_options){0});
}

/* Every line holds at most so many columns and nothing that a terminal obeys. */
static void check_columns(const char *text, unsigned columns_max)
{
	unsigned columns = 0;

	for (size_t left = strlen(text); left > 0;) {
		uint32_t c;
		size_t bytes = utf8_next(text, left, &c);

		if (c == '\n') {
			cr_assert(columns <= columns_max, "%u columns", columns);
			columns = 0;
		} else {
			cr_assert(!utf8_is_unsafe(c), "U+%04X", c);
			columns += utf8_columns(c);
		}
		text += bytes;
		left -= bytes;
	}
}

static void check_lines(const char *text)
{
	check_columns(text, 100);
}

Test(text, who_sleeps_does_not_win, .description = "and every line fits, at each width")
{
	static const unsigned widths[] = {40, 80, 100, 200};
	struct profile *p = built_new();
	uint32_t process = built_process(p, 1, "python"), sleeper = built_thread(p, process, 0, 1, "MainThread"),
		 worker = built_thread(p, process, 0, 2, "worker");
	char *text;

	built_sample(p, sleeper, built_child(p, sleeper, 0, built_symbol(p, "sleep", "a.py", 1), 2), 90, STATUS_IDLE);
	built_sample(p, worker, built_child(p, worker, 0, built_symbol(p, "work", "/usr/lib/python3.11/json/encoder.py", 9), 10),
	             10, STATUS_RUNNABLE | STATUS_GIL);
	text = report(p);
	cr_assert(strstr(text, "\nFUNCTIONS by time that is not idle ("), "%s", text);
	cr_assert(strstr(text, "\n    0.010   10.0    0.010   10.0  100.0  work (json/encoder.py:9)\n    0.090 "), "%s", text);
	cr_assert(strstr(text, "\n  idle: 90.0 % (sleep)\n"), "%s", text);
	cr_assert(strstr(strstr(text, "HEAVIEST PATH by time that is not idle"), "    0.010  100.0  100.0  work ("), "%s", text);
	cr_assert_null(strstr(strstr(text, "HEAVIEST PATH"), "sleep"), "%s", text);
	cr_assert_null(strstr(text, "torn"), "what is 0 is left out: %s", text);
	free(text);
	built_cpu_time(p);
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		text = written(p, "text", &(struct export_options){.columns = widths[i]});
		cr_assert(strstr(text, "\nFUNCTIONS by CPU time ("));
		check_columns(text, widths[i]);
		free(text);
	}
	built_free(p);
}

Test(text, empty_profile)
{
	struct profile *p = built_new();
	char *text = report(p);

	cr_assert(strstr(text, "0 processes, 0 threads"));
	check_lines(text);
	free(text);
	built_free(p);
}

Test(text, totals_count_recursion_once)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 1, "python3 fib.py"), 0, 1, "MainThread"), count;
	uint32_t fib = built_symbol(p, "fib", "fib.py", 1), leaf = built_symbol(p, "leaf", "fib.py", 9), a, b;
	struct function *functions;
	char *text;

	a = built_child(p, t, 0, fib, 2);
	b = built_child(p, t, built_child(p, t, a, leaf, 10), fib, 3);
	built_sample(p, t, a, 10, STATUS_RUNNABLE | STATUS_GIL);
	built_sample(p, t, b, 30, STATUS_RUNNABLE);
	built_sample(p, t, built_child(p, t, 0, leaf, 11), 60, STATUS_IDLE);
	cr_assert_eq(functions_make(&functions, &count, p, VALUE_WALL), 0);
	cr_assert_eq(count, 2);
	cr_assert_eq(functions[0].symbol, leaf);
	cr_assert_eq(functions[0].self[VALUE_SAMPLES], 60);
	cr_assert_eq(functions[0].total[VALUE_SAMPLES], 90);
	cr_assert_eq(functions[1].self[VALUE_SAMPLES], 40);
	cr_assert_eq(functions[1].total[VALUE_SAMPLES], 40, "not 70");
	free(functions);
	built_cpu_time(p);
	text = report(p);
	check_lines(text);
	cr_assert(strstr(text, "    0.060   60.0    0.090   90.0    0.0    0.0  leaf (fib.py:9)"), "%s", text);
	cr_assert(strstr(text, "    0.040   40.0    0.040   40.0   70.0   25.0  fib (fib.py:1)"), "%s", text);
	cr_assert(strstr(text, "      100    0.100    28.0   10.0    0.0   30.0   60.0    0.0    0.0  1 MainThread"), "%s",
	          text);
	free(text);
	built_free(p);
}

Test(text, heaviest_path_is_followed)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 1, "x"), 0, 1, "Main"),
		 top = built_child(p, t, 0, built_symbol(p, "top", "a.py", 1), 5);
	char *text, *path;

	built_sample(p, t, built_child(p, t, top, built_symbol(p, "light", "a.py", 20), 21), 10, 0);
	built_sample(p, t, built_child(p, t, top, built_symbol(p, "heavy", "a.py", 30), 31), 30, 0);
	text = report(p);
	path = strstr(text, "HEAVIEST PATH");
	cr_assert_not_null(path);
	cr_assert(strstr(path, "    0.040  100.0    0.0  top (a.py:5)\n    0.030   75.0   75.0   heavy (a.py:31)"),
	          "%s", path);
	cr_assert_null(strstr(path, "light"));
	free(text);
	built_free(p);
}

/* attempts = samples + all losses, and samples = what is in the trees + what was left out. */
/* Whether a label is there and ends before what it is the label of. */
static bool row_follows(const char *text, const char *label)
{
	const char *at = strstr(text, label);

	return at && at[strlen(label)] == ' ';
}

Test(text, stops_are_told_where_there_were_any)
{
	struct profile *p = built_new();
	struct rec_facts *facts;
	struct facts f;

	built_thread(p, built_process(p, 1, "python"), 0, 1, "main");
	facts_make(&f, p);
	for (size_t i = 0; i < f.count; i++)
		cr_assert(!strstr(f.items[i].key, "stop") && !strstr(f.items[i].key, "native"), "%s", f.items[i].key);
	cr_assert_eq(facts_stop_ns(&f.sum, 50), 0);
	facts = &p->processes[0].facts;
	facts->samples = facts->attempts = 1000;
	facts->native = 900;
	facts->native_mismatched = 3;
	facts->stops = 1000;
	facts->eintr_risk = 2;
	facts->stop_ns = 32000000;
	facts->stop_max_ns = 50000;
	facts->stop_bins[20] = 500; /* 32 to 38 µs */
	facts->stop_bins[21] = 489;
	facts->stop_bins[24] = 11; /* 64 to 76 µs: none was longer than the longest */
	facts_make(&f, p);
	cr_assert_eq(facts_stop_ns(&f.sum, 50), 34896);
	cr_assert_eq(facts_stop_ns(&f.sum, 98.9), 41498);
	cr_assert_eq(facts_stop_ns(&f.sum, 99), 50000);
	cr_assert_eq(f.lost, 0, "a sample without native frames is a sample");
	for (size_t i = 0; i < f.count; i++) {
		if (strcmp(f.items[i].key, "stop_mean_ns") == 0)
			cr_assert_str_eq(f.items[i].text, "32.0 µs");
		if (strcmp(f.items[i].key, "native_mismatched") == 0)
			cr_assert_str_eq(f.items[i].text, "3 (0.30 %)");
		if (strcmp(f.items[i].key, "eintr_risk") == 0)
			cr_assert_eq(f.items[i].weight, FACT_LOSS);
	}
	built_free(p);
}

Test(text, facts_add_up_and_are_shown)
{
	struct profile *p = built_new();
	uint32_t a = built_process(p, 1, "a"), b = built_process(p, 2, "b");
	struct facts f;
	double samples = 0, attempts = 0, lost = 0, inside = 0, left_out = 0;
	char *text;

	built_sample(p, built_thread(p, a, 0, 1, NULL), 0, 1200, STATUS_IDLE);
	built_sample(p, built_thread(p, b, 0, 2, NULL), 0, 34, STATUS_IDLE);
	for (unsigned i = 0; i < LOSS_CAUSES; i++) {
		p->processes[a].facts.lost[i] = i + 1;
		p->processes[a].facts.attempts += i + 1;
	}
	p->processes[b].facts.samples += 6;
	p->processes[b].facts.attempts += 6;
	p->filtered = 1;
	p->omitted = 2;
	p->out_of_memory = 3;
	facts_make(&f, p);
	for (size_t i = 0; i < f.count; i++) {
		const struct fact *fact = &f.items[i];

		samples += strcmp(fact->key, "samples") == 0 ? fact->number : 0;
		attempts += strcmp(fact->key, "attempts") == 0 ? fact->number : 0;
		inside += strcmp(fact->key, "in_profile") == 0 ? fact->number : 0;
		lost += strncmp(fact->key, "lost_", 5) == 0 ? fact->number : 0;
		left_out += strcmp(fact->key, "filtered") == 0 || strcmp(fact->key, "omitted") == 0 ||
		                            strcmp(fact->key, "out_of_memory") == 0
		                    ? fact->number
		                    : 0;
	}
	cr_assert_eq(lost, 15);
	cr_assert_eq(attempts, samples + lost);
	cr_assert_eq(samples, inside + left_out);
	cr_assert_eq(f.in_profile, 1234);
	cr_assert_float_eq(f.asked_hz, 1000, 1e-9);
	cr_assert_float_eq(f.reached_hz, 1000, 1e-9, "two processes do not tick at twice the rate");
	text = report(p);
	check_lines(text);
	for (size_t i = 0; i < f.count; i++)
		cr_assert(f.items[i].number == 0 || row_follows(text, f.items[i].label),
		          "%s is missing, or runs into its number", f.items[i].label);
	cr_assert(strstr(text, "1,234"));
	cr_assert(strstr(text, "! lost: torn"));
	free(text);
	built_free(p);
}

Test(text, a_long_fact_is_not_cut)
{
	struct profile *p = built_new();
	char *text;

	built_sample(p, built_thread(p, built_process(p, 1, "x"), 0, 1, ""), 0, 9, STATUS_IDLE);
	p->processes[0].facts.near = 9;
	text = report(p);
	cr_expect(strstr(text, "\n  exact: 100.0 % (standing 100.0, stopped 0.0), moving 0.0 %\n"), "%s", text);
	free(text);
	built_free(p);
}

Test(text, without_a_frame_there_is_no_empty_table)
{
	struct profile *p = built_new();
	char *text;

	built_sample(p, built_thread(p, built_process(p, 1, "embedder"), 0, 1, ""), 0, 9, STATUS_IDLE);
	text = report(p);
	cr_expect(strstr(text, "\nFUNCTIONS none: no sample holds a Python frame ("), "%s", text);
	cr_expect_null(strstr(text, "total %"), "%s", text);
	free(text);
	built_free(p);
}

Test(text, hostile_and_long_names_stay_in_their_columns)
{
	static const char *const parts[] = {"\x1b[2J\x1b]0;owned\x07", "\xe2\x80\xae", "\xe5\x87\xbd",
	                                    "\xf0\x9f\x94\xa5",        "\xff",         "long"};
	struct profile *p = built_new();
	uint32_t t;
	char name[1024], *text;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		name[0] = '\0';
		while (strlen(name) + strlen(parts[i]) < sizeof(name))
			strcat(name, parts[i]);
		t = built_thread(p, built_process(p, 2000000000 + (int32_t)i, name), 1000 + (int64_t)i, 4000000000 + i,
		                 name);
		built_sample(p, t, built_child(p, t, 0, built_symbol(p, name, name, 4000000000), 4000000000),
		             1000000000, 127);
	}
	text = report(p);
	check_lines(text);
	free(text);
	built_free(p);
}

Test(text, deep_path_is_cut_and_said)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 1, "x"), 0, 1, NULL), f = built_symbol(p, "f", "a.py", 1), at = 0;
	char *text;

	for (unsigned i = 0; i < 2000; i++)
		at = built_child(p, t, at, f, 2);
	built_sample(p, t, at, 5, STATUS_RUNNABLE);
	text = report(p);
	check_lines(text);
	cr_assert(strstr(text, "... 1940 frames in between"), "%s", text);
	free(text);
	built_free(p);
}

Test(text, numbers_in_words)
{
	char text[32];

	facts_count_text(text, sizeof(text), 0);
	cr_assert_str_eq(text, "0");
	facts_count_text(text, sizeof(text), 999);
	cr_assert_str_eq(text, "999");
	facts_count_text(text, sizeof(text), UINT64_MAX);
	cr_assert_str_eq(text, "18,446,744,073,709,551,615");
	facts_time_text(text, sizeof(text), 1250000000);
	cr_assert_str_eq(text, "1.25 s");
	facts_time_text(text, sizeof(text), UINT64_C(125000000000));
	cr_assert_str_eq(text, "2 m 05 s");
	facts_version_text(text, sizeof(text), 0x030f00);
	cr_assert_str_eq(text, "3.15.0");
}

Test(text, shares_in_words)
{
	char text[32];

	facts_percent_text(text, sizeof(text), 0, 0);
	cr_assert_str_eq(text, "0.00 %");
	facts_percent_text(text, sizeof(text), 1, 1000000);
	cr_assert_str_eq(text, "<0.01 %");
	facts_percent_text(text, sizeof(text), 5, 10000);
	cr_assert_str_eq(text, "0.05 %");
	facts_percent_text(text, sizeof(text), 998, 1000);
	cr_assert_str_eq(text, "99.8 %");
	facts_percent_text(text, sizeof(text), 1000, 1000);
	cr_assert_str_eq(text, "100.0 %");
}

/* An import with a weight in bytes and no states: no column of these, no seconds. */
Test(text, imported_profile)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 0, ""), 0, 0, "T"),
		 n = built_child(p, t, 0, built_symbol(p, "grow", "/a.py", 0), 9);
	char *text;

	p->values[VALUE_WALL] = (struct value_type){"alloc", "bytes"};
	for (int v = VALUE_RUNNABLE; v < VALUE_COUNT; v++)
		p->values[v] = (struct value_type){0};
	p->threads[t].nodes[n].self[VALUE_SAMPLES] = 3;
	p->threads[t].nodes[n].self[VALUE_WALL] = 4096;
	p->threads[t].nodes[n].self[VALUE_RUNNABLE] = 77; /* in the place of runnable, but not called so */
	p->processes[0].facts = (struct rec_facts){0};
	p->imported = true;
	text = written(p, "text", &(struct export_options){0});
	cr_assert_not_null(strstr(text, "1 thread, imported\n"));
	cr_assert_null(strstr(text, "CPU"));
	cr_assert_null(strstr(text, "seconds"));
	cr_assert_null(strstr(text, "process 0"));
	cr_assert_not_null(strstr(text, "        3    4,096   ? T\n"));
	cr_assert_not_null(strstr(text, "    4,096  100.0    4,096  100.0  grow (/a.py)\n"));
	free(text);
	built_free(p);
}

Test(text, what_is_not_known_of_a_process_is_not_asked)
{
	struct profile *p = built_new();
	char *text;

	built_process(p, 7, "");
	p->processes[0].version = 0;
	text = written(p, "text", &(struct export_options){0});
	cr_assert_not_null(strstr(text, "\n  process 7\n\n"));
	free(text);
	built_free(p);
}

/* Of 100 ms that were due 18 were not had, whether or not a mode keeps one in ten of the others, or none. */
Test(text, what_options_leave_out_was_sampled)
{
	for (unsigned kept = 0; kept <= 80; kept += 40) {
		struct profile *p = built_new();
		uint32_t process = built_process(p, 1, "x"), t = built_thread(p, process, 0, 1, "Main");
		struct facts facts;
		bool found = false;

		if (kept)
			built_sample(p, t, 0, kept, STATUS_GIL);
		p->processes[process].facts.samples = p->processes[process].facts.attempts = 82;
		p->processes[process].facts.unsampled_ns = 18000000;
		p->filtered = 82 - kept;
		p->left_out.wall = (82 - kept) * UINT64_C(1000000);
		facts_make(&facts, p);
		for (size_t i = 0; i < facts.count; i++)
			if (strcmp(facts.items[i].key, "unsampled_ns") == 0) {
				found = true;
				cr_expect_str_eq(facts.items[i].text, "18.00 ms (18.0 %)", "%u kept: %s", kept, facts.items[i].text);
			}
		cr_expect(found);
		built_free(p);
	}
}

/* Not all lose the same part: one that runs lost half of its samples, one that is idle none. */
Test(text, no_share_of_cpu_time_is_above_100)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 1, "x"), t = built_thread(p, process, 0, 1, "Main");
	uint32_t node = built_child(p, t, 0, built_symbol(p, "work", "x.py", 1), 1);
	char *text;

	built_sample(p, t, node, 5, STATUS_RUNNABLE);
	built_sample(p, built_thread(p, process, 0, 2, "Idle"), 0, 90, STATUS_IDLE);
	p->processes[process].facts.unsampled_ns = 5000000;
	built_cpu_time(p);
	p->threads[t].nodes[node].self[VALUE_CPU] = 9000000;
	p->threads[t].nodes[node].self[VALUE_RUN_WAIT] = 1000000;
	text = report(p);
	cr_expect(strstr(text, "        5    0.005    90.0    0.0    0.0  100.0    0.0    0.0    0.0  1 Main"), "%s", text);
	cr_expect(strstr(text, "   90.0    0.0  work (x.py:1)"), "%s", text);
	free(text);
	built_free(p);
}

/* The kernel counts while no samples are taken, too: of 10 ms, half of which were sampled, a thread had a CPU for 2 and waited for one for 8. */
Test(text, what_the_kernel_counted_is_of_all_time)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 1, "x"), t = built_thread(p, process, 0, 1, "Main");
	uint64_t *self;
	struct facts facts;
	char *text;

	built_sample(p, t, 0, 5, STATUS_RUNNABLE);
	p->processes[process].facts.unsampled_ns = 5000000;
	built_cpu_time(p);
	self = p->threads[t].nodes[0].self;
	self[VALUE_CPU] = 2000000;
	self[VALUE_RUN_WAIT] = 8000000;
	facts_make(&facts, p);
	cr_expect_float_eq(facts.covered, 0.5, 1e-9);
	text = report(p);
	cr_expect(strstr(text, "! overloaded: waiting for a CPU 80 %"), "%s", text);
	cr_expect(strstr(text, "        5    0.005    20.0    0.0    0.0  100.0    0.0    0.0    0.0  1 Main"), "%s", text);
	free(text);
	for (int busy = 1; busy >= 0; busy--) {
		bool told = false;

		self[VALUE_RUN_WAIT] = busy ? 8000000 : 500000;
		facts_make(&facts, p);
		for (size_t i = 0; i < facts.count; i++)
			told |= strcmp(facts.items[i].key, "overload") == 0 && strcmp(facts.items[i].text, "80 %") == 0;
		cr_expect_eq(told, busy);
	}
	built_free(p);
}
