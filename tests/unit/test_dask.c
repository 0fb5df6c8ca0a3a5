/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "tests/unit/build_profile.h"
#include "tests/unit/read_back.h"
#include "tests/unit/written.h"

/* A written tree without the member "sampled", whose facts other tests hold to their sums. */
static char *tree_of(const struct profile *p, const struct export_options *options)
{
	char *text = written(p, "dask", options), *from = strstr(text, ",\"sampled\":{"), *to;

	cr_assert_not_null(from);
	to = strstr(from, "}}");
	memmove(from, to + 2, strlen(to + 2) + 1);
	return text;
}

static void expect(const struct profile *p, const char *tree)
{
	char *text = tree_of(p, &(struct export_options){0});

	cr_assert_str_eq(text, tree);
	free(text);
}

#define ROOT(count, children)                                                                                          \
	"{\"identifier\":\"root\",\"description\":{\"filename\":\"\",\"name\":\"\",\"line_number\":0,\"line\":\"\"},"  \
	"\"count\":" count ",\"children\":{" children "}}"
#define NODE(name, file, first, line, count, children)                                                                 \
	"\"" name ";" file ";" first "\":{\"identifier\":\"" name ";" file ";" first                                   \
	"\",\"description\":{\"filename\":\"" file "\",\"name\":\"" name "\",\"line_number\":" line ",\"line\":\"\"}," \
	"\"count\":" count ",\"children\":{" children "}}"

Test(dask, empty_and_one_sample)
{
	struct profile *p = built_new();
	uint32_t t;

	expect(p, ROOT("0", "") "\n");
	t = built_thread(p, built_process(p, 10, "python3"), 0, 10, "MainThread");
	expect(p, ROOT("0", "") "\n");
	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "/a.py", 3), 4), 1, 0);
	expect(p, ROOT("1", NODE("f", "/a.py", "3", "4", "1", "")) "\n");
	built_free(p);
}

/* Threads and lines are one; a count holds what is called; the empty stack counts at the root. */
static struct profile *small(void)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 10, "x"), a = built_thread(p, process, 0, 10, "A"),
		 b = built_thread(p, process, 0, 11, "B");
	uint32_t f = built_symbol(p, "f", "/a.py", 3), g = built_symbol(p, "g", "/a.py", 8),
		 gc = built_symbol(p, "<GC>", "", 0);

	built_sample(p, a, built_child(p, a, 0, f, 4), 2, 0);
	built_sample(p, a, built_child(p, a, built_child(p, a, 0, f, 5), g, 9), 3, 0);
	built_sample(p, b, built_child(p, b, built_child(p, b, 0, f, 6), gc, 0), 4, 0);
	built_sample(p, b, 0, 5, 0);
	built_child(p, b, 0, g, 9); /* without samples */
	return p;
}

Test(dask, threads_and_lines_are_one)
{
	struct profile *p = small();

	expect(p, ROOT("14", NODE("f", "/a.py", "3", "4", "9",
	                          NODE("g", "/a.py", "8", "9", "3", "") "," NODE("\\u003cGC\\u003e", "", "0", "0", "4",
	                                                                         ""))) "\n");
	built_free(p);
}

Test(dask, names_that_make_the_same_identifier_are_one)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "x"), 0, 10, "A");

	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "a;b", "c", 1), 2), 1, 0);
	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "a", "b;c", 1), 2), 1, 0);
	expect(p,
	       ROOT("2", "\"a;b;c;1\":{\"identifier\":\"a;b;c;1\",\"description\":{\"filename\":\"c\",\"name\":\"a;b\","
	                 "\"line_number\":2,\"line\":\"\"},\"count\":2,\"children\":{}}") "\n");
	built_free(p);
}

Test(dask, source_lines_as_distributed_has_them)
{
	char path[] = "/tmp/sampled-dask-XXXXXX";
	int fd = mkstemp(path);
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "x"), 0, 10, "A"), f = built_symbol(p, "f", path, 1), at;
	char *text;

	cr_assert(fd >= 0 && write(fd, "def f():\n    \treturn '<'  # \xff\n", 30) == 30);
	close(fd);
	at = built_child(p, t, 0, f, 2);
	built_sample(p, t, at, 1, 0);
	built_sample(p, t, built_child(p, t, at, built_symbol(p, "g", path, 3), 3), 1, 0);
	text = written(p, "dask", &(struct export_options){.sources = &built_sources});
	cr_assert(strstr(text, "\"line_number\":2,\"line\":\"return '\\u003c'  # \\ufffd\\u000a\"}"), "%s", text);
	cr_assert(strstr(text, "\"line_number\":3,\"line\":\"\"}"));
	unlink(path);
	free(text);
	built_free(p);
}

Test(dask, round_trip)
{
	struct profile *p = small(), *again;
	char *text = written(p, "dask", &(struct export_options){0}), *tree = tree_of(p, &(struct export_options){0});

	again = read_text("dask", text);
	cr_assert(again->imported);
	cr_assert_eq(profile_sum(again, VALUE_SAMPLES), 14);
	cr_assert_eq(profile_weight(again), VALUE_SAMPLES);
	expect(again, tree);
	free(text);
	free(tree);
	profile_free(again);
	built_free(p);
}

/* Runs lie at 0, 1, … ms of each thread: A has 2 + 3 samples, B 4 + 5. Intervals of 4 ms, 4 samples of each thread. */
Test(dask, history)
{
	struct profile *p = small(), *again;
	char *text = tree_of(p, &(struct export_options){.history_interval_ns = 4000000});
	struct fault fault;

	cr_assert_str_eq(text,
	                 "[\n[1700000000.004000000," ROOT(
				 "8", NODE("f", "/a.py", "3", "4", "8",
	                                   NODE("g", "/a.py", "8", "9", "2", "") "," NODE(
						   "\\u003cGC\\u003e", "", "0", "0", "4",
						   ""))) "],"
	                                                 "\n[1700000000.008000000," ROOT(
								 "5", NODE("f", "/a.py", "3", "4", "1",
	                                                                   NODE("g", "/a.py", "8", "9", "1",
	                                                                        ""))) "],"
	                                                                              "\n[1700000000.012000000," ROOT(
											      "1", "") "]\n]\n");
	again = read_text("dask", text);
	cr_assert_eq(note_of(again, "dask_entries"), 3);
	expect(again, ROOT("14", NODE("f", "/a.py", "3", "4", "9",
	                              NODE("g", "/a.py", "8", "9", "3", "") "," NODE("\\u003cGC\\u003e", "", "0", "0",
	                                                                             "4", ""))) "\n");
	profile_free(again);
	cr_assert_eq(read_back(&again, "dask", text, strlen(text), &(struct builder_options){.to_ns = 3000000}, &fault),
	             0);
	cr_assert_eq(profile_sum(again, VALUE_SAMPLES), 8);
	profile_free(again);
	cr_assert_eq(read_back(&again, "dask", text, strlen(text),
	                       &(struct builder_options){.from_ns = 3000000, .runs = true}, &fault),
	             0);
	cr_assert_eq(profile_sum(again, VALUE_SAMPLES), 6);
	cr_assert_eq(again->threads[0].run_count, 3);
	profile_free(again);
	free(text);
	built_free(p);
}

Test(dask, one_tree_has_no_time)
{
	const char *text = ROOT("1", NODE("f", "/a.py", "3", "4", "1", ""));
	struct profile *p;
	struct fault fault;

	cr_assert_eq(read_back(&p, "dask", text, strlen(text), &(struct builder_options){.to_ns = 5}, &fault), -EINVAL);
	cr_assert_str_eq(fault.why, "one Dask tree holds no time order, so this cannot be done with it");
}

/* Members in another order, as merge() and sort_keys=True leave them; others besides. */
Test(dask, any_order_of_members)
{
	struct profile *p = read_text(
		"dask",
		" {\"children\": {\"f;/a.py;3\": {\"children\": {}, \"count\": 2, \"x\": [1, {\"count\": 9}, null],"
		"\"description\": {\"line\": \"code\", \"line_number\": 7, \"name\": \"F\", \"filename\": \"/b.py\"},"
		"\"identifier\": \"f;/a.py;3\"}, \"no parts\": {\"children\": {}, \"count\": 1},"
		"\"mod.g:12\": {\"count\": 4, \"children\": {}, \"description\": \"text\"}}, \"count\": 9,"
		"\"description\": {}, \"identifier\": \"root\"}");

	expect(p, ROOT("9", NODE("F", "/b.py", "3", "7", "2", "") "," NODE("no parts", "", "0", "0", "1", "") "," NODE(
				    "mod.g:12", "", "0", "0", "4", "")) "\n");
	profile_free(p);
}

Test(dask, low_level_frames_and_counts_that_do_not_add_up)
{
	struct profile *p = read_text(
		"dask",
		ROOT("3", "\"malloc;<low-level>;0x7f\":{\"count\":5,\"children\":{},\"description\":{\"filename\":"
	                  "\"<low-level>\",\"name\":\"malloc\",\"line_number\":0,\"line\":\"\"}}"));

	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 5);
	cr_assert_eq(note_of(p, "repaired_counts"), 1);
	cr_assert_eq(p->symbols[p->threads[0].nodes[1].symbol].kind, FRAME_NATIVE);
	profile_free(p);
}

Test(dask, deepest_stack)
{
	struct profile *p = built_deepest(), *again;
	char *text = written(p, "dask", &(struct export_options){0});

	again = read_text("dask", text);
	cr_assert_eq(again->threads[0].depth_max, 400); /* what Python's json and Dask's own functions take */
	cr_assert(strstr(text, "truncated"));
	cr_assert_eq(profile_sum(again, VALUE_SAMPLES), 9);
	free(text);
	profile_free(again);
	built_free(p);
}

static void refuse(const char *text, const char *why)
{
	struct profile *p;
	struct fault fault;

	cr_assert_eq(read_as(&p, "dask", text, strlen(text), NULL, &fault), -EPROTO, "%s", text);
	cr_assert(strstr(fault.why, why), "%s: %s", text, fault.why);
}

Test(dask, refused)
{
	struct buf deep = {0};

	refuse("", "premature EOF");
	refuse("{", "premature EOF");
	refuse("{} {}", "no count");
	refuse("{}", "no count");
	refuse("{\"count\": -1}", "a count makes no sense (at byte");
	refuse("{\"count\": 1e300}", "a count makes no sense");
	refuse("{\"count\": \"1\"}", "a count is a text");
	refuse("{\"count\": null}", "null");
	refuse("{\"count\": 1, \"children\": {\"a\": [1]}}", "a list is where");
	refuse("{\"count\": 1, \"children\": {\"a\": 1}}", "a number is where");
	refuse("[1]", "a number is where");
	refuse("[{}]", "not [time, tree]");
	refuse("[[-1, {\"count\": 1}]]", "time makes no sense");
	refuse("5", "a number is where");
	for (int i = 0; i < 40000; i++)
		buf_puts(&deep, "{\"children\":{\"a\":");
	refuse(buf_text(&deep), "nested too deep");
	deep.bytes = 0;
	buf_puts(&deep, "{\"identifier\": \"");
	for (int i = 0; i < 17 << 10; i++)
		buf_printf(&deep, "%01024d", i);
	refuse(buf_text(&deep), "longer than 16 MiB");
	buf_release(&deep);
}

Test(dask, damaged)
{
	static const char text[] = "[[1.5," ROOT("2", NODE("f", "/a.py", "3", "4", "2", "")) "],[2," ROOT("1", "") "]]";

	read_damaged("dask", text, strlen(text));
}
