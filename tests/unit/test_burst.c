/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/burst.h"

#include <criterion/criterion.h>

#include "base/clock.h"
#include "sampler/owed.h"
#include "tests/unit/fake_coroutine.h"
#include "tests/unit/fake_objects.h"

#define INTERVAL_NS (10 * NS_PER_MS)
#define MINUTE_NS   (60 * NS_PER_S)

static uint64_t earned_in(struct burst *burst, uint64_t ns, uint64_t interval_ns, uint32_t count)
{
	uint64_t sum_ns = 0;

	for (uint64_t at_ns = 0; at_ns < ns; at_ns += interval_ns) {
		burst->credit_ns = 0;
		burst_earn(burst, interval_ns, count);
		sum_ns += (uint64_t)burst->credit_ns;
	}
	return sum_ns;
}

Test(burst, unthrottled_nothing_is_earned)
{
	struct burst burst = {0};

	burst_earn(&burst, 0, 1);
	cr_expect_eq(burst.credit_ns, 0);
	cr_expect_eq(burst.most_ns, 0);
}

Test(burst, more_is_earned_in_the_beginning)
{
	struct burst burst = {0};

	cr_expect_eq(earned_in(&burst, 4 * NS_PER_S, INTERVAL_NS, 1), 320 * NS_PER_MS);
	cr_expect_eq(earned_in(&burst, 4 * NS_PER_S, INTERVAL_NS, 1), 20 * NS_PER_MS);
}

Test(burst, what_is_not_used_does_not_pile_up)
{
	struct burst burst = {0};

	for (uint64_t at_ns = 0; at_ns < MINUTE_NS; at_ns += INTERVAL_NS)
		burst_earn(&burst, INTERVAL_NS, 1);
	cr_expect_eq(burst.credit_ns, 300 * NS_PER_MS);
}

Test(burst, processes_share)
{
	struct burst burst = {0};

	earned_in(&burst, MINUTE_NS, INTERVAL_NS, 10);
	cr_expect_eq(earned_in(&burst, MINUTE_NS, INTERVAL_NS, 100), MINUTE_NS / 200 / 100);
	cr_expect_eq(burst.most_ns, INTERVAL_NS / 100 / 4);
}

Test(burst, one_is_half_a_millisecond_at_most)
{
	struct burst burst = {0};

	burst_earn(&burst, NS_PER_S, 1);
	cr_expect_eq(burst.most_ns, 500 * NS_PER_US);
	burst_earn(&burst, NS_PER_MS, 1);
	cr_expect_eq(burst.most_ns, 250 * NS_PER_US);
}

static void begin_with_owed(void)
{
	struct owed owed = {.thread = 1, .function = 7, .count = 1, .t_first_ns = 1, .t_last_ns = 1};

	fake_coroutine_begin(12);
	fake.t->id = 1;
	fake.target->proc.abi = *fake.abi;
	fake.target->threads = &fake.t;
	fake.target->thread_count = 1;
	fake.target->interval_ns = INTERVAL_NS;
	cr_assert(owed_add(fake.target, &owed));
}

Test(burst, what_is_owed_at_the_end_is_looked_for_a_while, .init = begin_with_owed, .fini = fake_coroutine_end)
{
	uint64_t end_ns = clock_now_ns() + 2 * NS_PER_MS;

	burst_settle(fake.target, end_ns);
	cr_expect_gt(fake.target->facts.confirms, 1);
	cr_expect_geq(clock_now_ns(), end_ns);
	cr_expect_eq(fake.target->owed_count, 1, "it was not seen");
}

/* A look takes longer than a tick of a high rate earns. */
Test(burst, a_look_that_took_more_than_was_earned_is_paid_off_first, .init = begin_with_owed, .fini = fake_coroutine_end)
{
	struct burst *burst = &fake.target->burst;
	uint64_t looks;

	burst->credit_ns = 1;
	burst->most_ns = NS_PER_MS;
	burst_look(fake.target, fake.t, &fake.w);
	looks = fake.target->facts.confirms;
	cr_assert_gt(looks, 0);
	cr_expect_lt(burst->credit_ns, 0);
	burst_look(fake.target, fake.t, &fake.w);
	cr_expect_eq(fake.target->facts.confirms, looks);
	burst->first_ns = 300 * NS_PER_MS;
	burst_earn(burst, NS_PER_S, 1);
	burst_look(fake.target, fake.t, &fake.w);
	cr_expect_gt(fake.target->facts.confirms, looks);
}

/* At 10 kHz it takes four times what sixteen ticks earn: charged, it would leave nothing for what is owed, ever. */
Test(burst, the_look_at_one_tick_in_sixteen_needs_no_credit, .init = begin_with_owed, .fini = fake_coroutine_end)
{
	struct burst *burst = &fake.target->burst;

	fake.target->interval_ns = 100 * NS_PER_US;
	fake.target->awake_count = 1;
	fake.t->looks = FIRST_LOOKS;
	burst->credit_ns = -1;
	for (fake.target->tick = 1; fake.target->tick < 1000; fake.target->tick++)
		burst_learn(fake.target, fake.t, &fake.w);
	cr_assert_gt(fake.target->facts.confirms, 10);
	cr_expect_eq(burst->credit_ns, -1);
	burst->credit_ns = 1;
	burst->most_ns = NS_PER_MS;
	burst_learn(fake.target, fake.t, &fake.w);
	cr_expect_lt(burst->credit_ns, 1, "one within the credit is charged");
}

/* A program that embeds Python and waits in C has no frames: no look would ever show known calls, and each tick spent all that was earned. */
Test(burst, a_sample_without_frames_has_no_calls_to_learn, .init = begin_with_owed, .fini = fake_coroutine_end)
{
	fake.target->interval_ns = 100 * NS_PER_US;
	fake.target->awake_count = 1;
	fake.t->looks = FIRST_LOOKS;
	fake.target->burst.credit_ns = fake.target->burst.most_ns = NS_PER_MS;
	fake.t->taken = true;
	burst_learn(fake.target, fake.t, &fake.w);
	cr_expect_eq(fake.target->facts.confirms, 0);
	fake.t->taken = false;
	burst_learn(fake.target, fake.t, &fake.w);
	cr_expect_gt(fake.target->facts.confirms, 0, "a sample that was not had says nothing of the stack");
}

/* Looks in some thousand ticks of a thread that so many in a row showed nothing new of. */
static uint64_t looks_after(uint32_t known)
{
	uint64_t before = fake.target->facts.confirms;

	for (uint32_t i = 0; i < 4000; i++, fake.target->tick++) {
		fake.t->all_known = known;
		burst_learn(fake.target, fake.t, &fake.w);
	}
	return fake.target->facts.confirms - before;
}

Test(burst, the_longer_nothing_new_is_met_the_fewer_looks_there_are, .init = begin_with_owed, .fini = fake_coroutine_end)
{
	fake.target->interval_ns = 100 * NS_PER_US;
	fake.target->awake_count = 1;
	fake.t->looks = FIRST_LOOKS;
	fake.target->burst.credit_ns = -1;
	cr_expect_gt(looks_after(256), 2 * looks_after(4096));
	cr_expect_gt(looks_after(4096), 30, "but there are some");
}

Test(burst, but_not_what_other_threads_are_owed, .init = begin_with_owed, .fini = fake_coroutine_end)
{
	fake.t->id = 2;
	burst_settle(fake.target, clock_now_ns() + NS_PER_S);
	burst_earn(&fake.target->burst, NS_PER_S, 1);
	burst_look(fake.target, fake.t, &fake.w);
	cr_expect_eq(fake.target->facts.confirms, 0);
}

Test(burst, and_not_unthrottled, .init = begin_with_owed, .fini = fake_coroutine_end)
{
	fake.target->interval_ns = 0;
	burst_settle(fake.target, clock_now_ns() + NS_PER_S);
	cr_expect_eq(fake.target->facts.confirms, 0);
}

/* A thread that waits: each look shows a stack, of a function that nothing is owed to. */
Test(burst, one_ends_where_the_thread_stands, .init = begin_with_owed, .fini = fake_coroutine_end)
{
	uint64_t at = fake_alloc(PYABI_TSTATE_MAX), cframe = fake_alloc(64);

	fake.t->tstate = at;
	fake_put_u64(at + (uint64_t)fake.abi->tstate.chunk, fake.chunk);
	fake_put_u64(at + (uint64_t)fake.abi->tstate.cframe, cframe);
	fake_put_u64(cframe + (uint64_t)fake.abi->tstate.cframe_frame, fake.task);
	fake.target->burst.credit_ns = fake.target->burst.most_ns = NS_PER_S;
	burst_look(fake.target, fake.t, &fake.w);
	cr_expect_gt(fake.target->facts.confirms, 8);
	cr_expect_lt(fake.target->facts.confirms, 20);
	cr_expect_gt(fake.t->seen.depth, 0);
	cr_expect_eq(fake.target->owed_count, 1);
}
