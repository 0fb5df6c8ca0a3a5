/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "sampler/calls.h"
#include "sampler/owed.h"
#include "sampler/prove.h"
#include "sampler/recheck.h"

#define JUDGE_NS (10 * NS_PER_MS) /* held samples are judged no more often than this */
#define HELD_NS  (10 * NS_PER_S)

static uint64_t held_key(const struct thread *t, uint16_t status)
{
	uint64_t key = hash_combine(t->id, status);

	for (uint32_t i = 0; i < t->seen.depth; i++)
		key = hash_combine(key ^ (uint64_t)t->seen.frames[i].offset, t->seen.frames[i].code);
	return key;
}

/* Functions are many, and held stacks seldom want one: most are told by a bit. */
static uint64_t bit_of(uint64_t function)
{
	return UINT64_C(1) << (function >> 58);
}

static void want_other(struct target *target, uint32_t i)
{
	struct held *held = &target->held[i];

	held->other.depth = 0;
	target->held_leaves[i] = codes_content(target->codes, held->stack.frames[held->stack.depth - 1].code);
	if (target->held_leaves[i] != 0)
		target->held_wanted |= bit_of(target->held_leaves[i]);
}

static int hold_new(struct target *target, const struct thread *t, uint64_t key)
{
	struct held *held = &target->held[target->held_count];
	struct pystack stack = held->stack, other = held->other;

	if (!stack_keep(&stack, &t->seen, t->seen.depth))
		return -ENOMEM;
	*held = (struct held){.thread = t->id, .stack = stack, .other = other};
	want_other(target, target->held_count);
	target->held_keys[target->held_count++] = key;
	return 0;
}

int held_add(struct target *target, const struct thread *t, uint16_t status, bool one_copy, uint64_t now_ns,
             uint64_t weight_ns)
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

void held_offer(struct target *target, const struct thread *t, uint64_t function)
{
	uint64_t wanted = 0;

	if (function == 0 || !(target->held_wanted & bit_of(function)))
		return;
	for (uint32_t i = 0; i < target->held_count; i++) {
		struct held *held = &target->held[i];

		if (target->held_leaves[i] == function && held->thread == t->id && stack_keep(&held->other, &t->seen, t->seen.depth))
			target->held_leaves[i] = 0;
		else if (target->held_leaves[i] != 0)
			wanted |= bit_of(target->held_leaves[i]);
	}
	target->held_wanted = wanted;
}

static void drop_held(struct target *target, uint32_t i)
{
	struct held gone = target->held[i];

	target->held[i] = target->held[--target->held_count];
	target->held[target->held_count] = gone; /* its room stays for the next */
	target->held_leaves[i] = target->held_leaves[target->held_count];
	target->held_keys[i] = target->held_keys[target->held_count];
	target->held_latest = HELD_MAX;
}

static void take_held(struct target *target, uint32_t i)
{
	run_add_held(target, &target->held[i], &target->held[i].stack);
	drop_held(target, i);
}

/* The copy was torn. What ran is the function innermost in it: the samples go to the other stack with it, or are owed to it. */
static void give_up(struct target *target, uint32_t i, bool ending)
{
	struct held *held = &target->held[i];
	struct owed owed = {.thread = held->thread,
	                    .count = held->count,
	                    .function = target->held_leaves[i],
	                    .status = held->status,
	                    .t_first_ns = held->t_first_ns,
	                    .t_last_ns = held->t_last_ns,
	                    .weight_ns = held->weight_ns};

	if (held->other.depth > 0) {
		target->facts.deferred += held->count;
		run_add_held(target, held, &held->other);
	} else if (ending || owed.function == 0 || !owed_add(target, &owed)) {
		target->facts.lost[LOSS_TORN] += held->count;
		target->facts.unsampled_ns += held->weight_ns;
	}
	drop_held(target, i);
}

/* Takes it where its calls are known, or nothing speaks against them. */
static void judge_held(struct target *target, const struct walker *w, uint32_t i, bool ending)
{
	const struct held *held = &target->held[i];
	uint32_t unknown;

	if (prove_knows(target, w, &held->stack, 0, &unknown) ||
	    (held->one_copy && calls_are_rare(w, &held->stack, target->edges)))
		take_held(target, i);
	else
		give_up(target, i, ending);
}

void held_release(struct target *target, struct walker *w)
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
			judge_held(target, w, i, true); /* it was not seen for so long */
		else if (learnt && prove_knows(target, w, &target->held[i].stack, 0, &unknown))
			take_held(target, i);
	}
}

void held_end(struct target *target, const struct thread *t)
{
	struct walker w = {.abi = &target->proc.abi, .codes = target->codes, .edges = target->edges, .moves = true};

	for (uint32_t i = target->held_count; i-- > 0;)
		if (!t || target->held[i].thread == t->id)
			judge_held(target, &w, i, true);
}

void held_forget(struct target *target)
{
	struct walker w = {.abi = &target->proc.abi,
	                   .remote = &target->remote,
	                   .codes = target->codes,
	                   .edges = target->edges,
	                   .moves = true};

	for (uint32_t i = target->held_count; i-- > 0;)
		if (!recheck_has_codes(target, &target->held[i].stack))
			judge_held(target, &w, i, false);
		else if (!recheck_has_codes(target, &target->held[i].other))
			want_other(target, i);
}
