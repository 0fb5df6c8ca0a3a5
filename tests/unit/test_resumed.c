/* SPDX-License-Identifier: Apache-2.0 */
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
