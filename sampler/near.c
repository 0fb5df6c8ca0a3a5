/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/near.h"

#include <errno.h>

#include "base/clock.h"
#include "sampler/exact_look.h"
#include "sampler/recheck.h"
#include "sampler/record.h"
#include "sampler/special.h"
#include "sampler/status.h"
#include "sampler/target.h"

/* By the number of targets, all of which it costs something: no more often than NEAR_EACH_NS, … */
#define SOON_NS      (2 * NS_PER_MS)   /* … or this, while calls are being learnt; … */
#define SOON_MOST    500u              /* … so many in a row, … */
#define SOON_EACH    4u                /* … of which one is earned by so many others */
#define WAIT_NS      (1 * NS_PER_MS)   /* longer for its turn, or than half an interval, the sampler's thread should not wait, … */
#define WAITS        3u                /* … so often in a row, … */
#define WAIT_MOST_NS (100 * NS_PER_MS) /* … or so long even once; else it keeps away … */
#define AWAY_NS      (1 * NS_PER_S)    /* … for so long, each time twice as long as before, … */
#define AWAY_MOST_NS (16 * NS_PER_S)   /* … but no longer, until all went well for so long */
#define SERVE_NS     (100 * NS_PER_MS) /* so long after one such tick there will be others */

void near_join(struct target *target, struct affinity *affinity)
{
	target->near.affinity = affinity;
	affinity->targets++;
	affinity_avoid(affinity, target->proc.pid);
}

static void note_wait(const struct target *target, uint64_t waited_ns, uint64_t now_ns)
{
	struct affinity *a = target->near.affinity;

	a->waits = waited_ns > WAIT_NS && waited_ns > target->interval_ns / 2 ? a->waits + 1 : 0;
	if (a->waits < WAITS && waited_ns < WAIT_MOST_NS)
		return;
	if (waited_ns >= WAIT_MOST_NS)
		a->away_ns = AWAY_MOST_NS;
	else if (now_ns > a->until_ns + AWAY_MOST_NS || a->away_ns == 0)
		a->away_ns = AWAY_NS;
	else if (a->away_ns < AWAY_MOST_NS)
		a->away_ns *= 2;
	a->waits = 0;
	a->until_ns = now_ns + a->away_ns;
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

void near_note(struct target *target, const struct thread *t, uint16_t status)
{
	struct thread *before;

	if (target->exact || target->near.thread == t->id || (status & (STATUS_GIL | STATUS_RUNNABLE)) != (STATUS_GIL | STATUS_RUNNABLE))
		return;
	before = find_running(target);
	if (before)
		oncpu_spare(&before->oncpu);
	target->near.thread = t->id;
}

/* All ticks are such. */
static bool is_low_rate(const struct target *target)
{
	return target->interval_ns >= target->near.affinity->targets * NEAR_EACH_NS;
}

/* At high rates, samples must wait for what such a tick shows. */
static bool is_wanted(struct target *target, uint64_t now_ns)
{
	struct near *near = &target->near;
	uint64_t targets = near->affinity->targets, since_ns = now_ns - near->t_tried_ns;

	if (target->exact)
		return false;
	if (is_low_rate(target))
		return true;
	if (target->owed_count == target->owed_plain || since_ns < targets * SOON_NS)
		return false;
	if (since_ns >= targets * NEAR_EACH_NS) {
		if (near->soon_used > 0 && ++near->others % SOON_EACH == 0)
			near->soon_used--;
		return true;
	}
	if (near->learnt == target->edges_learnt || near->soon_used == SOON_MOST)
		return false;
	near->soon_used++;
	return true;
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

	if (cpu < 0)
		return false;
	if (cpu == a->at && affinity_is_there(a))
		return true;
	started_ns = clock_now_ns();
	if (!affinity_go(a, cpu))
		return false;
	note_wait(target, clock_now_ns() - started_ns, now_ns);
	return a->at == cpu && find_out(near, t) == cpu;
}

/* The thread as it stands, before all else, so that it does not stand for longer than that takes. */
static bool look(struct target *target, struct thread *t, struct walker *w)
{
	struct look look = {.has_regs = false};
	struct near *near = &target->near;
	uint64_t slices;
	int err;

	t->heap_expected = 0; /* to 3.10: all frames are wanted, not those that the last tick expected */
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

bool near_begin(struct target *target, struct walker *w)
{
	struct near *near = &target->near;
	struct thread *t;

	if (!near->affinity || !near->affinity->at_once || w->now_ns < near->affinity->until_ns)
		return false;
	if (!is_wanted(target, w->now_ns)) {
		affinity_leave(near->affinity);
		return false;
	}
	near->t_tried_ns = w->now_ns;
	near->learnt = target->edges_learnt;
	if (!near->thread && target->thread_count > 0)
		near->thread = target->threads[0]->id; /* as long as nothing is known */
	t = find_running(target);
	if (!t || !go_to(target, t, w->now_ns))
		return false;
	near->t_there_ns = w->now_ns;
	if (look(target, t, w)) {
		near->stood_tick = target->tick;
		near->copy = t->copy;
	}
	if (!is_low_rate(target))
		affinity_leave(near->affinity);
	return true;
}

bool near_stood(const struct target *target, const struct thread *t)
{
	return target->near.stood_tick != 0 && target->near.stood_tick == target->tick && target->near.thread == t->id;
}

void near_recall(struct target *target, struct thread *t, struct walker *w, uint16_t *ret_status)
{
	t->copy = target->near.copy;
	w->plan = &target->again;
	*ret_status = target->near.status;
}

bool near_serves(const struct target *target, uint64_t now_ns)
{
	return target->near.t_there_ns != 0 && now_ns - target->near.t_there_ns < SERVE_NS;
}

void near_leave(struct target *target)
{
	struct affinity *a = target->near.affinity;

	target->near.affinity = NULL;
	if (!a)
		return;
	a->targets--;
	affinity_leave(a);
}
