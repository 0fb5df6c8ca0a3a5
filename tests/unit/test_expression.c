/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions as compilers and C libraries write them, and those that nobody does. Operations: DWARF 5, 2.5.1 and 7.7.1. */
#include <criterion/criterion.h>
#include <errno.h>

#include "sampler/expression.h"

enum {
	CONST1S = 0x09,
	DEREF = 0x06,
	AND = 0x1a,
	MINUS = 0x1c,
	NEG = 0x1f,
	PLUS = 0x22,
	PLUS_UCONST = 0x23,
	SHL = 0x24,
	SHR = 0x25,
	GE = 0x2a,
	LT = 0x2d,
	BRA = 0x28,
	DIV = 0x1b,
	PICK = 0x15,
	LIT0 = 0x30,
	BREG0 = 0x70
};

static const uint64_t words[] = {0x1111, 0x2222, 0x3333};
static const struct stack_copy stack = {.bytes = (const uint8_t *)words, .from = 0x7000, .count = sizeof(words)};

static int value_of(const uint8_t *bytes, uint32_t count, const uint64_t *cfa, uint64_t *ret_value)
{
	struct unwind_regs regs = {0};

	unwind_set(&regs, UNWIND_SP, 0x7000);
	unwind_set(&regs, UNWIND_FP, 0x7010);
	*ret_value = 0;
	return expression_value((struct expression){.bytes = bytes, .count = count}, cfa, &regs, &stack, ret_value);
}

#define EXPECT(wanted, cfa, ...)                                                                                       \
	do {                                                                                                           \
		const uint8_t bytes[] = {__VA_ARGS__};                                                                 \
		uint64_t got;                                                                                          \
		cr_expect_eq(value_of(bytes, sizeof(bytes), cfa, &got), 0);                                            \
		cr_expect_eq(got, (uint64_t)(wanted), "%#lx", (unsigned long)got);                                     \
	} while (0)

#define EXPECT_ERR(wanted, cfa, ...)                                                                                   \
	do {                                                                                                           \
		const uint8_t bytes[] = {__VA_ARGS__};                                                                 \
		uint64_t got;                                                                                          \
		cr_expect_eq(value_of(bytes, sizeof(bytes), cfa, &got), wanted);                                       \
	} while (0)

Test(expression, of_a_realigned_stack)
{
	/* DW_CFA_def_cfa_expression of gcc: the word at rbp - 8 */
	EXPECT(0x2222, NULL, BREG0 + UNWIND_FP, 0x78, DEREF);
}

Test(expression, of_a_signal_frame)
{
	/* DW_CFA_expression of glibc's __restore_rt: rsp + 16, where the register lies */
	EXPECT(0x7010, NULL, BREG0 + UNWIND_SP, 16);
}

Test(expression, begins_with_cfa)
{
	const uint64_t cfa = 0x7018;

	EXPECT(0x7008, &cfa, LIT0 + 16, MINUS);
	EXPECT(0x3333, &cfa, CONST1S, 0xf8, PLUS, DEREF);
	EXPECT(0x7019, &cfa, PLUS_UCONST, 1);
}

Test(expression, compares_signed_numbers)
{
	EXPECT(1, NULL, CONST1S, 0xff, LIT0 + 1, LT);
	EXPECT(0, NULL, CONST1S, 0xff, LIT0 + 1, GE);
	EXPECT(UINT64_MAX, NULL, LIT0 + 1, NEG);
	EXPECT(0, NULL, LIT0 + 1, CONST1S, 64, SHL);
	EXPECT(2, NULL, LIT0 + 8, LIT0 + 2, SHR);
	EXPECT(8, NULL, LIT0 + 12, LIT0 + 10, AND);
}

Test(expression, of_what_is_not_there)
{
	EXPECT_ERR(-ENODATA, NULL, BREG0 + 1, 0);                   /* a register that is not known */
	EXPECT_ERR(-ENODATA, NULL, BREG0 + UNWIND_SP, 17, DEREF);   /* a word that was copied in part */
	EXPECT_ERR(-ENODATA, NULL, BREG0 + UNWIND_SP, 0x78, DEREF); /* below the copy */
}

Test(expression, that_makes_no_sense)
{
	static uint8_t pushes[EXPRESSION_BYTES_MAX + 1];
	uint64_t value;

	EXPECT_ERR(-ENOEXEC, NULL, PLUS);
	EXPECT_ERR(-ENOEXEC, NULL, LIT0, BRA, 0, 0);
	EXPECT_ERR(-ENOEXEC, NULL, LIT0, LIT0, DIV);
	EXPECT_ERR(-ENOEXEC, NULL, LIT0, PICK, 0);
	EXPECT_ERR(-ENOEXEC, NULL, CONST1S);
	cr_expect_eq(value_of(pushes, 0, NULL, &value), -ENOEXEC, "an empty one");
	for (unsigned i = 0; i < sizeof(pushes); i++)
		pushes[i] = LIT0;
	cr_expect_eq(value_of(pushes, 65, NULL, &value), -ENOEXEC, "more values than there is room for");
	cr_expect_eq(value_of(pushes, sizeof(pushes), NULL, &value), -ENOEXEC, "a long one");
}
