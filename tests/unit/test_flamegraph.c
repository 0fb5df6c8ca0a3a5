/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph's data, read back by a decoder of its own; how the page behaves is the browser test's. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporters/source.h"
#include "tests/unit/build_profile.h"
#include "tests/unit/written.h"

/* The JSON inside the page, cut off at its end; the page itself is changed. */
static char *data_of(char *page)
{
	static const char begin[] = "<script id=\"data\" type=\"application/json\">";
	char *data = strstr(page, begin), *end;

	cr_assert_eq(strncmp(page, "<!DOCTYPE html>", 15), 0);
	cr_assert_str_eq(page + strlen(page) - 8, "</html>\n");
	cr_assert_not_null(data);
	data += sizeof(begin) - 1;
	end = strstr(data, "</script>");
	cr_assert_not_null(end);
	*end = '\0';
	cr_assert_eq(data[0], '{');
	cr_assert_eq(end[-1], '}');
	return data;
}

struct tree_bytes {
	unsigned char *bytes;
	size_t count, at;
};

/* The base64 text of the n-th thread, decoded. */
static struct tree_bytes tree_of(const char *data, unsigned n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = strstr(data, "\"threads\":[");
	struct tree_bytes tree = {.bytes = calloc(1, strlen(data))};
	uint32_t word = 0, bits = 0;

	for (unsigned i = 0; i <= n; i++) /* each thread stands in a line of its own */
		at = strchr(at, '\n') + 1;
	at = strstr(at, "\"]"); /* the text is the line's last string, and holds no quote */
	while (at[-1] != '"')
		at--;
	for (; *at != '"' && *at != '='; at++) {
		word = word << 6 | (uint32_t)(strchr(digits, *at) - digits);
		bits += 6;
		if (bits >= 8)
			tree.bytes[tree.count++] = (unsigned char)(word >> (bits -= 8));
	}
	return tree;
}

static uint64_t number(struct tree_bytes *tree)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		cr_assert(tree->at < tree->count);
		value |= (uint64_t)(tree->bytes[tree->at] & 127) << shift;
		if (!(tree->bytes[tree->at++] & 128))
			return value;
	}
}

/* Decodes `nodes` nodes; sums get every value's sum; returns the greatest depth. */
static unsigned decode(struct tree_bytes *tree, uint32_t nodes, uint64_t *sums)
{
	unsigned depth = 0, deepest = 0;

	for (uint32_t i = 0; i < nodes; i++) {
		uint64_t head = number(tree), up = number(tree), own[VALUE_COUNT], codes;

		cr_assert(up <= depth);
		depth = i ? depth - (unsigned)up + 1 : 0;
		deepest = depth > deepest ? depth : deepest;
		if (!(head & 1))
			continue;
		own[VALUE_SAMPLES] = number(tree);
		own[VALUE_WALL] = number(tree);
		codes = number(tree);
		for (unsigned v = VALUE_RUNNABLE; v < VALUE_COUNT; v++, codes >>= 2)
			own[v] = (codes & 3) == 0 ? 0 : (codes & 3) == 1 ? own[VALUE_WALL] : number(tree);
		for (unsigned v = 0; v < VALUE_COUNT; v++)
			sums[v] += own[v];
	}
	cr_assert_eq(tree->at, tree->count, "nothing is left over");
	return deepest;
}

static void check_tree(struct profile *p, unsigned depth)
{
	char *page = written(p, "flamegraph", &(struct export_options){0}), *data = data_of(page);

	for (uint32_t t = 0; t < p->thread_count; t++) {
		struct tree_bytes tree = tree_of(data, t);
		uint64_t sums[VALUE_COUNT] = {0};
		unsigned found = decode(&tree, p->threads[t].node_count, sums);

		if (t == 0)
			cr_assert_eq(found, depth);
		for (unsigned v = 0; v < VALUE_COUNT; v++) {
			uint64_t expected = 0;

			for (uint32_t n = 0; n < p->threads[t].node_count; n++)
				expected += p->threads[t].nodes[n].self[v];
			cr_assert_eq(sums[v], expected, "value %u of thread %u", v, t);
		}
		free(tree.bytes);
	}
	free(page);
}

Test(flamegraph, empty_profile_is_a_whole_page)
{
	struct profile *p = built_new();
	char *page = written(p, "flamegraph", &(struct export_options){.title = "nothing"}), *data = data_of(page);

	cr_assert(strstr(data, "\"title\":\"nothing\""));
	cr_assert(strstr(data, "\"threads\":[]"));
	cr_assert(strstr(data, "[\"samples\",\"samples taken\",0,\"0\""));
	free(page);
	built_free(p);
}

Test(flamegraph, one_sample)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 1, "x"), 0, 1, "MainThread");

	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "a.py", 1), 2), 1, STATUS_RUNNABLE | STATUS_GIL);
	check_tree(p, 1);
	built_free(p);
}

Test(flamegraph, values_of_every_kind_come_back)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 1, "x"), 0, 1, NULL), f = built_symbol(p, "f", "a.py", 1), at;
	uint32_t u = built_thread(p, 0, 3, UINT64_C(4000000000), "second");

	for (uint32_t i = 0; i < 500; i++) {
		at = built_child(p, t, i % 7 ? i % (p->threads[t].node_count) : 0, f, i);
		built_sample(p, t, at, i * 77777, i % 128);
		built_sample(p, t, at, i, (i * 31) % 128);
	}
	built_sample(p, u, 0, UINT64_C(1) << 40, STATUS_IDLE);
	for (uint32_t n = 0; n < p->threads[t].node_count; n++)
		cr_assert(p->threads[t].nodes[n].parent <= n);
	check_tree(p, p->threads[t].depth_max);
	built_free(p);
}

Test(flamegraph, deep_recursion)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 1, "x"), 0, 1, NULL), f = built_symbol(p, "f", "a.py", 1), at = 0;

	for (unsigned i = 0; i < 2000; i++)
		built_sample(p, t, at = built_child(p, t, at, f, 2), 1, STATUS_GIL_WAIT);
	check_tree(p, 2000);
	built_free(p);
}

Test(flamegraph, hostile_names_add_no_markup)
{
	static const char evil[] = "</script><script>alert(1)</script><!--<script>\xe2\x80\xa8\xe2\x80\xa9\xff&'\"\\ @DATA@ @SCRIPT@";
	struct profile *plain = built_new(), *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 1, evil), 0, 1, evil);
	char *before = written(plain, "flamegraph", &(struct export_options){0}), *after;

	built_sample(p, t, built_child(p, t, 0, built_symbol(p, evil, evil, 1), 2), 1, 0);
	after = written(p, "flamegraph", &(struct export_options){.title = evil});
	cr_assert_eq(count_of(after, "<script"), count_of(before, "<script"));
	cr_assert_eq(count_of(after, "</script"), count_of(before, "</script"));
	cr_assert_eq(count_of(after, "<!--"), count_of(before, "<!--"));
	cr_assert_eq(count_of(after, "\xe2\x80\xa8"), 0);
	cr_assert_eq(count_of(after, "\xff"), 0);
	free(before);
	free(after);
	built_free(plain);
	built_free(p);
}

Test(flamegraph, page_asks_for_nothing_and_allows_only_itself)
{
	struct profile *p = built_new();
	char *page = written(p, "flamegraph", &(struct export_options){0});
	char *policy = strstr(page, "Content-Security-Policy");

	cr_assert_not_null(policy);
	cr_assert(strstr(policy, "default-src 'none'; script-src 'sha256-"));
	cr_assert_null(strstr(page, "unsafe-"));
	cr_assert_null(strstr(page, "http://"));
	cr_assert_null(strstr(page, "https://"));
	cr_assert_null(strstr(page, "@import"));
	cr_assert_null(strstr(page, "innerHTML"));
	free(page);
	built_free(p);
}

static char dir[] = "/tmp/sampled-source-XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[8][128];
	static unsigned next;

	next = (next + 1) % 8;
	snprintf(path[next], sizeof(path[next]), "%s/%s", dir, name);
	return path[next];
}

static void make_file(const char *name, unsigned lines)
{
	FILE *file = fopen(in_dir(name), "w");

	cr_assert_not_null(file);
	for (unsigned i = 1; i <= lines; i++)
		fprintf(file, "line <%u>\r\n", i);
	fclose(file);
}

Test(flamegraph, source_lines_around_each_line_and_only_when_allowed)
{
	struct profile *p = built_new();
	char *page, *data;
	uint32_t t, f;

	cr_assert(mkdtemp(dir));
	make_file("a.py", 50);
	t = built_thread(p, built_process(p, (int32_t)getpid(), "x"), 0, 1, NULL);
	f = built_symbol(p, "f", in_dir("a.py"), 1);
	built_sample(p, t, built_child(p, t, 0, f, 10), 1, 0);
	built_sample(p, t, built_child(p, t, 0, f, 13), 1, 0);
	built_sample(p, t, built_child(p, t, 0, f, 50), 1, 0);
	built_sample(p, t, built_child(p, t, 0, f, 4000000000), 1, 0);
	page = written(p, "flamegraph", &(struct export_options){.sources = &built_sources});
	data = data_of(page);
	cr_assert(strstr(data, ",8,[\"line \\u003c8\\u003e\",\"line \\u003c9\\u003e\""), "%s", strstr(data, "sources"));
	cr_assert(strstr(data, "\"line \\u003c15\\u003e\"]]"), "10 and 13 are one run, to 15");
	cr_assert(strstr(data, ",48,[\"line \\u003c48\\u003e\",\"line \\u003c49\\u003e\",\"line \\u003c50\\u003e\"]]"));
	cr_assert_null(strstr(data, "u003c16"));
	free(page);
	page = written(p, "flamegraph", &(struct export_options){0});
	cr_assert_null(strstr(page, "line \\u003c"));
	free(page);
	unlink(in_dir("a.py"));
	rmdir(dir);
	built_free(p);
}

Test(flamegraph, only_plain_files_are_read, .timeout = 20)
{
	struct source_place place;
	struct buf source = {0};
	size_t bytes;
	int fd;

	cr_assert(mkdtemp(dir));
	cr_assert_eq(source_place_open(&place, (int32_t)getpid()), 0);
	make_file("a.py", 3);
	cr_assert_eq(symlink(in_dir("a.py"), in_dir("link.py")), 0);
	cr_assert_eq(mkfifo(in_dir("fifo.py"), 0600), 0);
	fd = open(in_dir("huge.py"), O_CREAT | O_WRONLY, 0600);
	cr_assert_eq(ftruncate(fd, (off_t)SOURCE_BYTES_MAX + 1), 0);
	close(fd);
	cr_assert_eq(source_read(&source, &place, in_dir("a.py")), 0);
	cr_assert_eq(memcmp(source_line(&source, 2, &bytes), "line <2>", 8), 0);
	cr_assert_eq(bytes, 8);
	cr_assert_null(source_line(&source, 0, &bytes));
	cr_assert_null(source_line(&source, 4, &bytes));
	cr_assert_eq(source_read(&source, &place, in_dir("link.py")), -ELOOP);
	cr_assert_eq(source_read(&source, &place, in_dir("fifo.py")), -EINVAL);
	cr_assert_eq(source_read(&source, &place, in_dir("huge.py")), -EFBIG);
	cr_assert_eq(source_read(&source, &place, "/dev/zero"), -EINVAL);
	cr_assert_eq(source_read(&source, &place, dir), -EINVAL);
	cr_assert_eq(source_read(&source, &place, "<string>"), -ENOENT);
	cr_assert_eq(source_read(&source, &place, ""), -ENOENT);
	cr_assert_null(source_line(&source, 1, &bytes), "what could not be read leaves nothing");
	buf_release(&source);
	source_place_close(&place);
	unlink(in_dir("a.py"));
	unlink(in_dir("link.py"));
	unlink(in_dir("fifo.py"));
	unlink(in_dir("huge.py"));
	rmdir(dir);
}
