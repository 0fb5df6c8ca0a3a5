/* SPDX-License-Identifier: Apache-2.0 */
/* What an attempt at a thread stands for, whether it was one, and what becomes of it when it fails. */
#include <errno.h>

#include "base/clock.h"
#include "sampler/target.h"

#define WEIGHT_MAX_NS NS_PER_MS /* unthrottled: a sample stands for no more than this */

uint64_t sample_most_ns(const struct target *target)
{
	return target->interval_ns ? 2 * target->interval_ns : WEIGHT_MAX_NS;
}

uint64_t sample_weight(struct target *target, struct thread *t, uint64_t now_ns)
{
	uint64_t most = sample_most_ns(target);
	uint64_t base_ns = target_base_ns(target, now_ns);
	uint64_t weight_ns = t->base_attempt_ns ? base_ns - t->base_attempt_ns : target->interval_ns;

	t->base_attempt_ns = base_ns;
	if (weight_ns <= most)
		return weight_ns;
	target->facts.unsampled_ns += weight_ns - most;
	return most;
}

static enum loss_cause cause_of(int err)
{
	switch (err) {
	case -ESRCH:
		return LOSS_GONE;
	case -EFAULT:
		return LOSS_UNREADABLE;
	case -EPROTO:
		return LOSS_INVALID;
	default:
		return LOSS_TORN;
	}
}

void sample_lose(struct target *target, int err, uint64_t weight_ns)
{
	target->facts.lost[cause_of(err)]++;
	target->facts.unsampled_ns += weight_ns;
}

bool sample_is_gone(const struct target *target, const struct thread *t)
{
	return t->tid == 0 && target->tids_known;
}

/* A thread state without frames is no thread of its own when it has the ids of another one: of its creator, until its own thread begins (to 3.11), or
 * for good (of a subinterpreter that stands idle, 3.8 to 3.12). Else it is a thread that runs no Python. */
bool sample_is_shadow(const struct target *target, const struct thread *t)
{
	if (t->seen.depth > 0)
		return false;
	for (uint32_t i = 0; i < target->thread_count; i++)
		if (target->threads[i] != t && target->threads[i]->thread_id == t->thread_id)
			return true;
	return false;
}
