/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of both kinds from stacks of each, written as words: "m" and other letters are Python frames of one run of the loop, "|" begins an
 * inner run; natively "E" is a frame of the loop, "t" a handler, other letters functions: capitals the interpreter's. Outermost first. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/merge.h"
#include "sampler/thread.h"

enum { FRAMES = 64 };

static struct module interpreter = {.id = 1, .flags = MAPPING_INTERPRETER, .start = 0, .end = 256};
static struct module library = {.id = 2, .start = 0, .end = 256};
static struct module libc = {.id = 3, .flags = MAPPING_SYSTEM, .start = 0, .end = 256};

static uint32_t python_of(struct pystack *stack, const char *text)
{
	uint32_t entries = *text ? 1 : 0, entry = 0;

	for (const char *c = text; *c; c++)
		entries += *c == '|';
	for (const char *c = text; *c; c++) {
		if (*c == '|')
			entry++;
		else
			stack_push(stack, (struct pyframe){.code = (raddr_t)*c, .entry = entries - 1 - entry});
	}
	return entries;
}

/* Digits are the C library's. */
static struct unwound native_of(struct unwind_frame frames[FRAMES], const char *text, enum unwind_end end)
{
	struct unwound native = {.frames = frames, .room = FRAMES, .end = end};

	for (size_t i = strlen(text); i-- > 0;) {
		char c = text[i];
		struct module *module = isdigit((unsigned char)c)               ? &libc
		                        : isupper((unsigned char)c) || c == 't' ? &interpreter
		                                                                : &library;

		frames[native.depth++] = (struct unwind_frame){
			.pc = (raddr_t)c, .module = module, .eval = c == 'E', .eval_inner = c == 't'};
	}
	return native;
}

static void expect_end(const char *python, const char *text, enum unwind_end end, enum native_frames show,
                       enum merged merged, const char *expected)
{
	struct unwind_frame frames[FRAMES];
	struct unwound native = native_of(frames, text, end);
	struct pystack stack = {0}, to = {0};
	uint32_t entries = python_of(&stack, python);
	enum merged is;
	char got[3 * FRAMES] = "";

	cr_assert_eq(merge_native(&to, &stack, entries, &native, show, &is), 0);
	for (uint32_t i = 0; i < to.depth; i++) {
		const struct pyframe *f = &to.frames[i];

		if (f->mapping) {
			strcat(got, "'");
			got[strlen(got)] = (char)f->offset;
		} else {
			got[strlen(got)] = f->code == MERGE_CUT_CODE ? '?' : (char)f->code;
		}
	}
	cr_expect_eq(is, merged, "%s and %s: %d", python, text, (int)is);
	cr_expect_str_eq(got, expected, "%s and %s", python, text);
	free(stack.frames);
	free(to.frames);
}

static void expect(const char *python, const char *native, enum native_frames show, enum merged merged,
                   const char *expected)
{
	expect_end(python, native, UNWIND_ROOT, show, merged, expected);
}

Test(merge, each_run_of_the_loop_is_its_python_frames)
{
	expect("mf", "SEc", NATIVE_ALL, MERGED_WHOLE, "'Smf'c");
	expect("m|f|gh", "SEaEbEc", NATIVE_ALL, MERGED_WHOLE, "'Sm'af'bgh'c");
	expect("", "Sab", NATIVE_ALL, MERGED_WHOLE, "'S'a'b");
	expect("m|f", "SEtaEtc", NATIVE_CALLS, MERGED_WHOLE, "'Sm'af'c");
}

Test(merge, filters)
{
	expect("m|f|g", "1EaAEbE2Bc", NATIVE_LEAF, MERGED_WHOLE, "mfg'2'B'c");
	expect("m|f|g", "1EaAEbE2Bc", NATIVE_EXTENSIONS, MERGED_WHOLE, "m'af'bg'c");
}

Test(merge, counts_that_differ_put_nothing_together)
{
	expect("m|f", "SEa", NATIVE_ALL, MERGED_MISMATCHED, "mf");
	expect("m", "SEaEbEc", NATIVE_ALL, MERGED_MISMATCHED, "m");
	expect("m", "SEaEb", NATIVE_ALL, MERGED_MISMATCHED, "m");
	expect("m", "SEaEABCD", NATIVE_ALL, MERGED_MISMATCHED, "m");
	expect("m", "Sa", NATIVE_ALL, MERGED_MISMATCHED, "m");
	expect("m|f|g", "SEaEABCD", NATIVE_ALL, MERGED_MISMATCHED, "mfg");
}

Test(merge, a_run_that_begins_or_ends_has_no_python_frame)
{
	expect("m", "SEAE", NATIVE_ALL, MERGED_WHOLE, "'Sm'A");
	expect("m", "SEAEBC", NATIVE_ALL, MERGED_WHOLE, "'Sm'A'B'C");
	expect("", "SE", NATIVE_ALL, MERGED_WHOLE, "'S");
	expect("m|f", "SEaEAEt", NATIVE_ALL, MERGED_WHOLE, "'Sm'af'A");
}

Test(merge, what_is_cut_off_is_marked)
{
	expect_end("m|f|gh", "bEc", UNWIND_CUT, NATIVE_ALL, MERGED_CUT, "mf?'bgh'c");
	expect_end("m|f", "bc", UNWIND_CUT, NATIVE_ALL, MERGED_CUT, "mf?'b'c");
	expect_end("m|f", "EaEbc", UNWIND_DEEP, NATIVE_ALL, MERGED_CUT, "?m'af'b'c");
	expect_end("m", "EaEbEc", UNWIND_CUT, NATIVE_ALL, MERGED_MISMATCHED, "m");
	/* The innermost run may be one that begins or ends: what is outside of it could be any frame's. */
	expect_end("m|f|gh", "aEbE", UNWIND_CUT, NATIVE_ALL, MERGED_CUT, "mf?gh");
	expect_end("m|f|gh", "aEbEAB", UNWIND_CUT, NATIVE_ALL, MERGED_CUT, "mf?gh'A'B");
	expect_end("m|f|gh", "aEbEt", UNWIND_CUT, NATIVE_ALL, MERGED_CUT, "mf?gh");
	expect_end("", "aE", UNWIND_CUT, NATIVE_ALL, MERGED_CUT, "?");
	expect_end("m|f", "EaEbc", UNWIND_BAD, NATIVE_ALL, MERGED_FAILED, "mf");
}

/* Every frame has 16 bytes of stack; which of them, counted from the innermost one, holds the outermost run of the inner interpreter. */
static void expect_inner(const char *python, const char *text, uint32_t run, enum merged merged, const char *expected)
{
	struct unwind_frame frames[FRAMES];
	struct unwound native = native_of(frames, text, UNWIND_ROOT);
	char left[FRAMES] = "";

	for (uint32_t i = 0; i < native.depth; i++)
		frames[i].sp = 0x7000 + 16 * i;
	merge_leave_outer(&native, 0x7000 + 16 * run + 8);
	for (uint32_t i = native.depth; i-- > 0;)
		left[strlen(left)] = (char)frames[i].pc;
	expect(python, left, NATIVE_ALL, merged, expected);
}

Test(merge, of_a_nested_interpreter_its_own_frames_are_left)
{
	expect_inner("m|f", "SEaEixEbEc", 3, MERGED_WHOLE, "'i'xm'bf'c");
	expect_inner("m", "SEaEixEc", 1, MERGED_WHOLE, "'i'xm'c");
	expect_inner("m", "SEaEixEbEc", 3, MERGED_MISMATCHED, "m"); /* its own do not fit */
	expect_inner("m|f", "SEaEixEc", 1, MERGED_MISMATCHED, "mf");
	expect_inner("m", "SEaEc", 40, MERGED_MISMATCHED, "m"); /* elsewhere: nothing is left out */
}

Test(merge, nothing_native)
{
	struct pystack stack = {0}, to = {0};
	uint32_t entries = python_of(&stack, "m|f");
	enum merged merged;

	cr_assert_eq(merge_native(&to, &stack, entries, NULL, NATIVE_ALL, &merged), 0);
	cr_expect_eq(merged, MERGED_FAILED);
	cr_expect_eq(to.depth, 2u);
	free(stack.frames);
	free(to.frames);
}
