/* SPDX-License-Identifier: Apache-2.0 */
/* DWARF expressions in unwind rules (DWARF 5, 2.5): which of them libunwind may be given, and the one that needs none. */
#ifndef SAMPLED_SAMPLER_EXPRESSION_H
#define SAMPLED_SAMPLER_EXPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cursor.h"

/* Nothing that jumps, that divides, or that reaches into the expression's stack by an index, and not long: compilers, linkers and the C libraries write
 * none of that for a frame. */
bool expression_is_plain(struct cursor expression);

/* Linkers describe all stubs of .plt at once: from the n-th byte of each 16 on, one word more was pushed. For one address it is a plain rule: the
 * distance of CFA from the stack pointer. `at`: the expression's length, then itself. 0: it is another one. */
int64_t expression_stub(struct cursor at, uint64_t addr);

#endif
