/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/status.h"

#include <errno.h>

#include "base/clock.h"
#include "sampler/handled.h"
#include "sampler/special.h"

#define ASK_NS     (200 * NS_PER_US) /* the kernel is asked about a thread no more often than this */
#define WORKS_NS   (1 * NS_PER_MS)   /* nor than this about one that holds the GIL and has moved within ASK_NS, since its latest sample */
#define ASK_PART   8                 /* a still one again after this part of the time for which it has stayed the same, … */
#define WAITS_PART 16                /* … or after this part where somebody has waited for the GIL, or been given it, since */
#define ASK_MAX_NS (100 * NS_PER_MS) /* but no later than this */
#define WOKEN_NS                                                                                                       \
	(5 * NS_PER_MS) /* a waiter looks up every 5 ms (sys.getswitchinterval()) and may not get a CPU at once */
#define STATUS_ACTIVE_BIT (1u << 4) /* PyThreadState._status.active (Include/cpython/pystate.h, 3.12+) */

static bool holds_gil(const struct target *target, const struct thread *t, const uint8_t *head)
{
	const struct pyabi *abi = &target->proc.abi;

	if (abi->gil != GIL_INTERPRETER)
		return target->gil_holder == t->tstate;
	if (abi->tstate.holds_gil != ABSENT)
		return frame_i32(head, abi->tstate.holds_gil) != 0;
	return ((uint32_t)frame_i32(head, abi->tstate.status) & STATUS_ACTIVE_BIT) != 0;
}

static bool has_moved(const struct thread *t)
{
	const struct pyframe *seen = t->seen.frames, *last = t->last.frames;
	uint32_t depth = t->seen.depth;

	return depth != t->last.depth || (depth > 0 && (seen[depth - 1].offset != last[depth - 1].offset ||
	                                                seen[depth - 1].code != last[depth - 1].code));
}

/* In a futex that lies inside the GIL's own structure (its mutex and condition variables, Python/ceval_gil.c). */
static bool is_blocked_for_gil(const struct target *target, const struct thread *t, const struct interp *interp)
{
	const struct pyabi *abi = &target->proc.abi;

	return interp && interp->gil && t->oncpu.state == ONCPU_BLOCKED_FUTEX && abi->gil_state.bytes > 0 &&
	       t->oncpu.futex - interp->gil < (uint64_t)abi->gil_state.bytes;
}

/* Newer versions say so themselves, too. */
static bool waits_for_gil(const struct target *target, const struct thread *t, const struct interp *interp,
                          const uint8_t *head)
{
	const struct pyabi *abi = &target->proc.abi;

	if (head && abi->tstate.gil_requested != ABSENT && frame_i32(head, abi->tstate.gil_requested) != 0)
		return true;
	if (t->oncpu.state == ONCPU_RUNNABLE) /* between two waits, or woken, and not there yet */
		return t->oncpu.asked_ns - t->gil_waited_ns < WOKEN_NS && (t->still || !has_moved(t));
	return is_blocked_for_gil(target, t, interp);
}

bool status_is_due(const struct thread *t, uint64_t now_ns)
{
	return now_ns - t->oncpu.asked_ns >= ASK_NS;
}

/* Asks the kernel, unless it was asked a moment ago. A thread that moved since is running. */
static int ask(struct thread *t, bool holds_gil, uint64_t now_ns)
{
	bool moved = has_moved(t);
	bool works = holds_gil && moved && t->run.count > 0 && now_ns - t->run.t_last_ns < ASK_NS;

	if (now_ns - t->oncpu.asked_ns >= (works ? WORKS_NS : ASK_NS))
		return oncpu_ask(&t->oncpu, now_ns);
	if (t->oncpu.state != ONCPU_UNKNOWN && moved)
		t->oncpu.state = ONCPU_RUNNABLE;
	return 0;
}

/* Whether it is this thread that collects. What the collector calls can let another one have the GIL; the frame that started it tells,
 * where the version does. */
static bool collects(const struct target *target, const struct thread *t, const struct interp *interp)
{
	if (!interp->collecting)
		return false;
	if (interp->gc_frame == 0)
		return true;
	if (!special_can_collect(target, t, interp->gc_frame))
		return false;
	if (thread_in_chunks(t, interp->gc_frame))
		return true;
	for (uint32_t i = 0; i < target->thread_count; i++)
		if (thread_in_chunks(target->threads[i], interp->gc_frame))
			return false;
	return true;
}

void status_gone(struct target *target, struct thread *t)
{
	t->native_id = UINT64_MAX;
	target->t_listed_ns = 0;
}

int status_of(struct target *target, struct thread *t, const struct walker *w, uint16_t *ret_status)
{
	const uint8_t *head = plan_bytes(w->plan, t->copy.head);
	const struct interp *interp = target_interp(target, t->interp);
	uint16_t status = 0;
	bool holds;

	if (!head)
		return -EFAULT;
	holds = holds_gil(target, t, head);
	if (!w->stands && ask(t, holds, w->now_ns) == -ESRCH) {
		status_gone(target, t);
		return -ESRCH;
	}
	if (holds)
		status |= STATUS_GIL;
	else if (waits_for_gil(target, t, interp, head))
		status |= STATUS_GIL_WAIT;
	if (t->oncpu.state == ONCPU_RUNNABLE)
		status |= STATUS_RUNNABLE;
	else if (t->oncpu.state == ONCPU_UNKNOWN)
		status |= STATUS_UNKNOWN;
	else if (!(status & (STATUS_GIL | STATUS_GIL_WAIT)))
		status |= STATUS_IDLE;
	if (interp && (status & STATUS_GIL) && collects(target, t, interp))
		status |= STATUS_GC;
	if (target->options->exceptions) {
		enum handled handled = handled_ask(target, t, w->plan);

		if (handled == HANDLED_UNKNOWN)
			return -EAGAIN;
		status |= handled == HANDLED_ANY ? STATUS_EXCEPTION : 0;
	}
	if ((status & STATUS_GIL_WAIT) && !(status & STATUS_RUNNABLE))
		t->gil_waited_ns = w->now_ns;
	near_note(target, t, status);
	*ret_status = status;
	return 0;
}

static bool is_due(const struct target *target, const struct thread *t, const struct interp *interp, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - t->oncpu.asked_ns, same_ns = now_ns - t->state_ns;
	bool waits = interp && interp->gil_seen.t_waits_ns > t->oncpu.asked_ns;

	/* One that waits for the GIL, and has not been given it, waits on; it is on a CPU but to look up. */
	if (since_ns < (is_blocked_for_gil(target, t, interp) ? ASK_MAX_NS : ASK_NS))
		return false;
	return t->oncpu.state == ONCPU_RUNNABLE || since_ns >= same_ns / (waits ? WAITS_PART : ASK_PART) ||
	       since_ns >= ASK_MAX_NS;
}

bool status_of_still(struct target *target, struct thread *t, uint64_t now_ns, uint16_t *ret_status)
{
	const struct interp *interp = target_interp(target, t->interp);
	enum oncpu_state before = t->oncpu.state;
	uint16_t status = t->still_status & STATUS_EXCEPTION; /* it has not run since */

	*ret_status = t->still_status;
	if (!is_due(target, t, interp, now_ns))
		return true;
	if (oncpu_ask(&t->oncpu, now_ns) == -ESRCH)
		return false;
	if (t->oncpu.state != before)
		t->state_ns = now_ns;
	if (waits_for_gil(target, t, interp, NULL))
		status |= STATUS_GIL_WAIT;
	if (t->oncpu.state == ONCPU_RUNNABLE)
		status |= STATUS_RUNNABLE;
	else if (t->oncpu.state == ONCPU_UNKNOWN)
		status |= STATUS_UNKNOWN;
	else if (!(status & STATUS_GIL_WAIT))
		status |= STATUS_IDLE;
	if ((status & STATUS_GIL_WAIT) && !(status & STATUS_RUNNABLE))
		t->gil_waited_ns = now_ns;
	*ret_status = status;
	return true;
}
