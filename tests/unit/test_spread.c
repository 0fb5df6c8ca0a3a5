/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time, given to stacks: all of it, to those that it belongs to. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/spread.h"
#include "tests/unit/stream.h"

#define MS UINT64_C(1000000)

static struct budget budget;

struct got {
	uint64_t cpu_ns[4096], wait_ns[4096];
	uint64_t cpu_sum, wait_sum;
	uint32_t calls;
};

static void take(void *context, uint32_t node, uint64_t cpu_ns, uint64_t wait_ns)
{
	struct got *got = context;

	got->cpu_ns[node % 4096] += cpu_ns;
	got->wait_ns[node % 4096] += wait_ns;
	got->cpu_sum += cpu_ns;
	got->wait_sum += wait_ns;
	got->calls++;
}

Test(spread, by_weight_of_those_on_a_cpu)
{
	struct spread spread = {0};
	struct got got = {0};

	spread_add(&spread, 9, 50 * MS, STATUS_IDLE, &budget);
	spread_add(&spread, 8, 50 * MS, STATUS_GIL, &budget);
	spread_add(&spread, 1, 7 * MS, STATUS_RUNNABLE | STATUS_GIL, &budget);
	spread_add(&spread, 7, 90 * MS, STATUS_GIL, &budget);
	spread_add(&spread, 2, 3 * MS, STATUS_RUNNABLE, &budget);
	spread_add(&spread, 6, 80 * MS, STATUS_RUNNABLE | STATUS_GIL_WAIT, &budget);
	spread_give(&spread, 1000, 100, take, &got);
	cr_expect_eq(got.cpu_ns[1], 700);
	cr_expect_eq(got.cpu_ns[2], 300);
	cr_expect_eq(got.wait_sum, 100);
	cr_expect_eq(got.wait_ns[6], 100, "it was woken, and waited");
	cr_expect_eq(got.calls, 3);
	spread_release(&spread, &budget);
	cr_expect_eq(budget.used_bytes, 0);
}

/* Of a stack that waits for the GIL and is runnable (node 6), and one that runs (node 1). */
static void add_both(struct spread *spread, uint64_t waits_ns, uint64_t runs_ns)
{
	spread_add(spread, 6, waits_ns, STATUS_RUNNABLE | STATUS_GIL_WAIT, &budget);
	spread_add(spread, 1, runs_ns, STATUS_RUNNABLE | STATUS_GIL, &budget);
}

/* More CPU time than those on a CPU were there for: C code without the GIL, which was taken for waiting as it waited next. */
Test(spread, what_is_too_much_goes_to_those_that_waited_for_the_gil)
{
	struct spread spread = {0};
	struct got got = {0};

	for (unsigned twice = 0; twice < 2; twice++) {
		add_both(&spread, 3 * MS, 8 * MS);
		spread_add(&spread, 5, 9 * MS, STATUS_GIL_WAIT, &budget);
		spread_give(&spread, 10 * MS, 2 * MS, take, &got);
	}
	cr_expect_eq(got.cpu_ns[1], 16 * MS);
	cr_expect_eq(got.cpu_ns[6], 4 * MS);
	cr_expect_eq(got.wait_ns[6], 2 * MS, "no longer than it was there");
	cr_expect_eq(got.wait_ns[1], 2 * MS);
	/* No more than it was there for, either. */
	add_both(&spread, 3 * MS, 8 * MS);
	spread_give(&spread, 20 * MS, 0, take, &got);
	cr_expect_eq(got.cpu_ns[1], 33 * MS);
	cr_expect_eq(got.cpu_ns[6], 7 * MS);
	spread_release(&spread, &budget);
}

/* … or by what they use while nothing else runs. */
Test(spread, who_waits_uses_what_it_uses_alone)
{
	struct spread spread = {0};
	struct got got = {0};

	for (unsigned i = 0; i < 2; i++) {
		spread_add(&spread, 6, 10 * MS, STATUS_RUNNABLE | STATUS_GIL_WAIT, &budget);
		spread_add(&spread, 5, 10 * MS, STATUS_GIL_WAIT, &budget);
		spread_give(&spread, 3 * MS, 1 * MS, take, &got);
		spread_add(&spread, 5, 100 * MS, STATUS_IDLE, &budget);
		spread_give(&spread, 0, 0, take, &got); /* nothing is learnt of that */
	}
	cr_expect_eq(got.cpu_ns[6], 6 * MS);
	cr_expect_eq(got.wait_ns[6], 2 * MS);
	add_both(&spread, 4 * MS, 8 * MS);
	spread_give(&spread, 9 * MS, 2 * MS, take, &got);
	cr_expect_float_eq((double)got.cpu_ns[6], 6.6 * MS, 10); /* 3 of 20 ms */
	cr_expect_float_eq((double)got.cpu_ns[1], 8.4 * MS, 10);
	cr_expect_float_eq((double)got.wait_ns[6], 2.2 * MS, 10);
	cr_expect_float_eq((double)got.wait_ns[1], 1.8 * MS, 10);
	cr_expect_eq(got.cpu_sum, 15 * MS);
	cr_expect_eq(got.wait_sum, 4 * MS);
	/* Never more than there was. */
	add_both(&spread, 400 * MS, 8 * MS);
	spread_give(&spread, 9 * MS, 0, take, &got);
	cr_expect_eq(got.cpu_sum, 24 * MS);
	spread_release(&spread, &budget);
}

/* Pieces of C code so short that none is met: all that is seen is a thread that waits for the GIL. */
Test(spread, who_is_blocked_in_that_wait_uses_what_it_uses_alone)
{
	struct spread spread = {0};
	struct got got = {0};

	for (unsigned i = 0; i < 3; i++) {
		spread_add(&spread, 5, 60 * MS, STATUS_GIL_WAIT, &budget);
		spread_give(&spread, 3 * MS, 0, take, &got);
	}
	cr_expect_eq(got.cpu_ns[5], 9 * MS);
	/* It was given the GIL, and its next sample came late. */
	spread_add(&spread, 5, 40 * MS, STATUS_GIL_WAIT, &budget);
	spread_add(&spread, 4, 40 * MS, STATUS_IDLE, &budget);
	spread_add(&spread, 1, 1 * MS, STATUS_RUNNABLE | STATUS_GIL, &budget);
	spread_give(&spread, 5 * MS, 0, take, &got);
	cr_expect_float_eq((double)got.cpu_ns[5], 11 * MS, 10);
	cr_expect_float_eq((double)got.cpu_ns[1], 3 * MS, 10);
	cr_expect_eq(got.cpu_ns[4], 0);
	/* Nobody waited: all of it is theirs. */
	spread_add(&spread, 4, 40 * MS, STATUS_IDLE, &budget);
	spread_add(&spread, 1, 1 * MS, STATUS_RUNNABLE | STATUS_GIL, &budget);
	spread_give(&spread, 5 * MS, 0, take, &got);
	cr_expect_float_eq((double)got.cpu_ns[1], 8 * MS, 10);
	cr_expect_eq(got.cpu_sum, 19 * MS);
	spread_release(&spread, &budget);
}

/* The kernel counts at its ticks: what it tells too late is not taken for another's. */
Test(spread, what_is_told_late_is_of_those_on_a_cpu)
{
	struct spread spread = {0};
	struct got got = {0};

	spread_add(&spread, 1, 20 * MS, STATUS_RUNNABLE | STATUS_GIL, &budget);
	spread_give(&spread, 16 * MS, 0, take, &got);
	add_both(&spread, 5 * MS, 10 * MS);
	spread_give(&spread, 14 * MS, 0, take, &got);
	cr_expect_eq(got.cpu_ns[1], 30 * MS);
	cr_expect_eq(got.cpu_ns[6], 0);
	/* … but no more than a tick of it. */
	spread_add(&spread, 1, 100 * MS, STATUS_RUNNABLE | STATUS_GIL, &budget);
	spread_give(&spread, 10 * MS, 0, take, &got);
	add_both(&spread, 5 * MS, 10 * MS);
	spread_give(&spread, 24 * MS, 0, take, &got);
	cr_expect_eq(got.cpu_ns[1], 60 * MS);
	cr_expect_eq(got.cpu_ns[6], 4 * MS);
	spread_release(&spread, &budget);
}

Test(spread, else_of_gil_holders_else_of_all)
{
	struct spread spread = {0};
	struct got got = {0};

	spread_add(&spread, 1, 5 * MS, STATUS_IDLE, &budget);
	spread_add(&spread, 2, 5 * MS, STATUS_GIL, &budget);
	spread_add(&spread, 3, 5 * MS, STATUS_IDLE, &budget);
	spread_give(&spread, 10, 0, take, &got);
	cr_expect_eq(got.cpu_ns[2], 10);
	spread_add(&spread, 1, 5 * MS, STATUS_IDLE, &budget);
	spread_add(&spread, 3, 15 * MS, STATUS_GIL_WAIT, &budget);
	spread_give(&spread, 20, 0, take, &got);
	cr_expect_eq(got.cpu_ns[1], 5);
	cr_expect_eq(got.cpu_ns[3], 15);
	spread_release(&spread, &budget);
}

Test(spread, without_stacks_it_goes_to_the_latest_or_waits_for_the_first)
{
	struct spread spread = {0};
	struct got got = {0};

	spread_give(&spread, 100, 10, take, &got);
	cr_expect_eq(got.calls, 0);
	spread_add(&spread, 4, 1, STATUS_IDLE, &budget);
	spread_give(&spread, 1, 1, take, &got);
	cr_expect_eq(got.cpu_ns[4], 101);
	cr_expect_eq(got.wait_ns[4], 11);
	spread_give(&spread, 7, 0, take, &got);
	cr_expect_eq(got.cpu_ns[4], 108);
	spread_add(&spread, 5, 0, STATUS_RUNNABLE, &budget); /* no weight at all */
	spread_give(&spread, 2, 0, take, &got);
	cr_expect_eq(got.cpu_ns[5], 2);
	spread_release(&spread, &budget);
}

/* More stacks than there is room for, weights at their limits, no memory: the sum stays. */
Test(spread, all_of_it_is_given)
{
	for (int little = 0; little < 2; little++) {
		struct budget bound = {.max_bytes = little ? 200 : 0};
		struct spread spread = {0};
		struct got *got = calloc(1, sizeof(*got));
		uint64_t told = 0, waited = 0, seed = 1;

		for (unsigned round = 0; round < 50; round++) {
			unsigned count = round * 97 % 3000;

			for (unsigned i = 0; i < count; i++) {
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				spread_add(&spread, (uint32_t)(seed >> 52), seed >> (round % 60),
				           seed % 3 ? STATUS_RUNNABLE : STATUS_RUNNABLE | STATUS_GIL_WAIT, &bound);
			}
			told += seed >> 20;
			waited += seed >> 30;
			spread_give(&spread, seed >> 20, seed >> 30, take, got);
			cr_assert_leq(spread.room, 512);
		}
		cr_expect_eq(got->cpu_sum, told);
		cr_expect_eq(got->wait_sum, waited);
		spread_release(&spread, &bound);
		cr_expect_eq(bound.used_bytes, 0);
		free(got);
	}
}

/* Of many stacks each of which has its share, joining leaves the shares of groups of them. */
Test(spread, joined_neighbours_keep_their_weight_together)
{
	struct spread spread = {0};
	struct got *got = calloc(1, sizeof(*got));
	uint64_t low = 0;

	for (unsigned i = 0; i < 4000; i++)
		spread_add(&spread, i, i < 2000 ? 3 * MS : MS, STATUS_RUNNABLE, &budget);
	spread_give(&spread, 4000 * MS, 0, take, got);
	for (unsigned i = 0; i < 2000; i++)
		low += got->cpu_ns[i];
	cr_expect_eq(got->cpu_sum, 4000 * MS);
	cr_expect_float_eq((double)low / (double)(4000 * MS), 0.75, 0.01);
	spread_release(&spread, &budget);
	free(got);
}

/* --- through the aggregator --- */

static const struct frame stack[] = {{.kind = FRAME_PYTHON, .id = 1, .where = 5},
                                     {.kind = FRAME_PYTHON, .id = 2, .where = 12}};
static struct stream s;

static void setup(void)
{
	stream_target(&s, 1, 100, "python3 app.py");
	stream_symbol(&s, 1, "main", "app.py", 1);
	stream_symbol(&s, 2, "work", "lib.py", 10);
	stream_thread(&s, 1, 1, 100, THREAD_MAIN, "MainThread");
}

static void teardown(void)
{
	stream_release(&s);
}

TestSuite(cpu_time, .init = setup, .fini = teardown);

Test(cpu_time, is_a_value_of_nodes_where_it_was_told)
{
	struct profile *p;

	stream_stack(&s, 1, STATUS_RUNNABLE, 3, stack, 2);
	stream_stack(&s, 1, STATUS_RUNNABLE, 1, stack, 1);
	p = stream_profile(&s, NULL);
	cr_expect_not(profile_has(p, VALUE_CPU));
	profile_free(p);
	stream_time(&s, 1, 1000, 200);
	p = stream_profile(&s, NULL);
	cr_expect(profile_has(p, VALUE_CPU) && profile_has(p, VALUE_RUN_WAIT));
	cr_expect_eq(p->threads[0].nodes[1].self[VALUE_CPU], 250);
	cr_expect_eq(p->threads[0].nodes[2].self[VALUE_CPU], 750);
	cr_expect_eq(p->threads[0].nodes[2].self[VALUE_RUN_WAIT], 150);
	cr_expect_eq(profile_sum(p, VALUE_WALL), 4 * MS, "samples are as they were");
	profile_free(p);
}

Test(cpu_time, what_is_left_out_takes_its_part_along)
{
	const struct thread_filter none = {.name = "nobody"};
	struct aggregator_options options = {.mode = MODE_GIL, .idle = true};
	struct profile *p;

	stream_stack(&s, 1, STATUS_RUNNABLE | STATUS_GIL, 3, stack, 2);
	stream_stack(&s, 1, STATUS_RUNNABLE, 1, stack, 1);
	stream_time(&s, 1, 1000, 0);
	p = stream_profile(&s, &options);
	cr_expect_eq(profile_sum(p, VALUE_CPU), 750);
	profile_free(p);
	options = (struct aggregator_options){.idle = true, .threads = &none, .thread_filter_count = 1};
	p = stream_profile(&s, &options);
	cr_expect_eq(profile_sum(p, VALUE_CPU), 0);
	profile_free(p);
}

Test(cpu_time, of_nobody_makes_no_sense)
{
	struct aggregator *aggregator;
	struct profile *p;

	stream_time(&s, 5, 1000, 0);
	cr_assert_eq(aggregator_new(&aggregator, &(struct aggregator_options){.idle = true}), 0);
	cr_expect_eq(stream_feed(&s, aggregator), -EPROTO);
	cr_assert_eq(aggregator_profile(aggregator, &p), 0);
	cr_expect_eq(p->malformed_records, 1);
	cr_expect_not(profile_has(p, VALUE_CPU));
	profile_free(p);
	aggregator_free(aggregator);
}
