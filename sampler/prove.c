/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/prove.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define CONFIRMS 6     /* double reads at a call not known yet */
#define DISAGREEMENTS 2
#define LINKS_MAX 4096 /* frames outside the data stack followed in one go */
#define HELD_NS (3 * NS_PER_S)

static bool in_chunks(const struct thread *t, raddr_t frame)
{
	for (uint32_t i = 0; i < t->chunk_count; i++)
		if (frame - t->chunks[i].base < t->chunks[i].size_bytes)
			return true;
	return false;
}

/* Follows the chain from the current frame down to the leaf that was found, so that the next read has all that lies
 * outside the data stack between them. True: something is wanted that was not before. */
static bool want_links(struct walker *w, struct thread *t, raddr_t frame, raddr_t leaf)
{
	uint32_t before = t->heap_count;

	for (int i = 0; i < LINKS_MAX && frame != 0 && frame != leaf && (frame & 7) == 0; i++) {
		const uint8_t *bytes = walk_copy(w, t, frame);
		uint8_t fetched[PYABI_FRAME_MAX];

		if (!bytes) {
			if ((!in_chunks(t, frame) && !thread_want(t, frame, w->tick)) ||
			    remote_read(w->remote, frame, fetched, (size_t)w->abi->frame.bytes) != 0)
				break;
			bytes = fetched;
		}
		frame = frame_previous(w->abi, bytes);
	}
	w->grew |= t->heap_count > before;
	return t->heap_count > before;
}

/* The newest chunk of the data stack, as the thread state names it, must be the newest of the guess. */
static int match_chunks(struct walker *w, struct thread *t)
{
	raddr_t newest = frame_u64(plan_bytes(w->plan, t->copy.head), w->abi->tstate.chunk);

	for (uint32_t i = t->chunk_count; i-- > 0;) {
		if (t->chunks[i].base == newest) {
			t->chunk_count = i + 1;
			if (t->copy.chunk_count > t->chunk_count)
				t->copy.chunk_count = t->chunk_count;
			return 0;
		}
	}
	w->grew |= thread_find_chunks(t, w->remote, newest) == 0;
	t->root_link_known = false;
	return -EAGAIN;
}

static bool has_no_frames(const struct walker *w, const struct thread *t, raddr_t current)
{
	const uint8_t *head = plan_bytes(w->plan, t->copy.head);

	return current == 0 || (w->abi->tstate.base_frame != ABSENT && current == frame_u64(head, w->abi->tstate.base_frame));
}

/* The thread state names no frame. When the data stack holds one that runs, it was misread. */
static int belie_empty(struct walker *w, struct thread *t)
{
	raddr_t leaf;

	if (w->abi->frames == FRAMES_STACK && t->copy.chunk_count > 0 && walk_up(w, t, 0, &leaf) == 0 && t->leaf_runs)
		return -EAGAIN;
	t->seen.depth = 0;
	return 0;
}

int prove_walk(struct walker *w, struct thread *t)
{
	raddr_t current, leaf, last_current = t->last_current, last_leaf = t->last_leaf;
	int err = walk_current(w, t, &current);

	if (err)
		return err;
	t->seen.depth = 0;
	t->agreed = true;
	if (has_no_frames(w, t, current))
		return belie_empty(w, t);
	if (w->abi->frames == FRAMES_HEAP)
		return walk_chain(w, t, current);
	err = match_chunks(w, t);
	if (err)
		return err;
	err = walk_up(w, t, current, &leaf);
	if (err == -EPROTO)
		return walk_chain(w, t, current);
	if (err)
		return err;
	t->last_current = current;
	t->last_leaf = leaf;
	if (leaf == current)
		return 0;
	if (want_links(w, t, current, leaf))
		return -EAGAIN;
	/* They differ since the thread went on between the two copies. When it stands like this, the thread state is right. */
	if (current == last_current && leaf == last_leaf) {
		t->agreed = true;
		return walk_chain(w, t, current);
	}
	if (t->leads_on)
		return -EAGAIN; /* to a frame that was not in this copy */
	/* A generator that C resumes is found from the thread state alone: look twice before it is left out. */
	if (!in_chunks(t, current) && w->disagreed++ < DISAGREEMENTS)
		return -EAGAIN;
	return 0;
}

int prove_again(struct target *target, struct walker *w, struct thread *t)
{
	uint32_t generation;
	int err;

	plan_clear(&target->again);
	if (!thread_plan(t, w->abi, &target->again, false))
		return -ENOMEM;
	generation = target_plan_generation(target, t->interp, &target->again);
	err = plan_read(&target->again, w->remote);
	if (err)
		return err;
	target_take_generation(target, t->interp, &target->again, generation);
	w->plan = &target->again;
	return prove_walk(w, t);
}

static void swap_stacks(struct pystack *a, struct pystack *b)
{
	struct pystack swap = *a;

	*a = *b;
	*b = swap;
}

/* Two copies in one read, the second with its heap frames backwards: the closer to the leaf, the closer in time. Where their stacks are
 * alike, and the thread state agrees, their calls were seen once more. 0: they were; the stack is in t->seen. */
static int learn_calls(struct target *target, struct walker *w, struct thread *t)
{
	struct copy first;
	int err;

	target->facts.confirms++;
	plan_clear(&target->again);
	if (!thread_plan(t, w->abi, &target->again, false))
		return -ENOMEM;
	first = t->copy;
	if (!thread_plan(t, w->abi, &target->again, true))
		return -ENOMEM;
	err = plan_read(&target->again, w->remote);
	if (err)
		return err;
	w->plan = &target->again;
	err = prove_walk(w, t);
	if (err || !t->agreed)
		return err ? err : -EAGAIN;
	swap_stacks(&t->seen, &target->first_copy);
	t->copy = first;
	err = prove_walk(w, t);
	if (err || !t->agreed)
		return err ? err : -EAGAIN;
	if (!stack_alike(&t->seen, &target->first_copy))
		return -EAGAIN;
	target->edges_learnt += walk_sight_calls(w, &t->seen, target->edges);
	return 0;
}

static int hold(struct target *target, const struct thread *t, uint16_t status, uint64_t now_ns, uint64_t weight_ns)
{
	struct held *held;
	struct pystack stack;

	if (target->held_count == HELD_MAX)
		return -EAGAIN;
	held = &target->held[target->held_count];
	stack = held->stack;
	if (stack.room < t->seen.depth) {
		struct pyframe *frames = realloc(stack.frames, t->seen.depth * sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		stack.frames = frames;
		stack.room = t->seen.depth;
	}
	stack.depth = t->seen.depth;
	memcpy(stack.frames, t->seen.frames, stack.depth * sizeof(*stack.frames));
	*held = (struct held){.thread = t->id, .status = status, .t_ns = now_ns, .weight_ns = weight_ns, .stack = stack};
	target->held_count++;
	return -EINPROGRESS;
}

/* Up to this frame the calls are those of the latest accepted sample. */
static uint32_t known_calls(const struct thread *t)
{
	uint32_t most = t->seen.depth < t->last.depth ? t->seen.depth : t->last.depth, same = 0;

	while (same < most && t->seen.frames[same].code == t->last.frames[same].code &&
	       t->seen.frames[same].offset == t->last.frames[same].offset)
		same++;
	return same;
}

/* A stack is soon misread as empty, between two frames: it must be so in two ticks. One that was is so still. */
static int prove_empty(struct target *target, struct walker *w, struct thread *t)
{
	bool twice = t->empty_tick != 0 && t->empty_tick < w->tick;

	if (t->run.count > 0 && t->last.depth == 0)
		return 0;
	if (learn_calls(target, w, t) != 0 || t->seen.depth != 0)
		return -EAGAIN;
	if (t->empty_tick == 0)
		t->empty_tick = w->tick;
	return twice ? 0 : -EAGAIN;
}

int prove_calls(struct target *target, struct walker *w, struct thread *t, uint16_t status, uint64_t weight_ns)
{
	if (t->seen.depth == 0)
		return prove_empty(target, w, t);
	if (walk_knows_calls(w, &t->seen, known_calls(t), target->edges))
		return 0;
	swap_stacks(&t->seen, &target->spare);
	for (int i = 0; i < CONFIRMS; i++) {
		int err = learn_calls(target, w, t);

		if (err && err != -EAGAIN && err != -EFAULT)
			break;
		if (walk_knows_calls(w, &target->spare, 0, target->edges))
			break;
	}
	swap_stacks(&t->seen, &target->spare);
	if (walk_knows_calls(w, &t->seen, 0, target->edges))
		return 0;
	/* A caller that stands where no call was ever seen has gone on: this copy is torn. */
	if (!walk_knows_sites(w, &t->seen, target->edges))
		return -EAGAIN;
	return hold(target, t, status, w->now_ns, weight_ns);
}

static void drop_held(struct target *target, uint32_t i)
{
	struct held gone = target->held[i];

	target->held[i] = target->held[--target->held_count];
	target->held[target->held_count] = gone; /* its room stays for the next */
}

void prove_release_held(struct target *target, struct walker *w)
{
	bool learnt = target->edges_learnt != target->edges_judged;

	target->edges_judged = target->edges_learnt;
	for (uint32_t i = target->held_count; i-- > 0;) {
		struct held *held = &target->held[i];

		if (learnt && walk_knows_calls(w, &held->stack, 0, target->edges)) {
			run_add_held(target, held);
			drop_held(target, i);
		} else if (w->now_ns - held->t_ns > HELD_NS) {
			target->facts.lost[LOSS_TORN]++;
			target->facts.unsampled_ns += held->weight_ns;
			drop_held(target, i);
		}
	}
}

void prove_give_up_held(struct target *target)
{
	while (target->held_count > 0) {
		target->facts.lost[LOSS_TORN]++;
		target->facts.unsampled_ns += target->held[target->held_count - 1].weight_ns;
		drop_held(target, target->held_count - 1);
	}
}
