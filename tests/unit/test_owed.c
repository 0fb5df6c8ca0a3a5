/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "sampler/owed.h"
#include "sampler/ring.h"
#include "tests/unit/fake_coroutine.h"
#include "tests/unit/fake_objects.h"

static struct owed one_of(uint32_t thread, uint64_t function)
{
	return (struct owed){
		.thread = thread, .count = 1, .function = function, .t_first_ns = 5, .t_last_ns = 5, .weight_ns = 10};
}

static void add(struct target *target, uint32_t thread, uint64_t function)
{
	struct owed owed = one_of(thread, function);

	cr_assert(owed_add(target, &owed));
}

/* A whole stack: handle(), which stands at its call of task(). */
static void begin_with_stack(uint64_t *ret_handle, uint64_t *ret_task)
{
	static const struct sampler_options options = {0};

	fake_coroutine_begin(12);
	fake.t->id = 1;
	fake.t->announced = true;
	fake.target->threads = &fake.t;
	fake.target->thread_count = 1;
	fake.target->proc.abi = *fake.abi;
	fake.target->options = &options;
	cr_assert_eq(ring_new(&fake.target->ring, 65536), 0);
	cr_assert(stack_push(&fake.t->seen,
	                     (struct pyframe){.frame = fake.handle, .code = fake.handle_code, .offset = FAKE_AT_CALL_EX, .opcode = 5}));
	cr_assert(stack_push(&fake.t->seen, (struct pyframe){.frame = fake.task, .code = fake.task_code, .offset = FAKE_AT_LOAD}));
	*ret_handle = codes_content(fake.target->codes, fake.handle_code);
	*ret_task = codes_content(fake.target->codes, fake.task_code);
}

static void end_with_stack(void)
{
	ring_free(fake.target->ring);
	fake_coroutine_end();
}

Test(owed, samples_of_one_function_of_one_thread_are_kept_together)
{
	struct target *target = calloc(1, sizeof(*target));
	struct owed later = one_of(1, 7), waiting = one_of(1, 7);
	struct thread one = {.id = 1}, two = {.id = 2};

	add(target, 1, 7);
	later.t_last_ns = 9;
	cr_assert(owed_add(target, &later));
	cr_assert_eq(target->owed_count, 1);
	cr_assert_eq(target->owed[0].count, 2);
	cr_assert_eq(target->owed[0].t_first_ns, 5);
	cr_assert_eq(target->owed[0].t_last_ns, 9);
	cr_assert_eq(target->owed[0].weight_ns, 20);
	waiting.status = STATUS_GIL_WAIT;
	cr_assert(owed_add(target, &waiting));
	cr_assert_eq(target->owed_count, 2);
	cr_assert(owed_any(target, &one, 7, NS_PER_MS));
	cr_assert_not(owed_any(target, &one, 8, NS_PER_MS));
	cr_assert_not(owed_any(target, &two, 7, NS_PER_MS));
	free(target);
}

/* A sample waits for a stack in which its function lies where it lay, and was called by the same generator, but not for ever. */
Test(owed, a_stack_in_the_same_context_is_waited_for)
{
	struct owed owed = one_of(1, 0);
	struct ran ran;
	uint64_t handle, task;

	begin_with_stack(&handle, &task);
	fake.t->seen.depth = 1;
	fake.w.place = fake.handle;
	ran = owed_told(&fake.w, fake.t, false);
	cr_assert_neq(ran.context, 0);
	owed.function = handle;
	owed.context = ran.context;
	cr_assert(owed_add(fake.target, &owed));
	add(fake.target, 1, handle);
	cr_assert_eq(fake.target->owed_count, 2, "kept apart from the others");
	owed_lose(fake.target, NULL);
	cr_assert(owed_add(fake.target, &owed));
	cr_expect(owed_any(fake.target, fake.t, handle, NS_PER_MS), "it lies there");
	fake.t->seen.frames[0].frame += 64;
	cr_expect_not(owed_any(fake.target, fake.t, handle, NS_PER_MS), "it lies elsewhere");
	cr_expect(owed_any(fake.target, fake.t, handle, 2 * NS_PER_S));
	fake.t->seen.frames[0].frame -= 64;
	fake.w.generator_code = fake.task_code;
	cr_expect_neq(owed_told(&fake.w, fake.t, false).context, ran.context, "called by a generator");
	fake.w.place = 0;
	fake.w.resumer = fake.handle_code;
	cr_expect_eq(owed_told(&fake.w, fake.t, false).context, handle, "a generator's: what had resumed it");
	owed_lose(fake.target, NULL);
	end_with_stack();
}

Test(owed, functions_by_the_thousand_are_found_and_lost_in_any_order)
{
	struct target *target = calloc(1, sizeof(*target));
	struct owed more = one_of(3, 1);
	struct thread odd = {.id = 1}, even = {.id = 2};

	for (uint64_t i = 0; i < OWED_MAX; i++)
		add(target, i % 2 ? 1 : 2, i / 2);
	cr_assert_not(owed_add(target, &more), "the table is full");
	owed_lose(target, &odd);
	cr_assert_eq(target->owed_count, OWED_MAX / 2);
	cr_assert_eq(target->facts.lost[LOSS_TORN], OWED_MAX / 2);
	cr_assert_eq(target->facts.unsampled_ns, 10 * OWED_MAX / 2);
	for (uint64_t i = 0; i < OWED_MAX / 2; i++) {
		cr_assert_not(owed_any(target, &odd, i, NS_PER_MS));
		cr_assert(owed_any(target, &even, i, NS_PER_MS));
	}
	owed_lose_old(target, NS_PER_S);
	cr_assert_eq(target->owed_count, OWED_MAX / 2);
	owed_lose_old(target, 20 * NS_PER_S);
	cr_assert_eq(target->owed_count, 0);
	cr_assert_not(owed_any(target, &even, 3, NS_PER_MS));
	free(target);
}

Test(owed, a_stack_through_the_function_stands_in_for_one_that_is_not_met)
{
	uint64_t handle, task;
	const struct rec_stack *record;

	begin_with_stack(&handle, &task);
	add(fake.target, 1, handle);
	add(fake.target, 1, task);
	add(fake.target, 2, handle);
	owed_note_through(fake.target, fake.t);
	owed_note_through(fake.target, fake.t);
	cr_assert_eq(fake.target->owed_through, 1, "not the innermost, nor another thread's");
	owed_lose_old(fake.target, 20 * NS_PER_S);
	cr_assert_eq(fake.target->owed_count + fake.target->owed_through, 0);
	cr_assert_eq(fake.target->facts.lost[LOSS_TORN], 2);
	cr_assert_eq(fake.target->facts.samples, 1);
	cr_assert_eq(fake.target->facts.deferred, 1);
	while ((record = (const struct rec_stack *)ring_peek(fake.target->ring)) && record->head.type != REC_STACK)
		ring_release(fake.target->ring);
	cr_assert_not_null(record);
	cr_assert_eq(record->depth, 1, "up to the function");
	cr_assert_eq(record->weight_ns, 10);
	end_with_stack();
}

Test(owed, of_a_deep_stack_the_inner_frames_are_looked_at)
{
	uint64_t handle, task;

	begin_with_stack(&handle, &task);
	add(fake.target, 1, handle);
	while (fake.t->seen.depth < 1000)
		cr_assert(stack_push(&fake.t->seen, fake.t->seen.frames[1]));
	owed_note_through(fake.target, fake.t);
	cr_assert_eq(fake.target->owed_through, 0);
	fake.t->seen.depth = 60;
	owed_note_through(fake.target, fake.t);
	cr_assert_eq(fake.target->owed_through, 1);
	owed_lose(fake.target, NULL);
	end_with_stack();
}

Test(owed, what_is_paid_needs_no_stand_in)
{
	uint64_t handle, task;

	begin_with_stack(&handle, &task);
	add(fake.target, 1, handle);
	owed_note_through(fake.target, fake.t);
	fake.t->seen.depth = 1;
	owed_pay(fake.target, fake.t, handle, 0, NS_PER_MS);
	cr_assert_eq(fake.target->owed_through, 0);
	owed_lose(fake.target, NULL);
	cr_assert_eq(fake.target->facts.samples, 1);
	cr_assert_eq(fake.target->facts.lost[LOSS_TORN], 0);
	end_with_stack();
}

Test(owed, a_stand_in_goes_with_its_code)
{
	uint64_t handle, task;

	begin_with_stack(&handle, &task);
	add(fake.target, 1, handle);
	owed_note_through(fake.target, fake.t);
	fake_put_u64(fake.handle_code + (uint64_t)fake.abi->type.type, 0);
	cr_assert_eq(codes_recheck(fake.target->codes, &fake.target->remote,
	                           codes_find(fake.target->codes, fake.handle_code), 0, NS_PER_S),
	             -ESTALE);
	owed_forget(fake.target);
	cr_assert_eq(fake.target->owed_through, 0);
	owed_lose(fake.target, NULL);
	cr_assert_eq(fake.target->facts.lost[LOSS_TORN], 1);
	end_with_stack();
}

/* What was met with an exception in hand is counted where that function has one, but not for ever. */
Test(owed, a_stack_with_an_exception_in_hand_is_waited_for)
{
	struct ran ran = {.handled = HANDLED_ANY};
	uint64_t handle;
	uint16_t status;
	uint8_t state[PYABI_TSTATE_MAX] = {0};

	begin_with_stack(&handle, &ran.function);
	fake.t->tstate = (uintptr_t)state;
	fake.w.stands = true; /* the kernel is not asked */
	plan_clear(fake.w.plan);
	thread_plan_state(fake.t, fake.abi, fake.w.plan);
	cr_assert_eq(plan_read(fake.w.plan, &fake.target->remote), 0);
	cr_assert_eq(owed_put_off(fake.target, fake.t, &fake.w, ran, 10, &status), -EINPROGRESS);
	cr_assert(status & STATUS_EXCEPTION, "as it was when the function ran");
	owed_pay(fake.target, fake.t, ran.function, 0, NS_PER_MS);
	cr_assert_eq(fake.target->owed_count, 1, "that was another of its calls");
	owed_pay(fake.target, fake.t, ran.function, STATUS_GIL_WAIT | STATUS_EXCEPTION, NS_PER_MS);
	cr_assert_eq(fake.target->owed_count, 0);
	cr_assert_eq(owed_put_off(fake.target, fake.t, &fake.w, ran, 10, &status), -EINPROGRESS);
	owed_pay(fake.target, fake.t, ran.function, 0, fake.w.now_ns + 2 * NS_PER_S);
	cr_assert_eq(fake.target->owed_count, 0, "no such stack was met");
	end_with_stack();
}
