/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/lookalike.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/unit/fake_coroutine.h"
#include "tests/unit/fake_objects.h"

/* handle() calls first() and second(), whose frames begin and end at the same places. */
static struct lookalikes {
	raddr_t first, second, frame;
	struct instant instant;
	struct pyabi abi;
} alike;

static void begin(void)
{
	fake_coroutine_begin(12);
	alike.abi = *fake.abi;
	alike.abi.tstate.cframe = ABSENT; /* the thread state names the current frame itself, as it does since 3.13 */
	fake.w.abi = &alike.abi;
	fake.w.ends = calloc(1, sizeof(*fake.w.ends));
	cr_assert_not_null(fake.w.ends);
	alike.first = fake_function("first");
	alike.second = fake_function("second");
	alike.frame = fake.handle + codes_find(fake.target->codes, fake.handle_code)->frame_bytes;
	alike.instant = (struct instant){.current = alike.frame,
	                                 .end = alike.frame + codes_find(fake.target->codes, alike.first)->frame_bytes};
}

static void end(void)
{
	free(fake.w.ends);
	fake_coroutine_end();
}

static void push(raddr_t frame, raddr_t code, int64_t offset)
{
	cr_assert(stack_push(&fake.t->seen, (struct pyframe){.frame = frame, .code = code, .offset = offset}));
}

/* A stack in which handle() has called it there was met so often. */
static void met(raddr_t code, int64_t offset, int times)
{
	fake.t->seen.depth = 0;
	push(fake.handle, fake.handle_code, offset);
	push(alike.frame, code, FAKE_AT_LOAD);
	while (times-- > 0)
		lookalike_count(&fake.w, fake.t);
}

/* The same where task(), which handle() has resumed, has called it. */
static void met_above_task(raddr_t code, int64_t offset, bool proven)
{
	fake.t->seen.depth = 0;
	fake.t->seen.apart = true;
	push(fake.handle, fake.handle_code, FAKE_AT_CALL_EX);
	push(fake.task, fake.task_code, offset);
	push(alike.frame, code, FAKE_AT_LOAD);
	lookalike_learn(&fake.w, fake.t, proven);
}

/* handle() stands there when it is copied. */
static void stands(int64_t offset)
{
	fake_frame(fake.handle, fake.handle_code, offset, FAKE_SUSPENDED, 0);
	plan_clear(fake.w.plan);
	cr_assert(thread_plan_stack(fake.t, fake.w.plan));
	cr_assert_eq(plan_read(fake.w.plan, &fake.target->remote), 0);
}

static raddr_t found(void)
{
	return lookalike_find(&fake.w, fake.t, &alike.instant).code;
}

Test(lookalike, what_its_caller_has_passed_ended)
{
	begin();
	cr_expect_eq(found(), 0, "nothing is known");
	met(alike.first, FAKE_AT_LOAD, 1);
	met(alike.second, FAKE_AT_RETURN, 1);
	stands(FAKE_AT_CALL_EX);
	cr_expect_eq(found(), alike.first);
	met(alike.first, FAKE_AT_RETURN, 1);
	met(alike.second, FAKE_AT_LOAD, 1);
	cr_expect_eq(found(), alike.second, "the other way round, as it is now");
	alike.instant.end += 8;
	cr_expect_eq(found(), 0, "none of that size");
	cr_expect_eq(lookalike_at(&fake.w, fake.t, &alike.instant).code, alike.second);
	alike.instant.current += 8;
	cr_expect_eq(lookalike_at(&fake.w, fake.t, &alike.instant).code, 0);
	end();
}

/* When its frame was pushed, its caller was still current. */
Test(lookalike, what_makes_a_frame_is_known_by_it)
{
	begin();
	met(alike.first, FAKE_AT_LOAD, 1);
	alike.instant.current = fake.handle;
	cr_expect_eq(found(), fake.handle_code);
	end();
}

Test(lookalike, what_is_met_much_more_often_ended)
{
	begin();
	met(alike.first, FAKE_AT_LOAD, 1);
	met(alike.second, FAKE_AT_RETURN, 100);
	stands(FAKE_AT_CALL_EX);
	cr_expect_eq(found(), alike.second, "in a loop, that may be its last round's");
	end();
}

Test(lookalike, of_several_that_were_passed_each_has_its_share)
{
	int firsts = 0;

	begin();
	met(alike.first, FAKE_AT_LOAD, 30);
	met(alike.second, FAKE_AT_CALL_EX, 10);
	stands(FAKE_AT_RETURN);
	for (int i = 0; i < 400; i++)
		firsts += found() == alike.first;
	cr_expect_geq(firsts, 280);
	cr_expect_leq(firsts, 320);
	end();
}

/* What lies there when it is copied is told; what is told too often by that makes way for what mostly is gone by then. */
Test(lookalike, what_lies_there_now_is_not_told_too_often)
{
	struct running now;
	int seconds = 0;

	begin();
	now = (struct running){.frame = alike.frame, .code = alike.second};
	met(alike.first, FAKE_AT_LOAD, 30);
	met(alike.second, FAKE_AT_CALL_EX, 10);
	stands(FAKE_AT_RETURN);
	for (int i = 0; i < 400; i++)
		seconds += found() == alike.second;
	stands(FAKE_AT_CALL_EX);
	for (int i = 0; i < 400; i++)
		seconds += lookalike_other(&fake.w, fake.t, &alike.instant, now).code == alike.second;
	cr_expect_geq(seconds, 180);
	cr_expect_leq(seconds, 220);
	apart_note(fake.t->apart, fake.task, 64, 1);
	cr_expect_eq(lookalike_other(&fake.w, fake.t, &alike.instant, now).code, alike.second, "how often things are met tells nothing there");
	end();
}

/* However often a thread was copied as it waited in one of them, or by chance. */
Test(lookalike, what_always_is_still_there_is_told)
{
	struct running now;

	begin();
	now = (struct running){.frame = alike.frame, .code = alike.second};
	met(alike.first, FAKE_AT_LOAD, 30);
	met(alike.second, FAKE_AT_CALL_EX, 10);
	stands(FAKE_AT_CALL_EX);
	for (int i = 0; i < 400; i++)
		cr_expect_eq(lookalike_other(&fake.w, fake.t, &alike.instant, now).code, alike.second);
	end();
}

/* The generator is read where it lies; it may wait for something by now. */
Test(lookalike, what_a_generator_has_called)
{
	begin();
	apart_note(fake.t->apart, fake.task, 64, 1);
	met_above_task(alike.second, FAKE_AT_RETURN, true);
	met_above_task(alike.first, FAKE_AT_LOAD, true);
	met_above_task(alike.second, FAKE_AT_LOAD, false); /* it may have called that elsewhere */
	stands(FAKE_AT_CALL_EX);
	cr_expect_eq(found(), 0, "no generator runs");
	alike.instant.generator = fake.task;
	cr_expect_eq(found(), 0, "nor is it known which");
	alike.instant.generator_code = fake.task_code;
	fake_frame(fake.task, fake.task_code, FAKE_AT_CALL_EX, FAKE_SUSPENDED, 0);
	cr_expect_eq(found(), alike.first);
	fake_frame(fake.task, fake.task_code, FAKE_AT_RETURN + 2, FAKE_SUSPENDED, 0);
	cr_expect_eq(found(), alike.second);
	end();
}

/* Where nothing is known of what has called them, the latest is taken; of what is no code any more, nothing. */
Test(lookalike, what_is_gone)
{
	begin();
	met(alike.first, FAKE_AT_LOAD, 1);
	met(alike.second, FAKE_AT_RETURN, 1);
	plan_clear(fake.w.plan);
	cr_expect_eq(found(), alike.second);
	fake_put_u64(alike.second + (uint64_t)fake.abi->type.type, 0);
	cr_assert_eq(codes_recheck(fake.target->codes, &fake.target->remote, codes_find(fake.target->codes, alike.second), 0, NS_PER_S),
	             -ESTALE);
	cr_expect_eq(found(), alike.first);
	end();
}

enum { LOOPS = 4 };
static raddr_t loops[LOOPS]; /* those that C began within others later */

/* As in 3.12, whose thread state names the run of the interpreter's loop, and no frame. */
static void begin_with_loops(void)
{
	begin();
	fake.w.abi = fake.abi;
	fake.t->tstate = fake_alloc((size_t)fake.abi->tstate.bytes);
	for (int i = 0; i < LOOPS; i++) /* the C stack grows downwards */
		loops[LOOPS - 1 - i] = fake_alloc(64);
	alike.instant.current = 0;
}

/* The thread is in this run of it, whose current frame is that one. */
static void in_loop(raddr_t loop, raddr_t frame)
{
	fake_put_u64(loop + (uint64_t)fake.abi->tstate.cframe_frame, frame);
	fake_put_u64(fake.t->tstate + (uint64_t)fake.abi->tstate.cframe, loop);
	plan_clear(fake.w.plan);
	thread_plan_state(fake.t, fake.abi, fake.w.plan);
	fake.t->copy.cframes = plan_add(fake.w.plan, loop + (uint64_t)fake.abi->tstate.cframe_frame, 8);
	fake.t->copy.cframe_count = 1;
	cr_assert_eq(plan_read(fake.w.plan, &fake.target->remote), 0);
}

/* first() lay there by what was copied. */
static raddr_t found_in(raddr_t loop)
{
	struct running first = {.frame = alike.frame, .code = alike.first};

	alike.instant.loop = loop;
	return lookalike_in_loop(&fake.w, fake.t, &alike.instant, first).code;
}

Test(lookalike, what_c_calls_runs_in_a_loop_of_its_own)
{
	begin_with_loops();
	in_loop(loops[1], alike.frame);
	met(alike.first, FAKE_AT_LOAD, 1);
	cr_expect_eq(found_in(loops[1]), alike.first);
	cr_expect_eq(found_in(loops[0]), alike.first, "it is not known whose loop that is");
	in_loop(loops[0], fake.handle);
	fake.t->seen.depth = 0;
	push(fake.handle, fake.handle_code, FAKE_AT_LOAD);
	lookalike_learn(&fake.w, fake.t, true);
	cr_expect_eq(found_in(loops[0]), fake.handle_code, "C makes its frame, or gives it back");
	cr_expect_eq(found_in(loops[1]), alike.first);
	cr_expect_eq(found_in(0), alike.first, "it was not told which loop it was");
	in_loop(loops[2], alike.frame);
	met(alike.second, FAKE_AT_LOAD, 1);
	cr_expect_eq(found_in(loops[2]), alike.second, "it has ended, and lay there before");
	end();
}

/* To which loop the frames below it belong is told where it was called from the same one. */
Test(lookalike, what_is_called_directly_runs_in_its_callers_loop)
{
	begin_with_loops();
	in_loop(loops[1], alike.frame);
	fake.t->seen.depth = 0;
	push(fake.handle, fake.handle_code, FAKE_AT_CALL_EX);
	push(alike.frame, alike.second, FAKE_AT_LOAD);
	fake.t->seen.frames[1].direct = true;
	lookalike_learn(&fake.w, fake.t, true);
	in_loop(loops[2], alike.frame);
	met(alike.first, FAKE_AT_LOAD, 1);
	cr_expect_eq(found_in(loops[2]), alike.first);
	cr_expect_eq(found_in(loops[1]), alike.second);
	in_loop(loops[3], fake.handle); /* of another instant than the stack */
	met(alike.first, FAKE_AT_LOAD, 1);
	cr_expect_eq(found_in(loops[1]), alike.second);
	cr_expect_eq(found_in(loops[3]), alike.first);
	end();
}
