/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/near.h"

#include <errno.h>

#include "base/clock.h"
#include "sampler/exact_look.h"
#include "sampler/recheck.h"
#include "sampler/record.h"
#include "sampler/special.h"
#include "sampler/status.h"
#include "sampler/still.h"
#include "sampler/target.h"

#define VISITS   3u                /* in one tick: the GIL may change hands while the first thread is gone to */

void near_join(struct target *target, struct affinity *affinity)
{
	target->near.affinity = affinity;
	affinity_avoid(affinity, target->proc.pid);
}

static void note_wait(const struct target *target, uint64_t waited_ns, uint64_t now_ns)
{
	struct affinity *a = target->near.affinity;

	if (!visits_waited(&a->visits, a->at, waited_ns, target->interval_ns / 2, now_ns))
		affinity_leave(a);
}

void near_woke(struct target *target, uint64_t late_ns, uint64_t now_ns)
{
	if (target->near.affinity && target->near.affinity->at >= 0)
		note_wait(target, late_ns, now_ns);
}

static struct thread *find_running(const struct target *target)
{
	for (uint32_t i = 0; target->near.thread && i < target->thread_count; i++)
		if (target->threads[i]->id == target->near.thread)
			return target->threads[i];
	return NULL;
}

static struct thread *find_state(const struct target *target, raddr_t tstate)
{
	for (uint32_t i = 0; tstate && i < target->thread_count; i++)
		if (target->threads[i]->tstate == tstate)
			return target->threads[i];
	return NULL;
}

/* The descriptors of the one that was visited before are for the next one. */
static void note_running(struct target *target, const struct thread *t)
{
	struct thread *before = target->near.thread == t->id ? NULL : find_running(target);

	if (before)
		oncpu_spare(&before->oncpu);
	target->near.thread = t->id;
}

void near_note(struct target *target, const struct thread *t, uint16_t status)
{
	if (!target->exact && (status & (STATUS_GIL | STATUS_RUNNABLE)) == (STATUS_GIL | STATUS_RUNNABLE))
		note_running(target, t);
}

struct thread *near_find_holder(const struct target *target)
{
	const struct pyabi *abi = &target->proc.abi;
	raddr_t holder = 0;

	if (abi->gil != GIL_INTERPRETER)
		return remote_read_u64(&target->remote, target->proc.gil_current, &holder) == 0 ? find_state(target, holder) : NULL;
	for (uint32_t i = 0; i < target->interp_count; i++) {
		raddr_t gil = target->interps[(i + target->tick) % target->interp_count].gil;
		uint8_t locked[4];
		struct thread *t;

		if (!gil || remote_read(&target->remote, gil + (uint64_t)abi->gil_state.locked, locked, sizeof(locked)) != 0 ||
		    frame_i32(locked, 0) <= 0 || remote_read_u64(&target->remote, gil + (uint64_t)abi->gil_state.last_holder, &holder) != 0)
			continue;
		t = find_state(target, holder);
		if (t)
			return t;
	}
	return NULL;
}

/* Where a thread is; and, if it stands there, as it does while we run there, how many turns it has had. */
static int find_out(struct near *near, struct thread *t)
{
	return oncpu_slices(&t->oncpu, &near->slices) ? oncpu_where(&t->oncpu) : -ENOENT;
}

/* Goes to where a thread is. False: it is not to be met. */
static bool go_to(struct target *target, struct thread *t, uint64_t now_ns)
{
	struct near *near = &target->near;
	struct affinity *a = near->affinity;
	int cpu = find_out(near, t);
	uint64_t started_ns;

	if (cpu == -EAGAIN)
		near->slept_tick = target->tick;
	if (cpu < 0)
		return false;
	if (!visits_allowed(&a->visits, cpu, now_ns)) {
		affinity_leave(a);
		return false;
	}
	near->is_there = true;
	near->t_there_ns = now_ns;
	if (cpu == a->at && affinity_is_there(a))
		return true;
	started_ns = clock_now_ns();
	if (!affinity_go(a, cpu))
		return false;
	near->t_there_ns = clock_now_ns();
	note_wait(target, near->t_there_ns - started_ns, now_ns);
	return a->at == cpu && find_out(near, t) == cpu;
}

/* The thread as it stands, before all else, so that it does not stand for longer than that takes. */
static bool look(struct target *target, struct thread *t, struct walker *w)
{
	struct look look = {.has_regs = false};
	struct near *near = &target->near;
	uint64_t slices;
	int err;

	w->stands = true;
	err = exact_look_at_standing(target, t, w, &look);
	w->stands = false;
	if (err || t->seen.depth == 0 || recheck_stack(target, t, w->now_ns) != 0)
		return false;
	t->oncpu.state = ONCPU_RUNNABLE;
	t->oncpu.asked_ns = w->now_ns;
	if (status_of(target, t, w, &near->status) != 0)
		return false;
	special_note(target, t, w, near->status);
	near->generation = recheck_generation(target, t);
	/* The kernel may have moved one of us to another CPU meanwhile, or our turn may have been over for a while. */
	return oncpu_slices(&t->oncpu, &slices) && slices == near->slices && affinity_is_there(near->affinity);
}

/* False: it was not met. */
static bool visit(struct target *target, struct thread *t, struct walker *w)
{
	struct near *near = &target->near;

	note_running(target, t);
	if (!go_to(target, t, clock_now_ns()))
		return false;
	if (look(target, t, w)) {
		near->stood_tick = target->tick;
		near->copy = t->copy;
	}
	return true;
}

/* To the one that has the GIL; where nobody has it, as in C code that runs without, to the one that was last seen to run. */
static bool visit_holder(struct target *target, struct walker *w)
{
	struct thread *t = target->thread_count > 1 ? near_find_holder(target) : NULL;
	bool met = false;

	if (!t)
		t = find_running(target);
	if (!t && target->thread_count > 0)
		t = target->threads[0];
	for (uint32_t i = 0; t && i < VISITS; i++) {
		near_end(target);
		if (!visit(target, t, w))
			break;
		met = true;
		if (target->thread_count < 2 || (near_stood(target, t) && (target->near.status & STATUS_GIL)))
			break;
		t = near_find_holder(target); /* it changed hands meanwhile */
		if (t && t->id == target->near.thread)
			break;
	}
	return met;
}

bool near_begin(struct target *target, struct walker *w)
{
	struct affinity *a = target->near.affinity;
	bool met;

	if (!a || !a->at_once || target->exact)
		return false;
	met = visit_holder(target, w);
	if (met && !visits_have_plenty(&a->visits, a->at, clock_now_ns())) {
		near_end(target);
		affinity_leave(a);
	}
	return met;
}

void near_end(struct target *target)
{
	struct near *near = &target->near;
	uint64_t now_ns;

	if (!near->is_there)
		return;
	near->is_there = false;
	now_ns = clock_now_ns();
	visits_spend(&near->affinity->visits, near->affinity->at, now_ns - near->t_there_ns, now_ns);
}

bool near_stood(const struct target *target, const struct thread *t)
{
	return target->near.stood_tick != 0 && target->near.stood_tick == target->tick && target->near.thread == t->id;
}

bool near_slept(const struct target *target, struct thread *t)
{
	uint64_t slices;

	return target->near.slept_tick != 0 && target->near.slept_tick == target->tick && target->near.thread == t->id &&
	       oncpu_slices(&t->oncpu, &slices) && slices == target->near.slices;
}

void near_recall(struct target *target, struct thread *t, struct walker *w, uint16_t *ret_status)
{
	t->copy = target->near.copy;
	w->plan = &target->again;
	*ret_status = target->near.status;
}

bool near_read_waiting(struct target *target, struct thread *t, struct walker *w, uint16_t *ret_status)
{
	struct look look = {.has_regs = false};
	struct copy before = t->copy;
	bool stood;

	if (!still_may_stand(target, t))
		return false;
	w->grew = false;
	w->stands = true; /* whether it is runnable is asked below all the same */
	stood = exact_look_at_standing(target, t, w, &look) == 0 && !w->doubted && t->seen.depth > 0 &&
		recheck_stack(target, t, w->now_ns) == 0 && still_proved(target, t);
	w->stands = false;
	if (!stood || status_of(target, t, w, ret_status) != 0) {
		t->copy = before; /* of the whole process, which tells of it next */
		return false;
	}
	special_note(target, t, w, *ret_status);
	return true;
}

void near_leave(struct target *target)
{
	struct affinity *a = target->near.affinity;

	target->near.affinity = NULL;
	if (!a)
		return;
	affinity_leave(a);
}
