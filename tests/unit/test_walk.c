/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of 3.11 laid out in the test's own memory, and the chain that leads down from the one that is named as current. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "sampler/calls.h"
#include "sampler/walk.h"
#include "tests/unit/fake_objects.h"

enum { CHUNK_BYTES = 16384, LOCALS = 2, STACK_SLOTS = 3, RUNS = -1, SUSPENDED = LOCALS + 1, LEFT = LOCALS };
/* Bytes from the first instruction of each function here: RESUME, LOAD_FAST, STORE_ATTR, CALL, CALL_FUNCTION_EX, RETURN_VALUE. */
enum { AT_LOAD = 2, AT_STORE_ATTR = 4, AT_CALL = 14, AT_CALLED = AT_CALL + 8, AT_CALL_EX = 24, AT_RETURN = 26 };

static const uint8_t bytecode[][2] = {
	[0] = {151, 0},
	[AT_LOAD / 2] = {124, 0},
	[AT_STORE_ATTR / 2] = {95, 0},
	[AT_CALL / 2] = {171, 0},
	[AT_CALLED / 2] = {2, 0}, /* the last cache of CALL, the number of arguments: it looks like PUSH_NULL */
	[AT_CALL_EX / 2] = {142, 0},
	[AT_RETURN / 2] = {83, 0},
};

static const struct pyabi *abi;
static raddr_t code_type, chunk, top, previous;
static struct walker walker;
static struct thread thread;
static struct plan plan;
static struct symtab *symbols;

static void put_i32(raddr_t at, int32_t value)
{
	fake_put(at, &value, sizeof(value));
}

static raddr_t make_code(const char *name)
{
	raddr_t code = fake_alloc((size_t)abi->code.bytecode + sizeof(bytecode));

	fake_put_u64(code, 1); /* ob_refcnt */
	fake_put_u64(code + (uint64_t)abi->type.type, code_type);
	fake_put_u64(code + 16, sizeof(bytecode) / 2); /* ob_size */
	fake_put_u64(code + (uint64_t)abi->code.qualname, fake_str(abi, name));
	put_i32(code + (uint64_t)abi->code.nlocalsplus, LOCALS);
	put_i32(code + (uint64_t)abi->code.stacksize, STACK_SLOTS);
	fake_put(code + (uint64_t)abi->code.bytecode, bytecode, sizeof(bytecode));
	return code;
}

static void begin(void)
{
	fake_reset();
	abi = pyabi_table(3, 11);
	code_type = fake_type(abi, "code", 0);
	plan = (struct plan){0};
	thread = (struct thread){0};
	chunk = fake_data_stack(&thread, CHUNK_BYTES, CHUNK_BYTES);
	top = chunk + CHUNK_FIRST;
	previous = 0;
	walker = (struct walker){.abi = abi, .remote = fake_remote(), .plan = &plan, .tick = 1, .now_ns = 1};
	cr_assert_eq(symtab_new(&symbols), 0);
	cr_assert_eq(codes_new(&walker.codes, abi, symbols), 0);
}

static void end(void)
{
	codes_free(walker.codes);
	symtab_free(symbols);
	thread_release(&thread);
	plan_release(&plan);
}

/* The next frame on the data stack, linked to the one before it. */
static raddr_t push(raddr_t code, int64_t offset, int32_t stacktop, bool called_by_c)
{
	raddr_t frame = top;
	const uint8_t entry = called_by_c;

	fake_put_u64(frame + (uint64_t)abi->frame.code, code);
	fake_put_u64(frame + (uint64_t)abi->frame.previous, previous);
	fake_put_u64(frame + (uint64_t)abi->frame.instr, code + (uint64_t)(abi->code.bytecode + offset));
	put_i32(frame + (uint64_t)abi->frame.stacktop, stacktop);
	fake_put(frame + (uint64_t)abi->frame.is_entry, &entry, 1);
	top = frame + (uint64_t)abi->frame.bytes + 8 * (LOCALS + STACK_SLOTS);
	previous = frame;
	return frame;
}

/* Tick after tick, as long as there was no time in one to decode what is called. */
static int walk_from(raddr_t current)
{
	int err;

	do {
		codes_new_tick(walker.codes);
		walker.exhausted = false;
		thread.copy = (struct copy){.chunks = plan_add(&plan, chunk, CHUNK_BYTES), .chunk_count = 1};
		cr_assert_eq(plan_read(&plan, walker.remote), 0);
		err = walk_chain(&walker, &thread, current);
	} while (err == -EAGAIN && walker.exhausted);
	return err;
}

static void expect_stack(raddr_t current, uint32_t depth)
{
	cr_expect_eq(walk_from(current), 0);
	cr_expect_not(walker.refuted);
	cr_expect_eq(thread.seen.depth, depth);
}

static void expect_refuted(raddr_t current)
{
	cr_expect_eq(walk_from(current), -EAGAIN);
	cr_expect(walker.refuted);
}

Test(walk, callers_stand_at_calls, .init = begin, .fini = end)
{
	push(make_code("outer"), AT_CALLED, SUSPENDED, true);
	push(make_code("middle"), AT_CALL_EX, RUNS, false);
	push(make_code("called_by_c"), AT_CALLED, SUSPENDED, true);
	expect_stack(push(make_code("leaf"), AT_LOAD, RUNS, false), 4);
	cr_expect(thread.seen.frames[1].direct);
	cr_expect_not(thread.seen.frames[2].direct);
	cr_expect(thread.seen.frames[3].direct);
}

/* Switched out as C was about to enter a coroutine: `cframe.current_frame` is still that of a call before, whose frames lie where they
 * lay. So it was seen of asyncio's Handle._run(), call_soon(), _call_soon() and Handle.__init__(). */
Test(walk, what_has_been_left_is_no_stack, .init = begin, .fini = end)
{
	push(make_code("_run"), AT_CALL_EX, RUNS, true);
	push(make_code("call_soon"), AT_RETURN, LEFT, true);
	push(make_code("_call_soon"), AT_RETURN, LEFT, false);
	expect_refuted(push(make_code("__init__"), AT_RETURN, LEFT, true));
}

Test(walk, what_c_called_and_has_been_left_is_no_leaf, .init = begin, .fini = end)
{
	push(make_code("caller"), AT_CALL_EX, RUNS, true);
	expect_refuted(push(make_code("left"), AT_RETURN, LEFT, true));
}

/* An attribute can be a property, but then C calls it, or the caller says that it is suspended: asyncio's Handle.__init__() at an
 * assignment below get_debug(). */
Test(walk, a_caller_that_runs_was_called_from_by_c_only, .init = begin, .fini = end)
{
	raddr_t caller = make_code("__init__"), callee = make_code("get_debug");

	push(caller, AT_STORE_ATTR, RUNS, true);
	expect_refuted(push(callee, AT_LOAD, RUNS, false));
	top = chunk + CHUNK_FIRST;
	previous = 0;
	push(caller, AT_CALL_EX, RUNS, true);
	expect_refuted(push(callee, AT_LOAD, RUNS, false));
	top = chunk + CHUNK_FIRST;
	previous = 0;
	push(caller, AT_STORE_ATTR, RUNS, true);
	expect_stack(push(callee, AT_LOAD, RUNS, true), 2);
}

Test(walk, nothing_runs_above_a_plain_instruction_unless_it_is_traced, .init = begin, .fini = end)
{
	raddr_t caller = make_code("caller"), callee = make_code("callee");

	push(caller, AT_LOAD, RUNS, true);
	expect_refuted(push(callee, AT_LOAD, RUNS, true));
	top = chunk + CHUNK_FIRST;
	previous = 0;
	push(caller, AT_LOAD, SUSPENDED, true);
	expect_stack(push(callee, AT_LOAD, RUNS, true), 2);
}

/* The current frame is changed before the frame above it is taken down. */
Test(walk, a_suspended_leaf_has_a_frame_that_is_taken_down, .init = begin, .fini = end)
{
	raddr_t leaf;

	push(make_code("outer"), AT_CALL_EX, RUNS, true);
	leaf = push(make_code("leaf"), AT_CALLED, SUSPENDED, true);
	thread.left = push(make_code("left"), AT_RETURN, LEFT, false);
	expect_stack(leaf, 2);
	thread.left = 0;
	expect_refuted(leaf);
}

Test(walk, a_frame_that_has_not_begun_called_nothing, .init = begin, .fini = end)
{
	push(make_code("outer"), AT_CALL_EX, RUNS, true);
	push(make_code("made"), -2, LOCALS, true);
	expect_refuted(push(make_code("leaf"), AT_LOAD, RUNS, true));
}

/* However often it is seen. */
Test(walk, no_call_is_learnt_where_none_can_be, .init = begin, .fini = end)
{
	struct edges *edges;

	cr_assert_eq(edges_new(&edges, false), 0);
	push(make_code("caller"), AT_STORE_ATTR, SUSPENDED, true);
	push(make_code("callee"), AT_LOAD, RUNS, true);
	expect_stack(previous, 2);
	thread.seen.frames[1].direct = true;
	for (int i = 0; i < 100; i++)
		calls_sight(&walker, &thread.seen, 2, edges);
	calls_learn(&walker, &thread.seen, edges);
	cr_expect_not(calls_are_known(&walker, &thread.seen, 1, edges));
	cr_expect(calls_are_known(&walker, &thread.seen, 2, edges));
	thread.seen.frames[0].offset = AT_CALLED;
	calls_learn(&walker, &thread.seen, edges);
	cr_expect(calls_are_known(&walker, &thread.seen, 1, edges));
	edges_free(edges);
}
