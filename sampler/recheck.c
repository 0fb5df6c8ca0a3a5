/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/recheck.h"

#include <errno.h>

#include "base/clock.h"

#define DOUBT_NS NS_PER_MS /* a doubted code object is compared no more often than this */
#define CHECKED_NS                                                                                                     \
	NS_PER_MS /* so long after a look at all code objects of a stack only those of new frames are looked at */

uint64_t recheck_generation(const struct target *target, const struct thread *t)
{
	const struct interp *interp = target_interp(target, t->interp);

	return interp ? interp->generation : 0;
}

/* Whether the code of frames that are the same as in the latest sample must be looked at once more. */
static bool is_recheck_due(const struct thread *t, uint64_t generation, uint64_t now_ns)
{
	return generation ? generation != t->generation : now_ns - t->t_checked_ns > CHECKED_NS;
}

int recheck_stack(struct target *target, struct thread *t, uint64_t now_ns)
{
	uint64_t generation = recheck_generation(target, t);
	bool late = is_recheck_due(t, generation, now_ns);
	raddr_t checked = 0;

	for (uint32_t i = late ? 0 : t->same; i < t->seen.depth; i++) {
		raddr_t addr = t->seen.frames[i].code;
		struct code *code;

		if (addr == checked) /* recursion */
			continue;
		checked = addr;
		code = codes_find(target->codes, addr);
		if (!code)
			return -EAGAIN;
		if (codes_need_recheck(target->codes, code, generation, now_ns) &&
		    codes_recheck(target->codes, &target->remote, code, generation, now_ns) != 0) {
			runs_retire_codes(target); /* at once: what is loaded next may lie at the same address */
			return -EAGAIN;
		}
	}
	return 0;
}

bool recheck_is_same(struct target *target, const struct thread *t, uint64_t generation, uint64_t read_ns)
{
	for (uint32_t i = 0; i < t->seen.depth; i++) {
		struct code *code = codes_find(target->codes, t->seen.frames[i].code);

		if (!code)
			return false;
		if (code->checked_ns < read_ns && codes_need_recheck(target->codes, code, generation, read_ns) &&
		    !codes_is_same(target->codes, &target->remote, code, generation, read_ns))
			return false;
	}
	return true;
}

bool recheck_has_codes(const struct target *target, const struct pystack *stack)
{
	for (uint32_t i = 0; i < stack->depth; i++)
		if (!codes_find(target->codes, stack->frames[i].code))
			return false;
	return true;
}

void recheck_accepted(const struct target *target, struct thread *t, uint64_t now_ns)
{
	uint64_t generation = recheck_generation(target, t);

	if (is_recheck_due(t, generation, now_ns))
		t->t_checked_ns = now_ns;
	t->generation = generation;
}

int recheck_doubted(struct target *target, const struct thread *t, struct walker *w)
{
	struct code *code = w->doubted ? codes_find(target->codes, w->doubted) : NULL;

	w->doubted = 0;
	/* In a program that moves fast, the frame was just being made: then it was not long ago that its code was compared. */
	if (!code || w->now_ns - code->checked_ns < DOUBT_NS ||
	    codes_recheck(target->codes, &target->remote, code, recheck_generation(target, t), w->now_ns) == 0)
		return 0;
	runs_retire_codes(target);
	return -EAGAIN;
}
