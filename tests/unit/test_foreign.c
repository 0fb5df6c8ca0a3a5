/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a caller's value stack says that it resumes another generator than the one that was met above it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/links.h"
#include "tests/unit/fake_coroutine.h"
#include "tests/unit/fake_objects.h"

enum { STACK_POINTER = 56, SLOTS = FAKE_LOCALS + FAKE_STACK_SLOTS };

static struct pyabi abi;
static struct pyframe frames[2];
static raddr_t callee; /* its frame */
static uint8_t *copy;  /* of the caller's, so small that a sanitizer sees what is read behind it */

static raddr_t object_of(raddr_t frame)
{
	return frame - (uint64_t)abi.gen.iframe;
}

static void begin(void)
{
	fake_coroutine_begin(12);
	abi = *fake.abi;
	fake.w.abi = &abi;
	callee = fake_alloc(PYABI_FRAME_MAX);
	frames[0] = (struct pyframe){.frame = fake.handle, .code = fake.handle_code, .offset = FAKE_AT_CALL_EX};
	frames[1] = (struct pyframe){.frame = callee, .code = fake.task_code, .generator = true};
	copy = calloc(1, (size_t)abi.frame.bytes + 8 * SLOTS);
	cr_assert_not_null(copy);
}

/* As versions are that store how much of the value stack is in use: so many slots. */
static void store_used(uint64_t used)
{
	uint64_t end = fake.handle + (uint64_t)abi.frame.bytes + 8 * (FAKE_LOCALS + used);

	abi.frame.stackpointer = STACK_POINTER;
	memcpy(copy + STACK_POINTER, &end, sizeof(end));
}

static void put(uint64_t slot, uint64_t value)
{
	memcpy(copy + (uint64_t)abi.frame.bytes + 8 * slot, &value, sizeof(value));
}

static bool resumes_another_in(uint32_t bytes)
{
	return links_resumes_another(&fake.w, fake.t, &frames[1], copy, bytes);
}

static bool resumes_another(void)
{
	return resumes_another_in((uint32_t)abi.frame.bytes + 8 * SLOTS);
}

static void end(void)
{
	free(copy);
	fake_coroutine_end();
}

Test(foreign, a_caller_that_holds_another_generator_resumes_that, .init = begin, .fini = end)
{
	cr_assert_not(resumes_another(), "C was given none, and resumed it all the same");
	put(FAKE_LOCALS + 1, object_of(fake.task));
	cr_assert(resumes_another());
	put(FAKE_LOCALS + 2, object_of(callee));
	cr_assert_not(resumes_another(), "it holds both");
	frames[1].generator = false;
	put(FAKE_LOCALS + 2, 0);
	cr_assert_not(resumes_another(), "no generator was met");
}

/* Where a reference is given up, a generator is closed, whatever lies on the value stack. */
Test(foreign, where_nothing_is_called_it_says_nothing, .init = begin, .fini = end)
{
	put(FAKE_LOCALS + 1, object_of(fake.task));
	frames[0].offset = FAKE_AT_LOAD;
	cr_assert_not(resumes_another());
}

Test(foreign, variables_say_nothing, .init = begin, .fini = end)
{
	put(0, object_of(fake.task));
	cr_assert_not(resumes_another());
	put(1, object_of(callee));
	put(FAKE_LOCALS, object_of(fake.task));
	cr_assert(resumes_another());
}

Test(foreign, what_is_no_generator_says_nothing, .init = begin, .fini = end)
{
	fake_owner(fake.task, 0);
	put(FAKE_LOCALS, object_of(fake.task));
	put(FAKE_LOCALS + 1, 8);
	put(FAKE_LOCALS + 2, UINT64_MAX);
	cr_assert_not(resumes_another());
}

Test(foreign, of_a_stored_stack_pointer_the_two_slots_below_count, .init = begin, .fini = end)
{
	store_used(3);
	put(FAKE_LOCALS, object_of(fake.task) | 1);
	put(FAKE_LOCALS + 1, 0x70000000);
	put(FAKE_LOCALS + 2, 1);
	cr_assert_not(resumes_another(), "it iterates over that, and calls something else");
	put(FAKE_LOCALS + 1, object_of(fake.task) | 1);
	cr_assert(resumes_another());
	put(FAKE_LOCALS, object_of(callee));
	cr_assert_not(resumes_another());
}

Test(foreign, where_nothing_lies_on_top_nothing_is_called, .init = begin, .fini = end)
{
	put(FAKE_LOCALS, 0x70000000);
	put(FAKE_LOCALS + 1, object_of(callee));
	store_used(0);
	cr_assert(resumes_another(), "it has not been called yet");
	store_used(2);
	cr_assert_not(resumes_another());
	put(FAKE_LOCALS + 1, 1);
	put(FAKE_LOCALS + 2, 1);
	store_used(3);
	cr_assert(resumes_another(), "it has returned: the arguments are gone");
}

/* Whatever a target says of its stack pointer, nothing outside the copy is looked at. */
Test(foreign, a_senseless_stack_pointer_stays_in_the_copy, .init = begin, .fini = end)
{
	const uint64_t used[] = {SLOTS, 1000, UINT64_MAX / 16, UINT64_MAX / 8};

	for (size_t i = 0; i < sizeof(used) / sizeof(*used); i++) {
		store_used(used[i]);
		for (uint32_t bytes = (uint32_t)abi.frame.bytes; bytes <= (uint32_t)abi.frame.bytes + 8 * SLOTS; bytes += 8) {
			uint8_t *whole = copy;

			copy = malloc(bytes);
			cr_assert_not_null(copy);
			memcpy(copy, whole, bytes);
			cr_assert(resumes_another_in(bytes), "there is nothing in it");
			free(copy);
			copy = whole;
		}
	}
}
