/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a profile's values its shares are of: --value, and what is taken where the first is zero throughout. */
#include "aggregator/choose.h"

#include <criterion/criterion.h>

#include "tests/unit/build_profile.h"

static struct profile *profile;
static uint32_t thread, node;

/* Four samples of a millisecond each with the GIL, and two that wait. */
static void setup(void)
{
	profile = built_new();
	thread = built_thread(profile, built_process(profile, 1, "app"), 0, 1, "MainThread");
	node = built_child(profile, thread, 0, built_symbol(profile, "f", "f.py", 1), 3);
	built_sample(profile, thread, node, 4, STATUS_GIL | STATUS_RUNNABLE);
	built_sample(profile, thread, node, 2, STATUS_GIL_WAIT);
}

/* As read from a file that has three values of its own: samples, allocations and bytes. */
static void setup_imported(void)
{
	setup();
	for (enum value_index v = VALUE_WALL; v < VALUE_COUNT; v++) {
		profile->values[v] = (struct value_type){0};
		profile->threads[thread].nodes[node].self[v] = 0;
	}
	profile->imported = true;
	profile->values[VALUE_WALL] = (struct value_type){.name = "allocations", .unit = "count"};
	profile->values[VALUE_RUNNABLE] = (struct value_type){.name = "bytes", .unit = "bytes"};
	profile->threads[thread].nodes[node].self[VALUE_WALL] = 10;
	profile->threads[thread].nodes[node].self[VALUE_RUNNABLE] = 4096;
}

static void teardown(void)
{
	built_free(profile);
}

static const uint64_t *values(void)
{
	return profile->threads[thread].nodes[node].self;
}

TestSuite(choose, .init = setup, .fini = teardown);

Test(choose, a_value_is_found_by_its_name_in_any_case)
{
	cr_assert_eq(profile_find_value(profile, "samples"), VALUE_SAMPLES);
	cr_assert_eq(profile_find_value(profile, "Wall"), VALUE_WALL);
	cr_assert_eq(profile_find_value(profile, "GIL_wait"), VALUE_GIL_WAIT);
	cr_assert_eq(profile_find_value(profile, "gi"), VALUE_COUNT);
	cr_assert_eq(profile_find_value(profile, ""), VALUE_COUNT);
}

Test(choose, the_weight_itself_changes_nothing)
{
	profile_choose_value(profile, VALUE_WALL);
	cr_assert(profile->has_runs && profile->threads[thread].run_count == 2);
	cr_assert_eq(values()[VALUE_WALL], 6000000);
	cr_assert_eq(values()[VALUE_GIL], 4000000);
	cr_assert(profile->uncounted, "and it alone stands for the profile");
}

Test(choose, the_time_of_a_state)
{
	profile_choose_value(profile, VALUE_GIL);
	cr_assert_eq(profile_weight(profile), VALUE_WALL);
	cr_assert_str_eq(profile->values[VALUE_WALL].name, "gil");
	cr_assert_eq(values()[VALUE_WALL], 4000000);
	cr_assert_eq(values()[VALUE_SAMPLES], 6, "samples stay");
	cr_assert_null(profile->values[VALUE_GIL].name);
	cr_assert_null(profile->values[VALUE_GIL_WAIT].name, "no state of ours is part of it");
	cr_assert_eq(values()[VALUE_GIL_WAIT], 0);
	cr_assert_str_eq(profile->values[VALUE_RUNNABLE].name, "wall", "what was the weight is kept behind");
	cr_assert_eq(values()[VALUE_RUNNABLE], 6000000);
	cr_assert(profile->uncounted);
	cr_assert(!profile->has_runs && !profile->threads[thread].runs && profile->threads[thread].run_count == 0,
	          "the weights of runs are of the former weight");
}

Test(choose, samples)
{
	profile_choose_value(profile, VALUE_SAMPLES);
	cr_assert_eq(profile_weight(profile), VALUE_SAMPLES);
	cr_assert_null(profile->values[VALUE_WALL].name);
	cr_assert_eq(values()[VALUE_WALL], 0);
	cr_assert_eq(values()[VALUE_SAMPLES], 6);
	cr_assert_eq(profile->left_out.wall, 6000000, "the time has no place any more, which is said");
	cr_assert(!profile->uncounted && !profile->has_runs);
}

Test(choose, values_of_a_file, .init = setup_imported)
{
	profile_choose_value(profile, profile_find_value(profile, "bytes"));
	cr_assert_str_eq(profile->values[VALUE_WALL].name, "bytes");
	cr_assert_str_eq(profile->values[VALUE_WALL].unit, "bytes");
	cr_assert_eq(values()[VALUE_WALL], 4096);
	cr_assert_str_eq(profile->values[VALUE_GIL].name, "allocations");
	cr_assert_eq(values()[VALUE_GIL], 10);
	cr_assert_null(profile->values[VALUE_RUNNABLE].name);
	cr_assert_eq(profile->left_out.wall, 0, "it had no time");
	profile_choose_value(profile, profile_find_value(profile, "allocations"));
	cr_assert_eq(values()[VALUE_WALL], 10, "and back");
	cr_assert_eq(values()[profile_find_value(profile, "bytes")], 4096);
}

Test(choose, what_is_taken_where_the_weight_is_zero, .init = setup_imported)
{
	cr_assert_eq(profile_value_instead(profile), VALUE_COUNT, "it is not");
	profile->threads[thread].nodes[node].self[VALUE_WALL] = 0;
	cr_assert_eq(profile_value_instead(profile), VALUE_RUNNABLE, "the next that is not zero");
	profile->threads[thread].nodes[node].self[VALUE_RUNNABLE] = 0;
	cr_assert_eq(profile_value_instead(profile), VALUE_SAMPLES);
	profile->threads[thread].nodes[node].self[VALUE_SAMPLES] = 0;
	cr_assert_eq(profile_value_instead(profile), VALUE_COUNT, "all are");
	profile->threads[thread].nodes[node].self[VALUE_EXCEPTION] = 1;
	cr_assert_eq(profile_value_instead(profile), VALUE_COUNT, "a place without a name is no value");
}
