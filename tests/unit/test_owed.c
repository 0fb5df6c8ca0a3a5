/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/clock.h"
#include "sampler/owed.h"

static struct owed one_of(uint32_t thread, uint64_t function)
{
	return (struct owed){
		.thread = thread, .count = 1, .function = function, .t_first_ns = 5, .t_last_ns = 5, .weight_ns = 10};
}

static void add(struct target *target, uint32_t thread, uint64_t function)
{
	struct owed owed = one_of(thread, function);

	cr_assert(owed_add(target, &owed));
}

Test(owed, samples_of_one_function_of_one_thread_are_kept_together)
{
	struct target *target = calloc(1, sizeof(*target));
	struct owed later = one_of(1, 7), waiting = one_of(1, 7);
	struct thread one = {.id = 1}, two = {.id = 2};

	add(target, 1, 7);
	later.t_last_ns = 9;
	cr_assert(owed_add(target, &later));
	cr_assert_eq(target->owed_count, 1);
	cr_assert_eq(target->owed[0].count, 2);
	cr_assert_eq(target->owed[0].t_first_ns, 5);
	cr_assert_eq(target->owed[0].t_last_ns, 9);
	cr_assert_eq(target->owed[0].weight_ns, 20);
	waiting.status = STATUS_GIL_WAIT;
	cr_assert(owed_add(target, &waiting));
	cr_assert_eq(target->owed_count, 2);
	cr_assert(owed_any(target, &one, 7));
	cr_assert_not(owed_any(target, &one, 8));
	cr_assert_not(owed_any(target, &two, 7));
	free(target);
}

Test(owed, functions_by_the_thousand_are_found_and_lost_in_any_order)
{
	struct target *target = calloc(1, sizeof(*target));
	struct owed more = one_of(3, 1);
	struct thread odd = {.id = 1}, even = {.id = 2};

	for (uint64_t i = 0; i < OWED_MAX; i++)
		add(target, i % 2 ? 1 : 2, i / 2);
	cr_assert_not(owed_add(target, &more), "the table is full");
	owed_lose(target, &odd);
	cr_assert_eq(target->owed_count, OWED_MAX / 2);
	cr_assert_eq(target->facts.lost[LOSS_TORN], OWED_MAX / 2);
	cr_assert_eq(target->facts.unsampled_ns, 10 * OWED_MAX / 2);
	for (uint64_t i = 0; i < OWED_MAX / 2; i++) {
		cr_assert_not(owed_any(target, &odd, i));
		cr_assert(owed_any(target, &even, i));
	}
	owed_lose_old(target, NS_PER_S);
	cr_assert_eq(target->owed_count, OWED_MAX / 2);
	owed_lose_old(target, 20 * NS_PER_S);
	cr_assert_eq(target->owed_count, 0);
	cr_assert_not(owed_any(target, &even, 3));
	free(target);
}
