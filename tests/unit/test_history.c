/* SPDX-License-Identifier: Apache-2.0 */
/* The history: sums through windows are exact, whatever was merged on the way. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "aggregator/history.h"
#include "base/clock.h"
#include "tests/unit/stream.h"

static const struct frame stack[] = {
	{.kind = FRAME_PYTHON, .id = 1, .where = 5},
	{.kind = FRAME_PYTHON, .id = 2, .where = 12},
	{.kind = FRAME_PYTHON, .id = 2, .where = 13},
};

static struct history *history;
static struct stream s;
static size_t fed;

static void setup(void)
{
	cr_assert_eq(history_new(&history, &(struct history_options){0}), 0);
	s.interval_ns = NS_PER_US; /* so that any count fits between two slices */
	stream_target(&s, 1, 100, "python3 app.py");
	stream_target(&s, 2, 200, "python3 other.py");
	stream_symbol(&s, 1, "main", "app.py", 1);
	stream_symbol(&s, 2, "work", "lib.py", 10);
	stream_thread(&s, 1, 1, 100, THREAD_MAIN, "MainThread");
	stream_thread(&s, 2, 1, 101, 0, "Worker");
	stream_thread(&s, 3, 2, 200, THREAD_MAIN, "MainThread");
}

static void teardown(void)
{
	history_free(history);
	stream_release(&s);
}

TestSuite(history, .init = setup, .fini = teardown);

static void feed(void)
{
	const struct rec_head *record;

	while ((record = stream_next(&s, &fed)))
		cr_assert_eq(history_feed(history, record), 0, "record of type %u", record->type);
}

/* A slice of ten seconds ends. */
static void close_slice(void)
{
	stream_facts(&s, 1, NULL);
	stream_facts(&s, 2, NULL);
	feed();
	cr_assert_eq(history_close_slice(history, s.now_ns), 0);
}

static struct profile *profile_of(struct history_query query)
{
	struct profile *profile;

	cr_assert_eq(history_profile(history, &query, &profile), 0);
	cr_assert_eq(profile_sum(profile, VALUE_SAMPLES) + profile->out_of_memory + profile->malformed_samples,
	             ({
			     struct rec_facts facts;

			     profile_facts(profile, &facts);
			     facts.samples;
		     }));
	return profile;
}

static uint64_t samples_of(struct history_query query)
{
	struct profile *profile = profile_of(query);
	uint64_t samples = profile_sum(profile, VALUE_SAMPLES), values[VALUE_COUNT];

	cr_assert_eq(history_sums(history, &query, values), 0);
	for (int v = 0; v < VALUE_COUNT; v++)
		cr_assert_eq(values[v], profile_sum(profile, (enum value_index)v));
	profile_free(profile);
	return samples;
}

Test(history, windows_are_of_whole_slices)
{
	for (int i = 0; i < 10; i++) {
		s.now_ns += 10 * NS_PER_S;
		stream_stack(&s, 1, STATUS_ON_CPU | STATUS_GIL, 1u << i, stack, 2);
		stream_stack(&s, 3, STATUS_IDLE, 1u << (10 + i), stack, 1);
		if (i < 9)
			close_slice();
	}
	feed();
	cr_assert_eq(samples_of((struct history_query){0}), (1u << 20) - 1);
	cr_assert_eq(samples_of((struct history_query){.pid = 100}), (1u << 10) - 1);
	cr_assert_eq(samples_of((struct history_query){.pid = 200, .start_time = 20000}), ((1u << 10) - 1) << 10);
	cr_assert_eq(samples_of((struct history_query){.pid = 200, .start_time = 1}), 0);
	cr_assert_eq(samples_of((struct history_query){.by_group = true, .group = 1}), 0);
	/* The slices are 1 s – 11 s, 11 s – 21 s, … */
	cr_assert_eq(samples_of((struct history_query){.pid = 100, .from_ns = 21 * NS_PER_S, .to_ns = 31 * NS_PER_S}), 4);
	cr_assert_eq(samples_of((struct history_query){.pid = 100, .from_ns = 30 * NS_PER_S, .to_ns = 32 * NS_PER_S}), 4 + 8);
	cr_assert_eq(samples_of((struct history_query){.pid = 100, .from_ns = 91 * NS_PER_S}), 512);
	cr_assert_eq(samples_of((struct history_query){.pid = 100, .from_ns = 200 * NS_PER_S}), 0);
	cr_assert_eq(samples_of((struct history_query){.merge = true, .to_ns = 12 * NS_PER_S}), 3 + (3 << 10));
}
