/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/light.h"

#include "base/hash.h"
#include "sampler/calls.h"
#include "sampler/prove.h"
#include "sampler/recheck.h"
#include "sampler/status.h"

#define LOOKS_BYTES    (256u << 10) /* no further look where they have so many */
#define DISTANCE_BYTES 8192u        /* at most, between two looks */

/* Whether the latest tick found nothing that is not on the data stack. */
static bool is_simple(const struct target *target, const struct thread *t, uint64_t now_ns)
{
	const uint16_t working = STATUS_GIL | STATUS_RUNNABLE;

	return t->taken && t->run.count > 0 && (t->run.status & (working | STATUS_GIL_WAIT | STATUS_GC)) == working &&
	       t->last_plain.count == t->last.depth && t->last_plain.shims == 0 && (!t->apart || t->apart->count == 0) && t->chunk_count > 0 &&
	       !status_is_due(t, now_ns) && !target_generation_is_due(target, t->interp, now_ns);
}

/* Whether C, or a generator, was never seen to lead on from where the leaf stands, and every call is known. What C calls has frames behind
 * the leaf, on which the walk stops. */
static bool is_told(struct target *target, struct thread *t, struct walker *w)
{
	return t->seen.depth > 1 && t->seen_plain.count == t->seen.depth && !w->unclear && !t->leads_on &&
	       recheck_stack(target, t, w->now_ns) == 0 && prove_knows_rest(target, w, t);
}

/* A look shortly after another finds the target where that one stopped it, or a loop where it was one turn ago: looks at a steady pace
 * would show some functions up to ten points more often than there is reason to (measured, `middle`). So behind the stack as much is copied
 * at random as takes as long as the look itself, of what lies in the chunk unused. */
static void keep_distance(struct target *target, const struct thread *t)
{
	const struct chunk *chunk = &t->chunks[t->chunk_count - 1];
	uint32_t most = chunk->size_bytes - chunk->copy_bytes;

	if (most > DISTANCE_BYTES)
		most = DISTANCE_BYTES;
	target->random = hash_u64(target->random + 1);
	if (most > 0) /* without memory for it the next look is close */
		(void)plan_add(&target->plan, chunk->base + chunk->copy_bytes, (uint32_t)(target->random % most));
}

uint32_t light_read(struct target *target, struct walker *w)
{
	struct light_looks *looks = &target->light;
	struct thread *t;
	uint32_t most = LIGHT_OF - w->tick % LIGHT_OF, count = 0;

	if (target->interval_ns > 0 || target->options->exceptions || target->thread_count != 1 ||
	    target->interp_count != 1 || target->awake_stale || target->awake_count != 1 ||
	    w->abi->frames != FRAMES_STACK || most == LIGHT_OF)
		return 0;
	t = target->awake[0];
	if (!is_simple(target, t, w->now_ns))
		return 0;
	plan_clear(&target->plan);
	if (most > looks->most)
		most = looks->most;
	do {
		if (count > 0)
			keep_distance(target, t);
		plan_begin_look(&target->plan);
		looks->first[count++] = target->plan.count;
		if (!thread_plan_stack(t, &target->plan))
			return 0;
	} while (count < most && target->plan.used_bytes < LOOKS_BYTES);
	if (plan_read_from(&target->plan, &target->remote, w->now_ns, &looks->usual_ns[count - 1]) != 0)
		return 0;
	looks->count = count;
	looks->t_begun_ns = w->now_ns;
	looks->took_ns = target->plan.took_ns;
	looks->slow = target->plan.slow;
	return count;
}

/* Where the index-th look's copies are. */
static void set_copy(struct target *target, struct thread *t, uint32_t index)
{
	t->copy = (struct copy){
		.head = PLAN_FULL, .chunks = target->light.first[index], .chunk_count = t->chunk_count};
	/* Of one that is not the last the thread state is read late: that the two agree teaches nothing. */
	target->plan.slow = target->light.slow || index + 1 < target->light.count;
}

enum light light_look(struct target *target, struct walker *w, uint32_t index)
{
	struct light_looks *looks = &target->light;
	struct thread *t = target->awake[0];
	raddr_t leaf;
	bool told;

	set_copy(target, t, index);
	w->now_ns = looks->t_begun_ns + looks->took_ns * (2 * index + 1) / (2 * looks->count);
	w->plan = &target->plan;
	w->light = true;
	w->unclear = w->chase = false;
	told = walk_up(w, t, 0, &leaf) == 0 && is_told(target, t, w);
	w->light = false;
	/* Looks behind one that does not tell are in vain. */
	if (told) {
		looks->most += index + 1 >= looks->most && looks->most + 1 < LIGHT_OF;
		return LIGHT_TOLD;
	}
	looks->most = (looks->most + index + 1) / 2;
	w->grew = false;
	w->doubted = 0;
	target->piece_gil = target->interps[0].piece_gil = target->interps[0].piece_threads =
		target->interps[0].piece_collecting = target->interps[0].piece_gc_frame =
			target->interps[0].piece_generation = PLAN_FULL;
	return thread_read_state(t, w->abi, &target->plan, &target->remote) ? LIGHT_READ : LIGHT_NOT;
}
