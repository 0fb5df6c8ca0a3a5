/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a dump, and points in time. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/control_options.h"
#include "daemon/moment.h"

/* 2026-11-22 05:20:00 UTC */
#define NOW_NS (UINT64_C(1795324800) * NS_PER_S)

static int parse(struct dump_request *request, const char *line, struct fault *fault)
{
	static char text[1024];
	static char *words[64];
	int count = 0;

	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		words[count++] = word;
	words[count] = NULL;
	return dump_request_parse(request, count, words, NOW_NS, fault);
}

Test(control_options, words_go_there_and_back)
{
	static const char *const lines[] = {
		"dump",
		"dump 4711 --last 5m -f pprof",
		"dump --rule web --merge --from -10m --to -5m --format=text",
		"dump --all --from 2026-11-22T05:00Z",
		"dump --all --to now",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct dump_request request, again;
		struct buf words = {0};
		struct fault fault;
		char *argv[32];
		int argc = 0;

		cr_assert_eq(parse(&request, lines[i], &fault), 0, "%s: %s", lines[i], fault.why);
		dump_request_words(&request, &words);
		for (size_t at = 0; at < words.bytes; at += strlen(words.data + at) + 1)
			argv[argc++] = words.data + at;
		argv[argc] = NULL;
		cr_assert_eq(dump_request_parse(&again, argc, argv, NOW_NS + 12345, &fault), 0, "%s", fault.why);
		again.now_ns = request.now_ns;
		cr_assert_eq(request.pid, again.pid);
		cr_assert_str_eq(request.rule, again.rule);
		cr_assert(request.all == again.all && request.merge == again.merge && request.format == again.format);
		cr_assert(request.last_ns == again.last_ns && request.from_ns == again.from_ns &&
		          request.to_ns == again.to_ns);
		buf_release(&words);
	}
}

Test(control_options, values)
{
	struct dump_request request;
	struct fault fault;

	cr_assert_eq(parse(&request, "dump 4711 --last 5m -f pprof", &fault), 0);
	cr_assert_eq(request.pid, 4711);
	cr_assert_eq(request.last_ns, 300 * NS_PER_S);
	cr_assert_str_eq(request.format->name, "pprof");
	cr_assert_eq(parse(&request, "dump --rule web --from -10m --to -5m", &fault), 0);
	cr_assert_eq(request.from_ns, NOW_NS - 600 * NS_PER_S);
	cr_assert_eq(request.to_ns, NOW_NS - 300 * NS_PER_S);
	cr_assert_str_eq(request.format->name, "flamegraph");
}

Test(control_options, refused)
{
	static const struct {
		const char *line, *why;
	} cases[] = {
		{"dump 1 2", "dump: one process at a time"},
		{"dump x", "x: not a process id"},
		{"dump 0", "0: not a process id"},
		{"dump 1 --all", "dump: a PID, --rule and --all: one of them"},
		{"dump --rule a --all", "dump: a PID, --rule and --all: one of them"},
		{"dump --last 0", "--last 0: not a length of time"},
		{"dump --last 5m --to now", "dump: --last or --from and --to, not both"},
		{"dump --from now --to -1s", "dump: nothing lies between --from and --to"},
		{"dump --from 25:00", "--from 25:00: not a point in time"},
		{"dump -f nope", "-f nope: no such format"},
		{"dump -f chrome", "-f chrome: the service keeps no order of time within a slice"},
		{"dump -f recording", "-f recording: the service keeps no order of time within a slice"},
		{"dump --rule=", "--rule: no such rule"},
		{"dump -o /etc/passwd", "-o: no such option"},
		{"dump --help", "dump: not a request"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dump_request request;
		struct fault fault = {0};

		cr_assert_eq(parse(&request, cases[i].line, &fault), -EINVAL, "%s was taken", cases[i].line);
		cr_assert_str_eq(fault.why, cases[i].why);
	}
}

/* In seconds since 1970, or -1. */
static long long moment(const char *text)
{
	uint64_t ns;

	return moment_parse(text, NOW_NS, &ns) ? -1 : (long long)(ns / NS_PER_S);
}

Test(moment, as_people_write_them)
{
	uint64_t ns;

	setenv("TZ", "Europe/Berlin", 1);
	tzset();
	cr_assert_eq(moment("now"), 1795324800);
	cr_assert_eq(moment("-5m"), 1795324500);
	cr_assert_eq(moment("@1795324800"), 1795324800);
	cr_assert_eq(moment("2026-11-22T05:20Z"), 1795324800);
	cr_assert_eq(moment("2026-11-22 05:20:00z"), 1795324800);
	cr_assert_eq(moment("2026-11-22T07:20+02:00"), 1795324800);
	cr_assert_eq(moment("2026-11-22T01:50-0330"), 1795324800);
	cr_assert_eq(moment("2026-11-22 06:20"), 1795324800, "local time");
	cr_assert_eq(moment("2026-11-22"), 1795324800 - 5 * 3600 - 1200 - 3600);
	cr_assert_eq(moment("06:20"), 1795324800);
	cr_assert_eq(moment("06:20:01"), 1795324801 - 86400, "yesterday's");
	cr_assert_eq(moment_parse("@1795324800.25", 0, &ns), 0);
	cr_assert_eq(ns, NOW_NS + NS_PER_S / 4);
}

Test(moment, refused)
{
	static const char *const texts[] = {
		"",
		"x",
		"5",
		"24:00",
		"12:60",
		"1:00",
		"12:0",
		"2026-13-01",
		"2026-00-01",
		"2026-04-31",
		"2026-02-30",
		"2026-11-22T",
		"2026-11-22 05",
		"2026-11-22T05:20+",
		"2026-11-22T05:20Zx",
		"1969-12-31",
		"9999-01-01",
		"@",
		"@-1",
		"@99999999999",
		"@1.",
		"@1x",
		"--5m",
		"-9999999h",
		"-",
		"2026-11-22 05:20 ",
		"12:00:00.",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_assert_eq(moment(texts[i]), -1, "\"%s\" was taken", texts[i]);
}
