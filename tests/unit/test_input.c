/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "exporters/input.h"

static struct input in;

static void open_bytes(const void *data, size_t bytes)
{
	cr_assert_eq(input_open_bytes(&in, data, bytes), 0);
}

/* What differs from place to place, so that nothing missing or twice goes unseen. */
static unsigned char *make_data(size_t bytes)
{
	unsigned char *data = malloc(bytes + 1);

	cr_assert_not_null(data);
	for (size_t i = 0; i < bytes; i++)
		data[i] = (unsigned char)(i * 7 + (i >> 8) * 13 + (i >> 16));
	return data;
}

/* One gzip member behind what is in *to. */
static void add_gzip(struct buf *to, const void *data, size_t bytes)
{
	size_t room = bytes + bytes / 1000 + 256;
	z_stream z = {.next_in = (unsigned char *)data, .avail_in = (unsigned)bytes};
	unsigned char *out = buf_reserve(to, room);

	cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_out = out;
	z.avail_out = (unsigned)room;
	cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	to->bytes += room - z.avail_out;
	deflateEnd(&z);
}

static void expect_all(const unsigned char *data, size_t bytes)
{
	struct buf all = {0};

	cr_assert_eq(input_rest(&in, &all, bytes), 0);
	cr_assert_eq(all.bytes, bytes);
	cr_assert(bytes == 0 || memcmp(all.data, data, bytes) == 0);
	cr_assert_eq(in.bytes, bytes);
	buf_release(&all);
}

static void expect_error(int err)
{
	struct buf all = {0};

	cr_assert_eq(input_rest(&in, &all, SIZE_MAX / 2), err);
	cr_assert_eq(in.err, err);
	buf_release(&all);
}

Test(input, plain_of_all_sizes_around_its_buffer)
{
	static const size_t sizes[] = {0, 1, 2, 3, 4, 4095, 4096, 4097, 65535, 65536, 65537, 200000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned char *data = make_data(sizes[i]);

		open_bytes(data, sizes[i]);
		expect_all(data, sizes[i]);
		input_close(&in);
		free(data);
	}
}

Test(input, empty_has_nothing_to_give)
{
	const unsigned char *data;
	struct buf line = {0};
	char byte;

	open_bytes("", 0);
	cr_assert_eq(input_peek(&in, &data, 10), 0);
	cr_assert_eq(input_next(&in, &data, 10), 0);
	cr_assert_not(input_read(&in, &byte, 1));
	cr_assert(input_read(&in, &byte, 0));
	cr_assert_not(input_skip(&in, 1));
	cr_assert(input_skip(&in, 0));
	cr_assert_not(input_line(&in, &line, 10, NULL));
	cr_assert_eq(in.err, 0);
	cr_assert(in.over);
	input_close(&in);
	buf_release(&line);
}

Test(input, peek_takes_nothing_and_stops_at_the_end)
{
	unsigned char *data = make_data(70000), byte;
	const unsigned char *seen;

	open_bytes(data, 70000);
	cr_assert_eq(input_peek(&in, &seen, 4096), 4096);
	cr_assert_eq(memcmp(seen, data, 4096), 0);
	cr_assert_eq(input_peek(&in, &seen, 100000), 65536, "never more than 64 KiB");
	cr_assert_eq(in.bytes, 0);
	cr_assert(input_skip(&in, 65536 - 10)); /* over the edge of the buffer */
	cr_assert_eq(input_peek(&in, &seen, 4096), 4096);
	cr_assert_eq(memcmp(seen, data + 65526, 4096), 0);
	cr_assert(input_skip(&in, 70000 - 65526 - 3));
	cr_assert_eq(input_peek(&in, &seen, 4096), 3);
	cr_assert_eq(memcmp(seen, data + 69997, 3), 0);
	cr_assert(input_skip(&in, 3));
	cr_assert_eq(input_peek(&in, &seen, 4096), 0);
	cr_assert_not(input_read(&in, &byte, 1));
	cr_assert_eq(in.bytes, 70000);
	input_close(&in);
	free(data);
}

Test(input, reads_are_exact_or_fail)
{
	unsigned char *data = make_data(100000), *to = malloc(100000);

	open_bytes(data, 100000);
	cr_assert(input_read(&in, to, 99999));
	cr_assert_eq(memcmp(to, data, 99999), 0);
	cr_assert_not(input_read(&in, to, 2));
	cr_assert_eq(in.err, 0);
	input_close(&in);
	free(data);
	free(to);
}

Test(input, rest_is_bounded)
{
	struct buf all = {0};

	open_bytes("0123456789", 10);
	cr_assert_eq(input_rest(&in, &all, 9), -EFBIG);
	input_close(&in);
	buf_release(&all);
}

static void expect_line(size_t max_bytes, const char *text, bool is_cut)
{
	static struct buf line;
	bool cut;

	cr_assert(input_line(&in, &line, max_bytes, &cut));
	cr_assert_eq(line.bytes, strlen(text));
	cr_assert_eq(memcmp(buf_text(&line), text, line.bytes), 0, "%s", buf_text(&line));
	cr_assert_eq(cut, is_cut);
}

Test(input, lines)
{
	static const char text[] = "one\n\ntwo\r\n\r\na\rb\r\r\nlonger than ten\nexactly 10\nlast\r";
	struct buf line = {0};

	open_bytes(text, sizeof(text) - 1);
	expect_line(10, "one", false);
	expect_line(10, "", false);
	expect_line(10, "two", false);
	expect_line(10, "", false);
	expect_line(10, "a\rb\r", false);
	expect_line(10, "longer tha", true);
	expect_line(10, "exactly 10", false);
	expect_line(10, "last", false);
	cr_assert_not(input_line(&in, &line, 10, NULL));
	cr_assert_eq(in.err, 0);
	input_close(&in);
}

/* The end of a line that fits but for its CR is not a cut. */
Test(input, line_as_long_as_allowed_with_cr)
{
	open_bytes("0123456789\r\nx", 13);
	expect_line(10, "0123456789", false);
	expect_line(10, "x", false);
	input_close(&in);
}

Test(input, lines_of_any_length_across_buffers)
{
	static const size_t lengths[] = {65535, 65536, 65537, 0, 300000, 131071, 1};
	struct buf text = {0}, line = {0};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (size_t n = 0; n < lengths[i]; n++)
			buf_putc(&text, (char)('a' + (i + n) % 26));
		buf_putc(&text, '\n');
	}
	open_bytes(text.data, text.bytes);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		bool cut;

		cr_assert(input_line(&in, &line, 200000, &cut));
		cr_assert_eq(line.bytes, lengths[i] > 200000 ? 200000 : lengths[i]);
		cr_assert_eq(cut, lengths[i] > 200000);
		for (size_t n = 0; n < line.bytes; n++)
			cr_assert_eq(line.data[n], (char)('a' + (i + n) % 26));
	}
	cr_assert_not(input_line(&in, &line, 10, NULL));
	cr_assert_eq(in.bytes, text.bytes);
	input_close(&in);
	buf_release(&text);
	buf_release(&line);
}

Test(input, gzip_of_several_members)
{
	unsigned char *data = make_data(400000);
	struct buf packed = {0};

	add_gzip(&packed, data, 100000);
	add_gzip(&packed, "", 0);
	add_gzip(&packed, data + 100000, 1);
	add_gzip(&packed, data + 100001, 299999);
	open_bytes(packed.data, packed.bytes);
	cr_assert_not(in.is_file);
	expect_all(data, 400000);
	input_close(&in);
	buf_release(&packed);
	free(data);
}

Test(input, gzip_that_unpacks_to_much_more)
{
	unsigned char *zeros = calloc(1, 30 << 20);
	struct buf packed = {0};

	add_gzip(&packed, zeros, 30 << 20);
	cr_assert_lt(packed.bytes, 65536, "it is all in the first piece read");
	open_bytes(packed.data, packed.bytes);
	expect_all(zeros, 30 << 20);
	input_close(&in);
	buf_release(&packed);
	free(zeros);
}

Test(input, gzip_cut_off_anywhere)
{
	unsigned char *data = make_data(3000);
	struct buf packed = {0};

	add_gzip(&packed, data, 3000);
	for (size_t cut = 2; cut < packed.bytes; cut++) {
		open_bytes(packed.data, cut);
		expect_error(-EPROTO);
		input_close(&in);
	}
	buf_release(&packed);
	free(data);
}

Test(input, gzip_damaged)
{
	unsigned char *data = make_data(3000);
	struct buf packed = {0};

	add_gzip(&packed, data, 3000);
	packed.data[packed.bytes - 6] ^= 1; /* its checksum */
	open_bytes(packed.data, packed.bytes);
	expect_error(-EPROTO);
	input_close(&in);
	packed.data[packed.bytes - 6] ^= 1;
	buf_puts(&packed, "not a member");
	open_bytes(packed.data, packed.bytes);
	expect_error(-EPROTO);
	input_close(&in);
	buf_release(&packed);
	free(data);
}

#ifdef HAVE_ZSTD
Test(input, zstd_whole_cut_and_damaged)
{
	unsigned char *data = make_data(200000), *packed = malloc(2 * ZSTD_compressBound(200000));
	size_t first = ZSTD_compress(packed, ZSTD_compressBound(200000), data, 150000, 3);
	size_t bytes = first + ZSTD_compress(packed + first, ZSTD_compressBound(50000), data + 150000, 50000, 3);

	open_bytes(packed, bytes);
	expect_all(data, 200000);
	input_close(&in);
	for (size_t cut = 4; cut < bytes; cut += 1 + bytes / 200) {
		if (cut == first)
			continue;
		open_bytes(packed, cut);
		expect_error(-EPROTO);
		input_close(&in);
	}
	open_bytes(packed, first);
	expect_all(data, 150000);
	input_close(&in);
	packed[4] ^= 0x18; /* bits of its head that must be 0 or name a checksum that is not there */
	open_bytes(packed, bytes);
	expect_error(-EPROTO);
	input_close(&in);
	free(data);
	free(packed);
}
#endif

/* A child writes `bytes`, `step` at a time; the path to read them by. */
static pid_t feed(char path[32], const void *data, size_t bytes, size_t step, int flags)
{
	int ends[2];
	pid_t child;

	cr_assert_eq(pipe2(ends, 0), 0);
	child = fork();
	if (child == 0) {
		close(ends[0]);
		for (size_t i = 0; i < bytes; i += step) {
			if (write(ends[1], (const char *)data + i, bytes - i < step ? bytes - i : step) < 0)
				_exit(1);
			if (i % (step * 64) == 0)
				usleep(100);
		}
		_exit(0);
	}
	close(ends[1]);
	if (flags)
		fcntl(ends[0], F_SETFL, flags);
	/* A path of /proc would open the pipe anew, without the flags. */
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	snprintf(path, 32, "-");
	return child;
}

static void expect_fed(const unsigned char *data, size_t bytes, const void *sent, size_t sent_bytes, size_t step,
                       int flags)
{
	struct fault fault;
	char path[32];
	int status;
	pid_t child = feed(path, sent, sent_bytes, step, flags);

	cr_assert_eq(input_open(&in, path, &fault), 0);
	cr_assert_not(in.is_file);
	expect_all(data, bytes);
	input_close(&in);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

Test(input, pipe_that_delivers_one_byte_at_a_time)
{
	unsigned char *data = make_data(10000);
	struct buf packed = {0};

	add_gzip(&packed, data, 5000);
	add_gzip(&packed, data + 5000, 5000);
	expect_fed(data, 10000, data, 10000, 1, 0);
	expect_fed(data, 10000, packed.data, packed.bytes, 1, 0);
	expect_fed(data, 3, data, 3, 1, 0);
	buf_release(&packed);
	free(data);
}

/* Whoever shares the pipe may have made it so. */
Test(input, pipe_that_does_not_block)
{
	unsigned char *data = make_data(3000);

	expect_fed(data, 3000, data, 3000, 1, O_NONBLOCK);
	free(data);
}

Test(input, what_cannot_be_opened)
{
	struct fault fault;

	cr_assert_eq(input_open(&in, "/nowhere/at/all", &fault), -ENOENT);
	cr_assert_eq(input_open(&in, "/", &fault), -EISDIR);
	cr_assert_str_eq(fault.why, "it is a directory");
}

Test(input, a_file_may_be_opened_again_by_its_path)
{
	char path[] = "/tmp/sampled-unit-XXXXXX";
	struct fault fault;
	int fd = mkstemp(path);

	cr_assert_eq(write(fd, "plain", 5), 5);
	close(fd);
	cr_assert_eq(input_open(&in, path, &fault), 0);
	cr_assert(in.is_file);
	input_close(&in);
	unlink(path);
}
