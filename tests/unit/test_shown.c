/* SPDX-License-Identifier: Apache-2.0 */
/* Special frames among a stack's own, and how much of a deep one is shown. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "sampler/shown.h"

enum { GC = 7, NATIVE = 8, TRUNCATED = 9, UNREADABLE = 10, NOP = 11 };

static const char *const names[OPCODES] = {[9] = "NOP"};

/* A target with what shown.c looks at; no code object is known, so that Python frames are <unreadable>. */
static struct target *made(struct sampler_options options, bool tells_frame)
{
	struct target *target = calloc(1, sizeof(*target));
	struct sampler_options *kept = malloc(sizeof(*kept));
	static struct pyabi abi;

	*kept = options;
	abi = *pyabi_table(3, 12);
	abi.opnames = names;
	abi.interp.gc_frame = tells_frame ? 400 : ABSENT;
	target->proc.abi = abi;
	target->options = kept;
	target->gc_symbol = GC;
	target->native_symbol = NATIVE;
	target->truncated_symbol = TRUNCATED;
	target->unreadable_symbol = UNREADABLE;
	target->opcode_symbols = calloc(OPCODES, sizeof(*target->opcode_symbols));
	target->opcode_symbols[9] = NOP;
	cr_assert_eq(codes_new(&target->codes, &target->proc.abi, NULL), 0);
	return target;
}

static void gone(struct target *target)
{
	codes_free(target->codes);
	free(target->opcode_symbols);
	free((void *)(uintptr_t)target->options);
	free(target);
}

static struct pystack stack_of(uint32_t depth)
{
	struct pystack stack = {0};

	for (uint32_t i = 0; i < depth; i++)
		cr_assert(stack_push(&stack, (struct pyframe){.frame = 65536 + i * 8, .code = 4096 + i}));
	return stack;
}

static void expect(struct target *target, const struct pystack *stack, uint16_t status, const uint32_t *ids,
                   uint32_t count)
{
	struct shown shown = shown_as(target, stack, status);
	struct frame frames[64];
	uint32_t at = 0;

	cr_assert_eq(shown_depth(&shown), count);
	for (uint32_t i = 0; i < stack->depth; i++) {
		cr_assert_eq(shown_count(&shown, i), at);
		at += shown_frames(&shown, i, 1, &frames[at]);
	}
	at += shown_tail(&shown, &frames[at]);
	cr_assert_eq(at, count);
	for (uint32_t i = 0; i < count; i++)
		cr_assert_eq(frames[i].id, ids[i], "frame %u is %u", i, frames[i].id);
}

Test(shown, each_stands_where_it_belongs)
{
	struct target *target =
		made((struct sampler_options){.gc = true, .opcodes = true, .native = NATIVE_MARKS}, true);
	struct pystack stack = stack_of(3);

	stack.frames[1].through_c = true;
	stack.frames[1].opcode = 10; /* an old one: it is not innermost any more */
	stack.frames[2].opcode = 10;
	expect(target, &stack, 0, (uint32_t[]){UNREADABLE, NATIVE, UNREADABLE, UNREADABLE, NOP}, 5);
	expect(target, &stack, STATUS_GC, (uint32_t[]){UNREADABLE, NATIVE, UNREADABLE, UNREADABLE, NOP, GC}, 6);
	stack.frames[0].collects = true;
	expect(target, &stack, STATUS_GC, (uint32_t[]){UNREADABLE, GC, NATIVE, UNREADABLE, UNREADABLE, NOP}, 6);
	expect(target, &stack, 0, (uint32_t[]){UNREADABLE, NATIVE, UNREADABLE, UNREADABLE, NOP}, 5);
	free(stack.frames);
	gone(target);
}

Test(shown, nothing_is_added_unasked)
{
	struct target *target = made((struct sampler_options){0}, false);
	struct pystack stack = stack_of(2), empty = {0};

	stack.frames[1].through_c = true;
	stack.frames[1].opcode = 10;
	expect(target, &stack, STATUS_GC, (uint32_t[]){UNREADABLE, UNREADABLE}, 2);
	gone(target);
	target = made((struct sampler_options){.gc = true}, false);
	expect(target, &empty, STATUS_GC, (uint32_t[]){GC}, 1);
	free(stack.frames);
	gone(target);
}

/* However many marks there are, all that is shown fits a record. */
Test(shown, deep_stacks_are_cut)
{
	struct target *target =
		made((struct sampler_options){.gc = true, .opcodes = true, .native = NATIVE_MARKS}, false);

	for (uint32_t every = 1; every <= 3; every++) {
		struct pystack stack = stack_of(REC_DEPTH_MAX);
		struct shown shown;

		for (uint32_t i = every; i < stack.depth; i += every)
			stack.frames[i].through_c = true;
		stack.frames[stack.depth - 1].opcode = 10;
		cr_assert_eq(shown_cut(target, &stack), STACK_TRUNCATED);
		shown = shown_as(target, &stack, STATUS_GC);
		cr_assert_leq(shown_depth(&shown), REC_DEPTH_MAX);
		cr_assert_geq(shown_depth(&shown), REC_DEPTH_MAX - 2);
		cr_assert_eq(stack.frames[stack.depth - 1].code, 4096 + REC_DEPTH_MAX - 1);
		cr_assert_eq(stack.frames[0].code, 0);
		cr_assert_eq(shown_cut(target, &stack), STACK_TRUNCATED, "it is one that was cut");
		cr_assert_eq(shown_as(target, &stack, 0).stack->depth, stack.depth);
		free(stack.frames);
	}
	gone(target);
}

Test(shown, what_fits_is_whole)
{
	struct target *target = made((struct sampler_options){.native = NATIVE_MARKS}, false);
	struct pystack stack = stack_of(REC_DEPTH_MAX - 2);

	cr_assert_eq(shown_cut(target, &stack), 0);
	cr_assert_eq(stack.depth, REC_DEPTH_MAX - 2);
	for (uint32_t i = 0; i < stack.depth / 2; i++)
		stack.frames[2 * i].through_c = true;
	stack.depth = (REC_DEPTH_MAX - 2) / 3 * 2;
	cr_assert_eq(shown_cut(target, &stack), 0);
	free(stack.frames);
	gone(target);
}
