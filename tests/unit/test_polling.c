/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/polling.h"

#include <criterion/criterion.h>

#include "tests/unit/fake_coroutine.h"
#include "tests/unit/fake_objects.h"

Test(polling, links_of_what_runs_are_remembered, .init = fake_coroutine_begin_11, .fini = fake_coroutine_end)
{
	fake_yield();
	apart_note_unlinked(fake.t->apart, fake.task);
	polling_links(fake.target, &fake.w, fake.t);
	cr_assert_eq(apart_link(fake.t->apart, fake.task).frame, 0);
	fake_resume();
	polling_links(fake.target, &fake.w, fake.t);
	cr_assert_eq(apart_link(fake.t->apart, fake.task).previous, fake.handle);
	cr_assert_eq(fake.t->apart->unlinked[0], 0, "it is polled for no more");
}

Test(polling, so_are_shims_that_are_linked_to_a_frame, .fini = fake_coroutine_end)
{
	fake_coroutine_begin(12);
	apart_note_unlinked(fake.t->apart, fake.task);
	fake_put_u64(fake.shim + (uint64_t)fake.abi->frame.previous, 0);
	polling_links(fake.target, &fake.w, fake.t);
	cr_assert_eq(apart_link(fake.t->apart, fake.task).frame, 0, "C has returned");
	fake_put_u64(fake.shim + (uint64_t)fake.abi->frame.previous, fake.handle);
	polling_links(fake.target, &fake.w, fake.t);
	cr_assert_eq(apart_link(fake.t->apart, fake.task).previous, fake.shim);
	cr_assert(apart_link(fake.t->apart, fake.shim).shim);
	cr_assert_eq(apart_link(fake.t->apart, fake.shim).previous, fake.handle);
}

Test(polling, a_link_that_cannot_be_read_is_given_up, .init = fake_coroutine_begin_11, .fini = fake_coroutine_end)
{
	apart_note_unlinked(fake.t->apart, fake_unmapped());
	apart_note_unlinked(fake.t->apart, fake.task);
	polling_links(fake.target, &fake.w, fake.t);
	polling_links(fake.target, &fake.w, fake.t);
	cr_assert_eq(apart_link(fake.t->apart, fake.task).previous, fake.handle);
	for (uint32_t i = 0; i < APART_UNLINKED; i++)
		cr_assert_eq(fake.t->apart->unlinked[i], 0);
}
