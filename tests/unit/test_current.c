/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/current.h"
#include "sampler/target.h"
#include "tests/unit/fake_objects.h"

#define STATES      4
#define STACK_WORDS 1024

/* Thread states as far as they are looked at: a frame, or a cframe with room for their own, which they have without frames. */
struct fake_state {
	uint64_t frame_or_cframe, own_cframe;
};

static struct {
	struct fake_state states[STATES];
	uint64_t stacks[2][STACK_WORDS]; /* C stacks: pthread_self() lies at the end of each */
	uint64_t frames[2];              /* what each links back to */
	struct target *target;
	struct interp interps[2]; /* a subinterpreter, and, last, the main one */
	struct thread threads[STATES], *list[STATES];
} made;

static uint64_t stack_end(int stack)
{
	return (uintptr_t)&made.stacks[stack][STACK_WORDS - 1];
}

/* Two system threads, 11 and 12, that have states in the main interpreter, and one that each of them has in the other. */
static void begin(void)
{
	struct target *target = calloc(1, sizeof(*target));

	cr_assert(target);
	memset(&made, 0, sizeof(made));
	made.target = target;
	made.interps[0].addr = 1;
	made.interps[1].addr = 2;
	target->remote = *fake_remote();
	target->proc.pid = getpid();
	target->proc.abi = *fake_abi(FAKE_311);
	target->proc.abi.frames = FRAMES_STACK;
	target->proc.abi.tstate.cframe = 0;
	target->interps = made.interps;
	target->interp_count = 2;
	target->threads = made.list;
	target->thread_count = target->thread_room = STATES;
	for (int i = 0; i < STATES; i++) {
		made.threads[i] = (struct thread){.id = (uint32_t)i + 1,
		                                  .interp = i < 2 ? 1 : 2,
		                                  .tstate = (uintptr_t)&made.states[i],
		                                  .thread_id = stack_end(i % 2),
		                                  .tid = 11 + i % 2};
		made.states[i].frame_or_cframe = (uintptr_t)&made.states[i].own_cframe;
		made.list[i] = &made.threads[i];
	}
}

static void begin_heap(void)
{
	begin();
	made.target->proc.abi = *fake_abi(FAKE_38);
	made.target->proc.abi.tstate.frame = 0;
	made.target->proc.abi.frame.previous = 0;
	for (int i = 0; i < STATES; i++)
		made.states[i].frame_or_cframe = 0;
}

static void end(void)
{
	free(made.target);
}

static void enter(int state, int stack, int word)
{
	struct thread *t = &made.threads[state];

	made.states[state].frame_or_cframe = (uintptr_t)&made.stacks[stack][word];
	t->stack_from = (uintptr_t)made.stacks[stack];
	t->stack_to = stack_end(stack);
}

static bool is_current(int state)
{
	return !made.threads[state].outer;
}

Test(current, the_innermost_of_those_that_have_frames, .init = begin, .fini = end)
{
	cr_assert_eq(current_arrange(made.target), 0);
	current_choose(made.target, 1);
	cr_expect(!is_current(0) && is_current(2), "none has frames: the main interpreter's");
	enter(2, 0, 900);
	current_choose(made.target, 1);
	cr_expect(is_current(2) && !is_current(0) && !made.threads[2].nested);
	enter(0, 0, 800);
	current_choose(made.target, 1);
	cr_expect(is_current(0) && !is_current(2) && made.threads[0].nested);
	enter(2, 0, 700);
	current_choose(made.target, 1);
	cr_expect(is_current(2) && !is_current(0), "it was entered anew, from the other one");
	cr_expect(is_current(3) && !is_current(1), "the other system thread's are another matter");
}

Test(current, what_runs_on_another_stack_is_found_there, .init = begin, .fini = end)
{
	pid_t tid = 0;

	cr_assert_eq(current_arrange(made.target), 0);
	cr_expect_not(current_find(made.target, &made.threads[0], 1, &tid), "it has no frames");
	enter(0, 0, 800);
	cr_expect_not(current_find(made.target, &made.threads[0], 1, &tid), "it is where it was");
	made.states[0].frame_or_cframe = (uintptr_t)&made.stacks[1][800];
	made.target->t_listed_ns = 1;
	current_choose(made.target, 1);
	cr_expect_eq(made.target->t_listed_ns, 0, "the lists are to be read anew");
	cr_expect_not(is_current(0));
	cr_assert(current_find(made.target, &made.threads[0], 1, &tid));
	cr_expect_eq(tid, 12);
	cr_expect_not(current_find(made.target, &made.threads[0], 1, &tid));
}

Test(current, on_the_heap_the_stack_that_holds_the_outermost_frame, .init = begin_heap, .fini = end)
{
	pid_t tid = 0;

	cr_assert_eq(current_arrange(made.target), 0);
	made.frames[1] = (uintptr_t)&made.frames[0];
	made.states[0].frame_or_cframe = (uintptr_t)&made.frames[1];
	made.stacks[1][500] = (uintptr_t)&made.frames[0];
	cr_expect_not(current_find(made.target, &made.threads[0], 1, &tid), "no other state has its ids and frames");
	made.states[2].frame_or_cframe = (uintptr_t)&made.frames[1];
	cr_assert(current_find(made.target, &made.threads[0], 1, &tid));
	cr_expect_eq(tid, 12);
	cr_expect_eq(made.threads[0].place, (uintptr_t)&made.stacks[1][500]);
	cr_expect_not(current_find(made.target, &made.threads[0], 1, &tid));
	made.stacks[1][500] = 0;
	cr_assert(current_find(made.target, &made.threads[0], 1, &tid), "its thread has left it");
	cr_expect_eq(tid, 0);
	made.stacks[0][500] = made.stacks[1][700] = (uintptr_t)&made.frames[0];
	cr_assert(current_find(made.target, &made.threads[0], 1, &tid));
	cr_expect_eq(tid, 0, "which of the two is not told");
}

Test(current, later_ids_are_right, .init = begin, .fini = end)
{
	made.target->proc.abi = *fake_abi(FAKE_313);
	made.target->proc.abi.frames = FRAMES_STACK;
	made.target->proc.abi.tstate.cframe = ABSENT;
	cr_expect_not(current_is_foreign(made.target, &made.threads[0]));
}
