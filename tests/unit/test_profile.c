/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/unit/stream.h"

static struct stream s;

static void teardown(void)
{
	stream_release(&s);
}

TestSuite(profile, .fini = teardown);

Test(profile, free_takes_null)
{
	profile_free(NULL);
}

Test(profile, value_types_are_named)
{
	cr_assert_str_eq(profile_value_types[VALUE_SAMPLES].name, "samples");
	cr_assert_str_eq(profile_value_types[VALUE_SAMPLES].unit, "count");
	for (int v = VALUE_WALL; v < VALUE_COUNT; v++) {
		cr_assert_not_null(profile_value_types[v].name);
		cr_assert_str_eq(profile_value_types[v].unit, "nanoseconds");
	}
}

/* main → a → b, main → b: totals are sums over subtrees, whatever the order in which nodes were made. */
Test(profile, totals_are_inclusive)
{
	struct frame frames[] = {stream_frame(1, 10), stream_frame(2, 20), stream_frame(3, 30)};
	struct frame other[] = {stream_frame(1, 10), stream_frame(3, 30)};
	struct profile *profile;
	const struct thread_tree *tree;
	uint64_t *totals;
	uint64_t of_main = 0;

	stream_target(&s, 1, 100, "python3 app.py");
	stream_symbol(&s, 1, "main", "app.py", 1);
	stream_symbol(&s, 2, "a", "app.py", 11);
	stream_symbol(&s, 3, "b", "app.py", 21);
	stream_thread(&s, 1, 1, 100, THREAD_MAIN, "MainThread");
	stream_stack(&s, 1, STATUS_RUNNABLE | STATUS_GIL, 4, frames, 3);
	stream_stack(&s, 1, STATUS_IDLE, 2, frames, 2);
	stream_stack(&s, 1, STATUS_RUNNABLE, 1, other, 2);
	stream_stack(&s, 1, STATUS_UNKNOWN, 8, NULL, 0);
	profile = stream_profile(&s, NULL);
	cr_assert_eq(profile->thread_count, 1);
	tree = &profile->threads[0];
	cr_assert_eq(tree->node_count, 5);
	totals = profile_totals(tree);
	cr_assert_not_null(totals);
	cr_assert_eq(totals[VALUE_SAMPLES], 15);
	cr_assert_eq(totals[VALUE_WALL], 15 * s.interval_ns);
	cr_assert_eq(totals[VALUE_UNKNOWN], 8 * s.interval_ns);
	for (uint32_t i = 1; i < tree->node_count; i++) {
		const uint64_t *own = totals + (size_t)i * VALUE_COUNT;
		const struct symbol *symbol = &profile->symbols[tree->nodes[i].symbol];

		cr_assert_lt(tree->nodes[i].parent, i);
		if (strcmp(symbol->name, "main") == 0) {
			of_main = i;
			cr_assert_eq(own[VALUE_SAMPLES], 7);
			cr_assert_eq(own[VALUE_RUNNABLE], 5 * s.interval_ns);
			cr_assert_eq(own[VALUE_GIL], 4 * s.interval_ns);
			cr_assert_eq(own[VALUE_IDLE], 2 * s.interval_ns);
		} else if (strcmp(symbol->name, "a") == 0) {
			cr_assert_eq(own[VALUE_SAMPLES], 6);
			cr_assert_eq(tree->nodes[i].self[VALUE_SAMPLES], 2);
		} else {
			cr_assert_eq(own[VALUE_SAMPLES], tree->nodes[i].parent == of_main ? 1 : 4);
		}
	}
	cr_assert_neq(of_main, 0);
	free(totals);
	cr_assert_eq(profile_sum(profile, VALUE_SAMPLES), 15);
	cr_assert_eq(profile_sum(profile, VALUE_GIL), 4 * s.interval_ns);
	profile_free(profile);
}

Test(profile, facts_of_processes_add_up)
{
	const struct frame frame = stream_frame(1, 1);
	const uint64_t lost[LOSS_CAUSES] = {[LOSS_TORN] = 3, [LOSS_DROPPED] = 5};
	struct profile *profile;
	struct rec_facts facts;

	stream_symbol(&s, 1, "f", "f.py", 1);
	for (uint32_t i = 1; i <= 2; i++) {
		stream_target(&s, i, (int32_t)(100 * i), "python3");
		stream_thread(&s, i, i, 100 * i, THREAD_MAIN, NULL);
		stream_stack(&s, i, STATUS_RUNNABLE, 10 * i, &frame, 1);
		stream_facts(&s, i, lost);
		s.now_ns += NS_PER_S;
	}
	profile = stream_profile(&s, NULL);
	profile_facts(profile, &facts);
	cr_assert_eq(facts.samples, 30);
	cr_assert_eq(facts.runs, 2);
	cr_assert_eq(facts.lost[LOSS_TORN], 6);
	cr_assert_eq(facts.lost[LOSS_DROPPED], 10);
	cr_assert_eq(facts.attempts, 46);
	cr_assert_eq(facts.t_start_ns, NS_PER_S - 9 * s.interval_ns);
	cr_assert_eq(facts.t_last_ns, 2 * NS_PER_S);
	cr_assert_eq(facts.interval_ns, s.interval_ns);
	cr_assert_eq(profile->t_start_ns, facts.t_start_ns);
	cr_assert_eq(profile->t_end_ns, facts.t_last_ns);
	profile_free(profile);
}

/* Whatever bits were set, each nanosecond is in one state, and no state is made up. */
Test(profile, states_add_up_to_the_whole)
{
	static const unsigned seen[] = {STATUS_GIL,
	                                STATUS_GIL | STATUS_RUNNABLE | STATUS_GC,
	                                STATUS_GIL_WAIT,
	                                STATUS_GIL_WAIT | STATUS_RUNNABLE,
	                                STATUS_RUNNABLE | STATUS_EXCEPTION,
	                                STATUS_IDLE,
	                                STATUS_UNKNOWN,
	                                STATUS_GIL | STATUS_GIL_WAIT}; /* of an import */
	static const uint64_t expected[STATE_COUNT] = {
		[STATE_GIL] = 1 + 2, [STATE_GIL_WAIT] = 4 + 8, [STATE_RUNNABLE] = 16, [STATE_IDLE] = 32, [STATE_UNKNOWN] = 64};
	uint64_t values[VALUE_COUNT] = {0}, states[STATE_COUNT], sum = 0;

	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]) - 1; i++)
		values_add(values, 1, UINT64_C(1) << i, seen[i]);
	values_states(values, states);
	for (int i = 0; i < STATE_COUNT; i++)
		cr_expect_eq(states[i], expected[i], "state %d", i);
	values_add(values, 1, 128, seen[7]);
	values_states(values, states);
	for (int i = 0; i < STATE_COUNT; i++)
		sum += states[i];
	cr_expect_eq(sum, values[VALUE_WALL]);
}
