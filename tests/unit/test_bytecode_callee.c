/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/bytecode.h"
#include "tests/unit/fake_objects.h"

/* Opcodes of an interpreter that there is none of. */
enum { OTHER = 1, CALL_GENERAL, CALL_FOR_ONE, ATTRIBUTE_FOR_ONE, RESUME_FOR_ONE, SEND };
enum { UNITS = 32, VERSION = 70000 };

static struct pyabi abi;
static struct code code;
static uint8_t bytes[2 * UNITS];

static void put(uint32_t unit, uint8_t opcode, uint32_t version)
{
	cr_assert_leq(unit, UNITS - 4);
	bytes[2 * unit] = opcode;
	memcpy(bytes + 2 * unit + 4, &version, sizeof(version));
}

static uint32_t find(int64_t *ret_offset)
{
	fake_reset();
	abi.calling[CALL_GENERAL] = 1;
	abi.calling[CALL_FOR_ONE] = CALLING_PUSHES + 1;
	abi.calling[ATTRIBUTE_FOR_ONE] = CALLING_SELDOM + CALLING_PUSHES + 1;
	abi.calling[RESUME_FOR_ONE] = CALLING_RESUMES + CALLING_PUSHES + 1;
	code.bytecode = fake_alloc(sizeof(bytes));
	code.bytecode_bytes = sizeof(bytes);
	fake_put(code.bytecode, bytes, sizeof(bytes));
	return bytecode_find_calls(&abi, fake_remote(), &code, VERSION, ret_offset);
}

static void free_bits(void)
{
	free(code.leaving);
	free(code.calling);
	free(code.resuming);
	free(code.seldom);
	free(code.plain);
	free(code.awaiting);
	code = (struct code){.bytecode = code.bytecode, .bytecode_bytes = code.bytecode_bytes};
}

Test(bytecode, calls_that_are_specialised_for_a_version_are_found)
{
	int64_t offset = -1;

	cr_assert_eq(find(&offset), 0);
	put(4, CALL_FOR_ONE, VERSION + 1);
	put(8, CALL_GENERAL, VERSION);
	put(12, ATTRIBUTE_FOR_ONE, VERSION);
	put(16, RESUME_FOR_ONE, VERSION);
	cr_assert_eq(find(&offset), 0, "none of these is a call of it");
	put(20, CALL_FOR_ONE, VERSION);
	cr_assert_eq(find(&offset), 1);
	cr_assert_eq(offset, 40);
	bytes[2 * (UNITS - 3)] = CALL_FOR_ONE;
	memcpy(bytes + 2 * (UNITS - 1), &(uint16_t){VERSION & 0xffff}, 2);
	cr_assert_eq(find(&offset), 1, "the end cuts a version short");
	put(24, CALL_FOR_ONE, VERSION);
	cr_assert_eq(find(&offset), 2);
}

Test(bytecode, without_a_version_nothing_is_found)
{
	int64_t offset;

	put(20, CALL_FOR_ONE, 0);
	find(&offset);
	cr_assert_eq(bytecode_find_calls(&abi, fake_remote(), &code, 0, &offset), 0);
	cr_assert_eq(bytecode_find_calls(&abi, NULL, &code, VERSION, &offset), 0);
	code.bytecode = fake_unmapped();
	cr_assert_eq(bytecode_find_calls(&abi, fake_remote(), &code, VERSION, &offset), 0);
}

static uint32_t specialised_for(int64_t at)
{
	return bytecode_specialised_for(&abi, fake_remote(), &code, at);
}

Test(bytecode, the_version_that_a_call_is_specialised_for_is_told)
{
	int64_t offset;

	put(12, ATTRIBUTE_FOR_ONE, VERSION + 1);
	put(16, CALL_GENERAL, VERSION + 1);
	put(20, CALL_FOR_ONE, VERSION);
	find(&offset);
	cr_assert_eq(specialised_for(24), 0);
	cr_assert_eq(specialised_for(32), 0);
	cr_assert_eq(specialised_for(40), VERSION);
	cr_assert_eq(bytecode_specialised_for(&abi, NULL, &code, 40), 0);
	abi.calling[CALL_FOR_ONE] = CALLING_PUSHES + 4; /* a frame stands behind the caches */
	cr_assert_eq(specialised_for(46), VERSION);
	cr_assert_eq(specialised_for(40), 0);
	cr_assert_eq(specialised_for(2 * UNITS - 4), 0, "the end cuts a version short");
}

static bool awaits(int64_t at)
{
	return bytecode_has_call(&abi, fake_remote(), &code, at, AWAITED_BY_C);
}

Test(bytecode, where_coroutines_are_awaited_through_c_is_told)
{
	int64_t offset;

	put(10, SEND, 0);
	find(&offset);
	abi.frames = FRAMES_STACK;
	bytecode_read(&abi, fake_remote(), &code);
	cr_assert_null(code.awaiting, "the version has no need");
	cr_assert(awaits(18));
	free_bits();
	abi.send_opcode = SEND;
	bytecode_read(&abi, fake_remote(), &code);
	cr_assert_not(awaits(18));
	cr_assert(awaits(20));
	cr_assert(awaits(22), "it yields what it got");
	cr_assert(awaits(24), "what was thrown in was caught");
	cr_assert_not(awaits(26));
	free_bits();
}
