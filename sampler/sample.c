/* SPDX-License-Identifier: Apache-2.0 */
/* One tick of one target: read all threads in one go (targetread.c), walk each copy, and accept a stack only when it proves itself
 * whole; otherwise read that thread again, a few times. Runs in the sampler thread. */
#include <errno.h>

#include "base/clock.h"
#include "sampler/collector.h"
#include "sampler/current.h"
#include "sampler/exact.h"
#include "sampler/look.h"
#include "sampler/prove.h"
#include "sampler/recheck.h"
#include "sampler/special.h"
#include "sampler/status.h"
#include "sampler/still.h"
#include "sampler/target.h"

#define RETRIES 6  /* reads of one thread after the first */
#define GROWTHS 64 /* such reads that came closer, since the guess has grown */
#define FACTS_NS      (1 * NS_PER_S)

/* From a walked copy to a judged stack and its status. */
static int judge(struct target *target, struct thread *t, struct walker *w, uint16_t *ret_status)
{
	int err = recheck_stack(target, t, w->now_ns);

	w->why = err ? RETRY_CODE : RETRY_CALL;
	if (w->plan == &target->again)
		collector_look(target, t);
	if (!err)
		err = status_of(target, t, w, ret_status);
	if (!err)
		special_note(target, t, w, *ret_status);
	return err ? err : prove_calls(target, w, t);
}

/* The stack in t->seen, found in w->plan, becomes a sample. */
static void accept(struct target *target, struct thread *t, const struct walker *w, uint16_t status, uint64_t weight_ns)
{
	recheck_accepted(target, t, w->now_ns);
	if (near_stood(target, t)) /* which was before the rest of the process was read */
		t->generation = target->near.generation;
	if (!near_stood(target, t))
		thread_note_on(t, walk_passes_steady(w));
	if (w->abi->frames == FRAMES_HEAP)
		(void)thread_order_heap(t, w->tick);
	else
		thread_keep_copy(t, w->plan);
	target->facts.near += w->stood;
	run_add(target, t,
	        &(struct sample){.status = status,
	                         .count = 1,
	                         .t_first_ns = w->now_ns,
	                         .now_ns = w->now_ns,
	                         .weight_ns = weight_ns});
}

int sample_moving(struct target *target, struct thread *t, struct walker *w, uint16_t *ret_status)
{
	int err;

	w->grew = w->exhausted = false;
	w->doubted = 0;
	err = look_again(target, w, t);
	if (w->doubted && recheck_doubted(target, t, w) != 0)
		return -EAGAIN;
	return err ? err : judge(target, t, w, ret_status);
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

/* A thread that runs on while it is read: looks until one is whole, some times. `fresh`: its copy is in target->plan. */
static int sample_running(struct target *target, struct thread *t, struct walker *w, bool fresh, uint16_t *ret_status)
{
	int err;

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
		if (err == 0)
			err = judge(target, t, w, ret_status);
		if ((err != -EAGAIN && err != -EPROTO) || i == RETRIES || grown == GROWTHS || w->exhausted)
			return err;
		target->facts.retries[w->grew ? RETRY_GUESS : w->why]++;
	}
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

/* As it stands, if it does. -EAGAIN: it moves. */
static int sample_standing(struct target *target, struct thread *t, struct walker *w, uint16_t *ret_status)
{
	w->stood = near_stood(target, t);
	if (w->stood)
		near_recall(target, t, w, ret_status);
	else
		w->stood = near_read_waiting(target, t, w, ret_status);
	if (!w->stood)
		return -EAGAIN;
	t->taken = t->shadow = is_replaced(target, t, w);
	return t->shadow ? 0 : prove_calls(target, w, t);
}

/* One attempt at one thread. */
static void sample_thread(struct target *target, struct thread *t, struct walker *w)
{
	bool visited = near_stood(target, t); /* then the copy of the whole process has what it was later */
	uint64_t weight_ns;
	uint16_t status = 0;
	int err;

	if (!sample_is_due(target, t))
		return;
	weight_ns = sample_weight(target, t, w->now_ns);
	w->exhausted = false;
	w->doubted = 0;
	err = sample_standing(target, t, w, &status);
	if (err == -EAGAIN) {
		w->stood = false;
		err = sample_running(target, t, w, !visited, &status);
		w->stood = err == 0 && near_slept(target, t);
	}
	if (t->shadow)
		return;
	target->facts.attempts++;
	t->taken = err == 0;
	if (t->taken)
		accept(target, t, w, status, weight_ns);
	else
		sample_lose(target, err, weight_ns);
	thread_prune(t, target->tick);
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

static int tick(struct target *target, uint64_t now_ns, uint64_t base_ns)
{
	struct walker w = {.abi = &target->proc.abi,
	                   .remote = &target->remote,
	                   .codes = target->codes,
	                   .edges = target->edges,
	                   .now_ns = now_ns};
	int err;

	target->base_ns = base_ns;
	begin_tick(target, &w);
	near_begin(target, &w);
	err = target_read(target, now_ns);
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
