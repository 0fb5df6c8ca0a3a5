/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "sampler/apart.h"

#define BYTES 88

static struct apart *new_apart(void)
{
	struct apart *apart = calloc(1, sizeof(*apart));

	cr_assert_not_null(apart);
	return apart;
}

/* How many frames a plan of this tick takes. */
static uint32_t planned(const struct apart *apart, uint64_t tick)
{
	struct apart_copy copy;
	struct plan plan = {0};

	cr_assert(apart_plan(apart, &plan, tick, &copy));
	plan_release(&plan);
	return copy.frame_count;
}

Test(apart, what_many_ticks_meet_is_copied_with_the_rest)
{
	struct apart *apart = new_apart();
	uint64_t tick = 1;

	apart_note(apart, 0x10000, BYTES, tick);
	cr_assert_eq(planned(apart, tick), 1, "met in this very tick: a second look takes it");
	apart_age(apart, tick);
	cr_assert_eq(planned(apart, ++tick), 0, "met once: another coroutine mostly runs by now");
	for (; tick < 40; tick++) {
		if (tick % 4 == 0)
			apart_note(apart, 0x10000, BYTES, tick);
		apart_age(apart, tick);
	}
	cr_assert_eq(planned(apart, tick), 1, "met by one tick in four");
	for (; tick < 400; tick++)
		apart_age(apart, tick);
	cr_assert_eq(planned(apart, tick), 0);
	cr_assert_eq(apart->count, 0, "forgotten");
	free(apart);
}

Test(apart, a_full_table_keeps_those_that_are_met)
{
	struct apart *apart = new_apart();

	for (uint64_t tick = 1; tick < 1000; tick++) {
		apart_note(apart, 0x500000, BYTES, tick);
		for (uint32_t i = 0; i < 40; i++)
			apart_note(apart, 0x10000 + hash_u64(tick * 64 + i) % 4096 * 256, BYTES, tick);
		apart_age(apart, tick);
		cr_assert_leq(apart->count, APART_FRAMES);
		for (uint32_t i = 1; i < apart->count; i++)
			cr_assert_lt(apart->frames[i - 1].frame, apart->frames[i].frame);
	}
	cr_assert_geq(planned(apart, 1000), 1);
	cr_assert_eq(apart->frames[apart->count - 1].frame, 0x500000);
	free(apart);
}

Test(apart, what_is_fetched_is_found_and_newer_than_what_was_copied)
{
	static uint8_t memory[4096];
	struct remote remote = {.pid = getpid(), .mem_fd = -1};
	raddr_t from = (raddr_t)(uintptr_t)memory;
	struct iovec frames[2] = {{memory, BYTES}, {memory + 1024, BYTES}};
	struct apart *apart = new_apart();
	struct apart_copy copy;
	struct plan plan = {0};
	uint32_t bytes = 0;

	memory[0] = 1;
	memory[1024] = 2;
	apart_note(apart, from, BYTES, 1);
	cr_assert(apart_plan(apart, &plan, 1, &copy));
	cr_assert(plan_reserve(&plan, 1024));
	cr_assert_eq(plan_read(&plan, &remote), 0);
	cr_assert_eq(*apart_find(&copy, &plan, from, &bytes), 1);
	cr_assert_eq(bytes, BYTES);
	cr_assert_null(apart_find(&copy, &plan, from + 1024, &bytes));
	memory[0] = 3;
	cr_assert_eq(apart_fetch(&copy, &plan, &remote, frames, 2, PLAN_SINGLY), 0);
	cr_assert_eq(*apart_find(&copy, &plan, from, &bytes), 3);
	cr_assert_eq(*apart_find(&copy, &plan, from + 1024, &bytes), 2);
	frames[0].iov_base = (void *)(uintptr_t)16;
	cr_assert_leq(apart_fetch(&copy, &plan, &remote, frames, 1, PLAN_SINGLY), 0);
	cr_assert_null(apart_find(&copy, &plan, 16, &bytes));
	plan_release(&plan);
	free(apart);
}

Test(apart, links_and_what_is_no_frame_are_remembered)
{
	struct apart *apart = new_apart();

	cr_assert_eq(apart_link(apart, 0x10000).frame, 0);
	apart_note_link(apart, (struct apart_link){.frame = 0x10000, .previous = 0x20000, .bytes = BYTES});
	cr_assert_eq(apart_link(apart, 0x10000).previous, 0x20000);
	cr_assert_not(apart_is_none(apart, 0x30000, 5));
	apart_note_none(apart, 0x30000, 5);
	cr_assert(apart_is_none(apart, 0x30000, 6));
	cr_assert_not(apart_is_none(apart, 0x30000, 1000), "a coroutine may begin there");
	apart_forget_none(apart, 0x40000);
	cr_assert(apart_is_none(apart, 0x30000, 6));
	apart_forget_none(apart, 0x30000);
	cr_assert_not(apart_is_none(apart, 0x30000, 6));
	free(apart);
}

/* Two that are met in turn must not each take the other's place. */
Test(apart, what_falls_together_is_kept)
{
	for (uint64_t program = 1; program <= 50; program++) {
		struct apart *apart = new_apart();
		uint64_t base = program << 24;

		for (uint32_t turn = 1; turn <= 3; turn++)
			for (uint64_t i = 1; i <= 32; i++) {
				cr_expect_eq(apart_link(apart, base + 0x300 * i).bytes, turn - 1);
				apart_note_link(apart, (struct apart_link){.frame = base + 0x300 * i, .bytes = turn});
			}
		free(apart);
	}
}

Test(apart, a_shim_is_steady_once_it_was_met_often_on_one_frame)
{
	struct apart *apart = new_apart();
	struct apart_link link = {.frame = 0x7000, .previous = 0x20000, .bytes = BYTES, .shim = true};

	cr_assert_not(apart_is_steady(NULL, 0x7000, 0x20000));
	for (int i = 0; i < 8; i++) {
		cr_assert_not(apart_is_steady(apart, 0x7000, 0x20000));
		apart_note_link(apart, link);
	}
	apart_note_link(apart, link);
	cr_assert(apart_is_steady(apart, 0x7000, 0x20000));
	cr_assert_not(apart_is_steady(apart, 0x7000, 0x30000));
	link.previous = 0x30000;
	apart_note_link(apart, link);
	cr_assert_not(apart_is_steady(apart, 0x7000, 0x20000));
	cr_assert_not(apart_is_steady(apart, 0x7000, 0x30000));
	for (int i = 0; i < 20; i++)
		apart_note_link(apart, (struct apart_link){.frame = 0x8000, .previous = 0x20000, .bytes = BYTES});
	cr_assert_not(apart_is_steady(apart, 0x8000, 0x20000), "a generator");
	free(apart);
}
