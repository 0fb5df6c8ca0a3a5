/* SPDX-License-Identifier: Apache-2.0 */
/* Records that make no sense: left out, counted, and without effect on the rest. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "tests/unit/stream.h"

static struct stream s;
static struct aggregator *aggregator;

static const struct frame stack[] = {
	{.kind = FRAME_PYTHON, .id = 1, .where = 5},
	{.kind = FRAME_PYTHON, .id = 2, .where = 12},
};

static void setup(void)
{
	const struct aggregator_options options = {.idle = true};

	stream_target(&s, 1, 100, "python3 app.py");
	stream_symbol(&s, 1, "main", "app.py", 1);
	stream_symbol(&s, 2, "work", "lib.py", 10);
	stream_thread(&s, 1, 1, 100, THREAD_MAIN, "MainThread");
	stream_stack(&s, 1, 0, 1, stack, 2);
	cr_assert_eq(aggregator_new(&aggregator, &options), 0);
	cr_assert_eq(stream_feed(&s, aggregator), 0);
}

static void teardown(void)
{
	aggregator_free(aggregator);
	stream_release(&s);
}

TestSuite(feed, .init = setup, .fini = teardown);

/* A stack record of thread 1 with room for four frames, all naming symbol 1. */
union stack_record {
	struct rec_stack stack;
	unsigned char room[sizeof(struct rec_stack) + 4 * sizeof(struct frame)];
};

static union stack_record stack_record(uint32_t shared, uint32_t depth)
{
	uint32_t own = depth - shared;
	union stack_record record = {.room = {0}};

	record.stack.head.bytes = (uint32_t)(sizeof(struct rec_stack) + own * sizeof(struct frame));
	record.stack.head.type = REC_STACK;
	record.stack.thread = 1;
	record.stack.count = 2;
	record.stack.t_first_ns = NS_PER_S;
	record.stack.t_last_ns = NS_PER_S;
	record.stack.depth = depth;
	record.stack.shared = shared;
	for (uint32_t i = 0; i < 4; i++)
		record.stack.frames[i] = stream_frame(1, i);
	return record;
}

static int feed(const void *record)
{
	return aggregator_feed(aggregator, record);
}

/* The profile must hold so many samples in trees, in malformed records, and so many malformed records. */
static void check(uint64_t samples, uint64_t malformed_samples, uint64_t malformed_records)
{
	struct profile *profile;

	cr_assert_eq(aggregator_profile(aggregator, &profile), 0);
	cr_assert_eq(profile_sum(profile, VALUE_SAMPLES), samples);
	cr_assert_eq(profile->malformed_samples, malformed_samples);
	cr_assert_eq(profile->malformed_records, malformed_records);
	profile_free(profile);
}

Test(feed, the_stack_record_of_these_tests_is_right_as_it_is)
{
	union stack_record record = stack_record(2, 4);

	cr_assert_eq(feed(&record), 0);
	record = stack_record(0, 0);
	cr_assert_eq(feed(&record), 0);
	check(5, 0, 0);
}

Test(feed, heads)
{
	struct rec_head head = {.bytes = 8, .type = 0};

	cr_assert_eq(feed(&head), -EPROTO);
	head = (struct rec_head){.bytes = 8, .type = 4711};
	cr_assert_eq(feed(&head), -EPROTO);
	head = (struct rec_head){.bytes = 8, .type = REC_MAPPING};
	cr_assert_eq(feed(&head), -EPROTO);
	for (uint32_t type = REC_SYMBOL; type <= REC_MARK; type++) {
		const uint32_t lengths[] = {0, 4, 7, 8, 12, REC_BYTES_MAX + 8, UINT32_MAX};

		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			head = (struct rec_head){.bytes = lengths[i], .type = type};
			cr_assert_eq(feed(&head), -EPROTO, "type %u, %u bytes", type, lengths[i]);
		}
	}
	check(1, 0, 3 + 8 * 7);
}

Test(feed, stacks)
{
	union stack_record record = stack_record(0, 2);

	record.stack.thread = 9;
	cr_assert_eq(feed(&record), -EPROTO, "no such thread");
	record = stack_record(0, 2);
	record.stack.head.bytes += 8;
	cr_assert_eq(feed(&record), -EPROTO, "more frames than its length");
	record = stack_record(0, 2);
	record.stack.depth = 3;
	cr_assert_eq(feed(&record), -EPROTO, "fewer frames than its length");
	record = stack_record(0, 2);
	record.stack.depth = UINT32_MAX;
	cr_assert_eq(feed(&record), -EPROTO, "a depth out of this world");
	record = stack_record(0, 2);
	record.stack.count = 0;
	cr_assert_eq(feed(&record), -EPROTO, "no sample");
	record = stack_record(0, 2);
	record.stack.t_last_ns--;
	cr_assert_eq(feed(&record), -EPROTO, "ends before it begins");
	record = stack_record(0, 2);
	record.stack.frames[1].id = 77;
	cr_assert_eq(feed(&record), -EPROTO, "no such symbol");
	record = stack_record(0, 2);
	record.stack.frames[0].kind = FRAME_NATIVE;
	cr_assert_eq(feed(&record), -EPROTO, "native frames are not there yet");
	check(1, 14, 8);
}

Test(feed, shared_frames_must_be_known)
{
	union stack_record record = stack_record(3, 4);

	cr_assert_eq(feed(&record), -EPROTO, "the thread's stack has two");
	record = stack_record(1, 2);
	cr_assert_eq(feed(&record), -EPROTO, "what it shares is that of the record left out");
	record = stack_record(0, 3);
	record.stack.frames[1].id = 77;
	cr_assert_eq(feed(&record), -EPROTO);
	record = stack_record(2, 3);
	cr_assert_eq(feed(&record), -EPROTO, "the second frame was the unknown one");
	record = stack_record(0, 2);
	cr_assert_eq(feed(&record), 0);
	record = stack_record(1, 2);
	cr_assert_eq(feed(&record), 0);
	record = stack_record(3, 2);
	record.stack.head.bytes = sizeof(struct rec_stack);
	cr_assert_eq(feed(&record), -EPROTO, "shares more than it has");
	check(5, 10, 5);
}

Test(feed, ids_are_defined_once_and_before_use)
{
	struct stream more = {0};

	stream_symbol(&more, 1, "again", "x.py", 1);
	stream_symbol(&more, 0, "zero", "x.py", 1);
	stream_symbol(&more, 1U << 30, "too large", "x.py", 1);
	stream_forget(&more, 55);
	stream_thread(&more, 0, 1, 100, 0, NULL);
	stream_thread(&more, 7, 66, 100, 0, NULL);
	stream_thread_of(&more, 1, 1, 3, 100, 0, "moved to another interpreter");
	stream_target(&more, 1, 100, "again");
	stream_target(&more, 0, 100, "zero");
	stream_target_event(&more, 8, TARGET_EXITED, 100);
	stream_facts(&more, 66, NULL);
	for (size_t at = 0; at < more.bytes.bytes;)
		cr_assert_eq(feed(stream_next(&more, &at)), -EPROTO);
	stream_release(&more);
	check(1, 0, 11);
}

Test(feed, texts_must_fit_and_hold_no_nul)
{
	struct stream more = {0};
	struct rec_symbol *symbol;
	struct rec_thread *thread;

	stream_symbol(&more, 5, "name", "file", 1);
	symbol = (struct rec_symbol *)more.bytes.data;
	symbol->name_bytes = UINT32_MAX;
	cr_assert_eq(feed(symbol), -EPROTO);
	symbol->name_bytes = 4;
	symbol->file_bytes = 5;
	cr_assert_eq(feed(symbol), -EPROTO);
	symbol->file_bytes = 4;
	symbol->text[2] = '\0';
	cr_assert_eq(feed(symbol), -EPROTO);
	symbol->text[2] = 'm';
	cr_assert_eq(feed(symbol), 0);
	more.bytes.bytes = 0;
	stream_thread(&more, 5, 1, 105, 0, "name");
	thread = (struct rec_thread *)more.bytes.data;
	thread->name_bytes = UINT32_MAX - 40;
	cr_assert_eq(feed(thread), -EPROTO);
	thread->name_bytes = 4;
	cr_assert_eq(feed(thread), 0);
	stream_release(&more);
	check(1, 0, 4);
}

/* Bytes of good records changed at random: whatever becomes of them, every sample is accounted for or its record was refused,
 * and (under sanitizers) no byte outside is touched. */
Test(feed, survives_damage)
{
	struct stream more = {0};

	stream_special(&more, 10, "<GC>");
	stream_thread(&more, 10, 1, 110, 0, "a name");
	stream_stack(&more, 10, STATUS_RUNNABLE, 3, stack, 2);
	stream_facts(&more, 1, NULL);
	stream_mark(&more, 1);
	stream_target_event(&more, 1, TARGET_EXITED, 100);
	for (uint64_t round = 0; round < 200000; round++) {
		size_t at = 0;

		for (const struct rec_head *record; (record = stream_next(&more, &at));) {
			unsigned char *copy = malloc(record->bytes);
			uint64_t random = hash_u64(round * 64 + at);

			memcpy(copy, record, record->bytes);
			for (unsigned i = 0; i <= random % 3; i++, random = hash_u64(random)) {
				size_t where = 4 + (random >> 8) % (record->bytes - 4); /* the length stays: it is the memory's */

				copy[where] = random & 1 ? (unsigned char)(random >> 32) : 255;
			}
			feed(copy);
			free(copy);
		}
	}
	stream_release(&more);
}
