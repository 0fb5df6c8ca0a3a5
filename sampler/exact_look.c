/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/exact_look.h"

#include <errno.h>

#include "base/clock.h"
#include "sampler/collector.h"
#include "sampler/host.h"
#include "sampler/look.h"

#define LOOKS_STANDING   8u /* reads within one stop, from the second attempt on */
#define PAGE_BYTES       4096u
#define STACK_SPARE      2048u /* copied of a stack beyond what was needed */
#define STACK_FALLS      256
#define STACKS_APART_MAX (UINT64_C(1) << 30)

/* The used part of its stack, a page a piece: what lies behind the stack's end spoils nothing. */
static void plan_stack(struct look *look, const struct exact_thread *thread, struct plan *plan)
{
	raddr_t sp = look->regs.values[UNWIND_SP] & ~(raddr_t)7, from = sp - UNWIND_BELOW,
		to = from + thread->stack_bytes;

	look->stack_piece = plan->count;
	look->stack_pieces = 0;
	if (from < thread->stack_end && thread->stack_end - from < STACKS_APART_MAX && to > thread->stack_end)
		to = thread->stack_end;
	while (from < to) {
		raddr_t end = (from | (PAGE_BYTES - 1)) + 1;

		if (end > to)
			end = to;
		if (plan_add(plan, from, (uint32_t)(end - from)) == PLAN_FULL)
			return;
		look->stack_pieces++;
		from = end;
	}
}

/* Its copy; NULL: none. Pieces of one segment lie in one piece of memory. */
static const uint8_t *stack_copy_of(const struct look *look, struct exact_thread *thread, const struct plan *plan,
                                    raddr_t *ret_from, uint32_t *ret_bytes)
{
	const struct piece *pieces = &plan->pieces[look->stack_piece];
	uint32_t first = 0, bytes = 0;

	/* Below the stack pointer there need not be anything. */
	while (first < look->stack_pieces && !pieces[first].ok &&
	       pieces[first].from + pieces[first].bytes <= look->regs.values[UNWIND_SP])
		first++;
	for (uint32_t i = first; i < look->stack_pieces; i++) {
		if (!pieces[i].ok) {
			thread->stack_end = pieces[i].from;
			break;
		}
		bytes += pieces[i].bytes;
	}
	*ret_bytes = bytes;
	if (!bytes)
		return NULL;
	*ret_from = pieces[first].from;
	return plan_bytes(plan, look->stack_piece + first);
}

/* Everything of the thread in one read: the native stack, Python's frames, who has the GIL. */
static int read_thread(struct target *target, struct thread *t, struct walker *w, struct look *look)
{
	struct plan *plan = &target->again;
	struct interp *interp = target_interp(target, t->interp);
	uint32_t generation, gil = PLAN_FULL;
	uint64_t now_ns;
	const uint8_t *head;
	int err;

	plan_clear(plan);
	look->stack_pieces = 0;
	if (look->has_regs && target->exact->modules)
		plan_stack(look, t->exact, plan);
	if (!thread_plan(t, w->abi, plan, w->tick))
		return -ENOMEM;
	if (target->piece_gil != PLAN_FULL)
		gil = plan_add(plan, target->proc.gil_current, 8);
	if (interp)
		collector_plan(target, interp, plan);
	now_ns = clock_now_ns(); /* later than the tick */
	generation = target_plan_generation(target, t->interp, plan, now_ns);
	err = plan_read(plan, w->remote);
	if (err)
		return err;
	target_take_generation(target, t->interp, plan, generation, now_ns);
	if (interp)
		collector_take(interp, plan);
	head = plan_bytes(plan, t->copy.head);
	if (head && !target_is_same_thread(w->abi, t, head))
		return -ESRCH; /* the one that was stopped is ending; who has its thread state now moves */
	if (plan_bytes(plan, gil))
		target->gil_holder = frame_u64(plan_bytes(plan, gil), 0);
	w->plan = plan;
	return 0;
}

/* Reads and walks until everything was in one copy. */
int exact_look_at_standing(struct target *target, struct thread *t, struct walker *w, struct look *look)
{
	int err = -EAGAIN;

	for (uint32_t i = 0; err == -EAGAIN && i < LOOKS_STANDING; i++) {
		w->grew = false;
		err = read_thread(target, t, w, look);
		if (!err)
			err = look_standing(w, t);
		if (!w->grew)
			break;
	}
	return err;
}

/* Of a running thread: it stands for one read, and, where that was not enough, for a few; where its variables are wanted, for these too. */
int exact_look_at_running(struct target *target, struct thread *t, struct walker *w, struct look *look, bool again)
{
	bool interrupted = false;
	struct stop stop;
	int err = stop_thread(target->exact->stopper, target->proc.pid, t->tid, &stop);

	if (err)
		return err;
	again = again || target->values;
	look->has_regs = stop_registers(&stop, &look->regs, &interrupted) == 0;
	err = again ? exact_look_at_standing(target, t, w, look) : read_thread(target, t, w, look);
	if (!err && target->values)
		values_take(target->values, target, t, &t->seen, STAND_STOPPED);
	stop_release(target->exact->stopper, &stop, &target->facts);
	target->facts.eintr_risk += interrupted;
	if (err || again)
		return err;
	w->released = true;
	err = look_standing(w, t);
	w->released = false;
	return err;
}

/* Of a blocked one: it must not have run since the kernel told where it stands. */
int exact_look_at_blocked(struct target *target, struct thread *t, struct walker *w, struct look *look)
{
	uint64_t sp, pc, before = 0, after = 0;
	bool counted = oncpu_slices(&t->oncpu, &before);
	int err = oncpu_ask(&t->oncpu, w->now_ns);

	if (err)
		return err;
	if (t->oncpu.state == ONCPU_RUNNABLE)
		return -EAGAIN;
	look->has_regs = oncpu_place(&t->oncpu, &sp, &pc);
	look->regs.known = 0;
	if (look->has_regs) {
		unwind_set(&look->regs, UNWIND_SP, sp);
		unwind_set(&look->regs, UNWIND_IP, pc);
	}
	err = exact_look_at_standing(target, t, w, look);
	if (err)
		return err;
	t->exact->stood = counted && oncpu_slices(&t->oncpu, &after) && after == before;
	t->exact->slices = before;
	/* Without that count it is as good as where the kernel says that it stands. */
	if (!counted)
		return oncpu_ask(&t->oncpu, w->now_ns) == 0 && t->oncpu.state != ONCPU_RUNNABLE ? 0 : -EAGAIN;
	return t->exact->stood ? 0 : -EAGAIN;
}

int exact_look_at_core(struct target *target, struct thread *t, struct walker *w, struct look *look)
{
	look->has_regs = host_of(&target->remote)->registers(&target->remote, t->tid, &look->regs);
	return exact_look_at_standing(target, t, w, look);
}

/* How much of the stack the next sample copies: at least what this one needed, twice as much where it was not enough. It falls slowly: a
 * sort needs some kilobytes more than what calls it. */
static void fit_stack(struct target *target, struct exact_thread *thread, const struct unwound *native, uint32_t copied)
{
	uint32_t given = target->options->native_stack_bytes, most = given ? given : NATIVE_STACK_BYTES;
	uint64_t now = thread->stack_bytes, want = now;

	if (native->end == UNWIND_ROOT)
		want = native->used_bytes + STACK_SPARE;
	else if (native->end == UNWIND_CUT && copied == thread->stack_bytes)
		want *= 2;
	if (want < now)
		want = now - (now - want) / STACK_FALLS;
	else if (want > now && now < most)
		thread->stood = false; /* it is worth another look */
	thread->stack_bytes = want < most ? (uint32_t)want : most;
}

struct unwound *exact_unwind(struct target *target, struct thread *t, const struct look *look)
{
	struct exact *x = target->exact;
	const uint8_t *stack;
	raddr_t from = 0;
	uint32_t bytes;

	if (!look->has_regs)
		return NULL;
	stack = stack_copy_of(look, t->exact, &target->again, &from, &bytes);
	x->unwound.depth = 0;
	if (unwind(x->unwinder, &look->regs, stack, from, bytes, &x->unwound) != 0)
		return NULL;
	fit_stack(target, t->exact, &x->unwound, bytes);
	for (uint32_t i = 0; i < x->unwound.depth; i++)
		if (!x->unwound.frames[i].module->id)
			(void)modules_use(x->modules, x->unwound.frames[i].module);
	return modules_know_eval(x->modules) ? &x->unwound : NULL;
}
