/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: rates, durations, options, and which format goes into which file. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/options.h"
#include "daemon/output.h"
#include "daemon/parse.h"

enum { WORDS_MAX = 32 };

/* Splits at blanks and reads; the words stay in a static array. */
static int read_words(struct options *ret_options, const char *line, bool stop_early, struct fault *fault)
{
	static char text[1024];
	static char *words[WORDS_MAX + 1];
	int count = 0;

	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok(text, " "); word && count < WORDS_MAX; word = strtok(NULL, " "))
		words[count++] = word;
	words[count] = NULL;
	return options_read(ret_options, count, words, stop_early, fault);
}

static void refuse(const char *line, const char *expected)
{
	struct options options;
	struct fault fault = {0};

	cr_assert_eq(read_words(&options, line, false, &fault), -EINVAL, "%s was taken", line);
	cr_assert(strstr(fault.why, expected), "%s: \"%s\" does not say \"%s\"", line, fault.why, expected);
}

Test(parse, rates)
{
	static const struct {
		const char *text;
		uint64_t interval_ns;
	} good[] = {
		{"1000", 1000000},     {"1khz", 1000000},   {"1kHz", 1000000}, {"2.5khz", 400000},
		{"10k", 100000},       {"max", 0},          {"MAX", 0},        {"1", NS_PER_S},
		{"0.5", 2 * NS_PER_S}, {"100hz", 10000000}, {"1000k", 1000},   {".5", 2 * NS_PER_S},
	};
	static const char *const bad[] = {
		"",       "0",    "-1",   "+1",    "1e3",
		"0x10",   "inf",  "nan",  "1khzz", "1 khz",
		" 1",     "k",    ".",    "1.2.3", "1001k",
		"0.0001", "max ", "1mhz", "1,000", "99999999999999999999999999999999999999999",
	};
	uint64_t interval_ns;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cr_assert_eq(parse_rate(good[i].text, &interval_ns), 0, "%s", good[i].text);
		cr_assert_eq(interval_ns, good[i].interval_ns, "%s gives %lu", good[i].text,
		             (unsigned long)interval_ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(parse_rate(bad[i], &interval_ns), -EINVAL, "\"%s\" was taken", bad[i]);
}

Test(parse, durations)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{"2.5", 2500 * NS_PER_MS},  {"10s", 10 * NS_PER_S}, {"5m", 300 * NS_PER_S},  {"1h", 3600 * NS_PER_S},
		{"500ms", 500 * NS_PER_MS}, {"0.001", NS_PER_MS},   {"1H", 3600 * NS_PER_S},
	};
	static const char *const bad[] = {"",    "0",   "0s",        "-5",  "5x",    "s",
	                                  "1e9", "inf", "99999999h", "5 s", "1m30s", "0.0000000001"};
	uint64_t ns;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cr_assert_eq(parse_duration(good[i].text, &ns), 0, "%s", good[i].text);
		cr_assert_eq(ns, good[i].ns, "%s gives %lu", good[i].text, (unsigned long)ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(parse_duration(bad[i], &ns), -EINVAL, "\"%s\" was taken", bad[i]);
}

Test(parse, process_ids)
{
	static const char *const bad[] = {"", "0", "-1", "+1", "1x", " 1", "2147483648", "99999999999999999999999"};
	pid_t pid;

	cr_assert_eq(parse_pid("4711", &pid), 0);
	cr_assert_eq(pid, 4711);
	cr_assert_eq(parse_pid("2147483647", &pid), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(parse_pid(bad[i], &pid), -EINVAL, "\"%s\" was taken", bad[i]);
}

Test(options, defaults)
{
	struct options o;
	struct fault fault;

	cr_assert_eq(read_words(&o, "attach 12 13", false, &fault), 0);
	cr_assert_eq(o.action, OPTIONS_GO);
	cr_assert_eq(o.interval_ns, 4 * NS_PER_MS);
	cr_assert_eq(o.duration_ns, 0);
	cr_assert_eq(o.mode, MODE_WALL);
	cr_assert(o.idle && o.gc && o.jitter);
	cr_assert_not(o.subprocesses || o.stats || o.realtime || o.quiet || o.verbose || o.omit.is_set ||
	              o.stop.is_set);
	cr_assert_eq(o.formats.count + o.outputs.count + o.threads.count, 0);
	cr_assert_eq(o.operand_count, 2);
	cr_assert_str_eq(o.operands[1], "13");
	options_release(&o);
}

Test(options, a_visit_budget_is_a_share)
{
	static const char *const wrong[] = {"attach 12 --visit-budget 51%", "attach 12 --visit-budget x", "attach 12 --visit-budget -1%"};
	struct options o;
	struct fault fault;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_expect(read_words(&o, wrong[i], false, &fault) < 0, "%s", wrong[i]);
	cr_assert_eq(read_words(&o, "attach 12", false, &fault), 0);
	cr_expect_float_eq(o.visit_budget, 0.02, 1e-9);
	options_release(&o);
	cr_assert_eq(read_words(&o, "attach 12 --visit-budget 0%", false, &fault), 0);
	cr_expect_float_eq(o.visit_budget, 0, 1e-9);
	options_release(&o);
}

Test(options, all_of_them, .description = "before and behind the operands")
{
	static const char line[] = "attach -r 2khz 12 -d 1m -f text -o a.txt --mode gil -t worker -t 77 "
				   "--no-idle --no-gc --no-jitter --subprocesses --omit x[0-9]+ --stop main "
				   "--visit-budget 3.5% --stats --realtime -qv --collapsed-style=tachyon 13";
	struct options o;
	struct fault fault;

	cr_assert_eq(read_words(&o, line, false, &fault), 0, "%s", fault.why);
	cr_assert_eq(o.interval_ns, 500000);
	cr_assert_float_eq(o.visit_budget, 0.035, 1e-9);
	cr_assert_eq(o.duration_ns, 60 * NS_PER_S);
	cr_assert_str_eq(o.formats.items[0], "text");
	cr_assert_str_eq(o.outputs.items[0], "a.txt");
	cr_assert_eq(o.mode, MODE_GIL);
	cr_assert_eq(o.threads.count, 2);
	cr_assert_str_eq(o.threads.items[0].name, "worker");
	cr_assert_null(o.threads.items[1].name);
	cr_assert_eq(o.threads.items[1].tid, 77);
	cr_assert_not(o.idle || o.gc || o.jitter);
	cr_assert(o.subprocesses && o.stats && o.realtime && o.quiet && o.verbose && o.omit.is_set && o.stop.is_set);
	cr_assert_eq(regexec(pattern_regex(&o.omit), "ax12", 0, NULL, 0), 0);
	cr_assert_neq(regexec(pattern_regex(&o.omit), "ax", 0, NULL, 0), 0);
	cr_assert_eq(o.collapsed_style, COLLAPSED_TACHYON);
	cr_assert_eq(o.operand_count, 2);
	cr_assert_str_eq(o.operands[0], "12");
	options_release(&o);
}

Test(options, what_is_seen_of_c)
{
	static const struct {
		const char *line;
		enum native_frames native;
	} cases[] = {
		{"attach 1", NATIVE_OFF},
		{"attach 1 --native", NATIVE_CALLS},
		{"attach --native 1", NATIVE_CALLS},
		{"attach --native=all 1", NATIVE_ALL},
		{"attach --native=leaf 1", NATIVE_LEAF},
		{"attach --native=extensions 1", NATIVE_EXTENSIONS},
		{"attach --native=marks 1", NATIVE_MARKS},
		{"attach --native=marks --native 1", NATIVE_CALLS},
	};
	struct options o;
	struct fault fault;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert_eq(read_words(&o, cases[i].line, false, &fault), 0, "%s: %s", cases[i].line, fault.why);
		cr_assert_eq(o.native, cases[i].native, "%s", cases[i].line);
		cr_assert_eq(o.operand_count, 1, "%s", cases[i].line);
		cr_assert_not(o.blocking || o.opcodes || o.debuginfod);
		options_release(&o);
	}
	cr_assert_eq(read_words(&o, "attach --native=leaf --debuginfod --blocking --opcodes --mode exception 1", false,
	                        &fault),
	             0, "%s", fault.why);
	cr_assert(o.blocking && o.opcodes && o.debuginfod);
	cr_assert_eq(o.mode, MODE_EXCEPTION);
	options_release(&o);
}

Test(options, the_commands_own_options_are_its_own)
{
	struct options o;
	struct fault fault;

	cr_assert_eq(read_words(&o, "run -r 5 python -r x --nonsense", true, &fault), 0);
	cr_assert_eq(o.interval_ns, NS_PER_S / 5);
	cr_assert_eq(o.operand_count, 4);
	cr_assert_str_eq(o.operands[0], "python");
	options_release(&o);
	cr_assert_eq(read_words(&o, "run -q -- -odd --help", true, &fault), 0);
	cr_assert_eq(o.action, OPTIONS_GO);
	cr_assert_str_eq(o.operands[0], "-odd");
	options_release(&o);
}

Test(options, help_and_version_win)
{
	struct options o;
	struct fault fault;

	cr_assert_eq(read_words(&o, "attach --help", false, &fault), 0);
	cr_assert_eq(o.action, OPTIONS_HELP);
	cr_assert_eq(read_words(&o, "attach 12 --version -q", false, &fault), 0);
	cr_assert_eq(o.action, OPTIONS_VERSION);
}

Test(options, refused)
{
	refuse("attach -r 0 1", "-r 0: not a rate");
	refuse("attach -d x 1", "-d x: not a duration");
	refuse("attach --mode often 1", "--mode often: no such mode");
	refuse("attach --native=some 1", "--native=some: no such choice");
	refuse("attach --native= 1", "--native=: no such choice");
	refuse("attach --blocking=1 1", "--blocking: takes no value");
	refuse("attach --debuginfod 1", "--debuginfod: goes with native frames");
	refuse("attach --debuginfod --native=marks 1", "--debuginfod: goes with native frames");
	refuse("attach --async 1", "--async: not built yet");
	refuse("attach --locals 1", "--locals: values are in no profile");
	refuse("attach --omit ( 1", "--omit (: not a regular expression");
	refuse("attach --stop ok --stop [ 1", "--stop [: not a regular expression");
	refuse("attach --collapsed-style x 1", "--collapsed-style x: no such style");
	refuse("attach 1 --nonsense", "--nonsense: no such option");
	refuse("attach 1 --nonsense=4", "--nonsense: no such option");
	refuse("attach 1 -z", "-z: no such option");
	refuse("attach 1 -qz", "-z: no such option");
	refuse("attach 1 -r", "-r: needs a value");
	refuse("attach 1 --rate", "--rate: needs a value");
	refuse("attach 1 --idle=1", "--idle: takes no value");
}

/* Plans the outputs of a command line for process 42. */
static int plan(struct outputs *ret_outputs, const char *line, struct fault *fault)
{
	struct options options;
	int err;

	cr_assert_eq(read_words(&options, line, false, fault), 0, "%s", fault->why);
	err = outputs_plan(ret_outputs, &options, 42, 0, fault);
	options_release(&options);
	return err;
}

static void expect(const char *line, size_t count, const char *const *formats, const char *const *paths)
{
	struct outputs outputs;
	struct fault fault;

	cr_assert_eq(plan(&outputs, line, &fault), 0, "%s: %s", line, fault.why);
	cr_assert_eq(outputs.count, count, "%s", line);
	for (size_t i = 0; i < count; i++) {
		cr_assert_str_eq(outputs.items[i].format->name, formats[i], "%s", line);
		if (paths[i])
			cr_assert_str_eq(outputs.items[i].path, paths[i], "%s", line);
		else
			cr_assert_null(outputs.items[i].path, "%s", line);
	}
	outputs_release(&outputs);
}

static void refuse_plan(const char *line, const char *expected)
{
	struct outputs outputs;
	struct fault fault = {0};

	cr_assert_eq(plan(&outputs, line, &fault), -EINVAL, "%s was taken", line);
	cr_assert(strstr(fault.why, expected), "%s: \"%s\" does not say \"%s\"", line, fault.why, expected);
}

Test(outputs, pairs)
{
	expect("attach -f text -o a", 1, (const char *[]){"text"}, (const char *[]){"a"});
	expect("attach -o a.collapsed", 1, (const char *[]){"collapsed"}, (const char *[]){"a.collapsed"});
	expect("attach -o a.b/plain", 1, (const char *[]){"flamegraph"}, (const char *[]){"a.b/plain"});
	expect("attach -o -", 1, (const char *[]){"flamegraph"}, (const char *[]){NULL});
	expect("attach -f text -o a.html", 1, (const char *[]){"text"}, (const char *[]){"a.html"});
	expect("attach -o a.html -o b.txt", 2, (const char *[]){"flamegraph", "text"},
	       (const char *[]){"a.html", "b.txt"});
	expect("attach -f text -f collapsed -o x -o y", 2, (const char *[]){"text", "collapsed"},
	       (const char *[]){"x", "y"});
	expect("attach -f text -f flamegraph -o stem", 2, (const char *[]){"text", "flamegraph"},
	       (const char *[]){"stem.txt", "stem.html"});
}

Test(outputs, default_names)
{
	struct outputs outputs;
	struct fault fault;

	cr_assert_eq(plan(&outputs, "attach -f text -f flamegraph", &fault), 0);
	cr_assert_eq(outputs.count, 2);
	cr_assert_eq(strncmp(outputs.items[0].path, "sampled-42-", strlen("sampled-42-")), 0, "%s",
	             outputs.items[0].path);
	cr_assert_str_eq(strrchr(outputs.items[0].path, '.'), ".txt");
	cr_assert_str_eq(strrchr(outputs.items[1].path, '.'), ".html");
	outputs_release(&outputs);
}

Test(outputs, snapshot_names)
{
	static const struct {
		const char *line, *stem, *suffix;
	} cases[] = {
		{"attach -o d.d/a.html", "d.d/a", ".html"},
		{"attach -f collapsed -o a.folded.gz", "a.folded", ".gz"},
		{"attach -f text -o d.d/a", "d.d/a", ".txt"},
		{"attach -f text -o .hidden", ".hidden", ".txt"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct outputs outputs;
		struct fault fault;

		cr_assert_eq(plan(&outputs, cases[i].line, &fault), 0, "%s", fault.why);
		cr_assert_str_eq(outputs.items[0].stem, cases[i].stem);
		cr_assert_str_eq(outputs.items[0].suffix, cases[i].suffix);
		outputs_release(&outputs);
	}
}

Test(outputs, call_graphs_as_svg)
{
	struct outputs outputs;
	struct fault fault;

	expect("attach -f pstats -o d.d/a.pstats --svg", 2, (const char *[]){"pstats", "dot"},
	       (const char *[]){"d.d/a.pstats", "d.d/a.svg"});
	expect("attach -f text -f pstats -o stem --svg", 3, (const char *[]){"text", "pstats", "dot"},
	       (const char *[]){"stem.txt", "stem.pstats", "stem.svg"});
	expect("attach -f dot -f text -o stem", 2, (const char *[]){"dot", "text"},
	       (const char *[]){"stem.dot", "stem.txt"});
	cr_assert_eq(plan(&outputs, "attach -o a.pstats -f pstats --svg", &fault), 0);
	cr_assert(!outputs.items[0].svg && outputs.items[1].svg);
	cr_assert_str_eq(outputs.items[1].stem, "a");
	cr_assert_str_eq(outputs.items[1].suffix, ".svg");
	outputs_release(&outputs);
	cr_assert_eq(plan(&outputs, "attach -f dot -o a.svg", &fault), 0);
	cr_assert(outputs.items[0].svg);
	outputs_release(&outputs);
	cr_assert_eq(plan(&outputs, "attach -f dot -o a.dot", &fault), 0);
	cr_assert_not(outputs.items[0].svg);
	outputs_release(&outputs);
	refuse_plan("attach --svg", "--svg: goes with -f pstats");
	refuse_plan("attach -f pstats -o - --svg", "no place beside standard output");
	refuse_plan("attach -f pstats -f dot -o a.pstats -o a.svg --svg", "named for two formats");
}

Test(outputs, refused)
{
	refuse_plan("attach -f nonsense", "-f nonsense: no such format");
	refuse_plan("attach -f ascend", "-f ascend: it can only be read");
	refuse_plan("attach -o a.xyz", "unknown suffix .");
	refuse_plan("attach -f text -f text -f text -o a -o b", "do not pair");
	refuse_plan("attach -f text -o a -o b", "do not pair");
	refuse_plan("attach -f text -f collapsed -o -", "standard output takes one format only");
	refuse_plan("attach -f text -f collapsed -o - -o b", "standard output takes one format only");
	refuse_plan("attach -f text -f flamegraph -o a -o a", "named for two formats");
	refuse_plan("attach -f text -f text -o a", "named for two formats");
}
