/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's native stack, from its registers and a copy of its stack. Nothing of the target is read but that copy, and, of the vdso and of code
 * without unwind tables, a few bounded bytes; time and memory are bounded whatever the copy and the target's files hold. */
#ifndef SAMPLED_SAMPLER_UNWIND_H
#define SAMPLED_SAMPLER_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/modules.h"
#include "sampler/regs.h"
#include "sampler/remote.h"

enum unwind_end {
	UNWIND_ROOT, /* the thread's first function: the tables say that it has no caller */
	UNWIND_CUT, /* how it goes on is not to be known: a register or a piece of stack is not there, or there are no tables */
	UNWIND_BAD,  /* what is there makes no sense: it was being changed, or is no stack */
	UNWIND_DEEP, /* more frames than there is room for */
};

struct unwind_frame {
	raddr_t pc; /* of the instruction; of a caller, of the last byte of its call */
	raddr_t sp; /* the stack pointer in it */
	struct module *module;
	bool eval;       /* modules_is_eval() */
	bool eval_inner; /* modules_is_eval_inner() */
};

struct unwound {
	struct unwind_frame *frames; /* the caller's, room of them; innermost first */
	uint32_t depth, room;
	uint64_t used_bytes; /* of the stack, from stack_from to the outermost frame's end */
	enum unwind_end end;
};

/* A copy begins so many bytes below the stack pointer, where that can be read: a function that has taken a register off the stack on its way out
 * still has it there, by its rules (the red zone: System V psABI, 3.2.2). Without it 1 stack in 150 is cut. */
enum { UNWIND_BELOW = 128 };

struct unwinder;

/* 0, -ENOMEM. */
int unwinder_new(struct unwinder **ret_unwinder, struct modules *modules);
void unwinder_free(struct unwinder *unwinder);

/* `stack` are the stack_bytes bytes that lie at stack_from in the target. 0: *unwound says what was found, which may be nothing; -EINVAL: pc or
 * stack pointer are not known. */
int unwind(struct unwinder *unwinder, const struct unwind_regs *regs, const uint8_t *stack, raddr_t stack_from,
           uint32_t stack_bytes, struct unwound *unwound);

struct unwind_counts { /* since unwinder_new() */
	uint64_t frames;
	uint64_t learnt;       /* frames whose rules were worked out anew */
	uint64_t by_rules;     /* frames whose rules are not plain: a signal came in, or the stack was realigned */
	uint64_t by_pointer;   /* frames without tables, stepped over by frame pointer or by their own code */
};

struct unwind_counts unwinder_counts(const struct unwinder *unwinder);

#endif
