/* SPDX-License-Identifier: Apache-2.0 */
/* Call sites: against what was seen in real interpreters' memory, against what dis says of each instruction, and hostile
 * bytecode; and the counts that are kept of them. */
#include "sampler/callsites.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/callsites_data.h"

enum { CODE_MAX = 8192, LOAD_CONST = 100, CALL_FUNCTION = 131, EXTENDED_ARG = 144, RETURN_VALUE = 83, DEPTH = 600 };

static uint32_t from_hex(const char *hex, uint8_t *to)
{
	uint32_t bytes = (uint32_t)strlen(hex) / 2;

	cr_assert(bytes <= CODE_MAX);
	for (uint32_t i = 0; i < bytes; i++) {
		char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

		to[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return bytes;
}

/* To 3.8 the depth inside of a `finally` is not known; nothing else is left out. */
static bool may_be_unsure(const struct callsites_case *c)
{
	static const char *const with_finally[] = {"finals", "withs", "excepts", "other", "coroutine"};

	for (size_t i = 0; c->minor <= 8 && i < sizeof(with_finally) / sizeof(with_finally[0]); i++)
		if (strcmp(c->name, with_finally[i]) == 0)
			return true;
	return false;
}

Test(callsites, seen_in_real_interpreters)
{
	unsigned calls = 0, unsure = 0;

	for (size_t i = 0; i < sizeof(callsites_cases) / sizeof(callsites_cases[0]); i++) {
		const struct callsites_case *c = &callsites_cases[i];
		struct callsite *sites;
		uint8_t code[CODE_MAX];
		int count, used;
		unsigned offset, slot;

		if (!c->code)
			continue;
		count = callsites_find_all(pyabi_table(3, c->minor), code, from_hex(c->code, code), c->stacksize, &sites);
		if (c->minor == 6 && strcmp(c->name, "excepts") == 0 && count == 0)
			continue; /* `except … as` in a loop: 3.6 takes the exception off before the `finally` that it is made of */
		cr_assert(count > 0, "3.%u %s", c->minor, c->name);
		for (const char *at = c->seen; sscanf(at, "%u:%u %n", &offset, &slot, &used) == 2; at += used) {
			const struct callsite *site = callsites_at(sites, (uint32_t)count, offset);

			calls++;
			cr_assert(site, "3.%u %s: no site at %u", c->minor, c->name, offset);
			unsure += site->kind == CALLSITE_OTHER;
			cr_expect_eq(site->unsure, site->kind == CALLSITE_OTHER, "3.%u %s at %u", c->minor, c->name, offset);
			if (site->kind == CALLSITE_OTHER)
				cr_expect(may_be_unsure(c), "3.%u %s: unsure at %u", c->minor, c->name, offset);
			else
				cr_expect_eq(site->slot + (site->kind == CALLSITE_METHOD && site->slot != slot), slot, "3.%u %s at %u: %u", c->minor,
				             c->name, offset, site->slot);
		}
		free(sites);
	}
	cr_expect(calls > 300 && unsure < calls / 10, "%u calls, %u unsure", calls, unsure);
}

/* 3.6 leaves the handling of an exception with too low an estimate; its interpreter does what that of 3.7 does. */
static bool is_estimate(unsigned minor, unsigned opcode)
{
	return minor == 6 && (opcode == 81 || opcode == 82 || opcode == 88 || opcode == 89);
}

/* The depth behind an instruction, told by the slot of a call that follows it. */
static int effect_of(const struct pyabi *abi, unsigned opcode, unsigned arg)
{
	uint8_t code[2 * DEPTH + 8];
	struct callsite *sites, *site;
	uint32_t n = 0;
	int count, effect;

	while (n < 2 * DEPTH) {
		code[n++] = LOAD_CONST;
		code[n++] = 0;
	}
	code[n++] = EXTENDED_ARG;
	code[n++] = (uint8_t)(arg >> 8);
	code[n++] = (uint8_t)opcode;
	code[n++] = (uint8_t)arg;
	code[n++] = CALL_FUNCTION;
	code[n++] = 0;
	code[n++] = RETURN_VALUE;
	code[n++] = 0;
	count = callsites_find_all(abi, code, n, 2 * DEPTH, &sites);
	site = callsites_at(sites, count > 0 ? (uint32_t)count : 0, n - 4);
	cr_assert(site, "3.%u, opcode %u: not understood", abi->minor, opcode);
	effect = site->slot + 1 - DEPTH;
	free(sites);
	return effect;
}

Test(callsites, effects_that_dis_tells)
{
	unsigned compared = 0;

	for (size_t i = 0; i < sizeof(callsites_cases) / sizeof(callsites_cases[0]); i++) {
		const struct callsites_case *c = &callsites_cases[i];
		unsigned opcode, arg;
		int effect, used;

		if (c->code)
			continue;
		for (const char *at = c->seen; sscanf(at, "%u:%u:%d %n", &opcode, &arg, &effect, &used) == 3; at += used) {
			if (is_estimate(c->minor, opcode))
				continue;
			cr_expect_eq(effect_of(pyabi_table(3, c->minor), opcode, arg), effect, "3.%u, opcode %u, oparg %u: not %d", c->minor, opcode, arg,
			             effect);
			compared++;
		}
	}
	cr_expect(compared > 2000, "%u", compared);
}

/* Of each call in the bytecode of 3.10: the index of the name that its callable was taken from, plus 1. */
static void expect_names(const char *hex, const unsigned (*calls)[2], size_t count)
{
	struct callsite *sites;
	uint8_t code[CODE_MAX];
	int found = callsites_find_all(pyabi_table(3, 10), code, from_hex(hex, code), 16, &sites);

	for (size_t i = 0; i < count; i++) {
		const struct callsite *site = callsites_at(sites, found > 0 ? (uint32_t)found : 0, calls[i][0]);

		cr_assert(site, "no site at %u", calls[i][0]);
		cr_expect_eq(site->name_index, calls[i][1], "%u at %u", site->name_index, calls[i][0]);
	}
	free(sites);
}

Test(callsites, the_name_of_what_is_called)
{
	/* f(x, g(y)); a.m(x).n(): LOAD_GLOBAL f, LOAD_FAST, LOAD_GLOBAL g, LOAD_FAST, CALL_FUNCTION 1, CALL_FUNCTION 2, POP_TOP,
	 * LOAD_FAST a, LOAD_METHOD m, LOAD_FAST, CALL_METHOD 1, LOAD_METHOD n, CALL_METHOD 0, RETURN_VALUE */
	expect_names("7400" "7c00" "7401" "7c01" "8301" "8302" "0100" "7c02" "a002" "7c00" "a101" "a003" "a100" "5300",
	             (const unsigned[][2]){{8, 2}, {10, 1}, {20, 3}, {24, 4}}, 4);
	/* o.k(x if y else z, n=1): LOAD_FAST o, LOAD_ATTR k, LOAD_FAST y, POP_JUMP_IF_FALSE 6, LOAD_FAST x, JUMP_FORWARD 1, LOAD_FAST z, LOAD_CONST 1,
	 * LOAD_CONST names, CALL_FUNCTION_KW 2, RETURN_VALUE */
	expect_names("7c00" "6a04" "7c01" "7206" "7c02" "6e01" "7c03" "6401" "6402" "8d02" "5300", (const unsigned[][2]){{18, 5}}, 1);
	/* x(y); d[k](): LOAD_FAST x, LOAD_FAST y, CALL_FUNCTION 1, POP_TOP, LOAD_GLOBAL d, LOAD_FAST k, BINARY_SUBSCR, CALL_FUNCTION 0, RETURN_VALUE */
	expect_names("7c00" "7c01" "8301" "0100" "7400" "7c02" "1900" "8300" "5300", (const unsigned[][2]){{4, 0}, {14, 0}}, 2);
}

Test(callsites, hostile_bytecode)
{
	uint32_t seed = 1;

	for (unsigned round = 0; round < 20000; round++) {
		const struct pyabi *abi = pyabi_table(3, 6 + round % 5);
		uint32_t bytes = 1 + round % 300;
		uint8_t *code = malloc(bytes);
		struct callsite *sites;
		int count;

		cr_assert(code);
		for (uint32_t i = 0; i < bytes; i++) {
			seed = seed * 1664525u + 1013904223u;
			code[i] = (uint8_t)(seed >> 24);
		}
		count = callsites_find_all(abi, code, bytes, round % 40, &sites);
		cr_assert(count >= 0 && (uint32_t)count <= bytes / 2);
		for (int i = 0; i < count; i++) {
			cr_assert(sites[i].offset < bytes && (i == 0 || sites[i].offset > sites[i - 1].offset));
			cr_assert(sites[i].kind == CALLSITE_OTHER || (sites[i].slot < sites[i].end && sites[i].end <= round % 40));
		}
		free(sites);
		free(code);
	}
}

Test(callsites, hostile_shapes)
{
	static const uint8_t grows[] = {100, 0, 113, 0}; /* pushes in a loop */
	static const uint8_t far[] = {144, 255, 144, 255, 144, 255, 113, 255};
	static const uint8_t prefixes[] = {144, 255, 144, 255, 144, 255, 144, 255, 144, 255};
	static const uint8_t pops[] = {1, 0, 83, 0};
	struct callsite *sites;

	for (unsigned minor = 6; minor <= 10; minor++) {
		const struct pyabi *abi = pyabi_table(3, minor);

		cr_expect_eq(callsites_find_all(abi, grows, sizeof(grows), 3, &sites), 0);
		cr_expect_eq(callsites_find_all(abi, far, sizeof(far), 3, &sites), 0);
		cr_expect_eq(callsites_find_all(abi, prefixes, sizeof(prefixes), 3, &sites), 0);
		cr_expect_eq(callsites_find_all(abi, pops, sizeof(pops), 3, &sites), 0);
		cr_expect_eq(callsites_find_all(abi, pops, 0, 3, &sites), 0);
		cr_expect_eq(callsites_find_all(abi, pops, sizeof(pops), UINT32_MAX, &sites), 0);
	}
	cr_expect_eq(callsites_find_all(pyabi_table(3, 11), pops, sizeof(pops), 3, &sites), 0);
}

Test(callsites, counts)
{
	struct callsite site = {.kind = CALLSITE_CALL};

	cr_expect(!callsite_is_of(&site, 7) && !callsite_is_python(&site));
	for (int i = 0; i < 15; i++)
		callsite_count(&site, 7);
	cr_expect(!callsite_is_of(&site, 7), "too few to tell");
	for (int i = 0; i < 1000; i++)
		callsite_count(&site, 7);
	cr_expect(callsite_is_of(&site, 7) && !callsite_is_of(&site, 8) && callsite_is_python(&site));
	for (int i = 0; i < 10; i++)
		callsite_count(&site, 8);
	cr_expect(callsite_is_of(&site, 7), "one in a hundred may be misread");
	for (int i = 0; i < 100; i++)
		callsite_count(&site, 8);
	cr_expect(!callsite_is_of(&site, 7), "one in ten is not");
	for (int i = 0; i < 2000; i++)
		callsite_count(&site, 9);
	cr_expect(site.callee == 9 && !callsite_is_of(&site, 9));
	for (int i = 0; i < 1000; i++)
		callsite_count(&site, 0);
	cr_expect(!callsite_is_python(&site));
}

/* Of a site that calls C, it counts whether that was ever given the function. */
Test(callsites, one_that_names_no_function_is_open)
{
	struct callsite site = {0};

	cr_assert(callsite_is_open(&site));
	for (int i = 0; i < 100; i++)
		callsite_count(&site, 0);
	cr_assert(callsite_is_open(&site));
	callsite_count(&site, 5);
	cr_assert(callsite_is_open(&site), "one can be misread");
	for (int i = 0; i < 10; i++)
		callsite_count(&site, 5);
	cr_assert_not(callsite_is_open(&site));
}
