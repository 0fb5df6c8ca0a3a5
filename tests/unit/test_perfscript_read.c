/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "tests/unit/build_profile.h"
#include "tests/unit/read_back.h"
#include "tests/unit/written.h"

static const char text[] = "# a comment\n"
			   "my prog 2 12/14 [001] 100.500000:     250000 cpu-clock:pppH: \n"
			   "\t    7f01 leaf+0x1f (/usr/lib/libc.so.6)\n"
			   "\tffffffff82 operator()(int, char (*)(int)) const+0x0 ([kernel.kallsyms])\n"
			   "\t    7f03 [unknown] ([unknown])\n"
			   "\n"
			   "my prog 2 12/14 [001] 100.600000:     250000 cpu-clock:pppH: \n"
			   "\t    7f01 leaf+0x2f (/usr/lib/libc.so.6)\n"
			   "\tffffffff82 operator()(int, char (*)(int)) const+0x9 ([kernel.kallsyms])\n"
			   "\t    7f04 [unknown] ([unknown])\n"
			   "\n"
			   "other 13/13 101.000000001: 500000 cpu-clock:pppH: \n"
			   "\t7f05 py::Work.run:/srv/a b:c.py+0x3 (/tmp/perf-13.map)\n"
			   "\t7f06 foo (inlined)\n"
			   "\n";

static void expect(const struct profile *p, const char *lines)
{
	char *got = written(p, "collapsed", &(struct export_options){0});

	cr_assert_str_eq(got, lines);
	free(got);
}

Test(perf, samples_and_frames)
{
	struct profile *p = read_text("perf", text);

	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 3);
	cr_assert_eq(profile_sum(p, VALUE_WALL), 1000000, "the period of a clock is nanoseconds");
	cr_assert_str_eq(p->values[VALUE_WALL].name, "cpu");
	cr_assert_eq(profile_sum(p, VALUE_RUNNABLE), 1000000);
	cr_assert_str_eq(p->mode, "cpu");
	cr_assert_eq(p->t_start_ns, 100500000000);
	cr_assert_eq(p->t_end_ns, 101000000001);
	cr_assert(p->threads[1].is_main);
	cr_assert_eq(note_of(p, "perf_samples"), 3);
	cr_assert_eq(note_of(p, "bad_lines"), -1);
	expect(p, "# value: cpu, in nanoseconds\n"
	          "process 12 \"my prog 2\";thread 14 \"my prog 2\";[unknown];"
	          "operator()(int, char (*)(int)) const ([kernel.kallsyms]:0);leaf (/usr/lib/libc.so.6:0) 500000\n"
	          "process 13 \"other\";thread 13 \"other\";foo;Work.run (/srv/a b:c.py:0) 500000\n");
	profile_free(p);
}

Test(perf, other_events_and_bad_lines)
{
	struct profile *p = read_text("perf", "a 1 1.0: 7 cycles:u: \n\t1 f (x)\n\n"
	                                      "a 1 1.1: 8 cache-misses: \n\t1 g (x)\n\n"
	                                      "what is this\n"
	                                      "a 1 1.2: 9 cycles:u: \n\t1 f (x)\n\tnot a frame (x)\n\n"
	                                      "a 1 1.3: cycles:u: \n\n"
	                                      "a 1 1.4: 5 cycles:u:      5f f+0x3 (x)\n"
	                                      "a 1 1.5: 5 cycles:u:      5f f+0x3 (x)\n");

	cr_assert_eq(note_of(p, "other_events"), 1);
	cr_assert_eq(note_of(p, "bad_lines"), 2);
	cr_assert_str_eq(p->values[profile_weight(p)].name, "cycles:u", "cycles are no time");
	cr_assert_str_eq(p->values[profile_weight(p)].unit, "count");
	expect(p, "# value: cycles:u, in count\nthread 1 \"a\";f (x:0) 26\nthread 1 \"a\" 1\n");
	profile_free(p);
}

Test(perf, window_of_time)
{
	const struct builder_options late = {.from_ns = 400000000, .to_ns = 0}, early = {.to_ns = 100000000};
	struct profile *p;
	struct fault fault;

	cr_assert_eq(read_back(&p, "perf", text, strlen(text), &late, &fault), 0);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 1);
	profile_free(p);
	cr_assert_eq(read_back(&p, "perf", text, strlen(text), &early, &fault), 0);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 1);
	profile_free(p);
}

Test(perf, runs_are_kept)
{
	struct profile *p;
	struct fault fault;

	cr_assert_eq(read_back(&p, "perf", text, strlen(text), &(struct builder_options){.runs = true}, &fault), 0);
	cr_assert(p->has_runs);
	cr_assert_eq(p->threads[0].run_count, 2);
	cr_assert_eq(p->threads[0].runs[1].t_first_ns, 100600000000);
	cr_assert_eq(p->threads[0].runs[1].weight_ns, 250000);
	profile_free(p);
}

Test(perf, samples_without_time)
{
	static const char untimed[] = "a 1 1.0: 7 cycles: \n\t1 f (x)\n\na 1 cycles: \n\t1 f (x)\n\n";
	struct profile *p = read_text("perf", untimed);
	struct fault fault;

	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 2);
	profile_free(p);
	cr_assert_eq(read_back(&p, "perf", untimed, strlen(untimed), &(struct builder_options){.to_ns = 9}, &fault),
	             -EINVAL);
	cr_assert_str_eq(fault.why, "1 samples have no time");
}

Test(perf, what_looks_like_it)
{
	static const char *const yes[] = {"a 1 1.0: 7 cycles:\n", "# ========\n# captured on",
	                                  "\n\n#x\na 1 [000] d..1. 1.0: cycles: \n"};
	static const char *const no[] = {
		"a 1 cycles: \n1 f (x)\n", "", "a;b 3\n", "a 1 cycles: \n", "a 1.0: 7 cycles:\n", "{\"a\": 1.0: x:"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		cr_assert(format_by_name("perf")->detect((const unsigned char *)yes[i], strlen(yes[i])), "%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		cr_assert_not(format_by_name("perf")->detect((const unsigned char *)no[i], strlen(no[i])), "%s", no[i]);
}

Test(perf, deeper_than_we_take)
{
	struct buf deep = {0};
	struct profile *p;

	buf_puts(&deep, "a 1 1.0: 7 cycles: \n");
	for (int i = 0; i < REC_DEPTH_MAX + 5; i++)
		buf_puts(&deep, "\t1 f (x)\n");
	p = read_text("perf", buf_text(&deep));
	cr_assert_eq(p->threads[0].depth_max, REC_DEPTH_MAX);
	cr_assert_eq(note_of(p, "deep_stacks"), 1);
	profile_free(p);
	buf_release(&deep);
}

Test(perf, damaged)
{
	read_damaged("perf", text, strlen(text));
	read_damaged("perf", "a 1 1.4: 5 cycles:u:      5f f+0x3 (x)\n", 39);
}

/* Of events that are no clock the periods weigh; a clock without periods counts intervals. */
Test(perfscript_read, periods)
{
	struct profile *p = read_text("perf", "x 1/1 100.000001:          1 cycles: \n\t 400 start (/bin/x)\n\n"
	                                      "x 1/1 100.001001:    1000000 cycles: \n\t 500 work (/bin/x)\n\n");

	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 2);
	cr_assert_eq(profile_sum(p, profile_weight(p)), 1000001);
	cr_assert_eq(p->threads[0].nodes[2].self[profile_weight(p)], 1000000);
	expect(p, "# value: cycles, in count\nthread 1 \"x\";work (/bin/x:0) 1000000\nthread 1 \"x\";start (/bin/x:0) 1\n");
	profile_free(p);
	p = read_text("perf", "x 1/1 1.0: 7 cycles: \n\t 400 f (/bin/x)\n\nx 1/1 2.0: 7 cycles: \n\t 400 f (/bin/x)\n\n");
	expect(p, "thread 1 \"x\";f (/bin/x:0) 2\n");
	profile_free(p);
	p = read_text("perf",
	              "x 1/1 1.0: cpu-clock: \n\t 400 f (/bin/x)\n\nx 1/1 2.0: cpu-clock: \n\t 400 g (/bin/x)\n\n");
	cr_assert_eq(profile_weight(p), VALUE_SAMPLES, "how long an interval is stands nowhere");
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 2);
	profile_free(p);
	p = read_text(
		"perf",
		"# ========\n# event : name = cpu-clock, , id = { 1 }, type = 1, { sample_period, sample_freq } = 100, "
		"sample_type = IP|TID, disabled = 1, freq = 1, mmap = 1\n# ========\n"
		"x 1/1 1.0: cpu-clock: \n\t 400 f (/bin/x)\n\n");
	cr_assert_eq(p->interval_ns, 10000000);
	cr_assert_eq(profile_sum(p, VALUE_WALL), 10000000);
	profile_free(p);
}

/* perf script -F comm,tid,event,ip,sym,dso, and with periods. */
Test(perfscript_read, without_times)
{
	struct profile *p = read_text("perf", "java 19983 cycles:\n\t 400 f (/bin/x)\n\t 500 main (/bin/x)\n\n"
	                                      "java 19983 cycles:\n\t 400 f (/bin/x)\n\t 500 main (/bin/x)\n");

	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 2);
	cr_assert_eq(p->threads[0].tid, 19983);
	cr_assert_str_eq(p->threads[0].name, "java");
	cr_assert_eq(p->threads[0].node_count, 3);
	profile_free(p);
	p = read_text("perf", "my prog 12/14 [001] 7 cycles:\n\t 400 f (/bin/x)\n");
	cr_assert_eq(p->threads[0].tid, 14);
	cr_assert_str_eq(p->threads[0].name, "my prog");
	cr_assert_eq(profile_sum(p, profile_weight(p)), 7);
	profile_free(p);
	p = read_text("perf", "prog 14 7 cycles:\n\t 400 f (/bin/x)\n");
	cr_assert_eq(p->threads[0].tid, 14);
	cr_assert_eq(profile_sum(p, profile_weight(p)), 7);
	profile_free(p);
}
