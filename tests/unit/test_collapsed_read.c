/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "tests/unit/build_profile.h"
#include "tests/unit/read_back.h"
#include "tests/unit/written.h"

static void expect(const struct profile *p, enum collapsed_style style, const char *lines)
{
	char *text = written(p, "collapsed", &(struct export_options){.collapsed_style = style});

	cr_assert_str_eq(text, lines);
	free(text);
}

/* Read and written again it is what it was. */
static void expect_same(const char *text, enum collapsed_style style)
{
	struct profile *p = read_text("collapsed", text);

	expect(p, style, text);
	profile_free(p);
}

static const struct symbol *leaf_symbol(const struct profile *p, uint32_t thread, uint32_t *ret_line)
{
	const struct thread_tree *tree = &p->threads[thread];

	*ret_line = tree->nodes[tree->node_count - 1].line;
	return &p->symbols[tree->nodes[tree->node_count - 1].symbol];
}

static void expect_frame(const char *line, const char *name, const char *file, uint32_t number)
{
	struct profile *p = read_text("collapsed", line);
	uint32_t leaf_line;
	const struct symbol *symbol = leaf_symbol(p, 0, &leaf_line);

	cr_assert_str_eq(symbol->name, name, "%s: %s", line, symbol->name);
	cr_assert_str_eq(symbol->file, file, "%s: %s", line, symbol->file);
	cr_assert_eq(leaf_line, number, "%s: %u", line, leaf_line);
	profile_free(p);
}

Test(collapsed_read, ours_comes_out_as_it_came_in)
{
	expect_same("thread 10 \"MainThread\";main (/srv/app.py:4);Work.run (/srv/lib/work.py:9) 7\n"
	            "thread 11 5\n"
	            "thread 10 \"MainThread\";main (/srv/app.py:4) 2\n"
	            "thread 10 \"MainThread\";main (/srv/app.py:4);Work.run (/srv/lib/work.py:9);<GC> 1\n",
	            COLLAPSED_SAMPLED);
	expect_same("process 10 \"python3 a:b .py\";thread 10 \"A\" 1\n"
	            "process 20 \"gunicorn\";interpreter 2;thread 21 \"B\" 1\n"
	            "process 20 \"gunicorn\";thread ? 1\n",
	            COLLAPSED_SAMPLED);
	/* Names that hold what parts elements elsewhere. */
	expect_same("thread 1 \"a \"b\" c\";f (x) (y (z).py:4) 3\n"
	            "thread 1 \"a \"b\" c\";f (x.py:007);(;thread 2;(a.py:4) 2\n"
	            "thread 2x;process 1;a:b:3;x (C:\\a.py:4) 1\n",
	            COLLAPSED_SAMPLED);
}

Test(collapsed_read, tachyon_comes_out_as_it_came_in)
{
	expect_same("tid:10;app.py:main:4;work.py:Work.run:9 7\n"
	            "tid:11 5\n"
	            "tid:10;app.py:main:4 2\n"
	            "tid:10;app.py:main:4;<GC> 1\n"
	            "tid:10;app.py:x:a/b:4;:slash:5 1\n",
	            COLLAPSED_TACHYON);
	expect_frame("tid:10;app.py:Work.run:9 7\n", "Work.run", "app.py", 9);
	expect_frame("tid:10;~:<GC>:0 7\n", "<GC>", "", 0);
	expect_frame("tid:10;strange 7\n", "strange", "", 0);
}

Test(collapsed_read, who_was_sampled)
{
	struct profile *p = read_text("collapsed", "process 10 \"a.py\";interpreter 3;thread 12 \"W\";f 5\n"
	                                           "process 11 \"b.py\";thread 11;f 5\n");

	cr_assert_eq(p->process_count, 2);
	cr_assert_eq(p->thread_count, 2);
	cr_assert(p->imported);
	cr_assert_eq(p->processes[0].pid, 10);
	cr_assert_str_eq(p->processes[0].name, "a.py");
	cr_assert_eq(p->threads[0].interpreter, 3);
	cr_assert_eq(p->threads[0].tid, 12);
	cr_assert_str_eq(p->threads[0].name, "W");
	cr_assert_not(p->threads[0].is_main);
	cr_assert(p->threads[1].is_main);
	cr_assert_null(p->threads[1].name);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 10);
	cr_assert_eq(profile_weight(p), VALUE_SAMPLES);
	profile_free(p);
}

Test(collapsed_read, folded_text_of_others)
{
	/* stackcollapse-perf.pl: the command first; frames with blanks and brackets. */
	expect_same("python3;_start;operator() (x);foo(int, char const*) 9\n"
	            "python3;[unknown];a b c 3\n"
	            "swapper 1\n",
	            COLLAPSED_SAMPLED);
	expect_frame("python3;main 1\n", "main", "", 0);
	expect_frame("main 1\n", "main", "", 0);
	expect_frame("a;;b; 1\n", "b", "", 0);
	/* flamegraph.pl takes blanks behind and fractions. */
	expect_frame("a;b  12.5 \n", "b ", "", 0);
}

Test(collapsed_read, perf_with_pids_and_py_spy)
{
	struct profile *p = read_text("collapsed", "my-prog-10/12;main 2\nmy-prog-?/13;main 3\n");

	cr_assert_eq(p->processes[0].pid, 10);
	cr_assert_str_eq(p->threads[0].name, "my-prog");
	cr_assert_eq(p->threads[0].tid, 12);
	cr_assert_eq(p->processes[1].pid, 0);
	cr_assert_eq(p->threads[1].tid, 13);
	profile_free(p);
	p = read_text("collapsed", "process 10:\"python3 x.py\";thread (0x7F01): Main: a;f (x.py:3);g (x.py) 2\n"
	                           "process 10:\"python3 x.py\";thread (12);f (x.py:3) 3\n");
	cr_assert_eq(p->process_count, 1);
	cr_assert_eq(p->processes[0].pid, 10);
	cr_assert_str_eq(p->processes[0].name, "python3 x.py");
	cr_assert_eq(p->threads[0].tid, 0x7f01);
	cr_assert_str_eq(p->threads[0].name, "Main: a");
	cr_assert_eq(p->threads[1].tid, 12);
	expect(p, COLLAPSED_SAMPLED, "thread 12;f (x.py:3) 3\nthread 32513 \"Main: a\";f (x.py:3);g (x.py:0) 2\n");
	profile_free(p);
}

Test(collapsed_read, austin)
{
	struct profile *p = read_text("collapsed", "# austin: 3.6.0\n# interval: 100\n# mode: wall\n\n"
	                                           "P12;T0:13;/a/b.py:f:3;C:\\x.py:g:4 105\n"
	                                           "P12;T0:13;/a/b.py:f:3;:GC: 95\n"
	                                           "P12;T2:14;/a/b.py:f:3 100\n"
	                                           "\n# duration: 300\n# saturation: 1/3\n# errors: 0/3\n");

	cr_assert_eq(p->interval_ns, 100000);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 3);
	cr_assert(profile_has(p, VALUE_WALL));
	cr_assert_eq(profile_sum(p, VALUE_WALL), 300000);
	cr_assert_eq(note_of(p, "austin_late"), 1);
	cr_assert_eq(note_of(p, "austin_errors"), 0);
	cr_assert_eq(note_of(p, "bad_lines"), -1);
	cr_assert_eq(p->threads[1].interpreter, 2);
	expect(p, COLLAPSED_SAMPLED,
	       "# value: wall, in nanoseconds\n"
	       "thread 13;f (/a/b.py:3);g (C:\\x.py:4) 105000\n"
	       "interpreter 2;thread 14;f (/a/b.py:3) 100000\n"
	       "thread 13;f (/a/b.py:3);<GC> 95000\n");
	profile_free(p);
	p = read_text("collapsed", "# mode: cpu\nP12;T13;a.py:f:3 50\n");
	cr_assert_str_eq(p->mode, "cpu");
	cr_assert_str_eq(p->values[VALUE_WALL].name, "cpu");
	cr_assert_eq(profile_sum(p, VALUE_WALL), 50000);
	profile_free(p);
	p = read_text("collapsed", "# mode: memory\nP12;T0x1f;a.py:f:3 50\n");
	cr_assert_str_eq(p->values[VALUE_WALL].unit, "bytes");
	cr_assert_eq(profile_sum(p, VALUE_WALL), 50);
	cr_assert_eq(p->threads[0].tid, 31);
	profile_free(p);
	p = read_text("collapsed", "# mode: full\nP12;T0:13;a.py:f:3 50,1,-20\nP12;T0:13;a.py:f:3 70,0,20\n");
	cr_assert_eq(profile_sum(p, VALUE_WALL), 120000);
	cr_assert_eq(profile_sum(p, VALUE_IDLE), 50000);
	profile_free(p);
}

Test(collapsed_read, bad_lines_are_counted)
{
	struct profile *p = read_text("collapsed", "a;b 5\n"
	                                           "a;b 5\r\n"
	                                           "no number\n"
	                                           "5\n"
	                                           "a -3\n"
	                                           "a 99999999999999999999\n"
	                                           "a;c 0\n"
	                                           "a;b 2.5\n"
	                                           "a;b 3");

	cr_assert_eq(note_of(p, "bad_lines"), 4);
	cr_assert_eq(note_of(p, "rounded_counts"), 1);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 16);
	expect(p, COLLAPSED_SAMPLED, "a;b 16\n");
	profile_free(p);
}

/* difffolded.pl's two counts are no profile; what a frame is called may end in a number. */
Test(collapsed_read, two_counts_are_refused_by_name)
{
	static const char two[] = "a;b 10 20\na;c 0 7\n", ours[] = "thread 12 5\nthread 13 6\n";
	struct profile *p;
	struct fault fault;

	cr_assert_eq(read_as(&p, "collapsed", two, sizeof(two) - 1, NULL, &fault), -EPROTO);
	cr_assert_not_null(strstr(fault.why, "two counts, as difffolded.pl writes them"));
	p = read_text("collapsed", "a;worker 10 20\na;c 7\n");
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 27);
	profile_free(p);
	p = read_text("collapsed", ours);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 11);
	profile_free(p);
}

Test(collapsed_read, memory_that_was_given_back)
{
	struct profile *p = read_text("collapsed", "# mode: memory\nP12;T0:13;a.py:f:3 50\nP12;T0:13;a.py:f:3 -20\n");

	cr_assert_eq(profile_sum(p, VALUE_WALL), 50);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 2);
	cr_assert_eq(note_of(p, "given_back_bytes"), 20);
	cr_assert_eq(note_of(p, "bad_lines"), -1);
	profile_free(p);
}

/* However many lines there are, the sum does not overflow. */
Test(collapsed_read, sums_do_not_overflow)
{
	struct profile *p = read_text("collapsed", "a 3000000000000000\na 3000000000000000\na 7\n");

	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 3000000000000007);
	cr_assert_eq(note_of(p, "bad_lines"), 1);
	profile_free(p);
}

Test(collapsed_read, no_line_is_a_stack)
{
	static struct input in;
	struct builder *b;
	struct fault fault;

	cr_assert_eq(input_open_bytes(&in, "# mode: wall\n\nhello\nworld\n", 26), 0);
	cr_assert_null(format_by_content(&in));
	cr_assert_eq(builder_new(&b, &(struct builder_options){0}), 0);
	cr_assert_eq(format_by_name("collapsed")->read(&in, b, &fault), -EPROTO);
	cr_assert_str_eq(fault.why, "it has no line that is a stack; line 3 is the first that is not");
	builder_free(b);
	input_close(&in);
}

static bool looks_collapsed(const char *text)
{
	return format_by_name("collapsed")->detect((const unsigned char *)text, strlen(text));
}

Test(collapsed_read, what_looks_like_it)
{
	char head[FORMAT_HEAD_BYTES];

	cr_assert(looks_collapsed("a 1\n"));
	cr_assert(looks_collapsed("a;b 1"));
	cr_assert(looks_collapsed("# mode: wall\n\nP1;T0:1;a:b:3 17\n"));
	cr_assert_not(looks_collapsed(""));
	cr_assert_not(looks_collapsed("\n\n"));
	cr_assert_not(looks_collapsed("# mode: wall\n"));
	cr_assert_not(looks_collapsed("hello world\nthis is text\nof 3\n"));
	cr_assert_not(looks_collapsed("{\"a\": 1}\n"));
	/* The heads of other formats hold numbers, too; without a stack of two frames, all lines must be one. */
	cr_assert_not(looks_collapsed("version: 1\npid: 14542\ncmd:  ./a.out 22223\npart: 1\n"));
	cr_assert_not(looks_collapsed("events: 1\n16 400\n+2 20\n"));
	cr_assert_not(looks_collapsed("heap profile: 1: 2 [3: 4] @ heapprofile\na;b 3\n"));
	cr_assert_not(looks_collapsed("main 3\nwork 4\nand text\n"));
	cr_assert(looks_collapsed("a: b;c 3\nmain;work 4\nand text\n"));
	cr_assert(looks_collapsed("<module> 3\nf::g 4\n"));
	/* The first line is longer than what is seen of it. */
	for (size_t i = 0; i < sizeof(head); i++)
		head[i] = i % 8 == 7 ? ';' : 'x';
	cr_assert(format_by_name("collapsed")->detect((unsigned char *)head, sizeof(head)));
	head[0] = '{';
	cr_assert_not(format_by_name("collapsed")->detect((unsigned char *)head, sizeof(head)));
}

Test(collapsed_read, deepest_stack_and_lines_that_are_too_long)
{
	struct buf text = {0};
	struct profile *p;
	struct fault fault;

	for (int i = 0; i < REC_DEPTH_MAX; i++)
		buf_puts(&text, "f (a.py:2);");
	text.bytes--;
	buf_puts(&text, " 3\n");
	p = read_text("collapsed", buf_text(&text));
	cr_assert_eq(p->threads[0].depth_max, REC_DEPTH_MAX);
	cr_assert_eq(note_of(p, "deep_stacks"), -1);
	expect(p, COLLAPSED_SAMPLED, buf_text(&text));
	profile_free(p);
	/* One frame more is cut; the sample stays. */
	text.bytes -= 3;
	buf_puts(&text, ";g 3\n");
	p = read_text("collapsed", buf_text(&text));
	cr_assert_eq(p->threads[0].depth_max, REC_DEPTH_MAX);
	cr_assert_eq(note_of(p, "deep_stacks"), 1);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 3);
	profile_free(p);
	text.bytes = 0;
	buf_puts(&text, "a;b 2\n");
	for (size_t i = 0; i < (17u << 20); i++)
		buf_putc(&text, i % 100 == 99 ? ';' : 'x');
	buf_puts(&text, " 7\na;b 3\n");
	cr_assert_eq(read_back(&p, "collapsed", text.data, text.bytes, NULL, &fault), 0);
	cr_assert_eq(note_of(p, "long_lines"), 1);
	expect(p, COLLAPSED_SAMPLED, "a;b 5\n");
	profile_free(p);
	buf_release(&text);
}

Test(collapsed_read, hostile_names)
{
	static const char text[] = "thread 1 \"\x1b[2J\";\xff\xfe (\xed\xa0\x80.py:3);a\0b 4\n";
	struct profile *p;
	struct fault fault;

	cr_assert_eq(read_back(&p, "collapsed", text, sizeof(text) - 1, NULL, &fault), 0);
	expect(p, COLLAPSED_SAMPLED,
	       "thread 1 \" [2J\";\xef\xbf\xbd\xef\xbf\xbd (\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd.py:3);a\xef\xbf\xbd"
	       "b 4\n");
	profile_free(p);
}

Test(collapsed_read, damaged)
{
	static const char *const texts[] = {
		"process 10 \"a\";interpreter 3;thread 12 \"W\";f (a.py:3);g 5\nprocess 10 \"a\";thread 13;f 5\n",
		"# mode: full\n# interval: 10\nP1;T0:2;a.py:f:3;:GC: 5,0,-7\n# errors: 1/2\n",
		"tid:1;a.py:f:3;~:<GC>:0 5\n",
		"c-1/2;f 2.5\nprocess 1:\"x\";thread (0x1f): n;f (a.py) 2\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		read_damaged("collapsed", texts[i], strlen(texts[i]));
}
