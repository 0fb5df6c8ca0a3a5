/* SPDX-License-Identifier: Apache-2.0 */
/* DWARF expressions in unwind rules (DWARF 5, 2.5), as compilers, linkers and C libraries write them for frames: arithmetic on registers, constants and
 * words of the stack. What jumps, divides or reaches into the expression's stack by an index is refused; none of them writes that. */
#ifndef SAMPLED_SAMPLER_EXPRESSION_H
#define SAMPLED_SAMPLER_EXPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cursor.h"
#include "sampler/regs.h"

struct expression {
	const uint8_t *bytes;
	uint32_t count; /* EXPRESSION_BYTES_MAX at most are worked out */
};

enum { EXPRESSION_BYTES_MAX = 256 };

/* Works it out. `cfa`: what lies on its stack at first, NULL: nothing. 0; -ENODATA: a register is not known or a word was not copied; -ENOEXEC: it makes no
 * sense, or is of another kind. */
int expression_value(struct expression expression, const uint64_t *cfa, const struct unwind_regs *regs,
                     const struct stack_copy *copy, uint64_t *ret_value);

/* Linkers describe all stubs of .plt at once: from the n-th byte of each 16 on, one word more was pushed. For one address it is a plain rule: the
 * distance of CFA from the stack pointer. `at`: the expression's length, then itself. 0: it is another one. */
int64_t expression_stub(struct cursor at, uint64_t addr);

#endif
