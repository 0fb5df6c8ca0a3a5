/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/look.h"
#include "sampler/calls.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "sampler/links.h"

#define STANDS      5  /* reads in which the thread state and the frames disagree in the same way, after the first */

static bool is_seen(const struct thread *t, raddr_t frame)
{
	for (uint32_t i = t->seen.depth; i-- > 0;)
		if (t->seen.frames[i].frame == frame)
			return true;
	return false;
}

/* The newest chunk of the data stack, as the thread state names it, must be the newest of the guess. */
static int match_chunks(struct walker *w, struct thread *t)
{
	raddr_t newest = frame_u64(plan_bytes(w->plan, t->copy.head), w->abi->tstate.chunk);

	for (uint32_t i = t->chunk_count; i-- > 0;) {
		if (t->chunks[i].base == newest) {
			if (i + 1 < t->chunk_count)
				thread_drop_chunks(t, i + 1);
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

	return current == 0 ||
	       (w->abi->tstate.base_frame != ABSENT && current == frame_u64(head, w->abi->tstate.base_frame));
}

/* The thread state names no frame. It was misread where some of the data stack is in use. */
static int belie_empty(const struct walker *w, const struct thread *t)
{
	const uint8_t *head = plan_bytes(w->plan, t->copy.head);
	raddr_t newest = w->abi->frames == FRAMES_STACK ? frame_u64(head, w->abi->tstate.chunk) : 0;

	return newest != 0 && frame_u64(head, w->abi->tstate.chunk + 8) != newest + CHUNK_FIRST ? -EAGAIN : 0;
}

static void cut_to(struct thread *t, uint32_t depth)
{
	t->seen.depth = depth;
	plain_cut(&t->seen_plain, depth);
}

/* Frames outside the data stack are copied after it and after the thread state: what lies above the current frame and outside was
 * called since. */
static bool cut_called_since(struct thread *t, raddr_t current)
{
	for (uint32_t i = t->seen.depth; i-- > 0;) {
		if (t->seen.frames[i].frame == current) {
			cut_to(t, i + 1);
			return true;
		}
		if (thread_in_chunks(t, t->seen.frames[i].frame))
			return false;
	}
	return false;
}

/* Whether what the thread state calls current was not found, and lies outside the data stack or on something outside. */
static bool leads_outside(const struct thread *t, raddr_t current)
{
	return !is_seen(t, current) && (t->leads_on || !thread_in_chunks(t, current));
}

/* What has been left can be the callee of an earlier call. */
static void cut_left(struct walker *w, struct thread *t, raddr_t *leaf)
{
	if (!t->leaf_left || calls_know_left(w, &t->seen))
		return;
	cut_to(t, t->seen.depth - 1);
	*leaf = t->seen.frames[t->seen.depth - 1].frame;
}

enum stand { STAND_MOVED, STAND_SAME, STAND_STANDS };

/* Whether the thread state and the frames disagree as they did in the look before, and in so many looks in a row that the thread stands
 * like this. In a short loop two reads are soon alike by chance, many are not. */
static enum stand stand_of(struct thread *t, struct disagreement now)
{
	bool same = memcmp(&t->disagreement, &now, sizeof(now)) == 0;

	t->disagreement = now;
	t->stands = same ? t->stands + 1 : 0;
	return !same ? STAND_MOVED : t->stands < STANDS ? STAND_SAME : STAND_STANDS;
}

/* Whether what has been left is shown is decided anew in each tick, and is no change. */
static struct disagreement disagreement_of(const struct thread *t, raddr_t current, raddr_t leaf)
{
	struct disagreement now = {.current = current, .leaf = t->left ? t->left : leaf};

	if (t->seen.depth > 0 && !t->left)
		now.offset = t->seen.frames[t->seen.depth - 1].offset;
	return now;
}

/* The chain from the current frame; *ret_refuted: its frames cannot have called one another. */
static int walk_standing(struct walker *w, struct thread *t, raddr_t current, bool *ret_refuted)
{
	int err = walk_chain(w, t, current);

	t->agreed = true;
	*ret_refuted = w->refuted || err == -EPROTO;
	return err;
}

/* Where the thread stands, the thread state is right; else it is to be read again. */
static int stand_or_again(struct walker *w, struct thread *t, raddr_t current, enum stand stand)
{
	bool refuted;
	int err;

	if (stand != STAND_STANDS || current == 0)
		return -EAGAIN;
	err = walk_standing(w, t, current, &refuted);
	return refuted ? -EAGAIN : err;
}

/* The frames do not tell what the stack is. A thread can stand like that, switched out between two stores. */
static int judge_untold(struct walker *w, struct thread *t, raddr_t current)
{
	struct disagreement now = {.current = current};

	if (w->grew || w->exhausted || w->doubted)
		return -EAGAIN;
	if (t->seen.depth > 0) {
		now.leaf = t->seen.frames[t->seen.depth - 1].frame;
		now.offset = t->seen.frames[t->seen.depth - 1].offset;
	}
	return stand_or_again(w, t, current, stand_of(t, now));
}

/* The frames of the data stack, and those that they lead to; and whether the thread state agrees. */
static int walk_frames(struct walker *w, struct thread *t, raddr_t current)
{
	enum stand stand;
	bool outside, refuted;
	raddr_t leaf;
	int err;

	w->chase = thread_is_apart(t);
	for (;;) {
		err = walk_up(w, t, current, &leaf);
		if (err == -EPROTO)
			return walk_chain(w, t, current);
		if (err == -EAGAIN)
			return judge_untold(w, t, current);
		if (err)
			return err;
		cut_left(w, t, &leaf);
		if (leaf == current || cut_called_since(t, current)) {
			t->agreed = true;
			t->stands = 0;
			return 0;
		}
		if (w->chase || is_seen(t, current))
			break;
		w->chase = true;
	}
	outside = leads_outside(t, current);
	/* They differ since the thread went on between the two copies. When it stands like this, the thread state is right. */
	stand = stand_of(t, disagreement_of(t, current, leaf));
	if (stand == STAND_SAME)
		return -EAGAIN;
	if (stand == STAND_STANDS) {
		err = walk_standing(w, t, current, &refuted);
		if (!refuted)
			return err;
		/* It was being changed itself, or the thread only seemed to stand: the frames are right. */
		err = walk_up(w, t, current, &leaf);
		if (err)
			return err;
		cut_left(w, t, &leaf);
	}
	w->why = RETRY_LINK;
	if (outside)
		return -EAGAIN;
	/* At first they differ since what lies outside the data stack is not known yet. */
	return t->looks < FIRST_LOOKS ? -EAGAIN : 0;
}

int look_walk(struct walker *w, struct thread *t)
{
	raddr_t current = 0;
	int err =
		plan_reserve(w->plan, APART_FETCHES * (APART_FRAME_MAX + PLAN_PUT_GAP)) ? walk_current(w, t, &current) : -ENOMEM;

	t->looks += t->looks < FIRST_LOOKS;
	if (err)
		return err;
	t->seen.depth = t->same = 0;
	t->seen_plain = (struct plain){0};
	t->seen.apart = t->late = t->recalled = false;
	t->agreed = true;
	if (has_no_frames(w, t, current))
		return belie_empty(w, t);
	if (w->abi->frames == FRAMES_HEAP)
		return walk_chain(w, t, current);
	err = match_chunks(w, t);
	if (err)
		return err;
	err = walk_frames(w, t, current);
	if (err == 0 && t->seen.apart && t->apart && apart_in_doubt(t->apart, w->tick))
		links_prove(w, t);
	return err;
}

int look_standing(struct walker *w, struct thread *t)
{
	raddr_t current;
	int err =
		plan_reserve(w->plan, APART_FETCHES * (APART_FRAME_MAX + PLAN_PUT_GAP)) ? walk_current(w, t, &current) : -ENOMEM;

	if (err)
		return err;
	t->seen.depth = t->same = w->entries = 0;
	t->seen_plain = (struct plain){0};
	t->agreed = true;
	t->late = t->recalled = false;
	if (has_no_frames(w, t, current))
		return 0;
	if (w->abi->frames == FRAMES_STACK)
		err = match_chunks(w, t);
	return err ? err : walk_chain(w, t, current);
}

int look_again(struct target *target, struct walker *w, struct thread *t)
{
	uint32_t generation;
	uint64_t now_ns;
	int err;

	plan_clear(&target->again);
	if (!thread_plan(t, w->abi, &target->again, w->tick))
		return -ENOMEM;
	now_ns = clock_now_ns(); /* later than the tick */
	generation = target_plan_generation(target, t->interp, &target->again, now_ns);
	err = plan_read(&target->again, w->remote);
	if (err)
		return err;
	target_take_generation(target, t->interp, &target->again, generation, now_ns);
	w->plan = &target->again;
	return look_walk(w, t);
}
