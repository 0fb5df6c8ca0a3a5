/* SPDX-License-Identifier: Apache-2.0 */
/* The history: sums through windows are exact, whatever was merged on the way. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "aggregator/history.h"
#include "base/clock.h"
#include "exporters/facts.h"
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
	cr_assert_eq(profile_sum(profile, VALUE_SAMPLES) + profile->out_of_memory + profile->malformed_samples, ({
			     struct rec_facts facts;

			     profile_facts(profile, &facts);
			     facts.samples;
		     }));
	return profile;
}

static const char *text_of_fact(const struct facts *facts, const char *key)
{
	for (size_t i = 0; i < facts->count; i++)
		if (strcmp(facts->items[i].key, key) == 0)
			return facts->items[i].text;
	return "";
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
		stream_stack(&s, 1, STATUS_RUNNABLE | STATUS_GIL, 1u << i, stack, 2);
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
	cr_assert_eq(samples_of((struct history_query){.pid = 100, .from_ns = 21 * NS_PER_S, .to_ns = 31 * NS_PER_S}),
	             4);
	cr_assert_eq(samples_of((struct history_query){.pid = 100, .from_ns = 30 * NS_PER_S, .to_ns = 32 * NS_PER_S}),
	             4 + 8);
	cr_assert_eq(samples_of((struct history_query){.pid = 100, .from_ns = 91 * NS_PER_S}), 512);
	cr_assert_eq(samples_of((struct history_query){.pid = 100, .from_ns = 200 * NS_PER_S}), 0);
	cr_assert_eq(samples_of((struct history_query){.merge = true, .to_ns = 12 * NS_PER_S}), 3 + (3 << 10));
}

/* The first process was attached after the last facts of its slice, if any: it has samples, and no facts. */
Test(history, interval_of_a_process_that_has_facts)
{
	struct profile *p;
	struct facts facts;

	s.now_ns += NS_PER_S;
	stream_stack(&s, 1, STATUS_RUNNABLE, 3, stack, 2);
	stream_stack(&s, 3, STATUS_RUNNABLE, 2, stack, 1);
	feed();
	p = profile_of((struct history_query){0});
	facts_make(&facts, p);
	cr_assert_str_eq(text_of_fact(&facts, "asked_hz"), "unknown");
	profile_free(p);
	stream_facts(&s, 2, NULL);
	feed();
	p = profile_of((struct history_query){0});
	cr_assert_eq(p->process_count, 2);
	cr_assert_eq(p->processes[0].facts.interval_ns, 0);
	cr_assert_eq(p->interval_ns, s.interval_ns);
	profile_free(p);
}

static struct history_stats stats_now(void)
{
	struct history_stats stats;

	history_stats(history, &stats);
	return stats;
}

Test(history, a_parked_process_takes_some_ten_bytes_a_slice)
{
	uint64_t before = 0;

	for (uint32_t id = 4; id < 7; id++)
		stream_thread(&s, id, 2, 200 + id, 0, NULL);
	for (int i = 0; i < 110; i++) {
		s.now_ns += 10 * NS_PER_S;
		s.interval_ns = 20 * NS_PER_MS + (uint64_t)(i % 7) * 1000;
		for (uint32_t id = 3; id < 7; id++)
			stream_stack(&s, id, STATUS_IDLE, 490, stack, 2);
		close_slice();
		if (i == 9)
			before = stats_now().slice_bytes[HISTORY_FINE];
	}
	cr_assert_leq(stats_now().slice_bytes[HISTORY_FINE] - before, 1100, "%lu for 100 slices",
	              (unsigned long)(stats_now().slice_bytes[HISTORY_FINE] - before));
	cr_assert_eq(samples_of((struct history_query){.pid = 200}), UINT64_C(490) * 4 * 110);
}

Test(history, losses_belong_to_their_slices)
{
	uint64_t lost[LOSS_CAUSES] = {[LOSS_TORN] = 3, [LOSS_GONE] = 1};
	struct history_query second = {.from_ns = 12 * NS_PER_S};
	struct profile *profile;
	struct rec_facts facts;

	for (int i = 0; i < 2; i++) {
		s.now_ns += 10 * NS_PER_S;
		stream_stack(&s, 1, STATUS_RUNNABLE, 7, stack, 2);
		stream_facts(&s, 1, lost);
		feed();
		cr_assert_eq(history_close_slice(history, s.now_ns), 0);
		lost[LOSS_TORN] += 5;
	}
	profile = profile_of((struct history_query){0});
	profile_facts(profile, &facts);
	cr_assert_eq(facts.lost[LOSS_TORN], 8);
	cr_assert_eq(facts.attempts, 14 + 9);
	cr_assert_eq(profile->t_start_ns, NS_PER_S);
	cr_assert_eq(profile->t_end_ns, 21 * NS_PER_S);
	profile_free(profile);
	profile = profile_of(second);
	profile_facts(profile, &facts);
	cr_assert_eq(facts.lost[LOSS_TORN], 5);
	cr_assert_eq(facts.lost[LOSS_GONE], 0);
	cr_assert_eq(facts.attempts, 12);
	cr_assert_eq(profile->t_start_ns, 11 * NS_PER_S);
	profile_free(profile);
}

Test(history, shares_of_functions_are_inclusive)
{
	double share;

	s.now_ns += NS_PER_S;
	stream_stack(&s, 1, STATUS_RUNNABLE, 1, stack, 1);
	stream_stack(&s, 1, STATUS_RUNNABLE, 3, stack, 3); /* work() calls itself: counted once */
	feed();
	cr_assert_eq(history_function_share(history, &(struct history_query){0}, "work", &share), 0);
	cr_assert_float_eq(share, 0.75, 1e-9);
	cr_assert_eq(history_function_share(history, &(struct history_query){0}, "main", &share), 0);
	cr_assert_float_eq(share, 1, 1e-9);
	cr_assert_eq(history_function_share(history, &(struct history_query){0}, "absent", &share), 0);
	cr_assert_float_eq(share, 0, 1e-9);
}

Test(history, ended_targets_stay_and_the_open_slice_is_seen)
{
	struct profile *profile;

	s.now_ns += NS_PER_S;
	stream_stack(&s, 1, STATUS_RUNNABLE, 5, stack, 2);
	stream_facts(&s, 1, NULL);
	stream_target_event(&s, 1, TARGET_EXITED, 100);
	feed();
	cr_assert_eq(samples_of((struct history_query){.pid = 100}), 5);
	cr_assert_eq(history_close_slice(history, s.now_ns), 0);
	for (int i = 0; i < 3; i++) {
		s.now_ns += 10 * NS_PER_S;
		cr_assert_eq(history_close_slice(history, s.now_ns), 0);
	}
	profile = profile_of((struct history_query){.pid = 100});
	cr_assert_eq(profile->process_count, 1);
	cr_assert(profile->processes[0].ended);
	cr_assert_str_eq(profile->processes[0].name, "python3 app.py");
	cr_assert_eq(profile->thread_count, 1);
	cr_assert_str_eq(profile->threads[0].name, "MainThread");
	profile_free(profile);
	cr_assert_eq(stats_now().targets_ended, 1);
	stream_stack(&s, 1, STATUS_RUNNABLE, 5, stack, 2); /* of a thread that is no more */
	cr_assert_eq(history_feed(history, stream_next(&s, &fed)), -EPROTO);
	cr_assert_eq(stats_now().malformed_samples, 5);
}

Test(history, records_that_make_no_sense_are_counted)
{
	struct rec_head heads[] = {{.bytes = 8, .type = 0},
	                           {.bytes = 8, .type = REC_STACK},
	                           {.bytes = 7, .type = REC_MARK},
	                           {.bytes = 8, .type = REC_TARGET}};
	union {
		struct rec_stack stack;
		char room[sizeof(struct rec_stack) + 64];
	} record = {.stack = {.head = {.bytes = sizeof(struct rec_stack), .type = REC_STACK},
	                      .thread = 1,
	                      .count = 9,
	                      .depth = 3}};
	struct profile *profile;

	feed();
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		cr_assert_eq(history_feed(history, &heads[i]), -EPROTO);
	cr_assert_eq(history_feed(history, &record.stack.head), -EPROTO);
	cr_assert_eq(history_close_slice(history, s.now_ns), 0);
	cr_assert_eq(history_profile(history, &(struct history_query){0}, &profile), 0);
	cr_assert_eq(profile->malformed_records, 5);
	cr_assert_eq(profile->malformed_samples, 9);
	cr_assert_eq(profile_sum(profile, VALUE_SAMPLES), 0);
	profile_free(profile);
}

/* To the nanosecond, on the stacks that ran, in whole slices and in the open one; and in little room, since it is kept by thread. */
Test(history, cpu_time_is_kept_by_thread)
{
	struct history_stats without, with;
	uint64_t values[VALUE_COUNT], told_ns = 0, waited_ns = 0;
	struct profile *p;

	for (int told = 0; told < 2; told++) {
		for (unsigned i = 0; i < 100; i++) {
			s.now_ns += 1000000;
			stream_stack(&s, 1, i % 3 ? STATUS_RUNNABLE : STATUS_IDLE, 1, stack, 1 + i % 3);
			if (told) {
				stream_time(&s, 1, 123457 + i, i);
				told_ns += 123457 + i;
				waited_ns += i;
			}
			if (i == 50)
				close_slice();
		}
		feed();
		history_stats(history, told ? &with : &without);
		if (!told)
			close_slice();
	}
	cr_expect_lt(with.used_bytes, without.used_bytes + 1024);
	p = profile_of((struct history_query){0});
	cr_expect(profile_has(p, VALUE_CPU) && profile_has(p, VALUE_RUN_WAIT));
	cr_expect_eq(profile_sum(p, VALUE_CPU), told_ns);
	cr_expect_eq(profile_sum(p, VALUE_RUN_WAIT), waited_ns);
	for (uint32_t n = 0; n < p->threads[0].node_count; n++)
		cr_expect_eq(p->threads[0].nodes[n].self[VALUE_CPU] > 0, p->threads[0].nodes[n].self[VALUE_RUNNABLE] > 0);
	cr_expect_eq(history_sums(history, &(struct history_query){0}, values), 0);
	cr_expect_eq(values[VALUE_CPU], told_ns);
	profile_free(p);
}

/* Of time in which a thread waited for the GIL as often as it held it, the mode that counts holders has what ran with it. */
Test(history, cpu_time_goes_where_its_samples_went)
{
	uint64_t values[VALUE_COUNT];

	cr_assert_eq(history_set_mode(history, 0, MODE_GIL), 0);
	for (unsigned i = 0; i < 100; i++) {
		s.now_ns += 1000000;
		stream_stack(&s, 1, STATUS_RUNNABLE | (i % 4 ? STATUS_GIL : 0), 1, stack, 1);
	}
	stream_time(&s, 1, 100000000, 0);
	feed();
	cr_expect_eq(history_sums(history, &(struct history_query){0}, values), 0);
	cr_expect_eq(values[VALUE_CPU], 75000000);
}
