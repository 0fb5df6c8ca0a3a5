/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "exporters/formats.h"
#include "tests/unit/read_back.h"
#include "tests/unit/written.h"

#define US UINT64_C(1000)

#ifdef HAVE_ZSTD
enum { PACKED = 1 };
#else
enum { PACKED = 0 };
#endif

/* A file in the making: numbers little-endian unless told otherwise. */
static struct buf made;
static bool big_endian;

static void put(uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buf_putc(&made, (char)(value >> 8 * (big_endian ? bytes - 1 - i : i)));
}

static void put_varint(uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		buf_putc(&made, (char)(0x80 | (value & 0x7f)));
	buf_putc(&made, (char)value);
}

static void put_record(uint64_t tid, uint32_t interpreter, unsigned kind)
{
	put(tid, 8);
	put(interpreter, 4);
	put(kind, 1);
}

static void put_numbers(const char *numbers)
{
	for (char *end; *numbers; numbers = *end ? end + 1 : end)
		put_varint(strtoull(numbers, &end, 10));
}

/* The four kinds of records; frames are named by their numbers, innermost first. */
static void full(uint64_t tid, const char *delta_status_depth_frames)
{
	put_record(tid, 0, 1);
	put_numbers(delta_status_depth_frames);
}

struct parts {
	uint64_t samples, interval_us;
	uint32_t threads, config, compression;
	bool stats;
};

static const struct {
	const char *file, *name;
	int32_t line;
} frames[] = {{"/srv/a.py", "main", 3},
              {"/srv/a.py", "work", 7},
              {"/srv/a.py", "work", 8},
              {"~", "<GC>", -1},
              {"/usr/_sync_coordinator.py", "run", 5}};

static const char *const strings[] = {"/srv/a.py", "main", "work", "~", "<GC>", "/usr/_sync_coordinator.py", "run"};

enum { FRAMES = sizeof(frames) / sizeof(frames[0]), STRINGS = sizeof(strings) / sizeof(strings[0]) };

static uint64_t string_number(const char *text)
{
	uint64_t i = 0;

	while (strcmp(strings[i], text) != 0)
		i++;
	return i;
}

static void put_tables(void)
{
	for (size_t i = 0; i < STRINGS; i++) {
		put_varint(strlen(strings[i]));
		buf_puts(&made, strings[i]);
	}
}

static void put_frames(void)
{
	for (size_t i = 0; i < FRAMES; i++) {
		int32_t line = frames[i].line;

		put_varint(string_number(frames[i].file));
		put_varint(string_number(frames[i].name));
		put_varint(line < 0 ? (uint64_t)(-line) * 2 - 1 : (uint64_t)line * 2);
		put_numbers("0 8 10");
		put(255, 1);
	}
}

static void put_double(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put(bits, 8);
}

/* Puts the records in `made` between a head and tables. */
static void wrap(const struct parts *parts)
{
	struct buf records = made;
	uint64_t strings_off, frames_off;

#ifdef HAVE_ZSTD
	if (parts->compression) {
		struct buf packed = {0};

		packed.bytes = ZSTD_compress(buf_reserve(&packed, ZSTD_compressBound(records.bytes)),
		                             ZSTD_compressBound(records.bytes), records.data, records.bytes, 5);
		buf_release(&records);
		records = packed;
	}
#endif
	made = (struct buf){0};
	strings_off = 64 + records.bytes;
	put_tables();
	frames_off = strings_off + made.bytes;
	made.bytes = 0;
	put(0x54414348, 4);
	put(1, 4);
	buf_add(&made, "\3\17\0\0", 4);
	put(5000000, 8);
	put(parts->interval_us ? parts->interval_us : 1000, 8);
	put(parts->samples, 8);
	put(parts->threads ? parts->threads : 1, 4);
	put(strings_off, 8);
	put(frames_off, 8);
	put(parts->compression, 4);
	put(parts->config ? parts->config : 0x49, 4);
	buf_add(&made, records.data, records.bytes);
	put_tables();
	put_frames();
	if (parts->stats) {
		put_double(1.5);
		put_double(998.5);
		put_double(12.5);
		put_double(2.25);
		put(3, 4);
		put(0, 4);
		buf_puts(&made, "TACHSTAT");
		put(1, 4);
		put(56, 4);
	}
	put(STRINGS, 4);
	put(FRAMES, 4);
	put(made.bytes + 24, 8);
	put(0, 8);
	put(0, 8);
	buf_release(&records);
}

static int read_made(size_t bytes, bool runs, struct profile **ret_profile, struct fault *fault)
{
	cr_assert(tachyon_detect((const unsigned char *)made.data, bytes) == (bytes >= 8));
	return read_as(ret_profile, "tachyon", made.data, bytes, &(struct builder_options){.runs = runs}, fault);
}

static struct profile *read_whole(void)
{
	struct profile *p;
	struct fault fault;

	cr_assert_eq(read_made(made.bytes, true, &p, &fault), 0, "%s", fault.why);
	return p;
}

static void expect(const char *lines, const struct parts *parts)
{
	struct profile *p;
	char *text;

	wrap(parts);
	p = read_whole();
	text = written(p, "collapsed", &(struct export_options){.collapsed_style = COLLAPSED_TACHYON});
	cr_assert_str_eq(text, lines, "%s", text);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES) + p->filtered, parts->samples);
	cr_assert_eq(profile_sum(p, VALUE_WALL), profile_sum(p, VALUE_SAMPLES) * 1000 * US);
	free(text);
	profile_free(p);
	buf_release(&made);
	made = (struct buf){0};
}

static void expect_fault(const char *why, const struct parts *parts)
{
	struct profile *p;
	struct fault fault;

	wrap(parts);
	cr_assert_eq(read_made(made.bytes, true, &p, &fault), -EPROTO);
	cr_assert_not_null(strstr(fault.why, why), "%s", fault.why);
	buf_release(&made);
	made = (struct buf){0};
}

/* main;work, then all ways to change it. */
static void put_all_kinds(void)
{
	full(7, "10 37 2 1 0"); /* work:7 in main:3; status: GIL, CPU unknown, main thread */
	put_record(7, 0, 0);
	put_numbers("3 10 37 10 37 10 36"); /* three more, the last without the GIL */
	put_record(7, 0, 2);
	put_numbers("10 37 2 1 3"); /* <GC> on top */
	put_record(7, 0, 3);
	put_numbers("10 37 2 1 2"); /* two go, work:8 comes */
	put_record(7, 0, 3);
	put_numbers("10 37 9 0"); /* more go than there are */
	put_record(7, 0, 2);
	put_numbers("10 37 0 2 4 0"); /* none stay; the coordinator is not shown */
	full(7, "10 37 3 1 4 0");     /* nor within */
}

static const char all_kinds[] = "tid:7;a.py:main:3;a.py:work:7 5\n"
				"tid:7 1\n"
				"tid:7;a.py:main:3 1\n"
				"tid:7;a.py:main:3;a.py:work:7;<GC> 1\n"
				"tid:7;a.py:main:3;a.py:work:8 1\n";

Test(tachyon, all_kinds_of_records)
{
	put_all_kinds();
	expect(all_kinds, &(struct parts){.samples = 9});
}

Test(tachyon, packed_with_zstd)
{
#ifndef HAVE_ZSTD
	cr_skip("built without zstd");
#endif
	put_all_kinds();
	expect(all_kinds, &(struct parts){.samples = 9, .compression = 1, .stats = true});
}

Test(tachyon, of_the_other_byte_order)
{
	big_endian = true;
	put_all_kinds();
	expect(all_kinds, &(struct parts){.samples = 9, .stats = true});
}

Test(tachyon, no_samples_at_all)
{
	expect("", &(struct parts){.samples = 0});
}

Test(tachyon, threads_have_stacks_of_their_own)
{
	full(7, "10 36 1 0");
	full(8, "10 36 2 1 0");
	put_record(7, 1, 1);
	put_numbers("10 36 1 1");
	put_record(7, 0, 2);
	put_numbers("10 36 1 1 2");
	put_record(8, 0, 0);
	put_numbers("1 10 36");
	expect("tid:8;a.py:main:3;a.py:work:7 2\n"
	       "tid:7;a.py:main:3 1\n"
	       "tid:7;a.py:main:3;a.py:work:8 1\n"
	       "tid:7;a.py:work:7 1\n",
	       &(struct parts){.samples = 5, .threads = 3});
}

/* In a mode other than wall an empty stack is a thread that was not wanted. */
Test(tachyon, modes)
{
	struct profile *p;

	put_record(7, 0, 0);
	put_numbers("2 10 32 10 32");
	full(7, "10 34 1 0");
	wrap(&(struct parts){.samples = 3, .config = 0x4a});
	p = read_whole();
	cr_assert_str_eq(p->mode, "cpu");
	cr_assert_eq(p->filtered, 2);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 1);
	cr_assert_eq(profile_sum(p, VALUE_RUNNABLE), 1000 * US);
	profile_free(p);
}

Test(tachyon, what_is_said_of_the_whole)
{
	struct profile *p;
	uint32_t i;

	full(7, "10 37 1 0"); /* main thread: GIL */
	full(9, "10 2 1 0");  /* on CPU */
	put_record(9, 0, 0);
	put_numbers("3 10 8 10 0 10 20"); /* waits for the GIL; idle; unknown, handles an exception */
	wrap(&(struct parts){.samples = 5, .threads = 2, .stats = true});
	p = read_whole();
	cr_assert(p->imported);
	cr_assert(p->has_runs);
	cr_assert_eq(p->interval_ns, 1000 * US);
	cr_assert_eq(p->t_start_ns, 5000010 * US);
	cr_assert_eq(p->t_end_ns, 5000040 * US);
	cr_assert_eq(p->processes[0].pid, 7, "the main thread's number");
	cr_assert_eq(p->processes[0].version, 0x030f00);
	cr_assert(p->threads[0].is_main);
	cr_assert_not(p->threads[1].is_main);
	cr_assert_eq(profile_sum(p, VALUE_GIL), 1000 * US);
	cr_assert_eq(profile_sum(p, VALUE_RUNNABLE), 1000 * US);
	cr_assert_eq(profile_sum(p, VALUE_GIL_WAIT), 1000 * US);
	cr_assert_eq(profile_sum(p, VALUE_IDLE), 1000 * US);
	cr_assert_eq(profile_sum(p, VALUE_UNKNOWN), 2000 * US);
	cr_assert_eq(profile_sum(p, VALUE_EXCEPTION), 1000 * US);
	for (i = 0; i < p->note_count && strcmp(p->notes[i].key, "missed_percent") != 0; i++)
		;
	cr_assert_float_eq(p->notes[i].number, 2.25, 0);
	profile_free(p);
}

/* Alike and close to each other: one run. A gap, another status or another stack: another run. */
Test(tachyon, runs)
{
	struct profile *p;

	full(7, "10 1 1 0");
	put_record(7, 0, 0);
	put_numbers("4 1000 1 2000 1 2001 1 500 3");
	wrap(&(struct parts){.samples = 5});
	p = read_whole();
	cr_assert_eq(p->threads[0].run_count, 3);
	cr_assert_eq(p->threads[0].runs[0].count, 3);
	cr_assert_eq(p->threads[0].runs[0].span_ns, 3000 * US);
	cr_assert_eq(p->threads[0].runs[0].weight_ns, 3000 * US);
	cr_assert_eq(p->threads[0].runs[0].t_first_ns, 5000010 * US);
	cr_assert_eq(p->threads[0].runs[1].count, 1);
	cr_assert_eq(p->threads[0].runs[2].count, 1);
	profile_free(p);
}

Test(tachyon, stacks_as_deep_as_the_writer_keeps_are_counted)
{
	struct profile *p;

	for (unsigned depth = 255; depth < 258; depth++) {
		put_record(7, 0, 1);
		put_numbers("10 37");
		put_varint(depth);
		for (unsigned i = 0; i < depth; i++)
			put_varint(1);
	}
	wrap(&(struct parts){.samples = 3});
	p = read_whole();
	cr_assert_str_eq(p->notes[p->note_count - 1].key, "cut_stacks");
	cr_assert_float_eq(p->notes[p->note_count - 1].number, 1, 0);
	cr_assert_eq(p->threads[0].depth_max, 257);
	profile_free(p);
}

Test(tachyon, malformed_records)
{
	full(7, "10 37 1 5");
	expect_fault("a frame is not in the table (record 1, byte 17 ", &(struct parts){.samples = 1});
	full(7, "10 37 20000 0");
	expect_fault("deeper than 16,384", &(struct parts){.samples = 1});
	put_record(7, 0, 2);
	put_numbers("10 37 1 0");
	expect_fault("shares more frames", &(struct parts){.samples = 1});
	put_record(7, 0, 4);
	expect_fault("no known kind", &(struct parts){.samples = 1});
	put_record(7, 0, 0);
	put_numbers("0");
	expect_fault("a repetition is malformed", &(struct parts){.samples = 1});
	put_record(7, 0, 0);
	put_numbers("4294967295 1 1");
	expect_fault("a sample is cut off", &(struct parts){.samples = 9});
	full(7, "10 37 1 0");
	expect_fault("it holds 1 samples, and its head says 2", &(struct parts){.samples = 2});
	full(7, "10 37 1 0");
	full(7, "10 37 1 0");
	expect_fault("more samples than its head says", &(struct parts){.samples = 1});
	full(7, "10 37 1 0");
	full(8, "10 37 1 0");
	expect_fault("more threads than its head says", &(struct parts){.samples = 2});
	full(7, "18446744073709551615 37 1 0"); /* back in time: that is nothing wrong */
	expect("tid:7;a.py:main:3 1\n", &(struct parts){.samples = 1});
	full(7, "9223372036854775000 37 1 0");
	expect_fault("the time of a sample makes no sense", &(struct parts){.samples = 1});
	put_record(7, 0, 1);
	buf_add(&made, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 12);
	expect_fault("a sample is cut off", &(struct parts){.samples = 1});
	expect_fault("an interval of", &(struct parts){.samples = 0, .interval_us = UINT64_MAX});
	expect_fault("compression 2", &(struct parts){.samples = 0, .compression = 2});
}

Test(tachyon, cut_off_anywhere_is_a_fault)
{
	struct profile *p;
	struct fault fault;

	put_all_kinds();
	wrap(&(struct parts){.samples = 9, .compression = PACKED, .stats = true});
	for (size_t bytes = 0; bytes < made.bytes; bytes++) {
		cr_assert_eq(read_made(bytes, true, &p, &fault), -EPROTO, "%zu", bytes);
		cr_assert_not_null(strstr(fault.why, "cut off"), "%s", fault.why);
	}
}

/* Each byte changed in several ways: an error that says something, or a profile that holds together. */
Test(tachyon, every_byte_flipped)
{
	static const unsigned char flips[] = {0x01, 0x80, 0xff, 0x7f, 0x10};
	struct profile *p;
	struct fault fault;

	for (uint32_t compression = 0; compression <= PACKED; compression++) {
		put_all_kinds();
		wrap(&(struct parts){.samples = 9, .compression = compression, .stats = true});
		for (size_t at = 0; at < made.bytes; at++)
			for (size_t i = 0; i < sizeof(flips); i++) {
				int err;

				if (at < 4)
					continue; /* not detected then */
				made.data[at] = (char)(made.data[at] ^ flips[i]);
				err = read_made(made.bytes, true, &p, &fault);
				cr_assert(err == 0 || fault.why[0] != '\0', "byte %zu", at);
				if (!err)
					cr_assert_eq(profile_sum(p, VALUE_SAMPLES) + p->filtered, 9);
				profile_free(p);
				made.data[at] = (char)(made.data[at] ^ flips[i]);
			}
		buf_release(&made);
		made = (struct buf){0};
	}
}

/* By name as by standard input. */
Test(tachyon, a_regular_file_is_read_in_place)
{
	char path[] = "/tmp/sampled-unit-XXXXXX";
	static struct input in;
	struct builder *b;
	struct fault fault;
	int fd = mkstemp(path);

	put_all_kinds();
	wrap(&(struct parts){.samples = 9});
	cr_assert_eq(write(fd, made.data, made.bytes), made.bytes);
	close(fd);
	cr_assert_eq(input_open(&in, path, &fault), 0);
	cr_assert_eq(builder_new(&b, &(struct builder_options){0}), 0);
	cr_assert_str_eq(format_by_content(&in)->name, "tachyon");
	cr_assert_eq(tachyon_read(&in, b, &fault), 0);
	cr_assert_eq(builder_profile(b)->process_count, 1);
	builder_free(b);
	input_close(&in);
	unlink(path);
}

/* Each thread's stack is kept: what a small packed file can ask for is bounded. */
Test(tachyon, stacks_of_all_threads_are_bounded, .timeout = 120)
{
	const struct builder_options options = {.memory_max_bytes = 1 << 16};
	const uint32_t threads = 1025;
	struct profile *profile;
	struct fault fault;

	made.bytes = 0;
	for (uint32_t i = 0; i < threads; i++) {
		full(i + 1, "1 1 16384");
		for (int frame = 0; frame < 16384; frame++)
			buf_putc(&made, 0);
	}
	wrap(&(struct parts){.samples = threads, .interval_us = 1000, .threads = threads, .config = 1});
	cr_assert_eq(read_as(&profile, "tachyon", made.data, made.bytes, &options, &fault), -EPROTO);
	cr_assert(strstr(fault.why, "stacks of all threads"), "%s", fault.why);
	buf_release(&made);
}
