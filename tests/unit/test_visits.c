/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of visits, and how long a CPU is kept away from. */
#include "sampler/visits.h"

#include <criterion/criterion.h>

#include "base/clock.h"

#define CPU    3
#define NOW_NS (100 * NS_PER_S)

static struct visits visits;

/* How many of a second's visits, one each `every_ns`, are allowed when each takes `took_ns`. */
static uint32_t allowed(uint64_t every_ns, uint64_t took_ns)
{
	uint32_t count = 0;

	visits_begin(&visits, 20000);
	for (uint64_t t_ns = NOW_NS; t_ns < NOW_NS + NS_PER_S; t_ns += every_ns) {
		if (!visits_allowed(&visits, CPU, t_ns))
			continue;
		count++;
		visits_spend(&visits, CPU, took_ns, t_ns);
	}
	return count;
}

Test(visits, at_the_default_rate_all_fit)
{
	cr_expect_eq(allowed(4 * NS_PER_MS, 60 * NS_PER_US), 250);
	cr_expect(visits_have_plenty(&visits, CPU, NOW_NS + NS_PER_S));
}

Test(visits, what_does_not_fit_is_not_allowed)
{
	uint32_t count = allowed(NS_PER_MS, 95 * NS_PER_US); /* 10 % of the time, with the kernel's part */

	cr_expect(count >= 200 && count <= 225, "2 %% of a second, and what was saved up: %u", count);
	cr_expect_not(visits_have_plenty(&visits, CPU, NOW_NS + NS_PER_S));
	cr_expect(visits_allowed(&visits, CPU + 1, NOW_NS), "another CPU has its own");
	cr_expect(visits_have_plenty(&visits, CPU, NOW_NS + 3 * NS_PER_S));
}

Test(visits, none_without_a_budget_or_a_cpu)
{
	visits_begin(&visits, 0);
	cr_expect_not(visits_allowed(&visits, CPU, NOW_NS));
	visits_begin(&visits, 20000);
	cr_expect_not(visits_allowed(&visits, -1, NOW_NS));
	cr_expect_not(visits_allowed(&visits, CPU_SETSIZE, NOW_NS));
	visits_spend(&visits, -1, NS_PER_S, NOW_NS);
	cr_expect(visits_waited(&visits, CPU_SETSIZE, NS_PER_S, 0, NOW_NS));
}

Test(visits, three_waits_in_a_row_keep_away)
{
	visits_begin(&visits, 20000);
	for (int i = 0; i < 2; i++)
		cr_expect(visits_waited(&visits, CPU, 6 * NS_PER_MS, 5 * NS_PER_MS, NOW_NS));
	cr_expect(visits_waited(&visits, CPU, 4 * NS_PER_MS, 5 * NS_PER_MS, NOW_NS));
	for (int i = 0; i < 2; i++)
		cr_expect(visits_waited(&visits, CPU, 6 * NS_PER_MS, 5 * NS_PER_MS, NOW_NS));
	cr_expect(visits_allowed(&visits, CPU, NOW_NS), "never three times in a row");
	cr_expect_not(visits_waited(&visits, CPU, 6 * NS_PER_MS, 5 * NS_PER_MS, NOW_NS));
	cr_expect_not(visits_allowed(&visits, CPU, NOW_NS + 50 * NS_PER_MS));
	cr_expect(visits_allowed(&visits, CPU + 1, NOW_NS), "only that one");
	cr_expect(visits_allowed(&visits, CPU, NOW_NS + 150 * NS_PER_MS));
}

static uint64_t away_ns(uint64_t now_ns, uint64_t waited_ns)
{
	for (int i = 0; i < 3; i++)
		if (!visits_waited(&visits, CPU, waited_ns, 0, now_ns))
			break;
	return visits.cpus[CPU].until_ns - now_ns;
}

Test(visits, each_time_it_keeps_away_twice_as_long)
{
	uint64_t now_ns = NOW_NS;

	visits_begin(&visits, 20000);
	for (uint64_t ms = 100; ms <= 3200; ms *= 2) {
		cr_expect_eq(away_ns(now_ns, 2 * NS_PER_MS), ms * NS_PER_MS);
		now_ns += (ms + 100) * NS_PER_MS;
	}
	cr_expect_eq(away_ns(now_ns, 2 * NS_PER_MS), 3200 * NS_PER_MS);
	now_ns += 10 * NS_PER_S;
	cr_expect_eq(away_ns(now_ns, 2 * NS_PER_MS), 100 * NS_PER_MS, "that was long ago");
	now_ns += NS_PER_S;
	cr_expect_eq(away_ns(now_ns, 200 * NS_PER_MS), 16 * NS_PER_S, "as behind a real-time program");
}
