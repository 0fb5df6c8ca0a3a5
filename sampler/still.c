/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/still.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sampler/status.h"

#define LOOK_NS (100 * NS_PER_US) /* between two looks */
#define LOOKS   16u               /* threads looked at each time */

/* Where the change of hands is counted: behind `locked`, an int. */
static uint32_t switches_at(const struct pyabi *abi)
{
	return (uint32_t)abi->gil_state.locked + 8;
}

static uint32_t gil_bytes(const struct pyabi *abi)
{
	uint32_t bytes = (uint32_t)abi->gil_state.bytes;

	return bytes < GIL_BYTES_MAX ? bytes : GIL_BYTES_MAX;
}

void still_plan(struct target *target)
{
	const struct pyabi *abi = &target->proc.abi;
	uint32_t bytes = gil_bytes(abi);

	for (uint32_t i = 0; i < target->interp_count; i++) {
		struct interp *interp = &target->interps[i];

		interp->piece_gil = PLAN_FULL;
		if (!interp->gil || target->thread_count < 2 || abi->gil == GIL_CURRENT_VAR ||
		    bytes < switches_at(abi) + 8)
			continue;
		for (uint32_t k = 0; k < i; k++) /* they may share one */
			if (target->interps[k].gil == interp->gil)
				interp->piece_gil = target->interps[k].piece_gil;
		if (interp->piece_gil == PLAN_FULL)
			interp->piece_gil = plan_add(&target->plan, interp->gil, bytes);
	}
}

/* pthread_self() of the thread whose state this is; 0: not in the list. */
static uint64_t thread_id_of(const struct target *target, raddr_t tstate)
{
	for (uint32_t i = 0; i < target->thread_count; i++)
		if (target->threads[i]->tstate == tstate)
			return target->threads[i]->thread_id;
	return 0;
}

/* True: the GIL may have changed hands since it was read before. */
static bool take_gil(struct target *target, struct interp *interp, uint64_t now_ns)
{
	const struct pyabi *abi = &target->proc.abi;
	const uint8_t *bytes = plan_bytes(&target->plan, interp->piece_gil);
	uint32_t waits = switches_at(abi) + 8;
	struct gil_seen *seen = &interp->gil_seen;
	raddr_t holder;
	uint64_t switches;
	bool same;

	if (!bytes) {
		same = !seen->known;
		seen->known = false;
		seen->former_id = 0;
		return !same;
	}
	holder = frame_u64(bytes, abi->gil_state.last_holder);
	switches = frame_u64(bytes, (int32_t)switches_at(abi));
	same = seen->known && holder == seen->holder && switches == seen->switches;
	if (!seen->known || memcmp(seen->waits, bytes + waits, gil_bytes(abi) - waits) != 0) {
		memcpy(seen->waits, bytes + waits, gil_bytes(abi) - waits);
		seen->t_waits_ns = now_ns;
	}
	if (!same)
		seen->former_id = holder != seen->holder && switches == seen->switches + 1 && seen->known ? seen->holder_id : 0;
	if (!same || seen->holder_id == 0)
		seen->holder_id = thread_id_of(target, holder);
	seen->known = true;
	seen->holder = holder;
	seen->switches = switches;
	return !same;
}

/* Whether a thread can have had the GIL between the last two times that it was read, which differ. */
static bool can_have_run(const struct gil_seen *seen, const struct thread *t)
{
	return seen->former_id == 0 || seen->holder_id == 0 || t->thread_id == seen->former_id || t->thread_id == seen->holder_id;
}

static void wake(struct target *target, struct thread *t)
{
	still_account(target, t);
	t->still = t->parked = false;
	t->base_attempt_ns = target->base_passed_ns;
	if (!t->shadow)
		target->still_count--;
	target->awake_stale = true;
}

bool still_wake_moved(struct target *target, uint64_t now_ns, bool all)
{
	bool woken = false;

	for (uint32_t i = 0; i < target->interp_count; i++) {
		struct interp *interp = &target->interps[i];

		if (!take_gil(target, interp, now_ns))
			continue;
		for (uint32_t k = 0; k < target->thread_count; k++) {
			struct thread *t = target->threads[k];

			if (!t->still || t->interp != interp->addr || !(all || can_have_run(&interp->gil_seen, t)))
				continue;
			wake(target, t);
			woken = true;
		}
	}
	return woken;
}

int still_list_awake(struct target *target)
{
	if (!target->awake_stale)
		return 0;
	if (target->awake_room < target->thread_count) {
		struct thread **awake = realloc(target->awake, target->thread_room * sizeof(struct thread *));

		if (!awake)
			return -ENOMEM;
		target->awake = awake;
		target->awake_room = target->thread_room;
	}
	target->awake_count = 0;
	for (uint32_t i = 0; i < target->thread_count; i++)
		if (!target->threads[i]->still)
			target->awake[target->awake_count++] = target->threads[i];
	target->awake_stale = false;
	return 0;
}

void still_wake_all(struct target *target)
{
	for (uint32_t i = 0; i < target->thread_count; i++)
		if (target->threads[i]->still)
			wake(target, target->threads[i]);
}

/* Not the last holder of its GIL, nor another state of the same system thread, which can be exchanged for it under the GIL. */
static bool can_stand(const struct interp *interp, const struct thread *t)
{
	const struct gil_seen *seen = &interp->gil_seen;

	return seen->known && seen->holder_id != 0 && seen->holder != t->tstate && seen->holder_id != t->thread_id;
}

bool still_may_stand(const struct target *target, const struct thread *t)
{
	const struct interp *interp = target_interp(target, t->interp);

	return interp && can_stand(interp, t) && !t->foreign;
}

bool still_proved(const struct target *target, const struct thread *t)
{
	const struct pyabi *abi = &target->proc.abi;
	const struct interp *interp = target_interp(target, t->interp);
	uint8_t bytes[GIL_BYTES_MAX];

	return interp && can_stand(interp, t) &&
	       remote_read(&target->remote, interp->gil, bytes, switches_at(abi) + 8) == 0 &&
	       frame_u64(bytes, abi->gil_state.last_holder) == interp->gil_seen.holder &&
	       frame_u64(bytes, (int32_t)switches_at(abi)) == interp->gil_seen.switches;
}

void still_pass(struct target *target, uint64_t now_ns, uint64_t most_ns)
{
	uint64_t base_ns = target_base_ns(target, now_ns);
	uint64_t ns = target->t_passed_ns ? base_ns - target->base_passed_ns : most_ns;

	if (ns > most_ns) {
		target->facts.unsampled_ns += (ns - most_ns) * target->still_count;
		ns = most_ns;
	}
	target->t_passed_ns = now_ns;
	target->base_passed_ns = base_ns;
	target->passed_ticks++;
	target->passed_ns += ns;
	target->facts.attempts += target->still_count;
}

static void make_still(struct target *target, struct thread *t)
{
	t->still = true;
	t->still_status = t->run.status;
	t->still_flags = t->run.flags;
	t->still_ticks = target->passed_ticks;
	t->still_ns = target->passed_ns;
	t->t_still_ns = target->t_passed_ns;
	if (!t->shadow)
		target->still_count++;
}

void still_settle(struct target *target)
{
	const struct interp *interp = NULL;
	uint32_t left = 0;

	for (uint32_t i = 0; i < target->awake_count; i++) {
		struct thread *t = target->awake[i];

		if (!interp || interp->addr != t->interp)
			interp = target_interp(target, t->interp);
		if (!interp || !t->taken || t->sibling || t->foreign || (t->run.status & STATUS_GC) || !can_stand(interp, t)) {
			target->awake[left++] = t;
			continue;
		}
		make_still(target, t);
	}
	target->awake_count = left;
}

bool still_can_park(const struct target *target)
{
	if (target->blind_ticks > 0 || target->awake_stale ||
	    target->t_passed_ns == 0)
		return false;
	for (uint32_t i = 0; i < target->awake_count; i++)
		if (!target->awake[i]->taken)
			return false;
	return true;
}

void still_park(struct target *target)
{
	for (uint32_t i = 0; i < target->awake_count; i++) {
		make_still(target, target->awake[i]);
		target->awake[i]->parked = true;
	}
	target->awake_count = 0;
}

void still_credit(struct target *target, uint64_t ticks, uint64_t t_ns, uint64_t base_ns, uint64_t ran_ns)
{
	uint64_t ns = base_ns - target->base_passed_ns;
	uint64_t ran_each_ns = target->still_count ? ran_ns / target->still_count : 0;

	if (ticks == 0)
		return;
	if (ran_each_ns > ns)
		ran_each_ns = ns;
	target->facts.unsampled_ns += ran_each_ns * target->still_count;
	target->passed_ticks += ticks;
	target->passed_ns += ns - ran_each_ns;
	target->t_passed_ns = t_ns;
	target->base_passed_ns = base_ns;
	target->facts.ticks += ticks;
	target->facts.ticks_credited += ticks;
	target->facts.attempts += ticks * target->still_count;
	target->facts.t_last_ns = t_ns;
}

void still_unpark(struct target *target)
{
	for (uint32_t i = 0; i < target->thread_count; i++)
		if (target->threads[i]->parked)
			wake(target, target->threads[i]);
	target->awake_stale = true;
}

void still_account(struct target *target, struct thread *t)
{
	uint64_t ticks = target->passed_ticks - t->still_ticks;

	if (!t->still || t->shadow || ticks == 0)
		return;
	if (t->run.count == 0)
		t->run = (struct run){.status = t->still_status, .flags = t->still_flags, .t_first_ns = t->t_still_ns};
	t->run.count += (uint32_t)ticks;
	target->facts.near += ticks;
	t->run.weight_ns += target->passed_ns - t->still_ns;
	t->run.t_last_ns = target->t_passed_ns;
	t->still_ticks = target->passed_ticks;
	t->still_ns = target->passed_ns;
	t->t_still_ns = target->t_passed_ns;
}

void still_look(struct target *target, uint64_t now_ns)
{
	uint32_t looks = target->thread_count < LOOKS ? target->thread_count : LOOKS;

	if (now_ns - target->t_looked_ns < LOOK_NS)
		return;
	target->t_looked_ns = now_ns;
	while (looks-- > 0) {
		struct thread *t = target->threads[target->look_next++ % target->thread_count];
		uint16_t status;

		if (!t->still || t->shadow)
			continue;
		run_close_if_due(target, t, now_ns);
		if (!status_of_still(target, t, now_ns, &status)) {
			still_wake_all(target); /* it is gone */
			return;
		}
		if (status != t->still_status)
			run_change_status(target, t, status);
	}
}
