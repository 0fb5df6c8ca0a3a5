/* SPDX-License-Identifier: Apache-2.0 */
/* One frame of the interpreter, picked out of copied bytes. */
#ifndef SAMPLED_SAMPLER_FRAMES_H
#define SAMPLED_SAMPLER_FRAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sampler/codes.h"
#include "sampler/pyabi/pyabi.h"
#include "sampler/remote.h"

struct pyframe { /* what one sample keeps of a frame */
	raddr_t frame;
	raddr_t code;
	int64_t offset;    /* of the instruction, in bytes from the first one; below 0: nothing ran yet */
	uint64_t callable; /* what its value stack has for the call it stands at; 0: not looked at */
	uint32_t
		mapping; /* 0: a Python frame. Else a native one, of this mapping (struct rec_mapping): offset is its place there, code 0 */
	uint32_t
		entry; /* which run of the interpreter's loop it is in, counted from the innermost; set by walk_chain() alone */
	bool generator; /* it lies in an object of its own (3.11+) */
	bool direct;    /* the interpreter's loop runs it for its caller, without C between them */
	bool stored; /* its stack pointer is stored (to 3.13): it is suspended in a call, below a finalizer, or traced */
	bool awaited; /* its caller's own frame names it, and stands where that is resumed */
	bool foreign; /* a generator, where its caller's value stack holds another one, and not this */
	bool handed;  /* the caller's value stack has its function for the call (frame_handed()) */
	bool provable; /* that it is what its caller calls there can be told by reading both again, … */
	bool proven;   /* … and was (links_prove()) */
	/* Noted of a whole stack, where they are asked for (special.h). */
	bool through_c;  /* C called it for the Python frame before it */
	bool collects;   /* the garbage collector was started by it, and runs */
	uint16_t opcode; /* of its instruction, plus 1; 0: not told. Of the innermost Python frame only: of others it is an old one */
};

/* Frames of one stack, outermost first. */
struct pystack {
	struct pyframe *frames; /* owned */
	uint32_t depth, room;
	bool apart; /* a generator's frame is among them: they were not copied in one piece */
};

static inline void pystack_swap(struct pystack *a, struct pystack *b)
{
	struct pystack swap = *a;

	*a = *b;
	*b = swap;
}

/* Whether a frame can lie there at all. */
static inline bool frame_may_be(raddr_t frame)
{
	return frame >= 65536 && (frame & 7) == 0;
}

static inline uint64_t frame_u64(const uint8_t *bytes, int32_t offset)
{
	uint64_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static inline int32_t frame_i32(const uint8_t *bytes, int32_t offset)
{
	int32_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/* 3.14+ keeps flags in the low two bits of what a frame executes; a cleared one reads 0 or 1. */
static inline raddr_t frame_code(const struct pyabi *abi, const uint8_t *bytes)
{
	return frame_u64(bytes, abi->frame.code) & ~UINT64_C(3);
}

static inline raddr_t frame_previous(const struct pyabi *abi, const uint8_t *bytes)
{
	return frame_u64(bytes, abi->frame.previous);
}

static inline bool frame_is_shim(const struct pyabi *abi, const uint8_t *bytes)
{
	int8_t owner;

	if (abi->frame.owner == ABSENT || abi->owner.shim == ABSENT)
		return false;
	owner = (int8_t)bytes[abi->frame.owner];
	return owner == abi->owner.shim || (abi->owner.shim2 != ABSENT && owner == abi->owner.shim2);
}

static inline bool frame_is_generator(const struct pyabi *abi, const uint8_t *bytes)
{
	if (abi->frame.gen != ABSENT)
		return frame_u64(bytes, abi->frame.gen) != 0;
	return abi->frame.owner != ABSENT && (int8_t)bytes[abi->frame.owner] == abi->owner.generator;
}

/* The instruction a frame stands at, in bytes from its code's first one. False: it lies outside its own code, so the
 * frame is being made or unmade. */
static inline bool frame_offset(const struct pyabi *abi, const uint8_t *bytes, const struct code *code,
                                int64_t *ret_offset)
{
	int64_t offset;

	if (abi->instr == INSTR_POINTER)
		offset = (int64_t)(frame_u64(bytes, abi->frame.instr) - code->bytecode);
	else
		offset = (int64_t)frame_i32(bytes, abi->frame.instr) * (abi->instr == INSTR_LASTI_UNITS ? 2 : 1);
	if (offset < -2 || offset >= (int64_t)code->bytecode_bytes)
		return false;
	*ret_offset = offset;
	return true;
}

/* Whether C called it, as it says of itself: 3.11. */
static inline bool frame_is_entry(const struct pyabi *abi, const uint8_t *bytes)
{
	return abi->frame.is_entry != ABSENT && bytes[abi->frame.is_entry] != 0;
}

/* Whether the frame says of itself that it is suspended in a call of a Python function that the interpreter runs in the
 * same loop. Versions without such a mark say yes: there a callee's cleared code tells that it is dead. */
static inline bool frame_is_suspended(const struct pyabi *abi, const uint8_t *bytes, const struct code *code)
{
	if (abi->call_mark != CALL_MARK_STACKTOP)
		return true;
	return frame_i32(bytes, abi->frame.stacktop) >= (int32_t)code->locals;
}

/* Whether its stack pointer is stored. Versions without such a mark say no. */
static inline bool frame_is_stored(const struct pyabi *abi, const uint8_t *bytes, const struct code *code)
{
	return abi->call_mark == CALL_MARK_STACKTOP && frame_is_suspended(abi, bytes, code);
}

/* Whether a suspended frame of which so many bytes were copied has, above its stack pointer, the function whose frame the callee is. The interpreter moves a call's
 * arguments over to that one, and pops them with the callable, which stays where it was until something else is pushed (3.11+: CALL, Python/bytecodes.c). To
 * 3.12 a NULL can lie before it. The low bits of a reference can be tags. */
static inline bool frame_handed(const struct pyabi *abi, raddr_t frame, const uint8_t *bytes, uint32_t copied, const uint8_t *callee)
{
	uint64_t function = abi->frame.func == ABSENT ? 0 : frame_u64(callee, abi->frame.func) & ~UINT64_C(3), top;

	if (abi->frame.stackpointer != ABSENT)
		top = frame_u64(bytes, abi->frame.stackpointer) - frame;
	else
		top = (uint64_t)abi->frame.bytes + 8 * (uint64_t)(int64_t)frame_i32(bytes, abi->frame.stacktop);
	if (function == 0 || top < (uint64_t)abi->frame.bytes)
		return false;
	for (uint64_t at = top; at <= top + 8 && copied >= 8 && at <= copied - 8; at += 8)
		if ((frame_u64(bytes, (int32_t)at) & ~UINT64_C(3)) == function)
			return true;
	return false;
}

/* Whether a frame has been left: to 3.13 its stack pointer is stored when it returns, and is 0 once its variables are released
 * (_PyFrame_ClearLocals, Python/frame.c). Since 3.14 the current frame is changed a few stores after the frame comes to an instruction
 * that returns, and the frame's code cleared only after its variables were. */
static inline bool frame_is_left(const struct pyabi *abi, const uint8_t *bytes, const struct code *code, int64_t offset)
{
	int32_t top;

	if (abi->call_mark != CALL_MARK_STACKTOP)
		return code_leaves(code, offset);
	top = frame_i32(bytes, abi->frame.stacktop);
	return top >= 0 && (top < (int32_t)code->locals || code_leaves(code, offset));
}

/* To 3.11 it is C that resumes what a frame sends to. The frame's stack pointer is not stored meanwhile, and does not tell what it awaits. */
static inline bool frame_sends_through_c(const struct pyabi *abi)
{
	return abi->frame.is_entry != ABSENT;
}

/* Whether an exception is leaving it, or it is being traced: its stack pointer is stored at an instruction that calls nothing. */
static inline bool frame_is_interrupted(const struct pyabi *abi, const uint8_t *bytes, const struct code *code,
                                        int64_t offset)
{
	return abi->call_mark == CALL_MARK_STACKTOP && frame_i32(bytes, abi->frame.stacktop) >= (int32_t)code->locals &&
	       code->traceable_bytes < code->bytecode_bytes && !code_calls(code, offset) &&
	       (frame_sends_through_c(abi) || !code_resumes(code, offset));
}

/* Heap frames (to 3.10): whether the frame is being executed, or is an outer frame of one that is. */
static inline bool frame_is_executing(const struct pyabi *abi, const uint8_t *bytes)
{
	int8_t mark = (int8_t)bytes[abi->frame.executing];

	return abi->call_mark == CALL_MARK_EXECUTING ? mark == 1 : mark == 0;
}

#endif
