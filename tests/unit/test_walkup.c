/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of 3.14 laid out in the test's own memory: a thread's, all of whose work C called (Context.run()), walked up time after time. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "sampler/walk.h"
#include "tests/unit/debug_words.h"
#include "tests/unit/fake_objects.h"

enum { CHUNK_BYTES = 16384, LOCALS = 2, STACK_SLOTS = 3, CALLED_BY_C = 1, LOOKS_STEADY = 16 };
/* Bytes from the first instruction of each function here: RESUME, LOAD_FAST, CALL, RETURN_VALUE. */
enum { AT_LOAD = 2, AT_CALL = 14, AT_RETURN = 24 };

static const uint8_t bytecode[][2] = {
	[0] = {128, 0},
	[AT_LOAD / 2] = {84, 0},
	[AT_CALL / 2] = {52, 0},
	[AT_RETURN / 2] = {35, 0},
};

static struct pyabi layout;
static const struct pyabi *const abi = &layout;
static raddr_t code_type, top, previous;
static struct walker walker;
static struct thread thread;
static struct plan plan;
static struct symtab *symbols;

static raddr_t make_code(const char *name)
{
	raddr_t code = fake_alloc((size_t)abi->code.bytecode + sizeof(bytecode));

	fake_put_u64(code, 1); /* ob_refcnt */
	fake_put_u64(code + (uint64_t)abi->type.type, code_type);
	fake_put_u64(code + 16, sizeof(bytecode) / 2); /* ob_size */
	fake_put_u64(code + (uint64_t)abi->code.qualname, fake_str(abi, name));
	fake_put(code + (uint64_t)abi->code.nlocalsplus, &(int32_t){LOCALS}, sizeof(int32_t));
	fake_put(code + (uint64_t)abi->code.stacksize, &(int32_t){STACK_SLOTS}, sizeof(int32_t));
	fake_put(code + (uint64_t)abi->code.framesize, &(int32_t){abi->frame.bytes / 8 + LOCALS + STACK_SLOTS}, sizeof(int32_t));
	fake_put(code + (uint64_t)abi->code.bytecode, bytecode, sizeof(bytecode));
	return code;
}

/* The next frame on the data stack, linked to the frame or shim before it. */
static raddr_t push(raddr_t code, int64_t offset)
{
	raddr_t frame = top;

	fake_put_u64(frame + (uint64_t)abi->frame.code, code);
	fake_put_u64(frame + (uint64_t)abi->frame.previous, previous);
	fake_put_u64(frame + (uint64_t)abi->frame.instr, code + (uint64_t)(abi->code.bytecode + offset));
	previous = frame;
	top = frame + (uint64_t)abi->frame.bytes + 8 * (LOCALS + STACK_SLOTS);
	return frame;
}

static void push_shim(void)
{
	raddr_t shim = fake_alloc((size_t)abi->frame.bytes);
	int8_t owner = abi->owner.shim;

	fake_put_u64(shim + (uint64_t)abi->frame.previous, previous);
	fake_put(shim + (uint64_t)abi->frame.owner, &owner, 1);
	previous = shim;
}

static void begin(void)
{
	struct fault fault;

	fake_reset();
	cr_assert_eq(pyabi_from_debug_offsets(&layout, words_3_14, sizeof(words_3_14) / sizeof(*words_3_14), &fault), 0);
	code_type = fake_type(abi, "code", 0);
	plan = (struct plan){0};
	thread = (struct thread){0};
	top = fake_data_stack(&thread, CHUNK_BYTES, 2048) + CHUNK_FIRST;
	previous = 0;
	walker = (struct walker){.abi = abi, .remote = fake_remote(), .plan = &plan, .now_ns = 1};
	cr_assert_eq(symtab_new(&symbols), 0);
	cr_assert_eq(codes_new(&walker.codes, abi, symbols), 0);
	cr_assert_eq(edges_new(&walker.edges, false), 0);
}

static void end(void)
{
	edges_free(walker.edges);
	codes_free(walker.codes);
	symtab_free(symbols);
	thread_release(&thread);
	plan_release(&plan);
}

/* A look, whose stack becomes the latest sample. */
static void look(void)
{
	raddr_t leaf;

	walker.tick++;
	codes_new_tick(walker.codes);
	plan_clear(&plan);
	thread.copy = (struct copy){.head = PLAN_FULL, .chunks = plan.count, .chunk_count = thread.chunk_count};
	cr_assert_neq(plan_add(&plan, thread.chunks[0].base, thread.chunks[0].copy_bytes), PLAN_FULL);
	cr_assert(plan_reserve(&plan, CHUNK_BYTES));
	cr_assert_eq(plan_read(&plan, walker.remote), 0);
	cr_assert_eq(walk_up(&walker, &thread, top, &leaf), 0);
	thread_note_on(&thread, walk_passes_steady(&walker));
	thread_keep_copy(&thread, &plan);
	cr_assert(stack_copy(&thread.last, &thread.seen, thread.seen.depth));
	thread.last_plain = thread.seen_plain;
	apart_age(thread.apart, walker.tick);
}

/* Below the function that C called everything stays, in that function and above it all moves. */
static void run_in_context(uint32_t looks)
{
	raddr_t work, leaf = make_code("leaf");

	push(make_code("run"), AT_CALL);
	push_shim();
	work = push(make_code("work"), AT_CALL);
	push(leaf, AT_LOAD);
	for (uint32_t i = 0; i < looks; i++) {
		fake_put_u64(work + (uint64_t)abi->frame.bytes, i); /* a variable */
		look();
		cr_assert_eq(thread.seen.depth, 3);
	}
}

/* Once: the walk began behind the shim, and took the function for one that Python called, so that the shim was never read again. */
Test(walkup, who_was_called_by_c_stays_known, .init = begin, .fini = end)
{
	run_in_context(LOOKS_STEADY);
	for (uint32_t i = 0; i < 2 * STEADY_OF; i++) {
		fake_put_u64(thread.seen.frames[CALLED_BY_C].frame + (uint64_t)abi->frame.bytes + 8, i);
		look();
		if (!walk_passes_steady(&walker))
			continue;
		cr_expect_eq(thread.seen_plain.count, 3);
		cr_expect_eq(thread.seen_plain.shims, 1, "look %u", i);
		cr_expect_eq(thread.seen_plain.called_by_c[0], CALLED_BY_C);
	}
}

Test(walkup, what_a_thread_lies_on_for_good_does_not_come_and_go, .init = begin, .fini = end)
{
	run_in_context(LOOKS_STEADY);
	cr_expect(apart_any(thread.apart));
	cr_expect(thread_is_apart(&thread), "not for long enough");
	for (uint32_t i = 0; i < 2 * ON_SAME; i++)
		look();
	cr_expect(apart_any(thread.apart));
	cr_expect_not(thread_is_apart(&thread));
	apart_note(thread.apart, thread.tstate + 4096, 64, walker.tick);
	cr_expect(thread_is_apart(&thread), "something else was met, whole or not");
	thread.apart->count--;
	thread.seen.apart = true;
	thread.seen_plain.count--;
	thread_note_on(&thread, true);
	cr_expect(thread_is_apart(&thread), "a generator ran");
}
