/* SPDX-License-Identifier: Apache-2.0 */
/* What real bytecode says is tests/integration/test_callnames.py's; this is what no compiler makes, and how what was found is looked up. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/callnames.h"
#include "sampler/pyabi/tables.h"

enum { NAMES = 3 };

static const struct pyabi *const tables[] = {&pyabi_3_11, &pyabi_3_12, &pyabi_3_13, &pyabi_3_14, &pyabi_3_15};
static const char *const texts[NAMES] = {"first", "second", "_Thing__hidden"};

static uint64_t tuple[16], constants[16];
static uint8_t strings[NAMES][128];
static uint8_t bytecode[65536];
static uint32_t at;

static struct remote own_process(void)
{
	return (struct remote){.pid = getpid(), .mem_fd = -1};
}

static struct pyabi abi_of(const struct pyabi *table)
{
	struct pyabi abi = *table;

	/* Newer ones say these themselves. */
	abi.str.length = 16;
	abi.str.state = 32;
	abi.str.ascii_text = 40;
	abi.str.text = 56;
	abi.str_layout = pyabi_3_12.str_layout;
	return abi;
}

static void make_names(const struct pyabi *abi)
{
	memset(tuple, 0, sizeof(tuple));
	memset(strings, 0, sizeof(strings));
	tuple[abi->tuple.size / 8] = NAMES;
	for (size_t i = 0; i < NAMES; i++) {
		uint64_t length = strlen(texts[i]);
		uint32_t state = 1u << 2 | 1u << 5 | 1u << 6; /* one byte a character, compact, ASCII */

		tuple[abi->tuple.items / 8 + (int32_t)i] = (uint64_t)(uintptr_t)strings[i];
		memcpy(strings[i] + abi->str.length, &length, sizeof(length));
		memcpy(strings[i] + abi->str.state, &state, sizeof(state));
		memcpy(strings[i] + abi->str.ascii_text, texts[i], length);
	}
}

static uint8_t opcode_of(const struct pyabi *abi, const char *name)
{
	for (unsigned opcode = 0; opcode < 256; opcode++)
		if (abi->opnames[opcode] && strcmp(abi->opnames[opcode], name) == 0)
			return (uint8_t)opcode;
	cr_assert_fail("3.%u has no %s", abi->minor, name);
	return 0;
}

/* Adds an instruction with its caches; its offset. */
static uint32_t add(const struct pyabi *abi, const char *name, uint8_t arg)
{
	uint32_t offset = at;

	bytecode[at] = opcode_of(abi, name);
	bytecode[at + 1] = arg;
	at += 2u + 2u * abi->caches[bytecode[at]];
	return offset;
}

/* LOAD_GLOBAL with the NULL of a call. */
static void begin(const struct pyabi *abi, uint8_t name)
{
	add(abi, "LOAD_GLOBAL", (uint8_t)(name << 1 | 1));
}

static int find(const struct pyabi *abi, uint32_t owner, struct callname **ret_names)
{
	struct remote r = own_process();

	return callnames_find_all(abi, &r, (raddr_t)(uintptr_t)tuple, (raddr_t)(uintptr_t)constants, owner, bytecode, at, ret_names);
}

static void start(const struct pyabi *abi)
{
	make_names(abi);
	memset(bytecode, 0, sizeof(bytecode));
	at = 0;
}

static bool is_named(const struct callname *name, const char *text, bool single)
{
	return name && name->name == callname_hash(text, strlen(text)) && name->single == single;
}

/* As the version makes it: 3.11 has an instruction before. */
static uint32_t call(const struct pyabi *abi, uint8_t arguments)
{
	if (abi->minor == 11)
		add(abi, "PRECALL", arguments);
	return add(abi, "CALL", arguments);
}

/* A generator expression, whose code is this constant. */
static void make(const struct pyabi *abi, uint8_t constant)
{
	add(abi, "LOAD_CONST", constant);
	add(abi, "MAKE_FUNCTION", 0);
	add(abi, "LOAD_FAST", 0);
	add(abi, "GET_ITER", 0);
	add(abi, "CALL", 0);
}

Test(callnames, calls_nest)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		struct pyabi abi = abi_of(tables[i]);
		struct callname *names;
		uint32_t inner, outer;
		int count;

		start(&abi);
		begin(&abi, 0);
		begin(&abi, 1);
		inner = add(&abi, "CALL", 0);
		outer = add(&abi, "CALL", 1);
		count = find(&abi, 0, &names);
		cr_assert_eq(count, 2);
		cr_expect(is_named(callnames_at(names, 2, inner), "second", true));
		cr_expect(is_named(callnames_at(names, 2, outer), "first", true));
		cr_expect_null(callnames_at(names, 2, 0), "nothing is called there");
		cr_expect_null(callnames_at(names, 2, -2));
		cr_expect_null(callnames_at(names, 2, at));
		free(names);
	}
}

/* What a call makes is the last argument of another one, at the instruction behind. */
Test(callnames, an_argument_has_the_name_of_what_made_it)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		struct pyabi abi = abi_of(tables[i]);
		const struct callname *name;
		struct callname *names;
		uint32_t once, again, other, count;

		start(&abi);
		begin(&abi, 0);
		begin(&abi, 1);
		call(&abi, 0);
		once = call(&abi, 1);
		begin(&abi, 0);
		begin(&abi, 1);
		call(&abi, 0);
		add(&abi, "LOAD_FAST", 0);
		other = call(&abi, 2);
		count = (uint32_t)find(&abi, 0, &names);
		name = callnames_at(names, count, once);
		cr_expect(name && name->argument == callname_hash("second", 6) && name->argument_single);
		name = callnames_at(names, count, other);
		cr_expect(name && name->argument == 0);
		free(names);
		begin(&abi, 1);
		call(&abi, 0);
		add(&abi, "GET_ITER", 0);
		again = add(&abi, "FOR_ITER", 0);
		count = (uint32_t)find(&abi, 0, &names);
		cr_expect_not(callnames_at(names, count, once)->argument_single, "it is iterated over elsewhere");
		cr_expect(is_named(callnames_at(names, count, again), "second", false));
		free(names);
	}
}

/* What a generator expression makes is the last argument of a call, or iterated over, by the instruction behind. */
Test(callnames, a_generator_expression_is_told_by_its_code)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		struct pyabi abi = abi_of(tables[i]);
		const struct callname *name;
		struct callname *names;
		uint32_t sum, other, loop, count;

		start(&abi);
		constants[abi.tuple.size / 8] = 2;
		constants[abi.tuple.items / 8] = 0x1000;
		constants[abi.tuple.items / 8 + 1] = 0x2000;
		begin(&abi, 0);
		make(&abi, 0);
		sum = add(&abi, "CALL", 1);
		begin(&abi, 1);
		make(&abi, 1);
		add(&abi, "LOAD_FAST", 0);
		other = add(&abi, "CALL", 2);
		make(&abi, 1);
		add(&abi, "GET_ITER", 0);
		loop = add(&abi, "FOR_ITER", 0);
		make(&abi, 2); /* there is no such constant */
		add(&abi, "GET_ITER", 0);
		add(&abi, "FOR_ITER", 0);
		count = (uint32_t)find(&abi, 0, &names);
		cr_assert_eq(count, 3);
		name = callnames_at(names, count, sum);
		cr_expect(is_named(name, "first", true) && name->made == 0x1000);
		name = callnames_at(names, count, other);
		cr_expect(is_named(name, "second", true) && name->made == 0, "it is not the last argument");
		name = callnames_at(names, count, loop);
		cr_expect(name && name->name == 0 && name->made == 0x2000 && name->kind == CALLNAME_RESUME);
		free(names);
	}
}

/* A function that is made on the spot, as by a generator expression, is called without arguments; else it is another call's argument. */
Test(callnames, what_is_made_on_the_spot_is_called_or_passed_on)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		struct pyabi abi = abi_of(tables[i]);
		struct callname *names;
		uint32_t last;

		for (uint8_t arguments = 0; arguments < 2; arguments++) {
			start(&abi);
			begin(&abi, 0);
			add(&abi, "MAKE_FUNCTION", 0);
			if (arguments == 0)
				add(&abi, "CALL", 0);
			last = add(&abi, "CALL", 1);
			cr_assert_eq(find(&abi, 0, &names), 1);
			cr_expect(is_named(callnames_at(names, 1, last), "first", true));
			free(names);
		}
	}
}

Test(callnames, what_a_call_made_is_awaited)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		struct pyabi abi = abi_of(tables[i]);
		struct callname *names;
		uint32_t sends[2];
		int count;

		start(&abi);
		for (uint8_t k = 0; k < 2; k++) {
			begin(&abi, k);
			add(&abi, "CALL", 0);
			add(&abi, "GET_AWAITABLE", 0);
			if (tables[i] == &pyabi_3_15)
				add(&abi, "PUSH_NULL", 0);
			add(&abi, "LOAD_CONST", 0);
			sends[k] = add(&abi, "SEND", 0);
		}
		count = find(&abi, 0, &names);
		cr_assert_eq(count, 4);
		for (uint32_t k = 0; k < 2; k++) {
			const struct callname *name = callnames_at(names, (uint32_t)count, sends[k]);

			cr_assert(is_named(name, texts[k], true), "3.%u", abi.minor);
			cr_assert_eq(name->kind, CALLNAME_RESUME);
		}
		free(names);
	}
}

Test(callnames, what_is_called_twice_by_one_name_is_not_single)
{
	struct pyabi abi = abi_of(&pyabi_3_13);
	struct callname *names;
	uint32_t first, again;

	start(&abi);
	begin(&abi, 0);
	first = add(&abi, "CALL", 0);
	begin(&abi, 0);
	again = add(&abi, "CALL", 0);
	cr_assert_eq(find(&abi, 0, &names), 2);
	cr_expect(is_named(callnames_at(names, 2, first), "first", false));
	cr_expect(is_named(callnames_at(names, 2, again), "first", false));
	free(names);
}

Test(callnames, a_private_name_is_that_of_its_class)
{
	struct pyabi abi = abi_of(&pyabi_3_13);
	struct callname *names;

	start(&abi);
	begin(&abi, 2);
	add(&abi, "CALL", 0);
	cr_assert_eq(find(&abi, callname_hash("_Thing", 6), &names), 1);
	cr_expect(is_named(names, "__hidden", true));
	free(names);
	cr_assert_eq(find(&abi, callname_hash("Other", 5), &names), 1);
	cr_expect(is_named(names, "_Thing__hidden", true));
	free(names);
}

/* A call without a beginning, more beginnings than are kept, an argument beyond the names, an instruction that is hidden. */
Test(callnames, what_cannot_be_told_has_none)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		struct pyabi abi = abi_of(tables[i]);
		struct callname *names;

		start(&abi);
		add(&abi, "CALL", 0);
		cr_expect_eq(find(&abi, 0, &names), 0);
		cr_expect_null(names);
		start(&abi);
		for (int k = 0; k < 100; k++)
			begin(&abi, 0);
		add(&abi, "CALL", 0);
		cr_expect_eq(find(&abi, 0, &names), 0);
		start(&abi);
		begin(&abi, 100);
		add(&abi, "CALL", 0);
		cr_expect_eq(find(&abi, 0, &names), 0);
		if (abi.minor > 11) {
			start(&abi);
			begin(&abi, 0);
			add(&abi, "INSTRUMENTED_LINE", 0);
			add(&abi, "CALL", 0);
			cr_expect_eq(find(&abi, 0, &names), 0);
		}
		start(&abi);
		tuple[abi.tuple.size / 8] = 5; /* the last ones are no addresses */
		begin(&abi, 4);
		add(&abi, "CALL", 0);
		cr_expect_eq(find(&abi, 0, &names), 0);
		tuple[abi.tuple.size / 8] = UINT64_MAX;
		cr_expect_eq(find(&abi, 0, &names), 0);
		tuple[abi.tuple.size / 8] = NAMES;
		memset(bytecode, 0xff, sizeof(bytecode));
		at = sizeof(bytecode);
		cr_expect_geq(find(&abi, 0, &names), 0, "nonsense");
		free(names);
	}
}

/* Long code is not compared each with each. */
Test(callnames, of_too_many_none_is_kept)
{
	struct pyabi abi = abi_of(&pyabi_3_13);
	struct callname *names;

	for (int i = 0; i < 2; i++) {
		uint32_t count = i == 0 ? CALLNAMES_MAX : CALLNAMES_MAX + 1;

		start(&abi);
		for (uint32_t k = 0; k < count; k++)
			add(&abi, "LOAD_ATTR", 0);
		cr_assert_eq(find(&abi, 0, &names), i == 0 ? CALLNAMES_MAX : 0);
		free(names);
	}
}
