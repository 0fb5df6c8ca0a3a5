/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: files appear whole or not at all, and hostile text stays text. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporters/format.h"
#include "base/utf8.h"
#include "exporters/writer.h"

static struct writer w;
static struct fault fault;
static char dir[] = "/tmp/sampled-writer-XXXXXX";
static char path[128];

static void setup(void)
{
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/out", dir);
}

static void teardown(void)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(writer, .init = setup, .fini = teardown);

/* The file's contents, in a static buffer. */
static const char *contents(const char *name)
{
	static char text[262144];
	FILE *file = fopen(name, "r");
	size_t bytes = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (file)
		fclose(file);
	text[bytes] = '\0';
	return text;
}

static unsigned entries(void)
{
	char command[160], count[16] = "";
	FILE *pipe;

	snprintf(command, sizeof(command), "ls -A %s | wc -l", dir);
	pipe = popen(command, "r");
	cr_assert(pipe && fgets(count, sizeof(count), pipe));
	pclose(pipe);
	return (unsigned)atoi(count);
}

Test(writer, file_appears_whole_at_close)
{
	struct stat st;

	cr_assert_eq(writer_open(&w, path, &fault), 0);
	for (unsigned i = 0; i < 30000; i++)
		writer_printf(&w, "%05u\n", i);
	cr_assert_eq(access(path, F_OK), -1, "it must not be there before close");
	cr_assert_eq(writer_close(&w, &fault), 0);
	cr_assert_eq(w.bytes, 180000);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_size, 180000);
	cr_assert_eq(st.st_mode & 0777, 0600);
	cr_assert_eq(entries(), 1, "no temporary file is left");
	cr_assert_eq(strncmp(contents(path) + 6 * 29999, "29999\n", 6), 0);
}

Test(writer, existing_file_keeps_its_mode_and_its_content_until_close)
{
	struct stat st;

	cr_assert_eq(close(open(path, O_CREAT | O_WRONLY, 0644)), 0);
	cr_assert_eq(chmod(path, 0644), 0);
	cr_assert_eq(writer_open(&w, path, &fault), 0);
	writer_puts(&w, "new");
	cr_assert_str_eq(contents(path), "");
	cr_assert_eq(writer_close(&w, &fault), 0);
	cr_assert_str_eq(contents(path), "new");
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0644);
}

Test(writer, abort_leaves_nothing)
{
	cr_assert_eq(writer_open(&w, path, &fault), 0);
	writer_puts(&w, "half");
	writer_abort(&w);
	cr_assert_eq(entries(), 0);
}

Test(writer, finish_closes_or_gives_up)
{
	struct fault said = {0};

	cr_assert_eq(writer_open(&w, path, &fault), 0);
	writer_puts(&w, "whole");
	cr_assert_eq(writer_finish(&w, 0, &said), 0);
	cr_assert_str_eq(contents(path), "whole");
	cr_assert_eq(writer_open(&w, path, &fault), 0);
	writer_puts(&w, "half");
	cr_assert_eq(writer_finish(&w, -ENOMEM, &said), -ENOMEM, "an error of the exporter's own");
	cr_assert_str_eq(said.why, strerror(ENOMEM));
	cr_assert_eq(writer_open(&w, path, &fault), 0);
	fault_set(&said, -EIO, "", "the exporter's reason");
	cr_assert_eq(writer_finish(&w, -EIO, &said), -EIO);
	cr_assert_str_eq(said.why, "the exporter's reason");
	cr_assert_str_eq(contents(path), "whole");
	cr_assert_eq(entries(), 1, "nothing temporary stays");
}

Test(writer, refuses_links_directories_devices)
{
	char target[160];

	snprintf(target, sizeof(target), "%s/target", dir);
	cr_assert_eq(symlink(target, path), 0);
	cr_assert_eq(writer_open(&w, path, &fault), -ELOOP);
	cr_assert_str_eq(fault.why, "it is a symbolic link");
	cr_assert_eq(writer_open(&w, dir, &fault), -EISDIR);
	cr_assert_eq(writer_open(&w, "/tmp/", &fault), -EISDIR);
	cr_assert_eq(writer_open(&w, "/nowhere/at/all", &fault), -ENOENT);
	cr_assert_eq(access(target, F_OK), -1);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(symlink("/dev/null", path), 0);
	cr_assert_eq(writer_open(&w, path, &fault), -ELOOP, "nor one to a stream");
}

Test(writer, streams_are_written_straight)
{
	int ends[2];
	char text[16] = "", name[64];

	cr_assert_not(writer_is_stream(path) || writer_is_stream(dir));
	cr_assert(writer_is_stream("-") && writer_is_stdout("-") && writer_is_stdout("/dev/stdout"));
	cr_assert_eq(writer_check(&w, "/dev/null", &fault), 0);
	cr_assert_eq(writer_open(&w, "/dev/null", &fault), 0);
	writer_puts(&w, "gone");
	cr_assert_eq(writer_close(&w, &fault), 0);
	cr_assert_eq(writer_open(&w, "/dev/full", &fault), 0);
	writer_puts(&w, "no room");
	cr_assert_eq(writer_close(&w, &fault), -ENOSPC);
	cr_assert_eq(pipe(ends), 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", ends[1]);
	cr_assert(writer_is_stream(name) && !writer_is_stdout(name));
	cr_assert_eq(writer_check(&w, name, &fault), 0);
	cr_assert_eq(writer_open(&w, name, &fault), 0);
	writer_puts(&w, "through");
	cr_assert_eq(writer_close(&w, &fault), 0);
	cr_assert_eq(read(ends[0], text, sizeof(text)), 7);
	cr_assert_str_eq(text, "through");
	cr_assert_eq(fcntl(ends[1], F_SETFD, FD_CLOEXEC), 0);
	cr_assert_eq(writer_open(&w, name, &fault), -EBADF, "one of our own");
	snprintf(name, sizeof(name), "/proc/self/fd/%d", ends[0]);
	cr_assert_eq(writer_check(&w, name, &fault), -EBADF, "not for writing");
	close(ends[0]);
	close(ends[1]);
	cr_assert_eq(writer_open(&w, name, &fault), -EBADF);
}

Test(writer, a_reader_that_has_read_enough_is_no_error)
{
	int ends[2];

	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(pipe(ends), 0);
	close(ends[0]);
	writer_open_fd(&w, ends[1]);
	for (unsigned i = 0; i < 100000; i++)
		writer_u64(&w, i);
	cr_assert_eq(w.err, -EPIPE, "no more is made");
	cr_assert_eq(writer_finish(&w, -EPIPE, &fault), 0);
	close(ends[1]);
}

Test(writer, fifo, .description = "is opened once, when somebody reads it")
{
	char text[16] = "";
	int reader;

	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert(writer_is_stream(path));
	cr_assert_eq(writer_open(&w, path, &fault), -EAGAIN, "nobody reads it, and nobody is waited for");
	cr_assert_eq(writer_check(&w, path, &fault), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	cr_assert_eq(writer_check(&w, path, &fault), 0);
	cr_assert_eq(read(reader, text, sizeof(text)), 0, "nobody has opened it yet");
	cr_assert_eq(writer_open(&w, path, &fault), 0);
	cr_assert_eq(fcntl(w.fd, F_GETFL) & O_NONBLOCK, 0, "a slow reader is waited for");
	writer_puts(&w, "through");
	cr_assert_eq(writer_close(&w, &fault), 0);
	cr_assert_eq(read(reader, text, sizeof(text)), 7);
	cr_assert_eq(entries(), 1, "it is still there, and nothing beside it");
	close(reader);
}

Test(writer, full_disk_sticks_and_is_told)
{
	int fd = open("/dev/full", O_WRONLY);

	cr_assert(fd >= 0);
	writer_open_fd(&w, fd);
	for (unsigned i = 0; i < 100000; i++)
		writer_u64(&w, i);
	cr_assert_eq(writer_close(&w, &fault), -ENOSPC);
	cr_assert_eq(fault.err, -ENOSPC);
	cr_assert(strstr(fault.why, "space"));
	close(fd);
}

static const char *json_of(const char *text)
{
	cr_assert_eq(writer_open(&w, path, &fault), 0);
	writer_json_string(&w, text);
	cr_assert_eq(writer_close(&w, &fault), 0);
	return contents(path);
}

Test(writer, json_strings_may_stand_in_a_script_element)
{
	cr_assert_str_eq(json_of("plain \xc3\xa9 \xf0\x9f\x94\xa5"), "\"plain \xc3\xa9 \xf0\x9f\x94\xa5\"");
	cr_assert_str_eq(json_of("</script><!--&"), "\"\\u003c/script\\u003e\\u003c!--\\u0026\"");
	cr_assert_str_eq(json_of("\"\\\n\x01\x7f"), "\"\\\"\\\\\\u000a\\u0001\\u007f\"");
	cr_assert_str_eq(json_of("\xe2\x80\xa8\xe2\x80\xa9"), "\"\\u2028\\u2029\"");
	cr_assert_str_eq(json_of("a\xff\xc0\x80\xed\xa0\x80z"), "\"a\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffdz\"",
	                 "every bad byte is one U+FFFD");
	cr_assert_str_eq(json_of("\xc2\x9b"
	                         "2J\xe2\x80\xae\xd8\x9c"),
	                 "\"\\u009b2J\\u202e\\u061c\"", "dump --json may go to a terminal");
	cr_assert_str_eq(json_of("\xe2\x82"), "\"\\ufffd\\ufffd\"", "a text that ends inside a character");
}

Test(writer, fits_text_to_columns)
{
	struct buf to = {0};

	cr_assert_eq(utf8_fit(&to, "abcdef", 6, false), 6);
	cr_assert_str_eq(buf_text(&to), "abcdef");
	to.bytes = 0;
	cr_assert_eq(utf8_fit(&to, "abcdefg", 6, false), 6);
	cr_assert_str_eq(buf_text(&to), "abcde\xe2\x80\xa6");
	to.bytes = 0;
	cr_assert_eq(utf8_fit(&to, "/a/long/path.py", 8, true), 8);
	cr_assert_str_eq(buf_text(&to), "\xe2\x80\xa6path.py");
	to.bytes = 0;
	cr_assert(utf8_fit(&to, "\xe5\x87\xbd\xe6\x95\xb0\xe5\x87\xbd", 4, false) <= 4, "two columns a character");
	to.bytes = 0;
	utf8_fit(&to, "\x1b[2J\xe2\x80\xae", 20, false);
	cr_assert_null(strchr(buf_text(&to), 0x1b), "no escape reaches a terminal");
	cr_assert_null(strstr(buf_text(&to), "\xe2\x80\xae"), "no override of the direction either");
	buf_release(&to);
}

Test(writer, makes_whole_texts_safe)
{
	struct buf to = {0};

	utf8_add_safe(&to, "\xe5\x87\xbd a\tb\xc2\x9b"
	                   "2J\xe2\x81\xa6\x9b\xe2\x82");
	cr_assert_str_eq(buf_text(&to), "\xe5\x87\xbd a\xef\xbf\xbd"
	                                "b\xef\xbf\xbd"
	                                "2J\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	buf_release(&to);
}

Test(writer, formats_are_found_by_name_and_suffix)
{
	cr_assert_str_eq(format_by_name("collapsed")->suffix, ".collapsed");
	cr_assert_null(format_by_name("nonsense"));
	cr_assert_str_eq(format_by_suffix("a.b/x.html")->name, "flamegraph");
	cr_assert_str_eq(format_by_suffix("X.HTM")->name, "flamegraph");
	cr_assert_str_eq(format_by_suffix("x.folded")->name, "collapsed");
	cr_assert_str_eq(format_by_suffix("x.txt")->name, "text");
	cr_assert_null(format_by_suffix("x.zzz"));
	cr_assert_null(format_by_suffix("html"));
	cr_assert_str_eq(format_by_suffix("x.pb.gz")->name, "pprof");
	cr_assert_null(format_by_suffix("x.db"), "what is only read is no output");
	cr_assert_str_eq(format_names(),
	                 "flamegraph recording pstats pprof speedscope firefox chrome svg dot callgrind heatmap "
	                 "dask jsonl otlp text collapsed");
	cr_assert_str_eq(format_read_names(),
	                 "recording pstats pprof speedscope firefox chrome callgrind dask tachyon tachyon-jsonl austin-mojo "
	                 "pyinstrument ascend perf collapsed");
}
