/* SPDX-License-Identifier: Apache-2.0 */
/* What a look at frames on the heap reads: the chain that led to what runs. */
#include "sampler/heaplook.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "sampler/heapcalls.h"
#include "sampler/target.h"

enum { MAIN = 0x10000, LOOP = 0x10100, CALLER = 0x10200, SHORT = 0x10300, OTHER = 0x10400, CODE = 0x20000, MANY = 64 };

static struct thread t;
static struct codes *codes;
static struct edges *edges;
static struct walker w;

static void begin(void)
{
	t = (struct thread){.tstate = 1, .heap_misses = 1};
	cr_assert_eq(codes_new(&codes, pyabi_table(3, 10), NULL), 0);
	cr_assert_eq(edges_new(&edges, false), 0);
	w = (struct walker){.abi = pyabi_table(3, 10), .codes = codes, .edges = edges, .tick = 1};
}

static void end(void)
{
	thread_release(&t);
	codes_free(codes);
	edges_free(edges);
}

static void note_chain(const raddr_t *frames, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		heaplook_note(&t, frames[i], i > 0 ? frames[i - 1] : 0, CODE + frames[i]);
}

static void expect_guess(const raddr_t *frames, uint32_t count)
{
	cr_assert_eq(t.heap_expected, count);
	for (uint32_t i = 0; i < count; i++)
		cr_expect_eq(t.heap[i].frame, frames[i], "frame %u is %#lx", i, (unsigned long)t.heap[i].frame);
}

Test(heaplook, a_chain_is_expected_outermost_first, .init = begin, .fini = end)
{
	static const raddr_t chain[] = {MAIN, LOOP, CALLER, SHORT};

	note_chain(chain, 4);
	cr_assert(heaplook_expect(&w, &t, SHORT));
	expect_guess(chain, 4);
	cr_assert(heaplook_expect(&w, &t, CALLER));
	expect_guess(chain, 3);
	cr_expect_eq(heaplook_code(&t, SHORT), CODE + SHORT);
	cr_expect_eq(heaplook_code(&t, OTHER), 0);
}

Test(heaplook, the_latest_caller_counts_and_the_one_before_is_copied_too, .init = begin, .fini = end)
{
	static const raddr_t chain[] = {MAIN, LOOP, CALLER, SHORT}, later[] = {MAIN, LOOP, OTHER, SHORT}, guess[] = {CALLER, MAIN, LOOP, OTHER, SHORT};

	note_chain(chain, 4);
	cr_assert(heaplook_expect(&w, &t, SHORT));
	cr_expect_eq(t.heap_others, 0);
	note_chain(later, 4);
	note_chain(later, 4);
	cr_assert(heaplook_expect(&w, &t, SHORT));
	expect_guess(guess, 5);
	cr_expect_eq(t.heap_others, 1);
}

Test(heaplook, what_another_code_lay_on_is_forgotten, .init = begin, .fini = end)
{
	static const raddr_t later[] = {MAIN, LOOP, OTHER, SHORT};

	heaplook_note(&t, CALLER, LOOP, CODE);
	heaplook_note(&t, SHORT, CALLER, CODE);
	note_chain(later, 4);
	cr_assert(heaplook_expect(&w, &t, SHORT));
	expect_guess(later, 4);
}

Test(heaplook, the_others_are_bounded, .init = begin, .fini = end)
{
	static const raddr_t chain[] = {MAIN, SHORT};

	for (raddr_t i = MANY; i-- > 0;)
		heaplook_note(&t, OTHER + 0x100 * i, i + 1 < MANY ? OTHER + 0x100 * (i + 1) : MAIN, CODE);
	heaplook_note(&t, SHORT, OTHER, CODE + SHORT);
	note_chain(chain, 2);
	cr_assert(heaplook_expect(&w, &t, SHORT));
	cr_expect_eq(t.heap_others, 8);
	cr_assert_eq(t.heap_expected, 10);
	cr_expect_eq(t.heap[7].frame, OTHER); /* the outermost first */
	cr_expect_eq(t.heap[8].frame, MAIN);
}

Test(heaplook, a_chain_goes_on_with_the_latest_sample, .init = begin, .fini = end)
{
	static const raddr_t chain[] = {MAIN, LOOP, CALLER, SHORT};

	cr_assert(stack_push(&t.last, (struct pyframe){.frame = MAIN}));
	cr_assert(stack_push(&t.last, (struct pyframe){.frame = LOOP}));
	cr_assert(stack_push(&t.last, (struct pyframe){.frame = OTHER}));
	heaplook_note(&t, CALLER, LOOP, CODE);
	heaplook_note(&t, SHORT, CALLER, CODE);
	cr_assert(heaplook_expect(&w, &t, SHORT));
	expect_guess(chain, 4);
}

Test(heaplook, the_latest_sample_is_left_where_it_was_called_by_another_one_since, .init = begin, .fini = end)
{
	static const raddr_t chain[] = {MAIN, OTHER, SHORT};

	cr_assert(stack_push(&t.last, (struct pyframe){.frame = MAIN}));
	cr_assert(stack_push(&t.last, (struct pyframe){.frame = CALLER}));
	cr_assert(stack_push(&t.last, (struct pyframe){.frame = SHORT}));
	note_chain(chain, 3);
	cr_assert(heaplook_expect(&w, &t, SHORT));
	expect_guess(chain, 3);
}

Test(heaplook, links_in_a_circle_are_no_chain, .init = begin, .fini = end)
{
	heaplook_note(&t, CALLER, SHORT, CODE);
	heaplook_note(&t, SHORT, CALLER, CODE);
	cr_expect_not(heaplook_expect(&w, &t, SHORT));
	cr_expect_eq(t.heap_expected, 0);
}

Test(heaplook, many_frames_do_not_take_each_others_place, .init = begin, .fini = end)
{
	for (raddr_t i = 0; i < MANY; i++)
		heaplook_note(&t, MAIN + 0x1c0 * i, MAIN, CODE + i);
	for (raddr_t i = 0; i < MANY; i++)
		cr_expect_eq(heaplook_code(&t, MAIN + 0x1c0 * i), CODE + i);
}

Test(heaplook, a_thread_of_which_nothing_was_torn_needs_no_memory, .init = begin, .fini = end)
{
	t.heap_misses = 0;
	heaplook_note(&t, SHORT, CALLER, CODE);
	cr_expect_null(t.heap_links);
	heaplook_count(&t, false);
	cr_expect_eq(t.heap_misses, 0);
	heaplook_count(&t, true);
	heaplook_note(&t, SHORT, CALLER, CODE);
	cr_expect_eq(heaplook_code(&t, SHORT), CODE);
}

Test(heaplook, what_stands_is_copied_at_once, .init = begin, .fini = end)
{
	cr_assert(stack_push(&t.seen, (struct pyframe){.frame = MAIN}));
	cr_assert(stack_push(&t.seen, (struct pyframe){.frame = LOOP}));
	heaplook_accepted(&w, &t);
	cr_expect_eq(t.heap_expected, 0);
	cr_assert(stack_copy(&t.last, &t.seen, 2));
	heaplook_accepted(&w, &t);
	cr_expect_eq(t.heap_expected, 2);
}

/* Frames of `caller`, standing at one place, say so many times that they call `callee`. */
static void tell(const struct code *caller, struct code *callee, int times)
{
	for (int i = 0; i < times; i++)
		heap_sight_told(1, NULL, caller, 8, callee, edges);
}

static bool knows(const struct code *caller, const struct code *callee)
{
	return edges_has(edges, heap_local_call(NULL, caller, 8, callee));
}

Test(heaplook, what_is_told_is_learnt_by_its_share, .init = begin, .fini = end)
{
	struct code caller = {.identity = 1}, callee = {.identity = 2}, torn = {.identity = 3};

	for (int i = 0; i < 100; i++) {
		tell(&caller, &callee, 3);
		tell(&caller, &torn, 1);
		if (i == 0)
			cr_expect_not(knows(&caller, &callee)); /* three times */
	}
	cr_expect(knows(&caller, &callee));
	cr_expect_not(knows(&caller, &torn));
}

Test(heaplook, where_mostly_something_else_is_told_nothing_is_learnt, .init = begin, .fini = end)
{
	struct code caller = {.identity = 1}, callee = {.identity = 2};

	for (int i = 0; i < 200; i++) {
		tell(&caller, NULL, 1);
		tell(&caller, &callee, 1);
	}
	cr_expect_not(knows(&caller, &callee));
}

/* A stack of such frames; each stands at this offset of the code that lies at its address. */
static void push_chain(struct pystack *stack, const raddr_t *frames, uint32_t count, int64_t offset)
{
	for (uint32_t i = 0; i < count; i++)
		cr_assert(stack_push(stack, (struct pyframe){.frame = frames[i], .code = CODE + frames[i], .offset = offset}));
}

Test(heapcalls, one_stack_of_a_thread_that_stands_teaches_its_calls, .init = begin, .fini = end)
{
	static const raddr_t chain[] = {MAIN, LOOP, CALLER, SHORT}, other[] = {MAIN, LOOP, OTHER, SHORT};
	struct pystack seen = {0}, torn = {0};
	uint32_t unknown = 0;

	push_chain(&seen, chain, 4, 2);
	push_chain(&torn, other, 4, 2);
	heap_sight_calls(&w, &seen, 0, edges);
	cr_expect_not(heap_knows_calls(&w, &seen, 0, edges, NULL), "two copies that are alike may have been so by chance");
	heap_learn_calls(&w, &seen, edges);
	cr_expect(heap_knows_calls(&w, &seen, 0, edges, NULL));
	cr_expect(heap_knows_sites(&w, &seen, edges));
	cr_expect_not(heap_knows_calls(&w, &torn, 0, edges, &unknown));
	cr_expect_eq(unknown, 2);
	free(seen.frames);
	free(torn.frames);
}
