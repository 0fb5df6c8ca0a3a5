/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/bracket.h"

#include <criterion/criterion.h>

#include "sampler/burst.h"
#include "sampler/calls.h"
#include "tests/unit/fake_coroutine.h"
#include "tests/unit/fake_objects.h"

enum { SIGHTINGS = 8 };

static void note(raddr_t frame, struct apart_link link)
{
	link.frame = frame;
	link.bytes = (uint32_t)fake.abi->frame.bytes;
	apart_note_link(fake.t->apart, link);
	apart_note(fake.t->apart, frame, link.bytes, 1);
}

/* A look met handle() alone: the coroutine had gone on. */
static void begin_with(unsigned minor)
{
	fake_coroutine_begin(minor);
	note(fake.task, (struct apart_link){.previous = fake.shim ? fake.shim : fake.handle, .code = fake.task_code});
	if (fake.shim)
		note(fake.shim, (struct apart_link){.previous = fake.handle, .shim = true});
	cr_assert(stack_push(&fake.t->seen, (struct pyframe){.frame = fake.handle, .code = fake.handle_code, .offset = FAKE_AT_LOAD}));
}

static void begin(void)
{
	begin_with(12);
}

/* In so many goes. How many calls became known. */
static uint64_t learnt_in(int goes)
{
	for (int i = 0; i < goes; i++)
		bracket_calls(fake.target, &fake.w, fake.t);
	return fake.target->edges_learnt;
}

Test(bracket, who_resumes_a_coroutine_is_learnt, .init = begin, .fini = fake_coroutine_end)
{
	struct pyframe frames[] = {
		{.frame = fake.handle, .code = fake.handle_code, .offset = FAKE_AT_CALL_EX},
		{.frame = fake.task, .code = fake.task_code, .offset = FAKE_AT_LOAD, .generator = true},
	};
	const struct pystack stack = {.frames = frames, .depth = 2};

	cr_assert_eq(learnt_in(SIGHTINGS - 1), 0);
	cr_assert_not(calls_are_known(&fake.w, &stack, 1, fake.target->edges));
	cr_assert_eq(learnt_in(1), 1);
	cr_assert(calls_are_known(&fake.w, &stack, 1, fake.target->edges), "from where the caller stands now");
}

Test(bracket, unthrottled_it_is_learnt_in_between, .init = begin, .fini = fake_coroutine_end)
{
	fake.target->interval_ns = 0;
	for (fake.target->tick = 1; fake.target->edges_learnt == 0 && fake.target->tick < 1000; fake.target->tick++)
		burst_look(fake.target, fake.t, &fake.w);
	cr_assert_eq(fake.target->edges_learnt, 1);
	cr_assert_gt(fake.target->tick, 8 * SIGHTINGS, "most looks are left alone");
}

Test(bracket, so_is_one_that_c_resumes_without_a_shim, .fini = fake_coroutine_end)
{
	begin_with(11);
	cr_assert_eq(learnt_in(SIGHTINGS), 1);
}

Test(bracket, nothing_is_learnt_of_one_that_does_not_run, .init = begin, .fini = fake_coroutine_end)
{
	fake_yield();
	cr_assert_eq(learnt_in(4 * SIGHTINGS), 0);
}

Test(bracket, nor_where_c_was_called_by_another, .init = begin, .fini = fake_coroutine_end)
{
	fake_put_u64(fake.shim + (uint64_t)fake.abi->frame.previous, fake.chunk + 1024);
	cr_assert_eq(learnt_in(4 * SIGHTINGS), 0);
}

Test(bracket, nor_where_the_caller_cannot_call, .init = begin, .fini = fake_coroutine_end)
{
	fake_frame(fake.handle, fake.handle_code, FAKE_AT_LOAD, FAKE_RUNS, 0);
	cr_assert_eq(learnt_in(4 * SIGHTINGS), 0);
}

Test(bracket, nor_of_an_unknown_caller, .init = begin, .fini = fake_coroutine_end)
{
	fake.t->seen.depth = 0;
	cr_assert_eq(learnt_in(4 * SIGHTINGS), 0);
}

Test(bracket, a_function_that_c_calls_is_learnt_too, .init = begin, .fini = fake_coroutine_end)
{
	raddr_t callee = fake.handle + codes_find(fake.target->codes, fake.handle_code)->frame_bytes;

	fake_yield();
	fake_frame(callee, fake_function("callee"), FAKE_AT_LOAD, FAKE_RUNS, fake.shim);
	cr_assert_eq(learnt_in(SIGHTINGS - 1), 0);
	cr_assert_eq(learnt_in(1), 1);
}

Test(bracket, but_not_through_a_shim_that_leads_elsewhere, .init = begin, .fini = fake_coroutine_end)
{
	raddr_t callee = fake.handle + codes_find(fake.target->codes, fake.handle_code)->frame_bytes;

	fake_yield();
	fake_frame(callee, fake_function("callee"), FAKE_AT_LOAD, FAKE_RUNS, fake.shim + 8);
	cr_assert_eq(learnt_in(4 * SIGHTINGS), 0);
}

/* What lies in several chunks cannot be read as one piece. */
Test(bracket, frames_that_do_not_lie_one_behind_the_other_are_no_context, .init = begin, .fini = fake_coroutine_end)
{
	const struct pyframe caller = fake.t->seen.frames[0];

	fake.t->seen.depth = 0;
	for (int i = 0; i < 2; i++)
		cr_assert(stack_push(&fake.t->seen, (struct pyframe){.frame = fake.handle + (i ? 8192u : 0u), .code = fake.handle_code}));
	fake.t->seen.frames[0].frame = fake.handle - 8;
	cr_assert(stack_push(&fake.t->seen, caller));
	cr_assert_eq(learnt_in(4 * SIGHTINGS), 0);
}
