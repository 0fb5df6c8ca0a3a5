/* SPDX-License-Identifier: Apache-2.0 */
/* Which format a file is in, by its content. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "exporters/foreign.h"
#include "exporters/format.h"

static const char *format_of(const void *data, size_t bytes)
{
	static struct input in;
	const struct format *format;

	cr_assert_eq(input_open_bytes(&in, data, bytes), 0);
	format = format_by_content(&in);
	input_close(&in);
	return format ? format->name : "none";
}

static const char *format_of_text(const char *text)
{
	return format_of(text, strlen(text));
}

static const char *foreign_of(const char *head, size_t bytes)
{
	const struct foreign *foreign = foreign_by_content((const unsigned char *)head, bytes);

	return foreign ? foreign->name : "none";
}

/* A key that tells the format may stand behind everything else. */
Test(format, keys_that_come_late)
{
	struct buf text = {0};

	buf_puts(&text, "{\"exporter\":\"x\",\"name\":\"");
	for (int i = 0; i < 20000; i++)
		buf_putc(&text, 'n');
	buf_puts(&text,
	         "\",\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{\"frames\":[]}}");
	cr_assert_str_eq(format_of(text.data, text.bytes), "speedscope");
	buf_release(&text);
}

Test(format, byte_order_mark)
{
	static const char folded[] = "\xef\xbb\xbf"
				     "a;b 3\n";
	static struct input in;
	struct buf line = {0};

	cr_assert_str_eq(format_of_text(folded), "collapsed");
	cr_assert_str_eq(format_of_text("\xef\xbb\xbf{\"shared\":{\"frames\":[]}}"), "speedscope");
	cr_assert_eq(input_open_bytes(&in, folded, sizeof(folded) - 1), 0);
	for (int pass = 0; pass < 2; pass++) {
		cr_assert(input_line(&in, &line, 100, NULL));
		cr_assert_str_eq(buf_text(&line), "a;b 3");
		cr_assert_eq(input_rewind(&in), 0);
	}
	input_close(&in);
	buf_release(&line);
}

Test(format, what_is_not_read_has_a_name)
{
	static const char pprof_cpu[24] = {[8] = 3}, java[] = "FLR\0\0\2";

	cr_assert_str_eq(foreign_of("PERFILE2...", 11), "perf's own file");
	cr_assert_str_eq(foreign_of("\xff\xfe"
	                            "a\0",
	                            4),
	                 "text in UTF-16");
	cr_assert_str_eq(foreign_of("{\"nodes\":[{\"id\":1,\"callFrame\":{}}]}", 36), "V8's cpuprofile");
	cr_assert_str_eq(foreign_of(pprof_cpu, sizeof(pprof_cpu)), "gperftools' CPU profile");
	cr_assert_str_eq(foreign_of(java, sizeof(java)), "a Java flight recording");
	cr_assert_str_eq(foreign_of("a;b 3\n", 6), "none");
	cr_assert_str_eq(foreign_of("<module>;f 3\n", 13), "none");
	cr_assert_str_eq(foreign_of("", 0), "none");
	/* No reader has them, though lines of theirs may look like its own. */
	cr_assert_str_eq(format_of_text("heap profile: 1: 2 [3: 4] @ heapprofile\na;b 3\na;c 4\n"), "none");
	cr_assert_str_eq(format_of(pprof_cpu, sizeof(pprof_cpu)), "none");
}
