/* SPDX-License-Identifier: Apache-2.0 */
/* What the walk up the data stack says where C led on from the last frame that it found. */
#include <criterion/criterion.h>

#include "sampler/walk.h"
#include "tests/unit/fake_coroutine.h"
#include "tests/unit/fake_objects.h"

/* Walks a copy of the data stack as it is now, in which handle() runs C and is known to lead on from there. */
static void walk(void)
{
	struct plan *p = fake.w.plan;
	raddr_t leaf;

	code_mark_indirect(codes_find(fake.w.codes, fake.handle_code), FAKE_AT_CALL_EX);
	plan_clear(p);
	fake.t->copy = (struct copy){.chunks = plan_add(p, fake.chunk, 1024), .chunk_count = 1, .head_first = true};
	cr_assert_eq(plan_read(p, fake.w.remote), 0);
	cr_assert(plan_reserve(p, 65536));
	cr_assert_eq(walk_up(&fake.w, fake.t, 0, &leaf), 0);
	cr_assert_eq(leaf, fake.handle);
	cr_assert_eq(fake.t->seen.depth, 1);
}

static raddr_t above(void)
{
	return fake.handle + codes_find(fake.w.codes, fake.handle_code)->frame_bytes;
}

Test(walkup, what_c_led_on_to_is_told_without_what_lies_between, .init = fake_coroutine_begin_11, .fini = fake_coroutine_end)
{
	raddr_t called = fake_function("called");

	fake_yield();
	fake_frame(above(), called, FAKE_AT_LOAD, FAKE_RUNS, fake_alloc(PYABI_FRAME_MAX));
	walk();
	cr_assert_eq(fake.w.beyond, called);
}

/* Once its place was known to lead on, every look at the frame failed for what it named so, and what held still had its samples. */
Test(walkup, what_older_frames_left_behind_is_no_function, .init = fake_coroutine_begin_11, .fini = fake_coroutine_end)
{
	fake_yield();
	fake_frame(above(), fake_alloc(PYABI_FRAME_MAX), FAKE_AT_LOAD, FAKE_RUNS, fake_alloc(PYABI_FRAME_MAX));
	walk();
	cr_assert_eq(fake.w.beyond, 0);
}
