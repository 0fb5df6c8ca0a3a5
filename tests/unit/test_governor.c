/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/governor.h"

#include <criterion/criterion.h>

#include "base/clock.h"

/* Looks once a second at a process that uses standing + working / slowdown of a core. */
static void run(struct governor *g, uint64_t *now_ns, double used_s[2], int seconds, double standing, double working)
{
	for (int i = 0; i < seconds; i++) {
		*now_ns += NS_PER_S;
		used_s[0] += standing + working / g->slowdown;
		used_s[1] += working / g->slowdown;
		governor_look(g, *now_ns, (uint64_t)(used_s[0] * 1e9), (uint64_t)(used_s[1] * 1e9));
	}
}

Test(governor, within_its_budget_nothing_changes)
{
	uint64_t now_ns = NS_PER_S;
	double used_s[2] = {0};
	struct governor g;

	governor_init(&g, 0.01);
	run(&g, &now_ns, used_s, 100, 0.002, 0.006);
	cr_expect_eq(g.slowdown, 1);
	cr_expect_float_eq(g.share, 0.008, 0.0001);
}

Test(governor, over_it_the_rate_goes_down_and_comes_back)
{
	uint64_t now_ns = NS_PER_S;
	double used_s[2] = {0};
	struct governor g;

	governor_init(&g, 0.01);
	run(&g, &now_ns, used_s, 60, 0.001, 0.05);
	cr_expect_leq(g.share, 0.0101, "share %f, slowdown %u", g.share, g.slowdown);
	cr_expect_geq(g.slowdown, 5);
	cr_expect_leq(g.slowdown, 8);
	run(&g, &now_ns, used_s, 200, 0.001, 0.004);
	cr_expect_eq(g.slowdown, 1);
}

Test(governor, what_the_rest_takes_does_not_end_sampling)
{
	uint64_t now_ns = NS_PER_S;
	double used_s[2] = {0};
	struct governor g;

	governor_init(&g, 0.001);
	run(&g, &now_ns, used_s, 1000, 0.002, 0.01);
	cr_expect_eq(g.slowdown, 50, "%u", g.slowdown); /* a fifth of the budget is sampling's */
	governor_init(&g, 0.00001);
	run(&g, &now_ns, used_s, 1000, 0.002, 0.01);
	cr_expect_eq(g.slowdown, 256);
}

Test(governor, the_cost_of_starting_counts_for_nothing)
{
	uint64_t now_ns = NS_PER_S;
	double used_s[2] = {0};
	struct governor g;

	governor_init(&g, 0.01);
	run(&g, &now_ns, used_s, 2, 0.3, 0);
	run(&g, &now_ns, used_s, 100, 0.001, 0.004);
	cr_expect_eq(g.slowdown, 1);
}

Test(governor, without_a_budget_it_only_measures)
{
	uint64_t now_ns = NS_PER_S;
	double used_s[2] = {0};
	struct governor g;

	governor_init(&g, 0);
	run(&g, &now_ns, used_s, 60, 0.5, 0.4);
	cr_expect_eq(g.slowdown, 1);
	cr_expect_float_eq(g.share, 0.9, 0.01);
}

Test(governor, without_a_budget_any_more_the_rate_comes_back)
{
	uint64_t now_ns = NS_PER_S;
	double used_s[2] = {0};
	struct governor g;

	governor_init(&g, 0.01);
	run(&g, &now_ns, used_s, 60, 0.001, 0.05);
	cr_assert_gt(g.slowdown, 1);
	g.budget = 0;
	now_ns += NS_PER_S;
	cr_expect(governor_look(&g, now_ns, (uint64_t)(used_s[0] * 1e9), (uint64_t)(used_s[1] * 1e9)));
	cr_expect_eq(g.slowdown, 1);
	run(&g, &now_ns, used_s, 30, 0.001, 0.05);
	cr_expect_eq(g.slowdown, 1);
}
