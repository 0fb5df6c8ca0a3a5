/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/bytecode.h"
#include "sampler/pyabi/tables.h"

enum { UNITS = 32 };

static const struct pyabi *const tables[] = {&pyabi_3_11, &pyabi_3_12, &pyabi_3_13, &pyabi_3_14, &pyabi_3_15};

static uint8_t bytes[2 * UNITS]; /* of the code object: the target is this process */

static struct remote own_process(void)
{
	return (struct remote){.pid = getpid(), .mem_fd = -1};
}

/* An instruction that is neither plain nor calls, so that nothing else is found. */
static uint8_t other_opcode(const struct pyabi *abi)
{
	uint8_t opcode = 255;

	while (abi->calling[opcode] || strchr((const char *)abi->plain_opcodes, opcode) ||
	       strchr((const char *)abi->leaving_opcodes, opcode))
		opcode--;
	return opcode;
}

static struct code read_one(const struct pyabi *abi, const struct remote *r, uint8_t opcode, uint8_t arg)
{
	struct code code = {.bytecode = (raddr_t)(uintptr_t)bytes, .bytecode_bytes = sizeof(bytes)};

	for (int i = 0; i < UNITS; i++)
		bytes[2 * i] = other_opcode(abi);
	bytes[0] = opcode;
	bytes[1] = arg;
	bytecode_read(abi, r, &code);
	cr_assert_not_null(code.plain);
	return code;
}

static void release(struct code *code)
{
	free(code->leaving);
	free(code->calling);
	free(code->resuming);
	free(code->seldom);
	free(code->plain);
}

Test(bytecode, nothing_is_called_from_a_plain_instruction)
{
	struct remote r = own_process();

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const struct pyabi *abi = tables[i];
		unsigned minor = abi->minor;

		cr_assert_gt(strlen((const char *)abi->plain_opcodes), 8);
		for (const uint8_t *opcode = abi->plain_opcodes; *opcode; opcode++) {
			struct code code = read_one(abi, &r, *opcode, 0);

			cr_expect_not(bytecode_has_call(abi, &r, &code, 0, RESUMED_DIRECTLY), "3.%u: %u", minor, *opcode);
			cr_expect_not(bytecode_has_call(abi, &r, &code, 0, CALLED_BY_C), "3.%u: %u", minor, *opcode);
			cr_expect_not(bytecode_has_call(abi, NULL, &code, 0, CALLED_BY_C));
			cr_expect_not(bytecode_has_call(abi, &r, &code, 2, RESUMED_DIRECTLY));
			cr_expect(bytecode_has_call(abi, &r, &code, 2, CALLED_BY_C), "any other can run a finalizer");
			release(&code);
		}
	}
}

/* It stands at the instruction, or (3.11 and 3.12) at its last cache. */
Test(bytecode, every_instruction_that_calls_has_calls)
{
	struct remote r = own_process();

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const struct pyabi *abi = tables[i];
		unsigned minor = abi->minor;

		for (int opcode = 0; opcode < 256; opcode++) {
			int units = abi->calling[opcode] & CALLING_UNITS;
			int64_t at = 2 * (units - 1);
			bool resumes = abi->calling[opcode] < CALLING_QUIET_SUBSCRIPT && (abi->calling[opcode] & CALLING_RESUMES);
			bool by_c = minor == 11 && resumes;
			struct code code;

			if (abi->calling[opcode] == 0)
				continue;
			cr_assert_null(strchr((const char *)abi->plain_opcodes, opcode), "3.%u: %d", minor, opcode);
			if (abi->calling[opcode] >= CALLING_QUIET_SUBSCRIPT)
				at = 0;
			code = read_one(abi, &r, (uint8_t)opcode, NB_SUBSCR);
			cr_expect_eq(bytecode_has_call(abi, &r, &code, at, RESUMED_DIRECTLY), !by_c, "3.%u: %d", minor, opcode);
			cr_expect_eq(bytecode_has_call(abi, &r, &code, at, CALLED_DIRECTLY), !resumes, "3.%u: %d", minor, opcode);
			cr_expect(bytecode_has_call(abi, &r, &code, at, CALLED_BY_C), "3.%u: %d", minor, opcode);
			cr_expect(bytecode_has_call(abi, &r, &code, 0, CALLED_BY_C), "3.%u: %d", minor, opcode);
			release(&code);
			if (at == 0)
				continue;
			for (int unit = 0; unit < UNITS; unit++)
				bytes[2 * unit] = unit == 0 ? (uint8_t)opcode : abi->plain_opcodes[0];
			code = (struct code){.bytecode = (raddr_t)(uintptr_t)bytes, .bytecode_bytes = sizeof(bytes)};
			bytecode_read(abi, &r, &code);
			cr_expect(bytecode_has_call(abi, &r, &code, at, RESUMED_DIRECTLY), "3.%u: %d", minor, opcode);
			cr_expect(bytecode_has_call(abi, &r, &code, at, CALLED_BY_C), "3.%u: %d", minor, opcode);
			release(&code);
		}
	}
}

/* What is cached is anything: here, in turn, what every opcode would be. */
Test(bytecode, what_is_cached_is_no_instruction)
{
	struct remote r = own_process();

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const struct pyabi *abi = tables[i];
		uint8_t caching = 255;

		while (abi->caches[caching] == 0 || abi->calling[caching])
			caching--;
		for (int opcode = 0; opcode < 256; opcode++) {
			struct code code = {.bytecode = (raddr_t)(uintptr_t)bytes, .bytecode_bytes = sizeof(bytes)};

			for (int unit = 0; unit < UNITS; unit++)
				bytes[2 * unit] = other_opcode(abi);
			bytes[0] = caching;
			memset(bytes + 2, opcode, 2 * abi->caches[caching]);
			bytecode_read(abi, &r, &code);
			for (int at = 0; at < 2 * UNITS; at += 2) {
				cr_expect_not(bytecode_has_call(abi, &r, &code, at, RESUMED_DIRECTLY), "3.%u: %d at %d", abi->minor, opcode, at);
				cr_expect_not(code_leaves(&code, at) || code_bit(code.plain, at));
			}
			release(&code);
		}
	}
}

/* From 3.12 on what watches a program has its own instruction put in the place of each. */
Test(bytecode, an_instruction_that_is_watched_by_now_is_not_plain)
{
	struct remote r = own_process();
	const struct pyabi *abi = &pyabi_3_12;
	struct code code = read_one(abi, &r, abi->plain_opcodes[0], 0);

	cr_expect_not(bytecode_has_call(abi, &r, &code, 0, CALLED_BY_C));
	bytes[0] = 254; /* INSTRUMENTED_LINE */
	cr_expect(bytecode_has_call(abi, &r, &code, 0, CALLED_BY_C));
	cr_expect_not(bytecode_has_call(abi, &r, &code, 0, RESUMED_DIRECTLY), "it calls C, and that the callback");
	release(&code);
}

Test(bytecode, the_interpreters_own_trampolines_always_call)
{
	struct remote r = own_process();
	const struct pyabi *abi = &pyabi_3_13;
	struct code code = read_one(abi, &r, abi->plain_opcodes[0], 0);

	code.traceable_bytes = code.bytecode_bytes;
	cr_expect(bytecode_has_call(abi, &r, &code, 0, RESUMED_DIRECTLY));
	release(&code);
}

/* Whether code calls what it was given that has this instruction, with its caches, where PUSH_NULL's callable is pushed. */
static bool is_given(const struct pyabi *abi, const struct remote *r, uint8_t callable)
{
	uint32_t unit = 0;
	struct code code = read_one(abi, r, other_opcode(abi), 0);

	release(&code);
	cr_assert_not(code.given, "it has no PUSH_NULL");
	if (!abi->null_behind)
		bytes[2 * unit++] = abi->push_null;
	bytes[2 * unit] = callable;
	unit += 1u + abi->caches[callable];
	if (abi->null_behind)
		bytes[2 * unit] = abi->push_null;
	code = (struct code){.bytecode = (raddr_t)(uintptr_t)bytes, .bytecode_bytes = sizeof(bytes)};
	bytecode_read(abi, r, &code);
	release(&code);
	return code.given;
}

Test(bytecode, a_callable_that_is_no_global_and_no_attribute_is_given)
{
	struct remote r = own_process();
	struct code code = {.bytecode_bytes = sizeof(bytes)};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const struct pyabi *abi = tables[i];

		cr_expect(is_given(abi, &r, other_opcode(abi)), "3.%u", abi->minor);
		cr_assert_gt(strlen((const char *)abi->fixed_opcodes), 16);
		for (const uint8_t *opcode = abi->fixed_opcodes; *opcode; opcode++)
			cr_expect_not(is_given(abi, &r, *opcode), "3.%u: %u", abi->minor, *opcode);
		bytecode_read(abi, &r, &code);
		cr_expect(code.given, "it cannot be read");
		code.given = false;
	}
}
