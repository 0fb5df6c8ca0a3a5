/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/prove.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "sampler/callee.h"
#include "sampler/heapcalls.h"
#include "sampler/still.h"

#define CONFIRMS 6     /* double reads at a call not known yet */
#define GROWTHS 8      /* of those on the heap may have come closer only, by what they told to copy */
#define CONFIRMS_FAST 1 /* unthrottled, while there is room for the sample to be held */
#define JUDGE_NS (10 * NS_PER_MS) /* held samples are judged no more often than this */
#define STEP_NS NS_PER_US
#define FIRST_LOOKS 64 /* at a thread */
#define STANDS 5 /* reads in which the thread state and the frames disagree in the same way, after the first */
#define LINKS_MAX 256  /* links followed in one go */
#define FETCHES_MAX 16 /* of them such as were not copied */
#define HELD_NS (10 * NS_PER_S)

static bool is_seen(const struct thread *t, raddr_t frame)
{
	for (uint32_t i = t->seen.depth; i-- > 0;)
		if (t->seen.frames[i].frame == frame)
			return true;
	return false;
}

/* What a link of the moment before leads to may be no frame any more: outside the data stack lie shims and generators' frames. */
static bool is_outside(struct walker *w, const uint8_t *bytes)
{
	raddr_t addr = frame_code(w->abi, bytes);
	struct code *code;

	if (frame_is_shim(w->abi, bytes))
		return true;
	return frame_is_generator(w->abi, bytes) &&
	       (codes_find(w->codes, addr) || codes_load(w->codes, w->remote, addr, w->now_ns, &code) == 0);
}

/* Follows the chain from the current frame down to the frames that were found, so that the next read has all that lies
 * outside the data stack between them. True: something is wanted that was not before. */
static bool want_links(struct walker *w, struct thread *t, raddr_t frame)
{
	uint32_t before = t->heap_count;

	for (int i = 0, fetched = 0; i < LINKS_MAX && frame_may_be(frame) && !is_seen(t, frame); i++) {
		uint32_t copied;
		const uint8_t *bytes = walk_copy(w, t, frame, 0, &copied);
		uint8_t memory[PYABI_FRAME_MAX];

		if (!bytes) {
			/* One of the data stack is met when the walk gets there. */
			if (thread_in_chunks(t, frame) || thread_want_remembered(t, frame, w->tick) != 0 || fetched++ == FETCHES_MAX ||
			    remote_read(w->remote, frame, memory, (size_t)w->abi->frame.bytes) != 0 || !is_outside(w, memory) ||
			    !thread_want(t, frame, w->tick))
				break;
			bytes = memory;
			thread_remember(t, frame, frame_previous(w->abi, bytes));
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

/* Frames outside the data stack are copied after it and after the thread state: what lies above the current frame and outside was
 * called since. */
static bool cut_called_since(struct thread *t, raddr_t current)
{
	for (uint32_t i = t->seen.depth; i-- > 0;) {
		if (t->seen.frames[i].frame == current) {
			t->seen.depth = i + 1;
			if (t->seen_plain > t->seen.depth)
				t->seen_plain = t->seen.depth;
			return true;
		}
		if (thread_in_chunks(t, t->seen.frames[i].frame))
			return false;
	}
	return false;
}

/* Whether what the thread state calls current is not on top of the data stack as it was copied, but outside, or on something outside. */
static bool leads_outside(const struct thread *t, raddr_t current)
{
	return t->leads_on || !thread_in_chunks(t, current);
}

int prove_walk(struct walker *w, struct thread *t)
{
	raddr_t current, leaf;
	struct disagreement before = t->disagreement;
	int err = walk_current(w, t, &current);

	w->outside = 0;
	t->looks += t->looks < FIRST_LOOKS;
	if (err)
		return err;
	t->seen.depth = t->same = t->seen_plain = 0;
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
	/* What has been left can be the callee of an earlier call. */
	if (t->leaf_left && !walk_knows_left(w, &t->seen)) {
		t->seen.depth--;
		if (t->seen_plain > t->seen.depth)
			t->seen_plain = t->seen.depth;
		leaf = t->seen.frames[t->seen.depth - 1].frame;
	}
	t->disagreement = (struct disagreement){.current = current, .leaf = leaf};
	if (t->seen.depth > 0)
		t->disagreement.offset = t->seen.frames[t->seen.depth - 1].offset;
	if (leaf == current || cut_called_since(t, current)) {
		t->agreed = true;
		t->stands = 0;
		return 0;
	}
	if (leads_outside(t, current))
		w->outside = current;
	if (want_links(w, t, current))
		return -EAGAIN;
	w->outside = 0;
	/* They differ since the thread went on between the two copies. When it stands like this, the thread state is right. In a short loop
	 * two reads are soon alike by chance, many are not. */
	if (memcmp(&before, &t->disagreement, sizeof(before)) != 0) {
		t->stands = 0;
	} else if (++t->stands >= STANDS) {
		t->agreed = true;
		return walk_chain(w, t, current);
	} else {
		return -EAGAIN;
	}
	w->why = RETRY_LINK;
	/* To a frame that was not in this copy, or is linked no more. */
	if (leads_outside(t, current)) {
		w->outside = current;
		return -EAGAIN;
	}
	/* At first they differ since what lies outside the data stack is not known yet. */
	return t->looks < FIRST_LOOKS ? -EAGAIN : 0;
}

int prove_again(struct target *target, struct walker *w, struct thread *t)
{
	uint32_t generation;
	int err;

	plan_clear(&target->again);
	if (!thread_plan(t, w->abi, &target->again, false))
		return -ENOMEM;
	generation = target_plan_generation(target, t->interp, &target->again, w->now_ns);
	err = plan_read(&target->again, w->remote);
	if (err)
		return err;
	target_take_generation(target, t->interp, &target->again, generation, w->now_ns);
	w->plan = &target->again;
	return prove_walk(w, t);
}

static void swap_stacks(struct pystack *a, struct pystack *b)
{
	struct pystack swap = *a;

	*a = *b;
	*b = swap;
}

/* Two copies of a thread: what is alike in them was no chance. Where they are alike as a whole and the thread state agreed, that
 * goes for all calls. Else it goes for those on the data stack up to where they part: each of the two was copied there in one piece. */
static bool sight_alike(struct target *target, const struct walker *w, const struct thread *t, const struct pystack *other, bool agreed)
{
	bool same_callee;
	uint32_t alike = stack_alike(&t->seen, other, &same_callee);
	bool whole = alike == t->seen.depth && alike == other->depth;

	if (!whole || !agreed) {
		uint32_t calls = alike + same_callee;

		for (alike = 0; alike < calls && thread_in_chunks(t, t->seen.frames[alike].frame); alike++)
			;
		whole = false;
	}
	if (!target->callees) /* else only what frames say of their calls is learnt from */
		target->edges_learnt += walk_sight_calls(w, &t->seen, alike, target->edges);
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

/* Two copies in one read, the second with its heap frames backwards (to 3.10): the closer to the leaf, the closer in time.
 * 0: their stacks are alike, and the thread state agrees, so that their calls were seen once more. The stack is in t->seen. */
static int learn_calls(struct target *target, struct walker *w, struct thread *t)
{
	struct copy first;
	bool agreed;
	int err;

	target->facts.confirms++;
	fall_out_of_step(target);
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
	if (err)
		return err;
	agreed = t->agreed;
	swap_stacks(&t->seen, &target->first_copy);
	t->copy = first;
	err = prove_walk(w, t);
	if (err)
		return err;
	return sight_alike(target, w, t, &target->first_copy, agreed && t->agreed) ? 0 : -EAGAIN;
}

/* Where frames lie on the heap, only a part of the stack is read, and what it shows is learnt, whole or not. */
static int learn_heap_calls(struct target *target, struct walker *w, struct thread *t, uint32_t wanted)
{
	int learnt;

	target->facts.confirms++;
	w->grew = false;
	w->plan = &target->again;
	learnt = callee_learn(target->callees, w, t, &target->spare, wanted, target->edges);
	target->edges_learnt += learnt > 0;
	return learnt < 0 ? learnt : 0;
}

/* Whether all calls of a stack, from that of frame `from` on, are known; else *ret_unknown is the frame of the first that is not. */
static bool knows_calls(const struct target *target, const struct walker *w, const struct pystack *stack, uint32_t from, uint32_t *ret_unknown)
{
	if (target->callees)
		return heap_knows_calls(w, stack, from, target->edges, ret_unknown);
	return walk_knows_calls(w, stack, from, target->edges);
}

static uint64_t held_key(const struct thread *t, uint16_t status)
{
	uint64_t key = hash_combine(t->id, status);

	for (uint32_t i = 0; i < t->seen.depth; i++)
		key = hash_combine(key ^ (uint64_t)t->seen.frames[i].offset, t->seen.frames[i].code);
	return key;
}

static int hold_new(struct target *target, const struct thread *t, uint64_t key)
{
	struct held *held = &target->held[target->held_count];
	struct pystack stack = held->stack;

	if (stack.room < t->seen.depth) {
		struct pyframe *frames = realloc(stack.frames, t->seen.depth * sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		stack.frames = frames;
		stack.room = t->seen.depth;
	}
	stack.depth = t->seen.depth;
	memcpy(stack.frames, t->seen.frames, stack.depth * sizeof(*stack.frames));
	*held = (struct held){.thread = t->id, .stack = stack};
	target->held_keys[target->held_count++] = key;
	return 0;
}

static int hold(struct target *target, const struct thread *t, uint16_t status, bool one_copy, uint64_t now_ns, uint64_t weight_ns)
{
	uint64_t key = held_key(t, status);
	uint32_t i = 0;
	struct held *held;

	while (i < target->held_count && target->held_keys[i] != key)
		i++;
	if (i == HELD_MAX)
		return -EAGAIN;
	if (i == target->held_count && hold_new(target, t, key) != 0)
		return -ENOMEM;
	held = &target->held[i];
	if (held->count++ == 0)
		held->t_first_ns = now_ns;
	held->status = status;
	held->agreed = t->agreed;
	held->one_copy = one_copy;
	held->tick = target->tick;
	held->t_last_ns = now_ns;
	held->weight_ns += weight_ns;
	target->held_latest = i;
	return -EINPROGRESS;
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

static bool is_one_piece(const struct thread *t)
{
	for (uint32_t i = 0; i < t->seen.depth; i++)
		if (!thread_in_chunks(t, t->seen.frames[i].frame))
			return false;
	return true;
}

/* What one look at a stack says of its calls. That it stands as it stood when it was last looked at says nothing new; a read that
 * was interrupted says nothing at all. */
static void sight_calls(struct target *target, const struct walker *w, struct thread *t, bool one_copy)
{
	const struct held *held = &target->held[target->held_latest];
	bool whole = false;

	if (target->held_latest < target->held_count && held->thread == t->id && held->tick + 1 == w->tick)
		whole = sight_alike(target, w, t, &held->stack, held->agreed && t->agreed);
	if (one_copy && !whole && t->agreed && !w->plan->slow)
		target->edges_learnt += walk_sight_once(w, &t->seen, target->edges);
}

static bool knows_sites(const struct target *target, const struct walker *w, const struct pystack *stack)
{
	return target->callees ? heap_knows_sites(w, stack, target->edges) : walk_knows_sites(w, stack, target->edges);
}

static int confirms(const struct target *target, bool one_copy)
{
	if (target->callees || target->options->interval_ns > 0 || 2 * target->held_count > HELD_MAX)
		return CONFIRMS;
	return one_copy ? 0 : CONFIRMS_FAST;
}

bool prove_knows_calls(const struct target *target, struct walker *w, const struct thread *t)
{
	uint32_t unknown;

	w->moves = thread_moves(t);
	return t->agreed && t->seen.depth > 0 && knows_calls(target, w, &t->seen, 0, &unknown);
}

int prove_calls(struct target *target, struct walker *w, struct thread *t, uint16_t status, uint64_t weight_ns)
{
	uint32_t same, unknown = 0;
	bool one_copy, agreed = t->agreed;

	if (t->seen.depth == 0)
		return prove_empty(target, w, t);
	w->moves = thread_moves(t);
	if (t->agreed && !w->plan->slow && !target->callees)
		walk_count(w, &t->seen, target->edges);
	/* The copy of a thread that stands is exact: where the thread state names another frame, the walk missed some. */
	if (!t->agreed && still_proved(target, t))
		return -EAGAIN;
	if (knows_calls(target, w, &t->seen, known_calls(t), &unknown))
		return 0;
	if (t->agreed && still_proved(target, t)) {
		target->edges_learnt++;
		if (!target->callees)
			walk_learn_calls(w, &t->seen, target->edges);
		return 0;
	}
	if (target->callees && heap_refutes(w, &t->seen, target->edges))
		return -EAGAIN;
	one_copy = w->abi->frames == FRAMES_STACK && is_one_piece(t);
	sight_calls(target, w, t, one_copy);
	if (knows_calls(target, w, &t->seen, 0, &unknown))
		return 0;
	swap_stacks(&t->seen, &target->spare);
	same = t->same;
	for (int i = confirms(target, one_copy), grown = 0; i > 0 && grown < GROWTHS; w->grew && target->callees ? grown++ : i--) {
		int err = target->callees ? learn_heap_calls(target, w, t, unknown) : learn_calls(target, w, t);

		if (err && err != -EAGAIN && err != -EFAULT)
			break;
		if (knows_calls(target, w, &target->spare, 0, &unknown))
			break;
	}
	swap_stacks(&t->seen, &target->spare);
	t->same = same;
	t->seen_plain = 0; /* what is in the plan now is another copy */
	/* What the thread state does not agree with may be a part of the stack only, whose calls were learnt with the rest just now. */
	if (!agreed)
		return -EAGAIN;
	if (knows_calls(target, w, &t->seen, 0, &unknown))
		return 0;
	if (one_copy && walk_has_false_call(w, &t->seen, target->edges))
		return -EAGAIN;
	/* A caller that stands where no call was ever seen has gone on: this copy is torn. */
	if (!one_copy && !knows_sites(target, w, &t->seen))
		return -EAGAIN;
	fall_out_of_step(target);
	return hold(target, t, status, one_copy, w->now_ns, weight_ns);
}

static void drop_held(struct target *target, uint32_t i)
{
	struct held gone = target->held[i];

	target->held[i] = target->held[--target->held_count];
	target->held[target->held_count] = gone; /* its room stays for the next */
	target->held_keys[i] = target->held_keys[target->held_count];
	target->held_latest = HELD_MAX;
}

static void lose_held(struct target *target, uint32_t i)
{
	target->facts.lost[LOSS_TORN] += target->held[i].count;
	target->facts.unsampled_ns += target->held[i].weight_ns;
	drop_held(target, i);
}

static void take_held(struct target *target, uint32_t i)
{
	run_add_held(target, &target->held[i]);
	drop_held(target, i);
}

/* Takes it where its calls are known, or nothing speaks against them. */
static void judge_held(struct target *target, const struct walker *w, uint32_t i)
{
	const struct held *held = &target->held[i];
	uint32_t unknown;

	if (knows_calls(target, w, &held->stack, 0, &unknown) ||
	    (held->one_copy && walk_calls_are_rare(w, &held->stack, target->edges)))
		take_held(target, i);
	else
		lose_held(target, i);
}

void prove_release_held(struct target *target, struct walker *w)
{
	bool learnt = target->edges_learnt != target->edges_judged;
	uint32_t unknown;

	if (target->held_count == 0 || w->now_ns - target->t_judged_ns < JUDGE_NS)
		return;
	target->t_judged_ns = w->now_ns;
	target->edges_judged = target->edges_learnt;
	w->moves = true; /* of some */
	for (uint32_t i = target->held_count; i-- > 0;) {
		if (w->now_ns - target->held[i].t_first_ns > HELD_NS)
			judge_held(target, w, i);
		else if (learnt && knows_calls(target, w, &target->held[i].stack, 0, &unknown))
			take_held(target, i);
	}
}

void prove_end_held(struct target *target, const struct thread *t)
{
	struct walker w = {.abi = &target->proc.abi, .codes = target->codes, .edges = target->edges, .moves = true};

	for (uint32_t i = target->held_count; i-- > 0;)
		if (!t || target->held[i].thread == t->id)
			judge_held(target, &w, i);
}

static bool names_retired_code(const struct target *target, const struct pystack *stack)
{
	for (uint32_t i = 0; i < stack->depth; i++)
		if (!codes_find(target->codes, stack->frames[i].code))
			return true;
	return false;
}

void prove_forget_held(struct target *target)
{
	struct walker w = {.abi = &target->proc.abi, .codes = target->codes, .edges = target->edges, .moves = true};

	for (uint32_t i = target->held_count; i-- > 0;)
		if (names_retired_code(target, &target->held[i].stack))
			judge_held(target, &w, i);
}
