/* SPDX-License-Identifier: Apache-2.0 */
/* What unwinding asks of a thread: its registers, and a copy of its stack. */
#ifndef SAMPLED_SAMPLER_REGS_H
#define SAMPLED_SAMPLER_REGS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/user.h>

/* Registers by their DWARF numbers (System V psABI for x86-64, figure 3.36; for aarch64: "DWARF for the Arm 64-bit Architecture").
 * A call puts its return address on the stack, which takes so many bytes, or into UNWIND_LINK. */
#if defined(__x86_64__)
enum { UNWIND_FP = 6, UNWIND_SP = 7, UNWIND_IP = 16, UNWIND_REGS = 17, UNWIND_LINK = UNWIND_REGS, UNWIND_CALL_BYTES = 8 };
#elif defined(__aarch64__)
enum { UNWIND_FP = 29, UNWIND_SP = 31, UNWIND_IP = 32, UNWIND_REGS = 33, UNWIND_LINK = 30, UNWIND_CALL_BYTES = 0 };
#else
#error "unknown machine: how are its registers numbered?"
#endif

struct unwind_regs {
	uint64_t values[UNWIND_REGS];
	uint64_t known; /* a bit each */
};

static inline bool unwind_knows(const struct unwind_regs *regs, unsigned number)
{
	return number < UNWIND_REGS && regs->known >> number & 1;
}

static inline void unwind_set(struct unwind_regs *regs, unsigned number, uint64_t value)
{
	regs->values[number] = value;
	regs->known |= UINT64_C(1) << number;
}

/* Where a return address leads. On aarch64 a thread may keep it signed, in the bits that no address of a program has (pointer authentication). */
static inline uint64_t unwind_target(uint64_t return_address)
{
#if defined(__aarch64__)
	return return_address & ((UINT64_C(1) << 48) - 1);
#else
	return return_address;
#endif
}

struct stack_copy { /* of a thread's stack */
	const uint8_t *bytes;
	uint64_t from; /* an address in the target */
	uint32_t count;
};

/* The word at addr; false: it was not copied. */
static inline bool stack_copied(const struct stack_copy *copy, uint64_t addr, uint64_t *ret_value)
{
	if (addr < copy->from || addr - copy->from > copy->count ||
	    copy->count - (addr - copy->from) < sizeof(*ret_value))
		return false;
	memcpy(ret_value, copy->bytes + (addr - copy->from), sizeof(*ret_value));
	return true;
}

/* From the kernel's order to DWARF's. */
void regs_take(struct unwind_regs *ret_regs, const struct user_regs_struct *user);

#endif
