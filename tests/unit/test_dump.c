/* SPDX-License-Identifier: Apache-2.0 */
/* A dump is made of records: one that makes no sense costs its own thread's stack and nothing else. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/dump.h"
#include "tests/unit/stream.h"

static struct stream s;
static struct dump dump;

static const struct frame stack[] = {
	{.kind = FRAME_PYTHON, .id = 1, .where = 5},
	{.kind = FRAME_PYTHON, .id = 2, .where = 12},
};

static void setup(void)
{
	stream_target(&s, 1, 100, "python3 app.py");
	stream_symbol(&s, 1, "main", "app.py", 1);
	stream_symbol(&s, 2, "work", "lib.py", 10);
	stream_thread(&s, 1, 1, 100, THREAD_MAIN, "MainThread");
	stream_thread(&s, 2, 1, 101, 0, "other");
	stream_stack(&s, 1, STATUS_IDLE, 1, stack, 2);
	stream_stack(&s, 2, STATUS_GIL, 1, stack, 2);
}

static void teardown(void)
{
	dump_release(&dump);
	stream_release(&s);
}

TestSuite(dump, .init = setup, .fini = teardown);

/* Takes in what was added to the stream since the last time. */
static void feed(size_t *at)
{
	const struct rec_head *record;

	while ((record = stream_next(&s, at)))
		cr_assert_eq(dump_feed(&dump, record), 0);
}

static const struct dump_thread *thread_of(uint32_t id)
{
	uint32_t i = 0;

	while (i < dump.thread_count && dump.threads[i].id != id)
		i++;
	cr_assert_lt(i, dump.thread_count, "no thread %u", id);
	return &dump.threads[i];
}

Test(dump, the_last_stack_of_a_thread_stands)
{
	size_t at = 0;

	stream_stack(&s, 1, STATUS_RUNNABLE, 1, stack, 1);
	feed(&at);
	cr_assert_eq(dump.thread_count, 2);
	cr_assert_eq(dump.left_out, 0);
	cr_assert_eq(thread_of(1)->depth, 1);
	cr_assert_eq(thread_of(1)->status, STATUS_RUNNABLE);
	cr_assert_eq(thread_of(2)->depth, 2);
	cr_assert_str_eq(dump.symbols[thread_of(2)->frames[1].id].name, "work");
}

Test(dump, two_that_hold_the_gil, .description = "were not read at one moment")
{
	size_t at = 0;

	feed(&at);
	cr_assert_eq(dump_gil_holders(&dump), 1);
	stream_stack(&s, 1, STATUS_RUNNABLE | STATUS_GIL, 1, stack, 2);
	feed(&at);
	cr_assert_eq(dump_gil_holders(&dump), 2);
	dump.threads[1].interpreter = 7;
	cr_assert_eq(dump_gil_holders(&dump), 1, "each interpreter may have its own");
}

Test(dump, native_frames_are_places_in_mappings)
{
	const struct frame native[] = {stack[0], stream_native(3, 0x1234)};
	struct rec_mapping odd = {.head = {.bytes = sizeof(odd), .type = REC_MAPPING}, .id = 4, .path_bytes = 9};
	size_t at = 0;

	stream_mapping(&s, 3, MAPPING_SYSTEM, "/usr/lib/libc.so.6", "ab12");
	stream_stack(&s, 1, STATUS_RUNNABLE, 1, native, 2);
	stream_raw(&s, &odd.head);
	feed(&at);
	cr_assert_eq(dump.left_out, 1);
	cr_assert_eq(thread_of(1)->frames[1].kind, FRAME_NATIVE);
	cr_assert_eq(thread_of(1)->frames[1].where, 0x1234);
	cr_assert_str_eq(dump.symbols[3].name, "libc.so.6");
	cr_assert_str_eq(dump.symbols[3].module, "/usr/lib/libc.so.6");
	cr_assert_str_eq(dump.symbols[3].build_id, "ab12");
	cr_assert_eq(dump.symbols[3].flags, MAPPING_SYSTEM);
}

Test(dump, an_odd_stack_costs_its_own_thread_only)
{
	const struct rec_stack odd[] = {
		{.head = {.bytes = sizeof(odd[0]), .type = REC_STACK}, .thread = 1, .depth = 3, .shared = 3},
		{.head = {.bytes = sizeof(odd[0]), .type = REC_STACK}, .thread = 1, .depth = 1, .shared = 2},
		{.head = {.bytes = sizeof(odd[0]), .type = REC_STACK}, .thread = 1, .depth = UINT32_MAX},
		{.head = {.bytes = sizeof(odd[0]), .type = REC_STACK}, .thread = 9, .depth = 0},
	};
	struct rec_stack sharing = {.head = {.bytes = sizeof(sharing), .type = REC_STACK}, .thread = 1, .depth = 1, .shared = 1};
	size_t at = 0;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		feed(&at);
		cr_assert_eq(dump_feed(&dump, &odd[i].head), 0);
		cr_assert_eq(dump.left_out, i + 1);
		if (odd[i].thread == 1) {
			cr_assert_not(thread_of(1)->sampled);
			cr_assert_eq(thread_of(1)->depth, 0);
		}
		cr_assert(thread_of(2)->sampled);
		cr_assert_eq(thread_of(2)->depth, 2);
	}
	cr_assert_eq(dump_feed(&dump, &sharing.head), 0);
	cr_assert_not(thread_of(1)->sampled, "nothing is known that it could share");
	sharing.depth = sharing.shared = 0;
	cr_assert_eq(dump_feed(&dump, &sharing.head), 0);
	cr_assert(thread_of(1)->sampled, "a stack that is whole by itself is taken again");
}

Test(dump, lengths_that_leave_the_record_are_left_out)
{
	const struct rec_symbol symbols[] = {
		{.head = {.bytes = sizeof(symbols[0]), .type = REC_SYMBOL}, .id = 1, .name_bytes = 1},
		{.head = {.bytes = sizeof(symbols[0]), .type = REC_SYMBOL}, .id = 1, .name_bytes = UINT32_MAX, .file_bytes = 2},
		{.head = {.bytes = sizeof(symbols[0]), .type = REC_SYMBOL}, .id = UINT32_MAX},
		{.head = {.bytes = sizeof(symbols[0].head), .type = REC_SYMBOL}},
	};
	const struct rec_thread thread = {.head = {.bytes = sizeof(thread), .type = REC_THREAD}, .id = 1, .name_bytes = 1};
	const struct rec_head cut[] = {{.bytes = sizeof(cut[0]), .type = REC_THREAD},
	                               {.bytes = sizeof(cut[0]), .type = REC_STACK},
	                               {.bytes = sizeof(cut[0]), .type = REC_FACTS}};
	size_t at = 0;

	feed(&at);
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		cr_assert_eq(dump_feed(&dump, &symbols[i].head), 0);
	cr_assert_eq(dump_feed(&dump, &thread.head), 0);
	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++)
		cr_assert_eq(dump_feed(&dump, &cut[i]), 0);
	cr_assert_eq(dump.left_out, 8);
	cr_assert_str_eq(dump.symbols[1].name, "main");
	cr_assert_str_eq(thread_of(1)->name, "MainThread");
}
