/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/exact_look.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "sampler/current.h"
#include "sampler/recheck.h"
#include "sampler/special.h"
#include "sampler/status.h"

#define ATTEMPTS      6u /* at one sample: the guess of what to read grows, or the thread blocks and wakes all the time */
#define NAP_NS        (10 * NS_PER_US) /* after a second attempt that failed, twice as long; doubled after each further one */
#define LATER_NS      (100 * NS_PER_MS) /* so long a sample waits for one that is taken of a thread that stands */

static void count_merged(struct target *target, enum merged merged, uint32_t count)
{
	switch (merged) {
	case MERGED_WHOLE:
		target->facts.native += count;
		break;
	case MERGED_CUT:
		target->facts.native_cut += count;
		break;
	case MERGED_MISMATCHED:
		target->facts.native_mismatched += count;
		break;
	case MERGED_FAILED:
		target->facts.native_failed += count;
		break;
	}
}

static struct unwound *leave_outer(struct unwound *native, raddr_t entry)
{
	if (entry == 0)
		return NULL;
	merge_leave_outer(native, entry);
	return native;
}

/* The stack in t->seen, and what was copied with it, become a sample. `look`: NULL where it was no stop's or blocked thread's. */
static int take(struct target *target, struct thread *t, const struct walker *w, const struct look *look,
                const struct sample *sample)
{
	struct exact *x = target->exact;
	struct unwound *native;

	t->exact->status = sample->status;
	special_note(target, t, w, sample->status);
	recheck_accepted(target, t, w->now_ns);
	if (w->abi->frames == FRAMES_HEAP)
		thread_order_heap(t, w->tick);
	if (!x->modules) {
		run_add(target, t, sample);
		return 0;
	}
	native = look ? exact_unwind(target, t, look) : NULL;
	if (native && t->nested) /* C frames and runs of the interpreter's loop are its own and others' */
		native = leave_outer(native, current_entry(target, t));
	if (merge_native(&x->merged, &t->seen, w->entries, native, target->options->native, &t->exact->merged) != 0)
		return -ENOMEM;
	count_merged(target, t->exact->merged, sample->count);
	run_add_merged(target, t, &x->merged, &t->exact->last, t->exact->merged == MERGED_CUT ? STACK_NATIVE_CUT : 0,
	               sample);
	return 0;
}

/* The first that could be taken since is those that were put off, too. */
static void stand_for_waiting(struct target *target, struct thread *t, struct sample *sample)
{
	struct sample *waiting = &t->exact->waiting;

	if (waiting->count == 0)
		return;
	sample->count += waiting->count;
	sample->t_first_ns = waiting->t_first_ns;
	sample->weight_ns += waiting->weight_ns;
	target->facts.deferred += waiting->count;
	waiting->count = 0;
}

/* A thread that has not run since its latest sample, in which it was blocked. It may have been woken, and wait for a CPU. */
static bool take_again(struct target *target, struct thread *t, struct sample *sample)
{
	uint64_t slices;

	if (!t->exact->stood || !oncpu_slices(&t->oncpu, &slices) || slices != t->exact->slices)
		return false;
	sample->status = t->exact->status;
	if (t->oncpu.state == ONCPU_RUNNABLE)
		sample->status = (uint16_t)((sample->status & ~STATUS_IDLE) | STATUS_RUNNABLE);
	stand_for_waiting(target, t, sample);
	target->facts.near++;
	run_repeat(target, t, sample);
	if (target->exact->modules)
		count_merged(target, t->exact->merged, sample->count);
	return true;
}

/* A thread that is stopped again at once has not run one instruction of its own: it stands in the middle of the same change. */
static void let_run(uint32_t attempt)
{
	const struct timespec nap = clock_to_timespec(NAP_NS << attempt);

	clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
}

static int sample_standing(struct target *target, struct thread *t, struct walker *w, struct look *look,
                           uint16_t *ret_status)
{
	int err = -EAGAIN;

	for (uint32_t i = 0; err == -EAGAIN && i < ATTEMPTS; i++) {
		w->grew = w->exhausted = false;
		w->doubted = 0;
		if (target->remote.core)
			err = exact_look_at_core(target, t, w, look);
		else if (t->oncpu.state == ONCPU_RUNNABLE)
			err = exact_look_at_running(target, t, w, look, i > 0);
		else
			err = exact_look_at_blocked(target, t, w, look);
		if (w->doubted)
			recheck_doubted(target, t, w);
		if (!err)
			err = recheck_stack(target, t, w->now_ns);
		if (err == -EAGAIN && w->exhausted)
			codes_new_tick(target->codes); /* what it stood for is over: there is time */
		if (err == -EAGAIN || err == -EPROTO) {
			target->facts.retries[w->grew ? RETRY_GUESS : RETRY_MOVED]++;
			if (i > 0)
				let_run(i);
			err = oncpu_ask(&t->oncpu, w->now_ns) == -ESRCH ? -ESRCH : -EAGAIN;
		}
	}
	return err ? err : status_of(target, t, w, ret_status);
}

static void lose(struct target *target, const struct sample *sample, int err)
{
	for (uint32_t i = 0; i < sample->count; i++)
		sample_lose(target, err, i ? 0 : sample->weight_ns);
}

static void lose_waiting(struct target *target, struct thread *t, int err)
{
	lose(target, &t->exact->waiting, err);
	t->exact->waiting.count = 0;
}

/* It is taken later: a stop is to come, which was given up once, or there can be none as yet, which was given up now. */
static void put_off(struct target *target, struct thread *t, const struct sample *sample)
{
	struct sample *waiting = &t->exact->waiting;
	bool comes = stopper_is_pending(target->exact->stopper, t->tid);

	if (!comes || waiting->count == 0)
		target->facts.stops_given_up++;
	target->facts.attempts++;
	if (waiting->count == 0) {
		*waiting = *sample;
		return;
	}
	waiting->count++;
	waiting->now_ns = sample->now_ns;
	waiting->weight_ns += sample->weight_ns;
}

/* Whose samples wait for a stop of this system thread. */
static struct thread *waiting_for(const struct target *target, pid_t tid)
{
	for (uint32_t i = 0; i < target->thread_count; i++) {
		struct thread *t = target->threads[i];

		if (t->tid == tid && !t->outer && exact_thread_waiting(t->exact) > 0)
			return t;
	}
	return NULL;
}

bool exact_take_late(struct target *target, struct stop *stop)
{
	struct walker w = {.abi = &target->proc.abi,
	                   .remote = &target->remote,
	                   .codes = target->codes,
	                   .edges = target->edges,
	                   .now_ns = clock_now_ns(),
	                   .tick = target->tick,
	                   .stands = true};
	struct thread *t = waiting_for(target, stop->tid);
	struct look look;
	bool interrupted;
	int err;

	if (target->proc.pid != stop->pid || !t)
		return false;
	codes_new_tick(target->codes);
	look.has_regs = stop_registers(stop, &look.regs, &interrupted) == 0;
	err = exact_look_at_standing(target, t, &w, &look);
	stop_release(target->exact->stopper, stop, &target->facts);
	if (!err)
		err = recheck_stack(target, t, w.now_ns);
	if (!err)
		err = status_of(target, t, &w, &t->exact->waiting.status);
	if (!err)
		err = take(target, t, &w, &look, &t->exact->waiting);
	if (err)
		lose_waiting(target, t, err);
	t->exact->waiting.count = 0;
	return true;
}

void exact_end(struct target *target, struct thread *t, bool ended)
{
	if (t->exact)
		lose_waiting(target, t, ended ? -ESRCH : -EAGAIN);
}

static int sample_as_it_moves(struct target *target, struct thread *t, struct walker *w, struct sample *sample)
{
	int err = -EAGAIN;

	w->stands = false;
	for (uint32_t i = 0; err == -EAGAIN && i < ATTEMPTS; i++)
		err = sample_moving(target, t, w, &sample->status);
	return err;
}

void exact_sample(struct target *target, struct thread *t, struct walker *w)
{
	struct sample sample = {.count = 1, .t_first_ns = w->now_ns, .now_ns = w->now_ns};
	struct look look = {.has_regs = false};
	bool moving = t->unplaced; /* whom to stop is not known */
	int err;

	if (!sample_is_due(target, t))
		return;
	sample.weight_ns = sample_weight(target, t, w->now_ns);
	w->stands = true;
	err = exact_of(target, t) ? oncpu_ask(&t->oncpu, w->now_ns) : -ENOMEM;
	if (err == -ESRCH)
		status_gone(target, t);
	if (!err && !moving && stopper_is_pending(target->exact->stopper, t->tid)) {
		put_off(target, t, &sample);
		return;
	}
	if (!err && !moving && take_again(target, t, &sample)) {
		target->facts.attempts++;
		t->taken = true;
		return;
	}
	if (!err) {
		t->exact->stood = false;
		err = moving ? 0 : sample_standing(target, t, w, &look, &sample.status);
	}
	if (err == -EBUSY || err == -EPERM) {
		moving = t->exact->waiting.count > 0 && w->now_ns - t->exact->waiting.t_first_ns > LATER_NS;
		err = moving ? 0 : -ETIMEDOUT;
	}
	if (err == -ETIMEDOUT) {
		put_off(target, t, &sample);
		return;
	}
	if (!err && moving)
		err = sample_as_it_moves(target, t, w, &sample);
	if (!err && t->entered && t->seen.depth == 0)
		err = -EAGAIN; /* it has just left this interpreter */
	target->facts.attempts++;
	if (!err)
		stand_for_waiting(target, t, &sample);
	if (!err)
		err = take(target, t, w, moving ? NULL : &look, &sample);
	t->taken = err == 0;
	target->facts.near += !err && t->exact && t->exact->stood;
	if (err && t->exact)
		t->exact->stood = false; /* the latest sample is an older one than what was read */
	if (err)
		lose(target, &sample, err);
	thread_prune(t, w->tick);
}
