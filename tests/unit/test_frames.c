/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/frames.h"

#include <criterion/criterion.h>

#define FUNCTION UINT64_C(0x7f0011223340)

enum { HEAD = 72, SLOTS = 6, FRAME = 0x10000 };

static struct pyabi abi;
static uint64_t caller[HEAD / 8 + SLOTS], callee[HEAD / 8];

/* Whether the frame is found to have the callee, which lies in this slot while the value stack ends at `top`. */
static bool handed(int32_t slot, int32_t top)
{
	abi.frame.func = 16;
	abi.frame.bytes = HEAD;
	memset(caller, 0, sizeof(caller));
	memset(callee, 0, sizeof(callee));
	callee[2] = FUNCTION;
	caller[HEAD / 8 + slot] = FUNCTION;
	if (abi.frame.stackpointer != ABSENT)
		caller[4] = (uint64_t)(FRAME + HEAD + 8 * top);
	else
		memcpy(&caller[4], &top, sizeof(top));
	return frame_handed(&abi, FRAME, (const uint8_t *)caller, sizeof(caller), (const uint8_t *)callee);
}

static void begin_stacktop(void)
{
	abi = (struct pyabi){.frame = {.stacktop = 32, .stackpointer = ABSENT}};
}

static void begin_stackpointer(void)
{
	abi = (struct pyabi){.frame = {.stacktop = ABSENT, .stackpointer = 32}};
}

Test(frames, the_callable_lies_where_the_value_stack_ends, .init = begin_stacktop)
{
	cr_assert(handed(2, 2));
	cr_assert(handed(3, 2), "behind a NULL");
	cr_assert_not(handed(4, 2));
	cr_assert_not(handed(1, 2));
	cr_assert_not(handed(0, -1), "it runs");
	cr_assert(handed(SLOTS - 1, SLOTS - 1));
	cr_assert_not(handed(0, SLOTS), "behind what was copied");
	cr_assert_not(handed(0, INT32_MAX));
	cr_assert_not(handed(0, INT32_MIN));
}

Test(frames, the_same_where_the_stack_pointer_is_kept, .init = begin_stackpointer)
{
	cr_assert(handed(2, 2));
	callee[2] |= 1;
	cr_assert(frame_handed(&abi, FRAME, (const uint8_t *)caller, sizeof(caller), (const uint8_t *)callee), "a tag");
	caller[4] = 8;
	cr_assert_not(frame_handed(&abi, FRAME, (const uint8_t *)caller, sizeof(caller), (const uint8_t *)callee));
	caller[4] = UINT64_MAX;
	cr_assert_not(frame_handed(&abi, FRAME, (const uint8_t *)caller, sizeof(caller), (const uint8_t *)callee));
	cr_assert_not(handed(4, 2));
}

Test(frames, a_frame_without_a_function_is_handed_nothing, .init = begin_stackpointer)
{
	cr_assert_not(handed(SLOTS - 1, 2));
	callee[2] = 0;
	cr_assert_not(frame_handed(&abi, FRAME, (const uint8_t *)caller, sizeof(caller), (const uint8_t *)callee));
	abi.frame.func = ABSENT;
	callee[2] = FUNCTION;
	cr_assert_not(frame_handed(&abi, FRAME, (const uint8_t *)caller, sizeof(caller), (const uint8_t *)callee));
}
