/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files: what is read of them, and what is wrong with them. */
#include "daemon/ini.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

/* What was heard, a line each. */
struct heard {
	struct buf text;
	unsigned mistakes;
	const char *refuse; /* a key that entry() does not take; NULL: none */
};

static int hear_entry(void *context, const struct ini_entry *e, struct fault *fault)
{
	struct heard *h = context;

	if (h->refuse && strcmp(h->refuse, e->key) == 0)
		return fault_set(fault, -ERANGE, "another one", "%s is not wanted", e->key);
	buf_printf(&h->text, "%u %s|%s|%s|%s\n", e->line, e->section, e->name, e->key, e->value);
	return 0;
}

static int hear_section(void *context, const struct ini_entry *e, struct fault *fault)
{
	struct heard *h = context;

	(void)fault;
	cr_assert(!e->key && !e->value);
	buf_printf(&h->text, "%u [%s|%s]\n", e->line, e->section, e->name);
	return 0;
}

static void hear_mistake(void *context, const struct fault *fault)
{
	struct heard *h = context;

	h->mistakes++;
	buf_printf(&h->text, "! %s\n", fault->why);
}

static int parse_all(struct heard *h, const char *text, struct fault *fault)
{
	const struct ini_handler all = {
		.context = h, .entry = hear_entry, .section = hear_section, .mistake = hear_mistake};

	h->text.bytes = 0;
	h->mistakes = 0;
	return ini_parse("f", text, strlen(text), &all, fault);
}

static void expect_text(const char *text, int expected_err, const char *expected)
{
	struct heard h = {0};

	cr_assert_eq(parse_all(&h, text, NULL), expected_err, "%s", text);
	cr_assert_str_eq(buf_text(&h.text), expected);
	buf_release(&h.text);
}

Test(ini, sections_keys_and_values)
{
	expect_text("", 0, "");
	expect_text("\xef\xbb\xbf[a]\n", 0, "1 [a|]\n");
	expect_text("# c\n; d\n\n [ service ] \r\nrate=49\r\n  a b = c = d # e\n[rule\tweb  workers]\nx=", 0,
	            "4 [service|]\n5 service||rate|49\n6 service||a b|c = d # e\n7 [rule|web  workers]\n8 rule|web  "
	            "workers|x|\n");
}

Test(ini, a_backslash_joins_lines)
{
	expect_text("[a]\nk = one \\\n# not this\n  two\\\n\tthree\nl = 1\n", 0,
	            "1 [a|]\n2 a||k|one  two three\n6 a||l|1\n");
	expect_text("[a]\n# a comment is not joined \\\nk = 1\nl = 2\\", 0, "1 [a|]\n3 a||k|1\n4 a||l|2\n");
	expect_text("[a]\nk = 1\\\n\nl = 2\n", 0, "1 [a|]\n2 a||k|1\n4 a||l|2\n");
	expect_text("[a]\\\n", 0, "1 [a|]\n");
}

Test(ini, mistakes_name_the_line_and_reading_goes_on)
{
	expect_text(
		"k = 1\n[a\n[]\n[a] b\nl = 2\n[b]\nnothing\n= 3\nm = \x01\nn = \xff\no = 4\n", -EINVAL,
		"! f:1: k: in no section\n! f:2: a section that does not end in ]\n! f:3: a section without a name\n"
		"! f:4: a section that does not end in ]\n6 [b|]\n"
		"! f:7: neither a section nor an assignment\n! f:8: no key in front of =\n"
		"! f:9: a control character, U+0001\n! f:10: not UTF-8\n11 b||o|4\n");
}

Test(ini, the_first_mistake_ends_it_where_nobody_hears_of_them)
{
	struct heard h = {.refuse = "b"};
	const struct ini_handler first = {.context = &h, .entry = hear_entry};
	static const char text[] = "[s]\na = 1\nb = 2\nc = 3\nd";
	struct fault fault;

	cr_assert_eq(ini_parse("f", text, strlen(text), &first, &fault), -ERANGE);
	cr_assert_str_eq(fault.why, "f:3: b is not wanted");
	cr_assert_str_eq(fault.hint, "another one");
	cr_assert_str_eq(buf_text(&h.text), "2 s||a|1\n");
	cr_assert_eq(parse_all(&h, text, &fault), -ERANGE);
	cr_assert_str_eq(fault.why, "f:3: b is not wanted", "the first of two");
	cr_assert_eq(h.mistakes, 2);
	buf_release(&h.text);
}

Test(ini, length_is_bounded)
{
	struct heard h = {0};
	const struct ini_handler all = {
		.context = &h, .entry = hear_entry, .section = hear_section, .mistake = hear_mistake};
	struct buf text = {0};

	buf_puts(&text, "[s]\nk = ");
	while (text.bytes < 4 + INI_LINE_MAX_BYTES)
		buf_putc(&text, 'x');
	cr_assert_eq(ini_parse("f", text.data, text.bytes, &all, NULL), 0);
	buf_puts(&text, "y\nl = 1\nm = \\\n");
	for (unsigned i = 0; i < INI_LINE_MAX_BYTES; i++)
		buf_puts(&text, "x \\\n");
	buf_puts(&text, "\nn = 1\n");
	h.text.bytes = 0;
	cr_assert_eq(ini_parse("f", text.data, text.bytes, &all, NULL), -EINVAL);
	cr_assert_eq(h.mistakes, 2);
	cr_assert(strstr(buf_text(&h.text), "3 s||l|1\n"));
	cr_assert(strstr(buf_text(&h.text), "s||n|1\n"));
	while (text.bytes <= INI_FILE_MAX_BYTES)
		buf_putc(&text, '\n');
	cr_assert_eq(ini_parse("f", text.data, text.bytes, &all, NULL), -EFBIG);
	cr_assert_eq(ini_parse("f", "[s]\0\n", 5, &all, NULL), -EINVAL);
	buf_release(&text);
	buf_release(&h.text);
}

static int count_entry(void *context, const struct ini_entry *entry, struct fault *fault)
{
	(void)fault;
	cr_assert_str_eq(entry->value, "1");
	++*(unsigned *)context;
	return 0;
}

Test(ini, only_regular_files_are_read)
{
	char folder[] = "/tmp/test_ini.XXXXXX", path[64], expected[128];
	struct fault fault;
	unsigned count = 0;
	FILE *file;

	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	cr_assert_eq(ini_read(path, count_entry, &count, &fault), -ENOENT);
	snprintf(expected, sizeof(expected), "%s: No such file or directory", path);
	cr_assert_str_eq(fault.why, expected);
	cr_assert_eq(ini_read(folder, count_entry, &count, &fault), -EISDIR);
	cr_assert_eq(ini_read("/dev/zero", count_entry, &count, &fault), -ENOTSUP);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(ini_read(path, count_entry, &count, &fault), -ENOTSUP, "and nobody waits for the other end");
	unlink(path);
	file = fopen(path, "w");
	cr_assert(file);
	fputs("[a]\nb = 1\nc = 1\n", file);
	fclose(file);
	cr_assert_eq(ini_read(path, count_entry, &count, &fault), 0);
	cr_assert_eq(count, 2);
	unlink(path);
	rmdir(folder);
}
