/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/thread.h"
#include "tests/unit/fake_objects.h"

#define FRAME_BYTES 100u
#define DEPTH       8u

static struct {
	struct thread t;
	struct plan plan;
	uint8_t chunk[1024];
} made;

static raddr_t frame_at(uint32_t i)
{
	return (uintptr_t)made.chunk + CHUNK_FIRST + i * FRAME_BYTES;
}

static void read_chunk(void)
{
	plan_clear(&made.plan);
	made.t.copy = (struct copy){.head = PLAN_FULL, .chunks = made.plan.count, .chunk_count = made.t.chunk_count};
	cr_assert_neq(plan_add(&made.plan, made.t.chunks[0].base, made.t.chunks[0].copy_bytes), PLAN_FULL);
	cr_assert_eq(plan_read(&made.plan, fake_remote()), 0);
}

/* DEPTH frames, all of them plain, of which a copy is kept. */
static void begin(void)
{
	memset(&made, 0, sizeof(made));
	made.t.chunks = calloc(1, sizeof(*made.t.chunks));
	cr_assert(made.t.chunks);
	made.t.chunks[0] = (struct chunk){.base = (uintptr_t)made.chunk, .size_bytes = sizeof(made.chunk), .copy_bytes = sizeof(made.chunk)};
	made.t.chunk_count = 1;
	for (uint32_t i = 0; i < DEPTH; i++)
		cr_assert(stack_push(&made.t.last, (struct pyframe){.frame = frame_at(i)}));
	made.t.seen_plain = made.t.last_plain = (struct plain){.count = DEPTH, .shims = 2, .called_by_c = {2, 5}};
	read_chunk();
	thread_keep_copy(&made.t, &made.plan);
}

static void end(void)
{
	plan_release(&made.plan);
	thread_release(&made.t);
}

Test(chunks, frames_are_the_same_up_to_the_one_that_was_changed, .init = begin, .fini = end)
{
	read_chunk();
	cr_expect_eq(thread_find_same(&made.t, &made.plan, FRAME_BYTES), DEPTH);
	made.chunk[frame_at(4) + 7 - (uintptr_t)made.chunk] ^= 1;
	read_chunk();
	cr_expect_leq(thread_find_same(&made.t, &made.plan, FRAME_BYTES), 4);
	cr_expect_geq(thread_find_same(&made.t, &made.plan, FRAME_BYTES), 3, "differences are found by 16 bytes");
}

Test(chunks, no_more_than_are_plain, .init = begin, .fini = end)
{
	plain_cut(&made.t.last_plain, 3);
	read_chunk();
	cr_expect_eq(thread_find_same(&made.t, &made.plan, FRAME_BYTES), 3);
}

Test(chunks, what_is_cut_takes_its_shims_with_it)
{
	struct plain plain = {.count = 8, .shims = 2, .called_by_c = {2, 5}};

	plain_cut(&plain, 9);
	cr_expect_eq(plain.count, 8);
	cr_expect_eq(plain.shims, 2);
	plain_cut(&plain, 5);
	cr_expect_eq(plain.count, 5);
	cr_expect_eq(plain.shims, 1);
	plain_cut(&plain, 0);
	cr_expect_eq(plain.shims, 0);
}
