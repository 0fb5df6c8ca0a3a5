/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/pace.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/clock.h"

enum { TICKS = 4000, PARTS = 8 };

static struct paces paces;
static struct pace *pace;

static void begin(void)
{
	paces = (struct paces){.random = 1};
	pace = paces_find(&paces, NS_PER_MS);
	cr_assert(pace);
	pace->base_ns = NS_PER_S;
}

static void end(void)
{
	free(paces.items);
}

/* How many of TICKS looks come in each part of what lies between two deadlines, at this slowdown. */
static void count_looks(uint32_t slowdown, uint32_t counts[PARTS])
{
	const struct pace_tick tick = {.slowdown = slowdown};

	for (int i = 0; i < TICKS; i++) {
		uint64_t base_ns, part;

		pace_tick(pace, &tick, pace->base_ns);
		base_ns = pace->base_ns;
		paces_set_due(&paces, pace, true);
		part = (pace->due_ns - base_ns) * PARTS / (slowdown * NS_PER_MS + 1);
		cr_assert_lt(part, PARTS);
		counts[part]++;
	}
}

Test(pace, a_look_comes_anywhere_between_two_deadlines, .init = begin, .fini = end)
{
	for (uint32_t slowdown = 1; slowdown <= 4; slowdown += 3) {
		uint32_t counts[PARTS] = {0};

		count_looks(slowdown, counts);
		for (int i = 0; i < PARTS; i++)
			cr_expect_leq(abs((int)counts[i] - TICKS / PARTS), 100, "part %d at a slowdown of %u: %u", i, slowdown, counts[i]);
	}
}

Test(pace, deadlines_are_at_even_distances, .init = begin, .fini = end)
{
	const struct pace_tick tick = {.slowdown = 1};

	for (uint64_t i = 0; i < 10; i++) {
		paces_set_due(&paces, pace, true);
		pace_tick(pace, &tick, pace->due_ns);
	}
	paces_set_due(&paces, pace, false);
	cr_expect_eq(pace->due_ns, NS_PER_S + 10 * NS_PER_MS);
}

Test(pace, what_is_missed_is_not_made_up, .init = begin, .fini = end)
{
	const struct pace_tick tick = {.slowdown = 1};

	pace_tick(pace, &tick, NS_PER_S + 5 * NS_PER_MS + NS_PER_MS / 2);
	cr_expect_eq(pace->base_ns, NS_PER_S + 5 * NS_PER_MS);
}
