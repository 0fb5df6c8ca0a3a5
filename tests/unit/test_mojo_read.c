/* SPDX-License-Identifier: Apache-2.0 */
/* Austin's binary files, byte by byte: each version's fields, and what version 4 repeats. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "tests/unit/read_back.h"

static struct buf file;

static void put_number(int64_t number)
{
	uint64_t left = (uint64_t)(number < 0 ? -number : number);
	unsigned char byte = (unsigned char)((left & 0x3f) | (number < 0 ? 0x40 : 0));

	for (left >>= 6;; left >>= 7) {
		buf_putc(&file, (char)(byte | (left ? 0x80 : 0)));
		if (!left)
			return;
		byte = left & 0x7f;
	}
}

static void put_text(const char *text)
{
	buf_add(&file, text, strlen(text) + 1);
}

static void begin(int version, const char *mode)
{
	file.bytes = 0;
	buf_puts(&file, "MOJ");
	put_number(version);
	buf_putc(&file, 1);
	put_text("mode");
	put_text(mode);
}

static void stack(int version, int pid, const char *thread)
{
	buf_putc(&file, 2);
	put_number(pid);
	if (version >= 3)
		put_number(0);
	put_text(thread);
}

static void string(int64_t key, const char *text)
{
	buf_putc(&file, 11);
	put_number(key);
	put_text(text);
}

static void frame(int version, int64_t key, int64_t file_key, int64_t name, int line)
{
	buf_putc(&file, 3);
	put_number(key);
	put_number(file_key);
	put_number(name);
	put_number(line);
	for (int i = 0; version >= 2 && i < 3; i++)
		put_number(i);
}

static void event(int kind, int64_t number)
{
	buf_putc(&file, (char)kind);
	put_number(number);
}

/* main > work, 300 µs; then main alone, 50 µs. */
static void two_samples(int version)
{
	begin(version, "wall");
	stack(version, 70, "46");
	string(INT64_C(1) << 40, "a.py");
	string((INT64_C(1) << 40) + (INT64_C(1) << 33), "main"); /* keys are addresses */
	string(5, "work");
	frame(version, 1, INT64_C(1) << 40, (INT64_C(1) << 40) + (INT64_C(1) << 33), 3);
	event(5, 1);
	frame(version, 2, INT64_C(1) << 40, 5, 7);
	event(5, 2);
	event(9, 300);
	stack(version, 70, "46");
	event(5, 1);
	event(9, 50);
}

static struct profile *read_file(void)
{
	struct profile *p;
	struct fault fault = {0};

	cr_assert_eq(read_back(&p, "austin-mojo", file.data, file.bytes, NULL, &fault), 0, "%s", fault.why);
	return p;
}

Test(mojo_read, each_version)
{
	for (int version = 1; version <= 4; version++) {
		struct profile *p;

		two_samples(version);
		p = read_file();
		cr_assert_eq(p->processes[0].pid, 70);
		cr_assert_eq(p->threads[0].tid, 0x46);
		cr_assert_eq(p->threads[0].node_count, 3);
		cr_assert_str_eq(p->symbols[p->threads[0].nodes[2].symbol].name, "work");
		cr_assert_eq(p->threads[0].nodes[2].line, 7);
		cr_assert_eq(p->threads[0].nodes[2].self[VALUE_WALL], 300000);
		cr_assert_eq(p->threads[0].nodes[1].self[VALUE_WALL], 50000);
		cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 2);
		profile_free(p);
	}
}

Test(mojo_read, version_4_repeats_and_tells_of_tasks)
{
	struct profile *p;

	two_samples(4);
	stack(4, 70, "46");
	string(6, "libc.so");
	string(7, "read");
	frame(4, 3, 6, 7, 0);
	event(5, 3);
	buf_putc(&file, 13); /* main, and read above it */
	event(15, 1);        /* a task waits for another */
	put_number(2);
	event(14, 1); /* a task's stack, of one frame, which is none of the sample's */
	put_number(0);
	put_number(1);
	event(5, 2);
	event(9, 1000);
	stack(4, 70, "46");
	buf_putc(&file, 13); /* main: native frames do not repeat */
	event(9, 7);
	p = read_file();
	cr_assert_eq(p->threads[0].node_count, 4);
	cr_assert_eq(p->threads[0].nodes[3].parent, 1);
	cr_assert_eq(p->threads[0].nodes[3].self[VALUE_WALL], 1000000);
	cr_assert_eq(p->threads[0].nodes[1].self[VALUE_WALL], 57000);
	cr_assert_eq(note_of(p, "task_events"), 2);
	profile_free(p);
}

Test(mojo_read, gc_idle_kernel_and_memory)
{
	struct profile *p;

	two_samples(3);
	stack(3, 70, "worker");
	event(5, 1);
	buf_putc(&file, 6);
	put_text("do_sys_open");
	buf_putc(&file, 8);
	event(9, 10);
	stack(3, 70, "worker");
	event(5, 1);
	buf_putc(&file, 7);
	event(9, 20);
	p = read_file();
	cr_assert_str_eq(p->threads[1].name, "worker");
	cr_assert_eq(profile_sum(p, VALUE_IDLE), 10000);
	cr_assert_str_eq(p->symbols[p->threads[1].nodes[2].symbol].name, "do_sys_open");
	cr_assert_str_eq(p->symbols[p->threads[1].nodes[3].symbol].name, "<GC>");
	profile_free(p);

	begin(3, "memory");
	stack(3, 1, "1");
	event(10, 4096);
	stack(3, 1, "1");
	event(10, -4096); /* given back */
	p = read_file();
	cr_assert_str_eq(p->values[VALUE_WALL].unit, "bytes");
	cr_assert_eq(profile_sum(p, VALUE_WALL), 4096);
	profile_free(p);
}

Test(mojo_read, refused_and_damaged)
{
	struct profile *p;
	struct fault fault = {0};

	begin(5, "wall");
	cr_assert_eq(read_as(&p, "austin-mojo", file.data, file.bytes, NULL, &fault), -EPROTO);
	cr_assert(strstr(fault.why, "version 5"));
	begin(3, "wall");
	event(5, 1);
	cr_assert_eq(read_as(&p, "austin-mojo", file.data, file.bytes, NULL, &fault), -EPROTO);
	cr_assert(strstr(fault.why, "before the first stack"));
	two_samples(3);
	read_damaged("austin-mojo", file.data, file.bytes);
}
