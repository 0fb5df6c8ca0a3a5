/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/calls.h"

#include <criterion/criterion.h>

#include "tests/unit/fake_coroutine.h"

enum { PROOFS = 8 };

static void begin(void)
{
	fake_coroutine_begin(12);
}

/* handle() has C run a coroutine, which was given what it has C run in its turn. Whether that becomes known, with the outer call proven or not. */
static bool is_learnt(bool outer_proven)
{
	struct pyframe frames[] = {
		{.frame = fake.handle, .code = fake.handle_code, .offset = FAKE_AT_CALL_EX},
		{.frame = fake.task, .code = fake.task_code, .offset = FAKE_AT_CALL_EX, .generator = true, .proven = outer_proven},
		{.frame = fake.task + 4096, .code = fake_function("given"), .offset = FAKE_AT_LOAD, .generator = true, .proven = true},
	};
	const struct pystack stack = {.frames = frames, .depth = 3, .apart = true};

	codes_find(fake.target->codes, fake.task_code)->given = true;
	for (int i = 0; i < PROOFS; i++)
		calls_sight_proven(&fake.w, &stack, fake.target->edges);
	return calls_are_known(&fake.w, &stack, 2, fake.target->edges);
}

Test(calls, what_a_caller_was_given_is_proven_with_what_led_to_it, .init = begin, .fini = fake_coroutine_end)
{
	cr_assert(is_learnt(true));
}

Test(calls, and_else_not, .init = begin, .fini = fake_coroutine_end)
{
	cr_assert_not(is_learnt(false));
}
