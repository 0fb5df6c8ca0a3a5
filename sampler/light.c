/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/light.h"

#include "sampler/calls.h"
#include "sampler/prove.h"
#include "sampler/recheck.h"
#include "sampler/status.h"

#define WHOLE_OF 8 /* of so many ticks one is whole: the status, and what else the thread state says, is of that one */

/* Whether the latest tick found nothing that is not on the data stack. */
static bool is_simple(const struct target *target, const struct thread *t, uint64_t now_ns)
{
	const uint16_t working = STATUS_GIL | STATUS_ON_CPU;

	return t->taken && t->run.count > 0 && (t->run.status & (working | STATUS_GIL_WAIT | STATUS_GC)) == working &&
	       t->last_plain == t->last.depth && (!t->apart || t->apart->count == 0) && t->chunk_count > 0 &&
	       !status_is_due(t, now_ns) && !target_generation_is_due(target, t->interp, now_ns);
}

/* Whether C, or a generator, was never seen to lead on from where the leaf stands, and every call is known. What C calls has frames behind
 * the leaf, on which the walk stops. */
static bool is_told(struct target *target, struct thread *t, struct walker *w)
{
	return t->seen.depth > 1 && t->seen_plain == t->seen.depth && !w->unclear && !t->leads_on &&
	       recheck_stack(target, t, w->now_ns) == 0 && prove_knows_rest(target, w, t);
}

enum light light_look(struct target *target, struct walker *w)
{
	struct thread *t;
	raddr_t leaf;
	bool told;

	if (target->interval_ns > 0 || target->options->exceptions || target->thread_count != 1 ||
	    target->interp_count != 1 || target->awake_stale || target->awake_count != 1 ||
	    w->abi->frames != FRAMES_STACK || w->tick % WHOLE_OF == 0)
		return LIGHT_NOT;
	t = target->awake[0];
	if (!is_simple(target, t, w->now_ns))
		return LIGHT_NOT;
	plan_clear(&target->plan);
	if (!thread_plan_stack(t, &target->plan) ||
	    plan_read_from(&target->plan, &target->remote, w->now_ns, &target->light_usual_ns) != 0)
		return LIGHT_NOT;
	w->plan = &target->plan;
	w->light = true;
	w->unclear = w->chase = false;
	told = walk_up(w, t, 0, &leaf) == 0 && is_told(target, t, w);
	w->light = false;
	if (told)
		return LIGHT_TOLD;
	w->grew = false;
	w->doubted = 0;
	target->piece_gil = target->interps[0].piece_gil = target->interps[0].piece_threads =
		target->interps[0].piece_collecting = target->interps[0].piece_gc_frame =
			target->interps[0].piece_generation = PLAN_FULL;
	return thread_read_state(t, w->abi, &target->plan, &target->remote) ? LIGHT_READ : LIGHT_NOT;
}
