/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "sampler/bytecode.h"
#include "tests/unit/fake_objects.h"

/* Opcodes of an interpreter that there is none of. */
enum { OTHER = 1, CALL_GENERAL, CALL_FOR_ONE, ATTRIBUTE_FOR_ONE, RESUME_FOR_ONE };
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

static bool find(int64_t *ret_offset)
{
	fake_reset();
	abi.calling[CALL_GENERAL] = 1;
	abi.calling[CALL_FOR_ONE] = CALLING_PUSHES + 1;
	abi.calling[ATTRIBUTE_FOR_ONE] = CALLING_SELDOM + CALLING_PUSHES + 1;
	abi.calling[RESUME_FOR_ONE] = CALLING_RESUMES + CALLING_PUSHES + 1;
	code.bytecode = fake_alloc(sizeof(bytes));
	code.bytecode_bytes = sizeof(bytes);
	fake_put(code.bytecode, bytes, sizeof(bytes));
	return bytecode_find_call(&abi, fake_remote(), &code, VERSION, ret_offset);
}

Test(bytecode, the_one_call_that_is_specialised_for_a_version_is_found)
{
	int64_t offset = -1;

	cr_assert_not(find(&offset));
	put(4, CALL_FOR_ONE, VERSION + 1);
	put(8, CALL_GENERAL, VERSION);
	put(12, ATTRIBUTE_FOR_ONE, VERSION);
	put(16, RESUME_FOR_ONE, VERSION);
	cr_assert_not(find(&offset), "none of these is a call of it");
	put(20, CALL_FOR_ONE, VERSION);
	cr_assert(find(&offset));
	cr_assert_eq(offset, 40);
	bytes[2 * (UNITS - 3)] = CALL_FOR_ONE;
	memcpy(bytes + 2 * (UNITS - 1), &(uint16_t){VERSION & 0xffff}, 2);
	cr_assert(find(&offset), "the end cuts a version short");
	put(24, CALL_FOR_ONE, VERSION);
	cr_assert_not(find(&offset), "two places");
}

Test(bytecode, without_a_version_nothing_is_found)
{
	int64_t offset;

	put(20, CALL_FOR_ONE, 0);
	find(&offset);
	cr_assert_not(bytecode_find_call(&abi, fake_remote(), &code, 0, &offset));
	code.bytecode = fake_unmapped();
	cr_assert_not(bytecode_find_call(&abi, fake_remote(), &code, VERSION, &offset));
}
