/* SPDX-License-Identifier: Apache-2.0 */
/* The rules in force at one address, in the plain form that nearly all have: the caller's stack pointer (CFA) is a register and a distance, and what
 * was saved lies at a distance from it. Other rules (DWARF expressions: signal frames, realigned stacks) are worked out anew at each step. */
#ifndef SAMPLED_SAMPLER_CFI_H
#define SAMPLED_SAMPLER_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/regs.h"
#include "sampler/unwind_tables.h"

enum cfi_kind {
	CFI_NONE,    /* no rules: the tables say nothing of the address */
	CFI_PLAIN,   /* as below */
	CFI_LINK,    /* aarch64: nothing of it is on the stack, and the link register holds the return address */
	CFI_ROOT,    /* the return address is undefined: it has no caller */
	CFI_OTHER,   /* cfi_step() */
	CFI_REFUSED, /* there are rules, but they make no sense */
};

/* The registers that a callee keeps for its caller, by their DWARF numbers. */
#if defined(__x86_64__)
enum { CFI_KEPT = 6, CFI_STACK = 7 };
#define CFI_KEPT_MASK UINT64_C(0xf048)
#elif defined(__aarch64__)
enum { CFI_KEPT = 11, CFI_STACK = 31 };
#define CFI_KEPT_MASK UINT64_C(0x3ff80000)
#endif
extern const uint8_t cfi_kept_numbers[CFI_KEPT];

struct cfi_row {
	uint8_t kind; /* enum cfi_kind */
	uint8_t cfa_register;
	bool signal;          /* the caller was interrupted where its pc says: that is no call */
	uint16_t saved, lost; /* a bit for each kept register: it was saved on the stack; its value is gone */
	int32_t cfa_off;
	int16_t return_words;          /* where the return address lies: 8-byte words from CFA */
	int16_t saved_words[CFI_KEPT]; /* where the registers lie, likewise */
};

/* What holds at addr, which lies in fde. 0 or -ENOEXEC. */
int cfi_row(const struct unwind_tables *tables, const struct unwind_fde *fde, uint64_t addr, struct cfi_row *ret_row);
/* From the registers at addr to the caller's, by any rules. A register whose value is not to be had is not known then. 0; -ENODATA: where the caller is
 * called from, or its stack pointer, is not to be had; -ENOEXEC: the rules make no sense. */
int cfi_step(const struct unwind_tables *tables, const struct unwind_fde *fde, uint64_t addr,
             const struct stack_copy *copy, struct unwind_regs *regs);

#endif
