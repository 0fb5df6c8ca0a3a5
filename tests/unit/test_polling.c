/* SPDX-License-Identifier: Apache-2.0 */
/* Frames laid out in the test's own memory: a data stack, and the coroutines that C resumes on top of it. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/clock.h"
#include "sampler/polling.h"
#include "tests/unit/fake_objects.h"

enum { CHUNK_BYTES = 16384, LOCALS = 2, STACK_SLOTS = 3, RUNS = -1, SUSPENDED = LOCALS + 1 };
/* Bytes from the first instruction of each function here: RESUME, LOAD_FAST, CALL_FUNCTION_EX. */
enum { AT_LOAD = 2, AT_CALL_EX = 4, AT_RETURN = 6 };

static const uint8_t bytecode[][2] = {
	[0] = {151, 0},
	[AT_LOAD / 2] = {124, 0},
	[AT_CALL_EX / 2] = {142, 0},
	[AT_RETURN / 2] = {83, 0},
};

static const struct pyabi *abi;
static raddr_t code_type, chunk, handle, task, shim;
static struct target *target;
static struct thread *t;
static struct walker w;

static void put_i32(raddr_t at, int32_t value)
{
	fake_put(at, &value, sizeof(value));
}

static raddr_t make_code(const char *name)
{
	raddr_t code = fake_alloc((size_t)abi->code.bytecode + sizeof(bytecode));

	fake_put_u64(code + (uint64_t)abi->type.type, code_type);
	fake_put_u64(code + 16, sizeof(bytecode) / 2); /* ob_size */
	fake_put_u64(code + (uint64_t)abi->code.qualname, fake_str(abi, name));
	put_i32(code + (uint64_t)abi->code.nlocalsplus, LOCALS);
	put_i32(code + (uint64_t)abi->code.stacksize, STACK_SLOTS);
	if (abi->code.framesize != ABSENT)
		put_i32(code + (uint64_t)abi->code.framesize, abi->frame.bytes / 8 + LOCALS + STACK_SLOTS);
	fake_put(code + (uint64_t)abi->code.bytecode, bytecode, sizeof(bytecode));
	codes_new_tick(target->codes); /* there is time to decode it */
	cr_assert_eq(codes_load(target->codes, &target->remote, code, 1, &(struct code *){NULL}), 0);
	return code;
}

static void put_frame(raddr_t frame, raddr_t code, int64_t offset, int32_t stacktop, raddr_t previous)
{
	fake_put_u64(frame + (uint64_t)abi->frame.code, code);
	fake_put_u64(frame + (uint64_t)abi->frame.previous, previous);
	fake_put_u64(frame + (uint64_t)abi->frame.instr, code + (uint64_t)(abi->code.bytecode + offset));
	put_i32(frame + (uint64_t)abi->frame.stacktop, stacktop);
}

static void put_owner(raddr_t frame, int32_t owner)
{
	const uint8_t byte = (uint8_t)owner;

	fake_put(frame + (uint64_t)abi->frame.owner, &byte, 1);
}

/* A coroutine that runs: C resumed it, through a shim where the version has them. */
static void resume(void)
{
	put_i32(task + (uint64_t)abi->frame.stacktop, RUNS);
	fake_put_u64(task + (uint64_t)abi->frame.previous, shim ? shim : handle);
}

static void yield_to_caller(void)
{
	put_i32(task + (uint64_t)abi->frame.stacktop, SUSPENDED);
	fake_put_u64(task + (uint64_t)abi->frame.previous, 0);
}

static void begin_with(unsigned minor)
{
	const uint8_t entry = 1;

	fake_reset();
	abi = pyabi_table(3, minor);
	target = calloc(1, sizeof(*target));
	t = calloc(1, sizeof(*t));
	cr_assert(target && t);
	target->remote = *fake_remote();
	target->again.usual_piece_ns = NS_PER_S; /* none is slow */
	cr_assert_eq(symtab_new(&target->symbols), 0);
	cr_assert_eq(codes_new(&target->codes, abi, target->symbols), 0);
	cr_assert_not_null(thread_apart(t));
	code_type = fake_type(abi, "code", 0);
	chunk = fake_alloc(CHUNK_BYTES);
	t->chunks = calloc(1, sizeof(*t->chunks));
	t->chunks[0] = (struct chunk){.base = chunk, .size_bytes = CHUNK_BYTES, .copy_bytes = CHUNK_BYTES};
	t->chunk_count = 1;
	w = (struct walker){.abi = abi,
	                    .remote = &target->remote,
	                    .codes = target->codes,
	                    .plan = &target->again,
	                    .tick = 1,
	                    .now_ns = 1};
	handle = chunk + CHUNK_FIRST;
	put_frame(handle, make_code("handle"), AT_CALL_EX, RUNS, 0);
	task = fake_alloc(PYABI_FRAME_MAX);
	put_frame(task, make_code("task"), AT_LOAD, RUNS, 0);
	put_owner(task, abi->owner.generator);
	shim = abi->frame.is_entry == ABSENT ? fake_alloc(PYABI_FRAME_MAX) : 0;
	if (shim) {
		put_frame(shim, make_code("shim"), 0, RUNS, handle);
		put_owner(shim, abi->owner.shim);
	} else {
		fake_put(task + (uint64_t)abi->frame.is_entry, &entry, 1);
	}
	resume();
}

static void begin(void)
{
	begin_with(11);
}

static void end(void)
{
	codes_free(target->codes);
	symtab_free(target->symbols);
	plan_release(&target->again);
	thread_release(t);
	free(t);
	free(target);
}

Test(polling, links_of_what_runs_are_remembered, .init = begin, .fini = end)
{
	yield_to_caller();
	apart_note_unlinked(t->apart, task);
	polling_links(target, &w, t);
	cr_assert_eq(apart_link(t->apart, task).frame, 0);
	resume();
	polling_links(target, &w, t);
	cr_assert_eq(apart_link(t->apart, task).previous, handle);
	cr_assert_eq(t->apart->unlinked[0], 0, "it is polled for no more");
}

Test(polling, so_are_shims_that_are_linked_to_a_frame, .fini = end)
{
	begin_with(12);
	apart_note_unlinked(t->apart, task);
	fake_put_u64(shim + (uint64_t)abi->frame.previous, 0);
	polling_links(target, &w, t);
	cr_assert_eq(apart_link(t->apart, task).frame, 0, "C has returned");
	fake_put_u64(shim + (uint64_t)abi->frame.previous, handle);
	polling_links(target, &w, t);
	cr_assert_eq(apart_link(t->apart, task).previous, shim);
	cr_assert(apart_link(t->apart, shim).shim);
	cr_assert_eq(apart_link(t->apart, shim).previous, handle);
}

Test(polling, a_link_that_cannot_be_read_is_given_up, .init = begin, .fini = end)
{
	apart_note_unlinked(t->apart, fake_unmapped());
	apart_note_unlinked(t->apart, task);
	polling_links(target, &w, t);
	polling_links(target, &w, t);
	cr_assert_eq(apart_link(t->apart, task).previous, handle);
	for (uint32_t i = 0; i < APART_UNLINKED; i++)
		cr_assert_eq(t->apart->unlinked[i], 0);
}
