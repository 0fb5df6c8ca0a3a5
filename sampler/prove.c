/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/prove.h"

#include <errno.h>

#include "base/clock.h"
#include "base/hash.h"
#include "sampler/calls.h"
#include "sampler/links.h"
#include "sampler/look.h"
#include "sampler/recheck.h"

#define CONFIRMS      6  /* double reads at a call not known yet */
#define DOUBTS        64 /* looks in which more is read to learn the calls of frames outside the data stack */
#define READS_LATEST  64u
#define READS_LEAST   16u /* of these: by then a thread that stands is known for that */
#define GAP_PIECES    16u /* pieces between two copies, each of which takes some 0.2 to 0.4 µs, are fewer */
#define STEP_NS       NS_PER_US /* random waits are shorter */

/* Two copies of a thread: what is alike in them was no chance, where each was copied in one piece. That goes for all calls where they are alike as a
 * whole, lie on the data stack, or are of a thread that `stands`, and the thread state agreed; else for those on the data stack up to where the two part. What lies outside is
 * copied piece by piece: a loop that comes round within a read shows a caller of one round twice between two copies of a callee of the round before and
 * of the one behind, in the same way again and again, and more often than a call that is true. */
static bool sight_alike(struct target *target, const struct walker *w, const struct thread *t,
                        const struct pystack *other, bool agreed, bool stands)
{
	bool same_callee;
	uint32_t alike = stack_alike(&t->seen, other, &same_callee);
	bool whole = alike == t->seen.depth && alike == other->depth;

	for (uint32_t i = 0; i < alike; i++)
		t->seen.frames[i].foreign |= other->frames[i].foreign;
	if (!whole || !agreed || (t->seen.apart && !stands)) {
		uint32_t calls = alike + same_callee;

		for (alike = 0; alike < calls && thread_in_chunks(t, t->seen.frames[alike].frame); alike++)
			;
		whole = false;
	}
	calls_sight(w, &t->seen, alike, target->edges);
	if (!whole && agreed && t->seen.apart)
		calls_sight_adjacent(w, &t->seen, other, alike, target->edges);
	return whole;
}

/* Waits for a random while: a target that loops within a microsecond, and is stopped for a moment by each copy, falls into step with a
 * sampler that reads at a steady pace. What is torn once would then be torn in the same way again and again. */
static void fall_out_of_step(struct target *target)
{
	uint64_t until_ns;

	target->random = hash_u64(target->random + 1);
	until_ns = clock_now_ns() + target->random % STEP_NS;
	while (clock_now_ns() < until_ns)
		;
}

/* What was proven of a look's calls while its frames were read. */
static void count_proofs(struct target *target, const struct walker *w, const struct thread *t)
{
	if (t->agreed && t->copy.apart.proven_count > 0 && !t->recalled)
		calls_sight_proven(w, &t->seen, target->edges);
}

/* Between the two copies lies a random while, too: a loop that comes by within one and the same while is as it was before each time. */
static bool plan_gap(struct target *target, const struct thread *t)
{
	target->random = hash_u64(target->random + 1);
	for (uint64_t i = target->random % GAP_PIECES; i > 0; i--)
		if (plan_add(&target->again, i % 2 ? t->interp : t->tstate, 8) == PLAN_FULL)
			return false;
	return true;
}

/* Whether the thread is blocked; and how many turns it has had: as long as that is the same, it has not run. */
static bool is_blocked(struct thread *t, uint64_t now_ns, uint64_t *ret_slices)
{
	return t->oncpu.state != ONCPU_RUNNABLE && oncpu_slices(&t->oncpu, ret_slices) && oncpu_ask(&t->oncpu, now_ns) == 0 &&
	       t->oncpu.state != ONCPU_RUNNABLE;
}

/* Whether what it has outside the data stack can be taken from two copies, too: it was blocked meanwhile, or nearly all double reads of late have found it as
 * it was, as one that computes in C for long. */
static bool stands(struct thread *t, const struct pystack *other, bool blocked)
{
	bool same_callee;
	uint32_t alike = stack_alike(&t->seen, other, &same_callee);

	thread_count_read(t, alike == t->seen.depth && alike == other->depth, READS_LATEST);
	return blocked || (t->reads >= READS_LEAST && !thread_moves(t));
}

/* Two copies in one read.
 * 0: their stacks are alike, and the thread state agrees, so that their calls were seen once more. The stack is in t->seen. */
static int learn_calls(struct target *target, struct walker *w, struct thread *t)
{
	struct copy first;
	uint32_t piece;
	uint64_t read_ns, slices, slices_after;
	bool agreed, blocked = t->apart && is_blocked(t, w->now_ns, &slices);
	int err;

	target->facts.confirms++;
	fall_out_of_step(target);
	plan_clear(&target->again);
	if (!thread_plan(t, w->abi, &target->again, w->tick))
		return -ENOMEM;
	first = t->copy;
	if (!plan_gap(target, t))
		return -ENOMEM;
	plan_begin_look(&target->again);
	if (!thread_plan(t, w->abi, &target->again, w->tick))
		return -ENOMEM;
	piece = target_plan_generation(target, t->interp, &target->again, clock_now_ns());
	err = plan_read(&target->again, w->remote);
	if (err)
		return err;
	read_ns = clock_now_ns();
	blocked = blocked && oncpu_slices(&t->oncpu, &slices_after) && slices_after == slices;
	w->plan = &target->again;
	err = look_walk(w, t);
	if (err)
		return err;
	links_note_foreign(w, t);
	agreed = t->agreed;
	pystack_swap(&t->seen, &target->first_copy);
	t->copy = first;
	err = look_walk(w, t);
	if (err)
		return err;
	links_note_foreign(w, t);
	/* Where code objects come and go, another one's name would be learnt. */
	if (!recheck_is_same(target, t, target_generation(target, t->interp, &target->again, piece), read_ns))
		return -EAGAIN;
	count_proofs(target, w, t);
	return sight_alike(target, w, t, &target->first_copy, agreed && t->agreed, stands(t, &target->first_copy, blocked)) ? 0 : -EAGAIN;
}

/* Up to this frame the calls are those of the latest accepted sample. */
static uint32_t known_calls(const struct thread *t)
{
	uint32_t most = t->seen.depth < t->last.depth ? t->seen.depth : t->last.depth, same = t->same;

	while (same < most && t->seen.frames[same].code == t->last.frames[same].code &&
	       t->seen.frames[same].offset == t->last.frames[same].offset)
		same++;
	return same;
}

/* Between two frames a stack can look empty: it must be so in a double read as well. That of a thread which stands is, and one that was is so still. */
static int prove_empty(struct target *target, struct walker *w, struct thread *t)
{
	if ((t->run.count > 0 && t->last.depth == 0) || w->stood)
		return 0;
	return learn_calls(target, w, t) != 0 || t->seen.depth != 0 ? -EAGAIN : 0;
}

static bool is_one_piece(const struct thread *t)
{
	for (uint32_t i = 0; i < t->seen.depth; i++)
		if (!thread_in_chunks(t, t->seen.frames[i].frame))
			return false;
	return true;
}

/* What every look at a stack says of its calls, be they known or not. */
static void count_calls(struct target *target, const struct walker *w, struct thread *t)
{
	if (!t->agreed)
		return;
	if (!w->plan->slow)
		calls_count(w, &t->seen, target->edges, target->interval_ns == 0);
	count_proofs(target, w, t);
}

/* Of which frames their callers' copies say that they are theirs. */
static void note_handed(const struct walker *w, const struct thread *t)
{
	for (uint32_t i = 1; w->abi->frames == FRAMES_STACK && i < t->seen.depth; i++) {
		struct pyframe *callee = &t->seen.frames[i];
		const struct pyframe *caller = callee - 1;
		uint32_t count, ignored;
		const uint8_t *bytes = callee->direct ? walk_copy(w, t, caller->frame, 0, &count) : NULL;
		const uint8_t *called = bytes ? walk_copy(w, t, callee->frame, 0, &ignored) : NULL;

		callee->handed = called && frame_handed(w->abi, caller->frame, bytes, count, called);
	}
}

/* What one look at a stack says of calls that are not known; a read that was interrupted says nothing at all. */
static void sight_calls(struct target *target, const struct walker *w, const struct thread *t)
{
	bool one_copy = w->abi->frames == FRAMES_STACK && is_one_piece(t);

	if ((one_copy || t->seen.apart) && t->agreed && !w->plan->slow)
		calls_sight_once(w, &t->seen, target->edges);
}

/* Of a stack that was put together from what is remembered, the calls within the data stack were seen all the same. */
static void sight_adjacent(struct target *target, const struct walker *w, const struct thread *t)
{
	if (t->agreed && !w->plan->slow && t->seen.apart)
		calls_sight_once(w, &t->seen, target->edges);
}

/* Looks at the calls of the stack in t->seen some times more, until they are known or it is in vain. */
static void confirm_calls(struct target *target, struct walker *w, struct thread *t)
{
	uint32_t same = t->same;

	pystack_swap(&t->seen, &target->spare);
	for (int i = 0; i < CONFIRMS; i++) {
		int err = learn_calls(target, w, t);

		if ((err && err != -EAGAIN && err != -EFAULT) || calls_are_known(w, &target->spare, 0, target->edges))
			break;
	}
	pystack_swap(&t->seen, &target->spare);
	t->same = same;
	t->seen_plain.count = 0; /* what is in the plan now is another copy */
}

/* The stack in t->seen has calls that are not known: what its copies say of them. */
static void note_unknown(const struct walker *w, struct thread *t)
{
	links_note_foreign(w, t);
	note_handed(w, t);
	if (t->apart)
		t->apart->doubts = DOUBTS;
}

/* Whether a function lies on itself. Its frames on the heap (to 3.10) change their levels: a copy can hold one of each time, all of whose calls are known. */
static bool is_recursive(const struct pystack *stack)
{
	for (uint32_t i = 1; i < stack->depth; i++)
		for (uint32_t k = 1; k <= EDGE_SITES && k <= i; k++)
			if (stack->frames[i].code == stack->frames[i - k].code)
				return true;
	return false;
}

/* Whether two copies more show the stack in t->seen. */
static int prove_twice(struct target *target, struct walker *w, struct thread *t)
{
	bool ignored;
	int err;

	pystack_swap(&t->seen, &target->spare);
	err = learn_calls(target, w, t);
	if (!err && (t->seen.depth != target->spare.depth || stack_alike(&t->seen, &target->spare, &ignored) != t->seen.depth))
		err = -EAGAIN;
	pystack_swap(&t->seen, &target->spare);
	return err;
}

int prove_calls(struct target *target, struct walker *w, struct thread *t)
{
	bool agreed = t->agreed;

	if (t->seen.depth == 0)
		return prove_empty(target, w, t);
	w->moves = thread_moves(t);
	count_calls(target, w, t);
	if (calls_are_known(w, &t->seen, known_calls(t), target->edges))
		return w->stood || w->abi->frames == FRAMES_STACK || !is_recursive(&t->seen) ? 0 : prove_twice(target, w, t);
	if (w->stood) { /* the stack is exact, and so are its calls */
		calls_learn(w, &t->seen, target->edges);
		return 0;
	}
	note_unknown(w, t);
	if (t->recalled) {
		sight_adjacent(target, w, t);
		return -EAGAIN;
	}
	sight_calls(target, w, t);
	if (calls_are_known(w, &t->seen, 0, target->edges))
		return 0;
	confirm_calls(target, w, t);
	if (w->abi->frames == FRAMES_HEAP && is_recursive(&t->seen))
		return -EAGAIN; /* the next look may find it alike twice */
	/* What the thread state does not agree with may be a part of the stack only, whose calls were learnt with the rest just now. */
	return agreed && calls_are_known(w, &t->seen, 0, target->edges) ? 0 : -EAGAIN;
}
