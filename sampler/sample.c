/* SPDX-License-Identifier: Apache-2.0 */
/* One tick of one target: read all threads in one go (targetread.c), walk each copy, and accept a stack only when it proves itself
 * whole; otherwise read that thread again, a few times. Runs in the sampler thread. */
#include <errno.h>

#include "base/clock.h"
#include "sampler/collector.h"
#include "sampler/current.h"
#include "sampler/exact.h"
#include "sampler/handled.h"
#include "sampler/heaplook.h"
#include "sampler/held.h"
#include "sampler/light.h"
#include "sampler/look.h"
#include "sampler/lookalike.h"
#include "sampler/owed.h"
#include "sampler/prove.h"
#include "sampler/recheck.h"
#include "sampler/special.h"
#include "sampler/status.h"
#include "sampler/still.h"
#include "sampler/target.h"

#define RETRIES 6  /* reads of one thread after the first */
#define GROWTHS 64 /* such reads that came closer, since the guess has grown */
#define OUTSIDE_LOOKS                                                                                                  \
	3 /* at a thread that was in a function outside the data stack which could not be copied; unthrottled, 1 */
#define THROUGH_OF    16 /* of so many samples unthrottled, one is looked at for what it may stand in for */
#define FACTS_NS      (1 * NS_PER_S)

/* From a walked copy to a judged stack and its status. */
static int judge(struct target *target, struct thread *t, struct walker *w, uint64_t weight_ns, uint16_t *ret_status)
{
	int err = recheck_stack(target, t, w->now_ns);

	w->why = err ? RETRY_CODE : RETRY_CALL;
	if (w->plan == &target->again)
		collector_look(target, t);
	if (!err)
		err = status_of(target, t, w, ret_status);
	if (!err)
		special_note(target, t, w, *ret_status);
	return err ? err : prove_calls(target, w, t, *ret_status, weight_ns);
}

/* Notes where the generators of a whole stack call what lies above them on the data stack, and where they await one another. */
static void note_resumed(struct target *target, const struct thread *t)
{
	bool outside = false;

	for (uint32_t i = t->same; i < t->seen.depth; i++) {
		const struct pyframe *frame = &t->seen.frames[i];
		bool within = thread_in_chunks(t, frame->frame);

		if ((within && outside) || frame->awaited)
			resumed_note(&target->resumed, codes_content(target->codes, frame[-1].code),
			             codes_content(target->codes, frame->code), frame[-1].offset);
		outside = !within;
	}
}

void sample_pay(struct target *target, struct thread *t, struct walker *w)
{
	uint64_t function = owed_leaf(w, t);
	uint16_t status;

	if (t->seen.apart)
		note_resumed(target, t);
	if (t->seen.apart && w->abi->frames == FRAMES_STACK)
		lookalike_learn(w, t, true);
	owed_note_through(target, t);
	if (!owed_any(target, t, function, w->now_ns) || status_of(target, t, w, &status) != 0)
		return;
	special_note(target, t, w, status);
	owed_pay(target, t, function, status, w->now_ns);
}

/* The stack in t->seen, found in w->plan, becomes a sample. */
static void accept(struct target *target, struct thread *t, const struct walker *w, uint16_t status, uint64_t weight_ns)
{
	if (target->owed_count > 0)
		owed_pay(target, t, owed_leaf(w, t), status, w->now_ns);
	if (target->interval_ns > 0 || target->tick % THROUGH_OF == 0)
		owed_note_through(target, t);
	if (target->held_wanted)
		held_offer(target, t, owed_leaf(w, t));
	recheck_accepted(target, t, w->now_ns);
	if (near_stood(target, t)) /* which was before the rest of the process was read */
		t->generation = target->near.generation;
	if (t->seen.apart)
		note_resumed(target, t);
	if (!near_stood(target, t))
		thread_note_on(t, walk_passes_steady(w));
	if (w->abi->frames == FRAMES_HEAP)
		heaplook_accepted(w, t);
	else
		thread_keep_copy(t, w->plan);
	if (t->seen.apart && target->interval_ns && w->abi->frames == FRAMES_STACK)
		lookalike_learn(w, t, true);
	target->facts.near += w->stood;
	run_add(target, t,
	        &(struct sample){.status = status,
	                         .count = 1,
	                         .t_first_ns = w->now_ns,
	                         .now_ns = w->now_ns,
	                         .weight_ns = weight_ns});
}

int sample_moving(struct target *target, struct thread *t, struct walker *w, uint64_t weight_ns, uint16_t *ret_status)
{
	int err;

	w->grew = w->exhausted = false;
	w->doubted = 0;
	err = look_again(target, w, t);
	if (w->doubted && recheck_doubted(target, t, w) != 0)
		return -EAGAIN;
	return err ? err : judge(target, t, w, weight_ns, ret_status);
}

/* Whether the stack in t->seen is of another call than the one that ran at the instant of the sample. */
static bool is_another(struct target *target, struct thread *t, const struct walker *w, const struct ran *ran)
{
	return owed_leaf(w, t) != ran->function ||
	       (ran->handled != HANDLED_UNKNOWN && handled_ask(target, t, w->plan) != ran->handled);
}

/* Whether the thread state is another thread's now: it was used again, or (to 3.11) had its creator's ids until its own thread began. The lists are read anew,
 * then. */
static bool is_replaced(struct target *target, const struct thread *t, const struct walker *w)
{
	const uint8_t *head = plan_bytes(w->plan, t->copy.head);

	if (!head || target_is_same_thread(w->abi, t, head))
		return false;
	target->t_listed_ns = target->t_watched_ns = 0;
	return true;
}

/* Whether the copy tells which function ran, though not all of its stack is of one instant. */
static bool shows_leaf(const struct target *target, const struct walker *w, const struct thread *t)
{
	return target->callees || (target->interval_ns && w->abi->tstate.cframe != ABSENT && !t->copy.head_first && !t->seen.apart);
}

/* A thread that runs on while it is read: looks until one is whole, some times. `fresh`: its copy is in target->plan. *ran: as the first look tells that fails
 * for what lies outside the data stack, or for calls there. */
static int sample_running(struct target *target, struct thread *t, struct walker *w, uint64_t weight_ns, bool fresh,
                          struct ran *ran, uint16_t *ret_status)
{
	int looks = target->callees || (thread_is_apart(t) && target->interval_ns) ? OUTSIDE_LOOKS : 1, err;

	w->plan = &target->plan;
	for (int i = 0, grown = 0;; w->grew ? grown++ : i++) {
		w->grew = false;
		w->why = RETRY_MOVED;
		err = fresh && i + grown == 0 ? look_walk(w, t) : look_again(target, w, t);
		if (w->doubted && recheck_doubted(target, t, w) != 0) {
			w->why = RETRY_CODE;
			err = -EAGAIN;
		}
		/* What seems torn can have been read with what an older code object at the same address said. */
		if (err == -EAGAIN && recheck_stack(target, t, w->now_ns) != 0)
			w->why = RETRY_CODE;
		if (err == 0 && t->entered && t->seen.depth == 0)
			err = -EAGAIN; /* it has just left this interpreter */
		if (err == 0 && is_replaced(target, t, w)) {
			t->taken = t->shadow = true;
			return 0;
		}
		if (target->callees && i + grown == 0)
			heaplook_count(t, err != 0);
		if (i + grown == 0 || (!target->callees && !ran->function))
			*ran = owed_told(w, t, err == -EAGAIN);
		if ((err == -EAGAIN && w->whole) || (err == 0 && ran->function && is_another(target, t, w, ran))) {
			w->whole = recheck_stack(target, t, w->now_ns) == 0 && prove_knows_calls(target, w, t);
			if (w->whole)
				sample_pay(target, t, w);
			err = -EAGAIN;
		}
		if (err == 0) {
			uint64_t leaf = t->late || (i + grown == 0 && shows_leaf(target, w, t)) ? owed_leaf(w, t) : 0;

			err = judge(target, t, w, weight_ns, ret_status);
			if (err == -EAGAIN && !ran->function)
				ran->function = leaf;
		}
		if (i + grown == 0 && ran->function)
			w->expected = w->current;
		if (ran->function && ran->handled == HANDLED_UNKNOWN && target->options->exceptions)
			ran->handled = handled_ask(target, t, w->plan);
		if ((err != -EAGAIN && err != -EPROTO) || i == RETRIES || grown == GROWTHS || w->exhausted ||
		    (ran->function && i + grown + 1 >= looks && (w->whole || thread_is_apart(t) || target->callees) && !heaplook_stands(w)))
			break;
		target->facts.retries[w->grew ? RETRY_GUESS : w->why]++;
	}
	if (err == -EAGAIN && w->why == RETRY_CALL && heaplook_stands(w))
		ran->function = 0; /* its stack was met, and refuted: that is no other call's sample */
	return err;
}

/* The one that was read as it stood comes first: its copy is where those go that are read again. */
static void put_near_first(struct target *target)
{
	struct thread *first;

	for (uint32_t i = 1; i < target->awake_count; i++) {
		if (!near_stood(target, target->awake[i]))
			continue;
		first = target->awake[i];
		target->awake[i] = target->awake[0];
		target->awake[0] = first;
		return;
	}
}

/* One attempt at one thread. */
static void sample_thread(struct target *target, struct thread *t, struct walker *w)
{
	uint64_t weight_ns;
	struct ran ran = {0};
	uint16_t status = 0;
	bool fresh = true;
	int err = -EAGAIN;

	if (!sample_is_due(target, t))
		return;
	weight_ns = sample_weight(target, t, w->now_ns);
	w->exhausted = w->whole = false;
	w->doubted = w->current = w->expected = 0;
	if (near_stood(target, t)) {
		fresh = false;
		near_recall(target, t, w, &status);
		t->taken = t->shadow = is_replaced(target, t, w);
		err = t->shadow ? 0 : prove_calls(target, w, t, status, weight_ns);
	}
	w->stood = err == 0;
	if (err == -EAGAIN && near_read_waiting(target, t, w, &status)) {
		w->stood = true;
		t->taken = t->shadow = is_replaced(target, t, w);
		err = t->shadow ? 0 : prove_calls(target, w, t, status, weight_ns);
	}
	if (err == -EAGAIN) {
		w->stood = false;
		err = sample_running(target, t, w, weight_ns, fresh, &ran, &status);
	}
	if (t->shadow)
		return;
	target->facts.attempts++;
	if (err == -EAGAIN && ran.function)
		err = owed_put_off(target, t, w, ran, weight_ns, &status);
	t->taken = err == 0;
	if (t->taken)
		accept(target, t, w, status, weight_ns);
	else if (err != -EINPROGRESS)
		sample_lose(target, err, weight_ns);
	thread_prune(t, target->tick);
	if (ran.function && !(w->whole && !thread_is_apart(t)))
		burst_look(target, t, w);
	burst_learn(target, t, w);
}

static void count_tick(struct target *target, uint64_t now_ns)
{
	if (target->facts.ticks++ == 0)
		target->facts.t_start_ns = now_ns;
	target->facts.t_last_ns = now_ns;
}

static void begin_tick(struct target *target, struct walker *w)
{
	w->tick = ++target->tick;
	codes_new_tick(target->codes);
}

/* Ticks that the data stack alone is enough for, up to the first that it is not. */
static enum light take_lights(struct target *target, struct walker *w)
{
	uint32_t count = light_read(target, w);
	enum light light = LIGHT_NOT;

	for (uint32_t i = 0; i < count; i++) {
		struct thread *t = target->awake[0];

		if (i > 0)
			begin_tick(target, w);
		light = light_look(target, w, i);
		if (light != LIGHT_TOLD)
			break;
		target->facts.attempts++;
		special_note(target, t, w, t->run.status);
		accept(target, t, w, t->run.status, sample_weight(target, t, w->now_ns));
		count_tick(target, w->now_ns);
	}
	return light;
}

static int tick(struct target *target, uint64_t now_ns, uint64_t base_ns)
{
	struct walker w = {.abi = &target->proc.abi,
	                   .remote = &target->remote,
	                   .codes = target->codes,
	                   .edges = target->edges,
	                   .resumed = &target->resumed,
	                   .ends = &target->ends,
	                   .now_ns = now_ns};
	enum light light;
	int err;

	target->base_ns = base_ns;
	begin_tick(target, &w);
	light = !near_begin(target, &w) && !target->exact && !target_lists_are_due(target, now_ns) ? take_lights(target, &w) : LIGHT_NOT;
	if (light == LIGHT_TOLD)
		return 0;
	now_ns = w.now_ns;
	err = light == LIGHT_READ ? 0 : target_read(target, now_ns);
	if (err)
		return err;
	count_tick(target, now_ns);
	if (target->piece_gil != PLAN_FULL) {
		const uint8_t *holder = plan_bytes(&target->plan, target->piece_gil);

		target->gil_holder = holder ? frame_u64(holder, 0) : 0;
	}
	for (uint32_t i = 0; i < target->interp_count; i++)
		collector_take(&target->interps[i], &target->plan);
	current_choose(target, now_ns);
	still_pass(target, now_ns, sample_most_ns(target));
	put_near_first(target);
	for (uint32_t i = 0; i < target->awake_count; i++)
		if (target->exact)
			exact_sample(target, target->awake[i], &w);
		else
			sample_thread(target, target->awake[i], &w);
	runs_retire_codes(target);
	held_release(target, &w);
	owed_lose_old(target, now_ns);
	runs_close_due(target, now_ns);
	if (!target->exact)
		still_settle(target);
	still_look(target, now_ns);
	target_name_threads(target, now_ns);
	if (now_ns - target->t_facts_ns >= FACTS_NS) {
		target->t_facts_ns = now_ns;
		target_write_facts(target);
	}
	return 0;
}

int target_tick(struct target *target, uint64_t now_ns, uint64_t base_ns)
{
	int err = tick(target, now_ns, base_ns);

	near_end(target);
	return err;
}
