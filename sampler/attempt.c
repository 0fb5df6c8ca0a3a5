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
	bool sought = target->tids_sought < TIDS_SOUGHT_MAX && !target->remote.core;

	return t->tid == 0 && (target->tids_known || sought) && !t->unplaced;
}

bool sample_is_due(const struct target *target, struct thread *t)
{
	t->shadow = t->outer || sample_is_gone(target, t);
	t->taken = t->shadow; /* there is nothing to take */
	if (t->shadow)
		t->base_attempt_ns = 0; /* its time meanwhile is another's */
	return !t->shadow;
}
