/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/ends.h"

#include <criterion/criterion.h>
#include <stdlib.h>

Test(ends, the_latest_of_a_place_is_found)
{
	struct ends *ends = calloc(1, sizeof(*ends));

	cr_assert_not_null(ends);
	cr_expect_eq(ends_find(ends, 64, 128).code, 0);
	ends_note(ends, (struct end){.current = 64, .end = 128, .frame = 64, .code = 7});
	ends_note(ends, (struct end){.current = 0, .end = 128, .frame = 32, .code = 8});
	cr_expect_eq(ends_find(ends, 64, 128).code, 7);
	cr_expect_eq(ends_find(ends, 0, 128).frame, 32);
	cr_expect_eq(ends_find(ends, 64, 136).code, 0);
	ends_note(ends, (struct end){.current = 64, .end = 128, .frame = 64, .code = 9});
	cr_expect_eq(ends_find(ends, 64, 128).code, 9);
	free(ends);
}

Test(ends, what_is_new_takes_the_place_of_what_is_old)
{
	struct ends *ends = calloc(1, sizeof(*ends));
	uint32_t left = 0;

	cr_assert_not_null(ends);
	for (uint64_t i = 1; i <= 100 * ENDS; i++) {
		ends_note(ends, (struct end){.current = i, .end = 8 * i, .frame = i, .code = i});
		cr_assert_eq(ends_find(ends, i, 8 * i).code, i);
	}
	for (uint64_t i = 1; i <= 100 * ENDS; i++)
		left += ends_find(ends, i, 8 * i).code == i;
	cr_expect_leq(left, ENDS);
	cr_expect_geq(left, ENDS / 2);
	free(ends);
}
