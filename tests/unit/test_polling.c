/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/polling.h"

#include <criterion/criterion.h>

#include "sampler/burst.h"
#include "tests/unit/fake_coroutine.h"
#include "tests/unit/fake_objects.h"

Test(polling, links_of_what_runs_are_remembered, .init = fake_coroutine_begin_11, .fini = fake_coroutine_end)
{
	fake_yield();
	apart_note_unlinked(fake.t->apart, fake.task);
	cr_assert_not(polling_links(fake.target, &fake.w, fake.t));
	cr_assert_eq(apart_link(fake.t->apart, fake.task).frame, 0);
	fake_resume();
	cr_assert(polling_links(fake.target, &fake.w, fake.t));
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

/* Unthrottled, samples are looks enough to learn from, but never find what a coroutine links to that has yielded by the time that it is read. */
Test(polling, unthrottled_too, .init = fake_coroutine_begin_11, .fini = fake_coroutine_end)
{
	fake.target->interval_ns = 0;
	fake.target->tick = 1;
	fake_yield();
	apart_note_unlinked(fake.t->apart, fake.task);
	burst_look(fake.target, fake.t, &fake.w);
	fake_resume();
	burst_look(fake.target, fake.t, &fake.w);
	cr_assert_eq(apart_link(fake.t->apart, fake.task).frame, 0, "not in every tick");
	for (int i = 0; i < 1000; i++, fake.target->tick++)
		burst_look(fake.target, fake.t, &fake.w);
	cr_assert_eq(apart_link(fake.t->apart, fake.task).previous, fake.handle);
}
