/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "sampler/still.h"
#include "tests/unit/fake_objects.h"

#define THREADS 4

/* Our own memory, read as a target's: a GIL as CPython lays it out, and thread states that are but addresses. */
static struct {
	struct {
		uint64_t interval, last_holder;
		int32_t locked;
		uint64_t switches, waits[4];
	} gil;
	struct target *target;
	struct interp interp;
	struct thread threads[THREADS], *list[THREADS];
} made;

static void begin(void)
{
	struct target *target = calloc(1, sizeof(*target));

	cr_assert(target);
	made.target = target;
	made.interp = (struct interp){.addr = 1, .gil = (uintptr_t)&made.gil};
	target->remote = *fake_remote();
	target->proc.abi.gil = GIL_INTERPRETER;
	target->proc.abi.gil_state.bytes = sizeof(made.gil);
	target->proc.abi.gil_state.last_holder = 8;
	target->proc.abi.gil_state.locked = 16;
	target->interps = &made.interp;
	target->interp_count = 1;
	target->threads = made.list;
	target->thread_count = target->thread_room = THREADS;
	for (uint32_t i = 0; i < THREADS; i++) {
		made.threads[i] = (struct thread){.id = i + 1, .interp = 1, .tstate = 100 + i, .thread_id = 200 + i};
		made.list[i] = &made.threads[i];
	}
	made.gil.last_holder = 100;
	made.gil.switches = 7;
}

static void end(void)
{
	plan_release(&made.target->plan);
	free(made.target->awake);
	free(made.target);
}

/* Reads the GIL, after so many changes of hands, the last of them to this thread. */
static bool wakes(uint32_t times, uint32_t holder, bool all)
{
	made.gil.switches += times;
	made.gil.last_holder = 100 + holder;
	plan_clear(&made.target->plan);
	still_plan(made.target);
	cr_assert_eq(plan_read(&made.target->plan, &made.target->remote), 0);
	return still_wake_moved(made.target, 1, all);
}

/* All but the holder have become still. */
static void settle(void)
{
	cr_assert_eq(still_list_awake(made.target), 0);
	for (uint32_t i = 0; i < made.target->awake_count; i++)
		made.target->awake[i]->taken = true;
	still_settle(made.target);
}

static void begin_still(void)
{
	begin();
	made.target->awake_stale = true;
	wakes(0, 0, false);
	settle();
	cr_assert_eq(made.target->still_count, THREADS - 1);
}

Test(still, one_change_of_hands_wakes_the_two, .init = begin_still, .fini = end)
{
	cr_expect_not(wakes(0, 0, false));
	cr_expect(wakes(1, 2, false), "the new holder is to be read");
	cr_expect_not(made.threads[2].still);
	cr_expect(made.threads[1].still && made.threads[3].still);
	settle();
	cr_expect(made.threads[0].still, "it had it, and was read since");
	cr_expect(wakes(1, 1, false));
	cr_expect_not(made.threads[1].still);
	cr_expect(made.threads[0].still && made.threads[3].still);
}

Test(still, more_than_one_wake_all, .init = begin_still, .fini = end)
{
	cr_expect(wakes(2, 2, false));
	cr_expect_eq(made.target->still_count, 0);
}

/* Torn: only one of the two words is new. */
Test(still, what_contradicts_itself_wakes_all, .init = begin_still, .fini = end)
{
	cr_expect(wakes(1, 0, false));
	cr_expect_eq(made.target->still_count, 0);
	settle();
	cr_expect(wakes(0, 2, false));
	cr_expect_eq(made.target->still_count, 0);
}

Test(still, a_holder_that_is_not_listed_wakes_all, .init = begin_still, .fini = end)
{
	cr_expect(wakes(1, THREADS, false));
	cr_expect_eq(made.target->still_count, 0);
}

/* A second change while the first is looked into. */
Test(still, all_are_woken_where_it_is_asked_for, .init = begin_still, .fini = end)
{
	cr_expect(wakes(1, 2, false));
	cr_expect(wakes(1, 3, true));
	cr_expect_eq(made.target->still_count, 0);
	cr_expect_not(wakes(1, 1, true), "no other is left");
}

/* Several states of one system thread are exchanged for one another under the GIL. */
Test(still, states_of_one_system_thread_wake_together, .init = begin_still, .fini = end)
{
	made.threads[3].thread_id = made.threads[2].thread_id;
	cr_expect(wakes(1, 2, false));
	cr_expect_not(made.threads[3].still);
	cr_expect(made.threads[1].still);
}
