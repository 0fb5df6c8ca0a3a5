/* SPDX-License-Identifier: Apache-2.0 */
/* Triggers, with the time given from outside. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/triggers.h"

#define SLICE_NS (10 * NS_PER_S)

static struct config_trigger of[3];
static struct config config;
static struct triggers *triggers;
static struct trigger_due dues[16];
static size_t due_count;

static void take(void *context, const struct trigger_due *due)
{
	cr_assert_eq(context, dues);
	dues[due_count++ % 16] = *due;
}

static double share_of(void *context, const char *function)
{
	cr_assert_str_eq(function, "hot");
	return *(double *)context;
}

static void start(size_t count)
{
	static char hot[] = "hot", names[3][2] = {"a", "b", "c"};

	of[0] = (struct config_trigger){.name = names[0],
	                                .kind = TRIGGER_CPU,
	                                .above = 0.8,
	                                .for_ns = 30 * NS_PER_S,
	                                .every_ns = 600 * NS_PER_S,
	                                .last_ns = 60 * NS_PER_S};
	of[1] = (struct config_trigger){.name = names[1],
	                                .kind = TRIGGER_GIL_WAIT,
	                                .above = 0.5,
	                                .for_ns = 10 * NS_PER_S,
	                                .every_ns = NS_PER_S};
	of[1].rule_names.count = 1;
	of[1].rules[0] = 7;
	of[2] = (struct config_trigger){
		.name = names[2], .kind = TRIGGER_FUNCTION, .function = hot, .above = 0.2, .for_ns = 1, .every_ns = 1};
	config = (struct config){.triggers = of, .trigger_count = count};
	cr_assert_eq(triggers_new(&triggers, &config), 0);
	due_count = 0;
}

static void stop(void)
{
	triggers_free(triggers);
}

TestSuite(triggers, .fini = stop);

/* Slice number `at` of a target; returns how many dumps are due. */
static size_t feed(pid_t pid, unsigned at, double cpu)
{
	size_t before = due_count;
	struct trigger_slice slice = {.pid = pid,
	                              .start_time = 5,
	                              .from_ns = at * SLICE_NS,
	                              .to_ns = (at + 1) * SLICE_NS,
	                              .cpu = cpu,
	                              .gil_wait = -1};

	triggers_feed(triggers, &slice, take, dues);
	return due_count - before;
}

Test(triggers, fire_after_so_long_and_not_again_at_once)
{
	start(1);
	cr_assert_eq(feed(1, 0, 0.9) + feed(1, 1, 0.8), 0);
	cr_assert_eq(feed(1, 2, 1.5), 1);
	cr_assert_eq(dues[0].pid, 1);
	cr_assert_eq(dues[0].start_time, 5);
	cr_assert_eq(dues[0].last_ns, 60 * NS_PER_S);
	cr_assert_float_eq(dues[0].value, 1.5, 1e-9);
	for (unsigned at = 3; at < 62; at++)
		cr_assert_eq(feed(1, at, 0.9), 0);
	cr_assert_eq(feed(1, 62, 0.9), 1, "it is still above when `every` is over");
	cr_assert_eq(triggers_counts(triggers, 0).fired, 2);
	cr_assert_eq(triggers_counts(triggers, 0).suppressed, 0, "the same time above");
}

Test(triggers, another_configuration_goes_on_where_the_one_before_was)
{
	struct config_trigger others[2];
	struct config other = {.triggers = others, .trigger_count = 2};
	struct triggers *after;

	start(3);
	cr_assert_eq(feed(1, 0, 0.9) + feed(1, 1, 0.9) + feed(1, 2, 0.9), 1);
	cr_assert_eq(feed(2, 3, 0.9) + feed(2, 4, 0.9), 0);
	others[0] = of[1]; /* and the third is gone */
	others[1] = of[0];
	cr_assert_eq(triggers_new(&after, &other), 0);
	triggers_carry_over(after, triggers);
	triggers_free(triggers);
	triggers = after;
	cr_expect_eq(triggers_counts(triggers, 0).fired, 0);
	cr_expect_eq(triggers_counts(triggers, 1).fired, 1);
	cr_expect_eq(feed(2, 5, 0.9), 0, "it fired not long ago");
	cr_expect_eq(triggers_counts(triggers, 1).suppressed, 1,
	             "the other was above for long enough, before and after");
}

Test(triggers, one_slice_below_begins_anew)
{
	start(1);
	cr_assert_eq(feed(1, 0, 0.9) + feed(1, 1, 0.9) + feed(1, 2, 0.79) + feed(1, 3, 0.9) + feed(1, 4, 0.9), 0);
	cr_assert_eq(feed(1, 5, 0.9), 1);
	cr_assert_eq(feed(2, 0, 0.9) + feed(2, 1, 0.9) + feed(2, 3, 0.9) + feed(2, 4, 0.9), 0, "a slice is missing");
	cr_assert_eq(feed(3, 0, 0.9) + feed(3, 1, -1) + feed(3, 2, 0.9), 0, "not known is not above");
}

Test(triggers, every_is_of_the_trigger_whichever_the_target)
{
	start(1);
	for (unsigned at = 0; at < 5; at++)
		for (pid_t pid = 1; pid <= 3; pid++)
			feed(pid, at, 0.9);
	cr_assert_eq(due_count, 1);
	cr_assert_eq(triggers_counts(triggers, 0).suppressed, 2, "once for each target's time above");
	feed(2, 5, 0.1);
	for (unsigned at = 6; at < 9; at++)
		feed(2, at, 0.9);
	cr_assert_eq(triggers_counts(triggers, 0).suppressed, 3);
}

Test(triggers, of_rules_gil_and_functions)
{
	double share = 0.19;
	struct trigger_slice slice = {.pid = 9,
	                              .to_ns = SLICE_NS,
	                              .rule = 6,
	                              .cpu = 0.1,
	                              .gil_wait = 0.6,
	                              .function_share = share_of,
	                              .context = &share};

	start(3);
	triggers_feed(triggers, &slice, take, dues);
	cr_assert_eq(due_count, 0);
	slice.rule = 7;
	triggers_feed(triggers, &slice, take, dues);
	cr_assert_eq(due_count, 1);
	cr_assert_eq(dues[0].trigger, 1);
	slice.rule = 6;
	share = 0.2;
	triggers_feed(triggers, &slice, take, dues);
	cr_assert_eq(due_count, 2);
	cr_assert_eq(dues[1].trigger, 2);
}

Test(triggers, memory_is_bounded)
{
	start(1);
	for (pid_t pid = 1; pid <= TRIGGERS_FOLLOWED_MAX + 10; pid++)
		feed(pid, 0, 0.9);
	cr_assert_eq(triggers_unfollowed(triggers), 10);
	feed(1, 1, 0.1);
	feed(5000, 1, 0.9);
	cr_assert_eq(triggers_unfollowed(triggers), 10, "who has come down makes room");
	feed(5001, 1, 0.9);
	cr_assert_eq(triggers_unfollowed(triggers), 11);
	feed(5002, 40, 0.9);
	cr_assert_eq(triggers_unfollowed(triggers), 11, "those that were not heard of again make room");
}
