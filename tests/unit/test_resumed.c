/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "sampler/resumed.h"

Test(resumed, a_place_is_believed_when_it_was_seen_often_and_alone)
{
	static struct resumed r;
	int64_t offset = -1;

	cr_assert_not(resumed_find(&r, 1, 2, &offset));
	for (int i = 0; i < 3; i++) {
		resumed_note(&r, 1, 2, 40);
		cr_assert_not(resumed_find(&r, 1, 2, &offset));
	}
	resumed_note(&r, 1, 2, 40);
	cr_assert(resumed_find(&r, 1, 2, &offset));
	cr_assert_eq(offset, 40);
	cr_assert_not(resumed_find(&r, 2, 1, &offset));
}

Test(resumed, of_two_places_neither_is_believed)
{
	static struct resumed r;
	int64_t offset = -1;

	for (int i = 0; i < 10; i++)
		resumed_note(&r, 1, 2, 40);
	resumed_note(&r, 1, 2, 60);
	for (int i = 0; i < 10; i++)
		resumed_note(&r, 1, 2, 40);
	cr_assert_not(resumed_find(&r, 1, 2, &offset));
}

/* What was seen at two places must not be forgotten for others. */
Test(resumed, what_falls_together_is_kept)
{
	for (uint64_t program = 1; program <= 50; program++) {
		struct resumed *r = calloc(1, sizeof(*r));
		int64_t offset = -1;

		cr_assert_not_null(r);
		for (int turn = 0; turn < 5; turn++)
			for (uint64_t callee = 1; callee <= 40; callee++)
				resumed_note(r, program, callee, callee % 2 && turn == 0 ? 60 : 40);
		for (uint64_t callee = 1; callee <= 40; callee++)
			cr_expect_eq(resumed_find(r, program, callee, &offset), callee % 2 == 0);
		free(r);
	}
}
