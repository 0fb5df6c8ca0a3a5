/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/build_profile.h"
#include "tests/unit/written.h"

static void expect(struct profile *p, enum collapsed_style style, const char *lines)
{
	char *text = written(p, "collapsed", &(struct export_options){.collapsed_style = style});

	cr_assert_str_eq(text, lines);
	free(text);
}

Test(collapsed, empty_profile_is_an_empty_file)
{
	struct profile *p = built_new();

	expect(p, COLLAPSED_SAMPLED, "");
	built_thread(p, built_process(p, 10, "python3"), 0, 10, "MainThread");
	expect(p, COLLAPSED_SAMPLED, "");
	built_free(p);
}

Test(collapsed, one_process_both_styles)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 10, "python3 x.py"), t = built_thread(p, process, 0, 10, "MainThread");
	uint32_t other = built_thread(p, process, 0, 11, NULL), top, leaf;

	top = built_child(p, t, 0, built_symbol(p, "main", "/srv/app.py", 3), 4);
	leaf = built_child(p, t, top, built_symbol(p, "Work.run", "/srv/lib/work.py", 7), 9);
	built_sample(p, t, leaf, 7, STATUS_RUNNABLE);
	built_sample(p, t, top, 2, STATUS_IDLE);
	built_sample(p, t, built_child(p, t, leaf, built_symbol(p, "<GC>", "", 0), 0), 1, STATUS_GC);
	built_sample(p, other, 0, 5, STATUS_IDLE);
	expect(p, COLLAPSED_SAMPLED,
	       "thread 10 \"MainThread\";main (/srv/app.py:4);Work.run (/srv/lib/work.py:9) 7\n"
	       "thread 11 5\n"
	       "thread 10 \"MainThread\";main (/srv/app.py:4) 2\n"
	       "thread 10 \"MainThread\";main (/srv/app.py:4);Work.run (/srv/lib/work.py:9);<GC> 1\n");
	expect(p, COLLAPSED_TACHYON,
	       "tid:10;app.py:main:4;work.py:Work.run:9 7\n"
	       "tid:11 5\n"
	       "tid:10;app.py:main:4 2\n"
	       "tid:10;app.py:main:4;work.py:Work.run:9;<GC> 1\n");
	built_free(p);
}

Test(collapsed, several_processes_and_interpreters_are_told_apart)
{
	struct profile *p = built_new();
	uint32_t a = built_process(p, 10, "python3 a;b\n.py"), b = built_process(p, 20, "gunicorn");

	built_sample(p, built_thread(p, a, 0, 10, "A"), 0, 1, 0);
	built_sample(p, built_thread(p, b, 2, 21, "B"), 0, 1, 0);
	built_sample(p, built_thread(p, b, 0, 0, NULL), 0, 1, 0);
	expect(p, COLLAPSED_SAMPLED,
	       "process 10 \"python3 a:b .py\";thread 10 \"A\" 1\n"
	       "process 20 \"gunicorn\";interpreter 2;thread 21 \"B\" 1\n"
	       "process 20 \"gunicorn\";thread ? 1\n");
	built_free(p);
}

/* With equal counts whole lines are in the order of their bytes, also where one name begins another. */
Test(collapsed, equal_counts_are_in_the_order_of_the_text)
{
	static const char *const names[] = {"f", "f\x20g", "f:", "f<", "e", "g", "f;x", "f\rx", "\xc3\xa9"};
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 1, "x"), 0, 1, NULL), child = built_symbol(p, "child", "", 0);
	char *text, *line, *save = NULL, last[256] = "";
	unsigned lines = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint32_t node = built_child(p, t, 0, built_symbol(p, names[i], "", 0), 0);

		built_sample(p, t, node, 3, 0);
		built_sample(p, t, built_child(p, t, node, child, 0), 3, 0);
	}
	text = written(p, "collapsed", &(struct export_options){0});
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save), lines++) {
		char *blank = strrchr(line, ' ');

		cr_assert_not_null(blank);
		cr_assert_eq(atoi(blank + 1), 3);
		*blank = '\0';
		cr_assert(strcmp(last, line) < 0, "%s before %s", last, line);
		snprintf(last, sizeof(last), "%s", line);
	}
	cr_assert_eq(lines, 18);
	free(text);
	built_free(p);
}

Test(collapsed, nothing_in_a_name_steers_a_terminal)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 1, "x"), 0, 1, NULL);

	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "a\xc2\x9b" "2J\xe2\x80\xae\x9b\xc3\xa9", "", 1), 0), 3, 0);
	expect(p, COLLAPSED_SAMPLED, "thread 1;a 2J \xef\xbf\xbd\xc3\xa9 3\n");
	built_free(p);
}

/* Different functions that read alike are one line: readers would add them up anyhow. */
Test(collapsed, stacks_that_read_alike_are_one_line)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 1, "x"), 0, 1, NULL);

	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "a.py", 1), 5), 3, 0);
	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "a.py", 2), 5), 4, 0);
	expect(p, COLLAPSED_SAMPLED, "thread 1;f (a.py:5) 7\n");
	built_free(p);
}

Test(collapsed, deepest_stack_and_2000_lines_of_recursion)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 1, "x"), 0, 1, NULL), f = built_symbol(p, "f", "a.py", 1), at = 0;
	unsigned lines = 0, frames = 0;
	char *text;

	for (unsigned i = 0; i < REC_DEPTH_MAX; i++) {
		at = built_child(p, t, at, f, 2);
		if (i < 2000)
			built_sample(p, t, at, 1, 0);
	}
	built_sample(p, t, at, 9, 0);
	text = written(p, "collapsed", &(struct export_options){0});
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	for (const char *c = text; *c != '\n'; c++)
		frames += *c == ';';
	cr_assert_eq(lines, 2001);
	cr_assert_eq(frames, REC_DEPTH_MAX, "the heaviest line, which is the deepest, comes first");
	free(text);
	built_free(p);
}
