/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_coroutine.h"

#include <criterion/criterion.h>

#include "base/clock.h"
#include "tests/unit/fake_objects.h"

enum { CHUNK_BYTES = 16384 };

struct fake_coroutine fake;

static const uint8_t bytecode[][2] = {
	[0] = {151, 0},
	[FAKE_AT_LOAD / 2] = {124, 0},
	[FAKE_AT_CALL_EX / 2] = {142, 0},
	[FAKE_AT_RETURN / 2] = {83, 0},
};

static void put_i32(raddr_t at, int32_t value)
{
	fake_put(at, &value, sizeof(value));
}

raddr_t fake_function(const char *name)
{
	raddr_t code = fake_alloc((size_t)fake.abi->code.bytecode + sizeof(bytecode));

	fake_put_u64(code, 1); /* ob_refcnt */
	fake_put_u64(code + (uint64_t)fake.abi->type.type, fake.code_type);
	fake_put_u64(code + 16, sizeof(bytecode) / 2); /* ob_size */
	fake_put_u64(code + (uint64_t)fake.abi->code.qualname, fake_str(fake.abi, name));
	put_i32(code + (uint64_t)fake.abi->code.nlocalsplus, FAKE_LOCALS);
	put_i32(code + (uint64_t)fake.abi->code.stacksize, FAKE_STACK_SLOTS);
	if (fake.abi->code.framesize != ABSENT)
		put_i32(code + (uint64_t)fake.abi->code.framesize, fake.abi->frame.bytes / 8 + FAKE_LOCALS + FAKE_STACK_SLOTS);
	fake_put(code + (uint64_t)fake.abi->code.bytecode, bytecode, sizeof(bytecode));
	codes_new_tick(fake.target->codes); /* there is time to decode it */
	cr_assert_eq(codes_load(fake.target->codes, &fake.target->remote, code, 1, &(struct code *){NULL}), 0);
	return code;
}

void fake_frame(raddr_t frame, raddr_t code, int64_t offset, int32_t stacktop, raddr_t previous)
{
	fake_put_u64(frame + (uint64_t)fake.abi->frame.code, code);
	fake_put_u64(frame + (uint64_t)fake.abi->frame.previous, previous);
	fake_put_u64(frame + (uint64_t)fake.abi->frame.instr, code + (uint64_t)(fake.abi->code.bytecode + offset));
	put_i32(frame + (uint64_t)fake.abi->frame.stacktop, stacktop);
}

void fake_owner(raddr_t frame, int32_t owner)
{
	const uint8_t byte = (uint8_t)owner;

	fake_put(frame + (uint64_t)fake.abi->frame.owner, &byte, 1);
}

void fake_resume(void)
{
	put_i32(fake.task + (uint64_t)fake.abi->frame.stacktop, FAKE_RUNS);
	fake_put_u64(fake.task + (uint64_t)fake.abi->frame.previous, fake.shim ? fake.shim : fake.handle);
}

void fake_yield(void)
{
	put_i32(fake.task + (uint64_t)fake.abi->frame.stacktop, FAKE_SUSPENDED);
	fake_put_u64(fake.task + (uint64_t)fake.abi->frame.previous, 0);
}

void fake_coroutine_begin(unsigned minor)
{
	const uint8_t entry = 1;

	fake_reset();
	fake.abi = pyabi_table(3, minor);
	fake.target = calloc(1, sizeof(*fake.target));
	fake.t = calloc(1, sizeof(*fake.t));
	cr_assert(fake.target && fake.t);
	fake.target->remote = *fake_remote();
	fake.target->again.usual_piece_ns = NS_PER_S; /* none is slow */
	cr_assert_eq(symtab_new(&fake.target->symbols), 0);
	cr_assert_eq(codes_new(&fake.target->codes, fake.abi, fake.target->symbols), 0);
	cr_assert_not_null(thread_apart(fake.t));
	fake.code_type = fake_type(fake.abi, "code", 0);
	fake.chunk = fake_data_stack(fake.t, CHUNK_BYTES, CHUNK_BYTES);
	cr_assert_eq(edges_new(&fake.target->edges, true), 0);
	fake.w = (struct walker){.abi = fake.abi,
	                         .remote = &fake.target->remote,
	                         .codes = fake.target->codes,
	                         .edges = fake.target->edges,
	                         .plan = &fake.target->again,
	                         .tick = 1,
	                         .now_ns = 1};
	fake.handle = fake.chunk + CHUNK_FIRST;
	fake.handle_code = fake_function("handle");
	fake.task_code = fake_function("task");
	fake_frame(fake.handle, fake.handle_code, FAKE_AT_CALL_EX, FAKE_RUNS, 0);
	fake.task = fake_alloc(PYABI_FRAME_MAX);
	fake_frame(fake.task, fake.task_code, FAKE_AT_LOAD, FAKE_RUNS, 0);
	fake_owner(fake.task, fake.abi->owner.generator);
	fake.shim = fake.abi->frame.is_entry == ABSENT ? fake_alloc(PYABI_FRAME_MAX) : 0;
	if (fake.shim) {
		fake_frame(fake.shim, fake_function("shim"), 0, FAKE_RUNS, fake.handle);
		fake_owner(fake.shim, fake.abi->owner.shim);
	} else {
		fake_put(fake.task + (uint64_t)fake.abi->frame.is_entry, &entry, 1);
	}
	fake_resume();
}

void fake_coroutine_begin_11(void)
{
	fake_coroutine_begin(11);
}

void fake_coroutine_end(void)
{
	edges_free(fake.target->edges);
	codes_free(fake.target->codes);
	symtab_free(fake.target->symbols);
	plan_release(&fake.target->again);
	free(fake.target->first_copy.frames);
	thread_release(fake.t);
	free(fake.t);
	free(fake.target);
}
