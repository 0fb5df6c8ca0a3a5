/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/burst.h"

#include <criterion/criterion.h>

#include "base/clock.h"

#define INTERVAL_NS (10 * NS_PER_MS)
#define MINUTE_NS   (60 * NS_PER_S)

static uint64_t earned_in(struct burst *burst, uint64_t ns, uint64_t interval_ns, uint32_t count)
{
	uint64_t sum_ns = 0;

	for (uint64_t at_ns = 0; at_ns < ns; at_ns += interval_ns) {
		burst->credit_ns = 0;
		burst_earn(burst, interval_ns, count);
		sum_ns += burst->credit_ns;
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
