/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts: complete, consistent, and refused when one field is forgotten or one published word is wrong. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "sampler/pyabi/pyabi.h"
#include "tests/unit/debug_words.h"

enum { TABLE_FIRST = 6, TABLE_LAST = 12, WORDS_MAX = 128 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct published {
	const char *name;
	const uint64_t *words;
	size_t count;
} published[] = {
	{"3.13", words_3_13, COUNT(words_3_13)},
	{"3.14", words_3_14, COUNT(words_3_14)},
	{"3.15", words_3_15, COUNT(words_3_15)},
};

/* Is there an offset (an int32_t) at this place of struct pyabi? Not a flag, an enum, a kind of owner or an opcode. */
static bool is_offset(size_t at)
{
	if (at < offsetof(struct pyabi, runtime) || at == offsetof(struct pyabi, code.bytecode_is_pointer))
		return false;
	if (at - offsetof(struct pyabi, leaving_opcodes) < sizeof(((struct pyabi *)0)->leaving_opcodes))
		return false;
	if (at - offsetof(struct pyabi, calling) < sizeof(((struct pyabi *)0)->calling))
		return false;
	if (at - offsetof(struct pyabi, plain_opcodes) < sizeof(((struct pyabi *)0)->plain_opcodes))
		return false;
	if (at >= offsetof(struct pyabi, dict) + sizeof(((struct pyabi *)0)->dict))
		return false; /* padding */
	return at < offsetof(struct pyabi, owner) || at >= offsetof(struct pyabi, code);
}

static int32_t offset_at(const struct pyabi *abi, size_t at)
{
	int32_t value;

	memcpy(&value, (const char *)abi + at, sizeof(value));
	return value;
}

static int validate_with(const struct pyabi *abi, size_t at, int32_t value)
{
	struct pyabi changed = *abi;

	memcpy((char *)&changed + at, &value, sizeof(value));
	return pyabi_validate(&changed, NULL);
}

static void expect_complete(const struct pyabi *abi)
{
	struct fault fault = {0};

	cr_expect_eq(pyabi_validate(abi, &fault), 0, "%s: %s", abi->name, fault.why);
	for (size_t at = 0; at + 4 <= sizeof(*abi); at += 4) {
		if (!is_offset(at))
			continue;
		if (offset_at(abi, at) == ABSENT)
			cr_expect_eq(validate_with(abi, at, 0), -EPROTO, "%s: forgotten field at %zu passes as 0", abi->name, at);
		else
			cr_expect_eq(validate_with(abi, at, ABSENT), -EPROTO, "%s: missing field at %zu passes", abi->name, at);
		cr_expect_eq(validate_with(abi, at, INT32_MAX), -EPROTO, "%s: absurd field at %zu passes", abi->name, at);
		cr_expect_eq(validate_with(abi, at, -8), -EPROTO, "%s: negative field at %zu passes", abi->name, at);
	}
}

Test(pyabi, tables_are_complete)
{
	for (unsigned minor = TABLE_FIRST; minor <= TABLE_LAST; minor++) {
		const struct pyabi *abi = pyabi_table(3, minor);

		cr_assert_not_null(abi, "3.%u", minor);
		cr_expect_eq(abi->minor, minor);
		expect_complete(abi);
	}
	cr_expect_null(pyabi_table(2, 7));
	cr_expect_null(pyabi_table(3, 5));
	cr_expect_null(pyabi_table(3, 13), "3.13 is complete with its published words only");
	cr_expect_null(pyabi_table(3, 16));
}

/* 0 is a true offset in a few places, where a forgotten one must be caught by another field that lies there. */
Test(pyabi, a_forgotten_field_of_a_table_is_found)
{
	for (unsigned minor = TABLE_FIRST; minor <= TABLE_LAST; minor++) {
		const struct pyabi *abi = pyabi_table(3, minor);

		for (size_t at = 0; at + 4 <= sizeof(*abi); at += 4) {
			bool known_gap = abi->frames == FRAMES_STACK && (at == offsetof(struct pyabi, frame.code) ||
			                                                 at == offsetof(struct pyabi, tstate.cframe_frame));

			if (is_offset(at) && offset_at(abi, at) != 0 && !known_gap)
				cr_expect_eq(validate_with(abi, at, 0), -EPROTO, "3.%u: 0 passes at %zu", minor, at);
		}
	}
	cr_expect_eq(pyabi_table(3, 11)->frame.code, 32);
	cr_expect_eq(pyabi_table(3, 11)->tstate.cframe_frame, 8);
}

Test(pyabi, overlaps_are_refused)
{
	struct pyabi abi = *pyabi_table(3, 11);

	abi.code.filename = abi.code.name;
	cr_expect_eq(pyabi_validate(&abi, NULL), -EPROTO);
	abi = *pyabi_table(3, 12);
	abi.owner.shim = abi.owner.generator;
	cr_expect_eq(pyabi_validate(&abi, NULL), -EPROTO);
}

Test(pyabi, published_words_give_complete_layouts)
{
	for (size_t i = 0; i < COUNT(published); i++) {
		struct fault fault = {0};
		struct pyabi abi;

		cr_assert_eq(pyabi_from_debug_offsets(&abi, published[i].words, published[i].count, &fault), 0, "%s: %s",
		             published[i].name, fault.why);
		cr_expect_str_eq(abi.name, published[i].name);
		expect_complete(&abi);
	}
}

Test(pyabi, published_words_mean_what_the_headers_say)
{
	struct pyabi abi;

	cr_assert_eq(pyabi_from_debug_offsets(&abi, words_3_13, COUNT(words_3_13), NULL), 0);
	cr_expect_eq(abi.interp.collecting, 7600);
	cr_expect_eq(abi.gil_state.last_holder, 8);
	cr_expect_eq(abi.gil_state.locked, 16);
	cr_expect_eq(abi.frame.bytes, 72);
	cr_expect_eq(abi.tstate.bytes, 256);
	cr_expect_eq(abi.gen.state, 67);
	cr_expect_eq(abi.tstate.holds_gil, ABSENT);
	cr_assert_eq(pyabi_from_debug_offsets(&abi, words_3_14, COUNT(words_3_14), NULL), 0);
	cr_expect_eq(abi.interp.code_generation, 7992);
	cr_expect_eq(abi.tstate.holds_gil, 36);
	cr_expect_eq(abi.frame.stackpointer, 64);
	cr_expect_eq(abi.bytes.size, 16);
	cr_assert_eq(pyabi_from_debug_offsets(&abi, words_3_15, COUNT(words_3_15), NULL), 0);
	cr_expect_eq(abi.interp.gc_frame, 7520);
	cr_expect_eq(abi.tstate.base_frame, 80);
	cr_expect_eq(abi.tstate.gil_requested, 40);
	cr_expect_eq(abi.type.cached_keys, 888);
	cr_expect_eq(abi.str.text, 56);
}

/* Whatever one word says, no offset may come out that lies outside its structure. */
Test(pyabi, corrupted_words_are_refused_or_harmless)
{
	static const uint64_t values[] = {UINT64_MAX, INT64_MAX, (uint64_t)INT32_MAX + 1, 5 << 20, 4097, 3};

	for (size_t i = 0; i < COUNT(published); i++) {
		struct pyabi good, abi;
		uint64_t words[WORDS_MAX];

		cr_assert_eq(pyabi_from_debug_offsets(&good, published[i].words, published[i].count, NULL), 0);
		for (size_t word = 0; word < published[i].count; word++) {
			for (size_t v = 0; v < COUNT(values); v++) {
				memcpy(words, published[i].words, published[i].count * sizeof(words[0]));
				words[word] = values[v];
				if (pyabi_from_debug_offsets(&abi, words, published[i].count, NULL))
					continue;
				cr_expect_eq(pyabi_validate(&abi, NULL), 0);
				/* Words that are not used change nothing; sizes only bound. Absurd values of used ones never pass. */
				if (v < 3)
					cr_expect_eq(memcmp(&abi, &good, sizeof(abi)), 0, "%s: word %zu", published[i].name, word);
			}
		}
	}
}

Test(pyabi, words_that_are_cut_short_or_of_another_kind)
{
	uint64_t words[COUNT(words_3_14)];
	struct fault fault = {0};
	struct pyabi abi;

	for (size_t count = 0; count < COUNT(words_3_14); count++)
		cr_expect_eq(pyabi_from_debug_offsets(&abi, words_3_14, count, NULL), -EPROTO, "%zu words", count);
	memcpy(words, words_3_14, sizeof(words));
	words[0] ^= 1;
	cr_expect_eq(pyabi_from_debug_offsets(&abi, words, COUNT(words), NULL), -EPROTO);
	memcpy(words, words_3_14, sizeof(words));
	words[1] = 0x031001a2;
	cr_expect_eq(pyabi_from_debug_offsets(&abi, words, COUNT(words), &fault), -ENOTSUP);
	cr_expect(strstr(fault.why, "3.16.1"), "%s", fault.why);
	words[1] = words_3_14[1];
	words[2] = 1;
	cr_expect_eq(pyabi_from_debug_offsets(&abi, words, COUNT(words), &fault), -ENOTSUP);
	cr_expect(strstr(fault.why, "free-threaded"), "%s", fault.why);
}
