/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines read by tables, and the values that several commands have. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/filters.h"
#include "daemon/option_table.h"
#include "daemon/option_values.h"

enum { WORDS_MAX = 32 };

struct given {
	bool json, quick;
	const char *output;
	double share;
	bool shadowed;
	const char *kind; /* "none": given without a value */
	enum option_action action;
};

static char *words[WORDS_MAX + 1];

static int read_kind(void *into, const char *option, const char *text, struct fault *fault)
{
	(void)option;
	(void)fault;
	*(const char **)into = text ? text : "none";
	return 0;
}

/* Reads a line by a table of its own and another one behind it. */
static int read_line(struct given *ret_given, const char *line, bool stop_early, struct fault *fault)
{
	static char text[1024];
	struct given *g = ret_given;
	const struct option_row rows[] = {
		{"json", 'j', .yes = &g->json},
		{"quick", .yes = &g->quick},
		{"thorough", .no = &g->quick},
		{"output", 'o', .text = &g->output},
		{"share", 's', .read = option_read_percent, .into = &g->share},
		{"kind", .read = read_kind, .into = &g->kind, .optional = true},
		{"later", 'l', .refused = "not yet", .hint = "wait"},
		{.name = NULL},
	};
	const struct option_row more[] = {
		{"json", .yes = &g->shadowed},
		{"jsonl", .yes = &g->shadowed},
		{.name = NULL},
	};
	int count = 0;

	*g = (struct given){.quick = true};
	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok(text, " "); word && count < WORDS_MAX; word = strtok(NULL, " "))
		words[count++] = word;
	words[count] = NULL;
	return option_table_read(rows, more, count, words, stop_early, &g->action, fault);
}

static void refuse(const char *line, const char *expected)
{
	struct given g;
	struct fault fault = {0};

	cr_assert_eq(read_line(&g, line, false, &fault), -EINVAL, "%s was taken", line);
	cr_assert_str_eq(fault.why, expected, "%s", line);
}

Test(option_table, values_go_where_the_rows_say)
{
	struct given g;
	struct fault fault;

	cr_assert_eq(read_line(&g, "x 1 -jo out --thorough 2 --share=12.5%", false, &fault), 5);
	cr_assert_eq(g.action, OPTIONS_GO);
	cr_assert(g.json && !g.quick);
	cr_assert_str_eq(g.output, "out");
	cr_assert_float_eq(g.share, 12.5, 0);
	cr_assert_str_eq(words[5], "1");
	cr_assert_str_eq(words[6], "2");
	cr_assert_eq(read_line(&g, "x 1 -j", true, &fault), 1);
	cr_assert_not(g.json, "behind the first word that is no option");
	cr_assert_eq(read_line(&g, "x -o out --output other", false, &fault), -EINVAL);
	cr_assert_str_eq(fault.why, "--output: given twice");
}

Test(option_table, a_value_that_may_be_left_out, .description = "stands behind = only")
{
	struct given g;
	struct fault fault;

	cr_assert_eq(read_line(&g, "x --kind a", false, &fault), 2);
	cr_assert_str_eq(g.kind, "none");
	cr_assert_str_eq(words[2], "a");
	cr_assert_eq(read_line(&g, "x --kind=a b", false, &fault), 2);
	cr_assert_str_eq(g.kind, "a");
	cr_assert_eq(read_line(&g, "x --kind=", false, &fault), 2);
	cr_assert_str_eq(g.kind, "");
	cr_assert_eq(read_line(&g, "x --kind --json", false, &fault), 3);
	cr_assert(g.json);
}

Test(option_table, the_first_table_has_precedence)
{
	struct given g;
	struct fault fault;

	cr_assert_eq(read_line(&g, "x --json", false, &fault), 2);
	cr_assert(g.json && !g.shadowed);
	cr_assert_eq(read_line(&g, "x --jsonl", false, &fault), 2);
	cr_assert(g.shadowed && !g.json);
}

Test(option_table, help_and_version_end_the_reading)
{
	struct given g;
	struct fault fault;

	cr_assert_gt(read_line(&g, "x --json -h --nonsense", false, &fault), 0);
	cr_assert_eq(g.action, OPTIONS_HELP);
	cr_assert_gt(read_line(&g, "x --version --help", false, &fault), 0);
	cr_assert_eq(g.action, OPTIONS_VERSION);
}

Test(option_table, refused, .description = "by the name that was given")
{
	refuse("x -s 101", "-s 101: not a percentage");
	refuse("x --share nan", "--share nan: not a percentage");
	refuse("x --share 5%%", "--share 5%%: not a percentage");
	refuse("x --share %", "--share %: not a percentage");
	refuse("x --share=-1", "--share -1: not a percentage");
	refuse("x -l", "-l: not yet");
	refuse("x --later", "--later: not yet");
	refuse("x --later=1", "--later: not yet");
	refuse("x --json=1", "--json: takes no value");
	refuse("x -z", "-z: no such option");
	refuse("x --jso", "--jso: no such option");
	refuse("x -o", "-o: needs a value");
}

static void suggest(const char *line, const char *why, const char *hint)
{
	struct given g;
	struct fault fault = {0};

	refuse(line, why);
	read_line(&g, line, false, &fault);
	cr_assert_str_eq(fault.hint, hint, "%s", line);
}

Test(option_table, what_was_meant, .description = "is asked, and never guessed")
{
	suggest("x --out a", "--out: no such option", "is it --output?");
	suggest("x --out=a", "--out: no such option", "is it --output?");
	suggest("x 1 --sha 5 2", "--sha: no such option", "is it --share?");
	suggest("x --kin=a", "--kin: no such option", "is it --kind?");
	suggest("x --outptu a", "--outptu: no such option", "is it --output?");
	suggest("x --jsn", "--jsn: no such option", "is it --json?");
	suggest("x --jso", "--jso: no such option", "is it --json?");
	suggest("x --hel", "--hel: no such option", "is it --help?");
	suggest("x --nonsense", "--nonsense: no such option", "sampled x --help lists the options");
	suggest("x -z", "-z: no such option", "sampled x --help lists the options");
}

/* Reads the filters of a line; what is wrong with them, or "". */
static const char *filter(struct filters *f, const char *line, struct fault *fault)
{
	static char text[1024];
	struct option_row rows[FILTER_ROWS];
	enum option_action action;
	int count = 0, err;

	*f = (struct filters){0};
	*fault = (struct fault){0};
	filters_rows(f, rows);
	snprintf(text, sizeof(text), "x %s", line);
	for (char *word = strtok(text, " "); word && count < WORDS_MAX; word = strtok(NULL, " "))
		words[count++] = word;
	words[count] = NULL;
	err = option_table_read(rows, NULL, count, words, false, &action, fault);
	return err < 0 || filters_finish(f, fault) ? fault->why : "";
}

Test(filters, all_of_them)
{
	struct filters f;
	struct fault fault;

	cr_assert_str_eq(filter(&f, "", &fault), "");
	cr_assert_not(filters_fold(&f) || filters_need_profile(&f) || f.how.focus || f.how.stop);
	cr_assert_str_eq(filter(&f,
	                        "--from 0 --to 1m --thread a --thread 7 --focus x --ignore y --omit z --stop s "
	                        "--strip-dirs --function-level --min-percent 1.5",
	                        &fault),
	                 "");
	cr_assert_eq(f.to_ns, UINT64_C(60000000000));
	cr_assert_eq(f.how.thread_count, 2);
	cr_assert_eq(f.how.threads[1].tid, 7);
	cr_assert_eq(regexec(f.how.focus, "axa", 0, NULL, 0), 0);
	cr_assert_eq(regexec(f.how.ignore, "y", 0, NULL, 0), 0);
	cr_assert_eq(regexec(f.how.omit, "z", 0, NULL, 0), 0);
	cr_assert_eq(regexec(f.how.stop, "s", 0, NULL, 0), 0);
	cr_assert(f.how.strip_dirs && f.how.by_function && f.how.min_percent > 1.4);
	filters_release(&f);
	cr_assert_str_eq(filter(&f, "--function-level --line-level --focus a --focus b", &fault), "");
	cr_assert_not(f.how.by_function);
	cr_assert_eq(regexec(f.how.focus, "b", 0, NULL, 0), 0, "the last one holds");
	cr_assert_neq(regexec(f.how.focus, "a", 0, NULL, 0), 0);
	filters_release(&f);
}

Test(filters, refused)
{
	static const struct {
		const char *line, *why;
	} cases[] = {
		{"--from 0x", "--from 0x: not a time"},
		{"--from 0nonsense", "--from 0nonsense: not a time"},
		{"--to -1", "--to -1: not a time"},
		{"--from 2 --to 1", "--from and --to: nothing lies between them"},
		{"--focus (", "--focus (: not a regular expression"},
		{"--stop a --stop [", "--stop [: not a regular expression"},
		{"--min-percent 101", "--min-percent 101: not a percentage"},
	};
	struct filters f;
	struct fault fault;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert_str_eq(filter(&f, cases[i].line, &fault), cases[i].why);
		filters_release(&f);
	}
}
