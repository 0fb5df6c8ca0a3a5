/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/ends.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* The first of what is remembered there, or zeros. */
static struct end first(struct ends *ends, struct end place)
{
	const struct end *known = ends_find(ends, &place);

	for (uint32_t i = 0; i < ENDS_WAYS; i++)
		if (ends_is_at(&known[i], &place))
			return known[i];
	return (struct end){0};
}

static struct ends *make(void)
{
	struct ends *ends = calloc(1, sizeof(*ends));

	cr_assert_not_null(ends);
	return ends;
}

static void note(struct ends *ends, struct end end)
{
	ends_note(ends, &end);
}

Test(ends, the_latest_of_a_place_is_first)
{
	struct ends *ends = make();

	cr_expect_eq(first(ends, (struct end){.current = 64, .end = 128}).code, 0);
	note(ends, (struct end){.current = 64, .end = 128, .frame = 64, .code = 7});
	note(ends, (struct end){.end = 128, .frame = 32, .code = 8});
	note(ends, (struct end){.current = 64, .end = 128, .generator = 5, .frame = 64, .code = 6});
	cr_expect_eq(first(ends, (struct end){.current = 64, .end = 128}).code, 7);
	cr_expect_eq(first(ends, (struct end){.end = 128}).frame, 32);
	cr_expect_eq(first(ends, (struct end){.current = 64, .end = 128, .generator = 5}).code, 6);
	cr_expect_eq(first(ends, (struct end){.current = 64, .end = 136}).code, 0);
	note(ends, (struct end){.current = 64, .end = 128, .frame = 64, .code = 9});
	cr_expect_eq(first(ends, (struct end){.current = 64, .end = 128}).code, 9);
	note(ends, (struct end){.current = 64, .end = 128, .frame = 64, .code = 7});
	cr_expect_eq(first(ends, (struct end){.current = 64, .end = 128}).code, 7);
	free(ends);
}

Test(ends, each_caller_of_a_function_counts_by_itself)
{
	struct ends *ends = make();
	struct end end = {.current = 64, .end = 128, .frame = 64, .code = 7, .met = 1, .calls = {{.code = 1, .offset = 10}}}, other = end;

	other.calls[0].offset = 20;
	for (int i = 0; i < 3; i++)
		note(ends, end);
	note(ends, other);
	cr_expect_eq(first(ends, end).met, 1);
	note(ends, end);
	cr_expect_eq(first(ends, end).met, 4);
	free(ends);
}

/* Counts follow what the program does now, and stay in proportion. */
Test(ends, counts_are_halved_together)
{
	struct ends *ends = make();
	struct end one = {.current = 64, .end = 128, .frame = 64, .code = 7, .met = 1}, other = one;
	struct end *known;

	other.code = 8;
	for (int i = 0; i < 100000; i++)
		note(ends, i % 4 ? one : other);
	known = ends_find(ends, &one);
	cr_assert_eq(known[0].code, 7);
	cr_assert_eq(known[1].code, 8);
	cr_expect_leq(known[0].met, 2000);
	cr_expect_float_eq((double)known[0].met / known[1].met, 3, 0.2);
	known[0].told = known[0].met;
	known[1].told = known[1].met;
	for (int i = 0; i < 100000; i++)
		note(ends, one);
	cr_expect_leq(known[1].told, 1, "it was not met again");
	cr_expect_eq(known[1].told, known[1].met);
	free(ends);
}

Test(ends, what_is_new_takes_the_place_of_what_is_old)
{
	struct ends *ends = make();
	uint32_t left = 0;

	for (uint64_t i = 1; i <= 100 * ENDS; i++) {
		struct end end = {.current = i, .end = 8 * i, .frame = i, .code = i};

		note(ends, end);
		cr_assert_eq(first(ends, end).code, i);
	}
	for (uint64_t i = 1; i <= 100 * ENDS; i++)
		left += first(ends, (struct end){.current = i, .end = 8 * i}).code == i;
	cr_expect_leq(left, ENDS);
	cr_expect_geq(left, ENDS / 2);
	free(ends);
}
