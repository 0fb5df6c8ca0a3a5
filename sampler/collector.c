/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/collector.h"

#include "sampler/frames.h"

/* Where it says whether the collector runs; 0: nowhere. */
static raddr_t collecting_at(const struct target *target, const struct interp *interp)
{
	int32_t offset = target->proc.abi.interp.collecting;

	return offset != ABSENT ? interp->addr + (uint64_t)offset : target->proc.collecting;
}

void collector_plan(const struct target *target, struct interp *interp, struct plan *plan)
{
	const struct pyabi *abi = &target->proc.abi;
	raddr_t collecting = collecting_at(target, interp);

	interp->piece_collecting = interp->piece_gc_frame = PLAN_FULL;
	if (collecting)
		interp->piece_collecting = plan_add(plan, collecting, 4);
	if (abi->interp.gc_frame != ABSENT)
		interp->piece_gc_frame = plan_add(plan, interp->addr + (uint64_t)abi->interp.gc_frame, 8);
}

void collector_take(struct interp *interp, const struct plan *plan)
{
	const uint8_t *collecting = plan_bytes(plan, interp->piece_collecting);
	const uint8_t *frame = plan_bytes(plan, interp->piece_gc_frame);

	if (collecting)
		interp->collecting = frame_i32(collecting, 0) != 0;
	interp->gc_frame = interp->collecting && frame ? frame_u64(frame, 0) : 0;
}

void collector_look(struct target *target, const struct thread *t)
{
	const struct pyabi *abi = &target->proc.abi;
	struct interp *interp = target_interp(target, t->interp);
	raddr_t collecting = interp ? collecting_at(target, interp) : 0;
	int32_t now;

	if (!collecting || remote_read_i32(&target->remote, collecting, &now) != 0)
		return;
	interp->collecting = now != 0;
	interp->gc_frame = 0;
	if (now != 0 && abi->interp.gc_frame != ABSENT)
		(void)remote_read_u64(&target->remote, interp->addr + (uint64_t)abi->interp.gc_frame,
		                      &interp->gc_frame);
}
