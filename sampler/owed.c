/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/owed.h"

#include "base/clock.h"

#define OWED_NS   (10 * NS_PER_S)
#define LINKS_MAX 8 /* followed from the current frame down to the function that ran */

static uint64_t content_of(struct walker *w, raddr_t addr)
{
	struct code *code = codes_find(w->codes, addr);

	if (!code && codes_load(w->codes, w->remote, addr, w->now_ns, &code) != 0)
		return 0;
	return code->content;
}

uint64_t owed_current(struct walker *w, struct thread *t)
{
	raddr_t frame = w->outside;
	bool since = false; /* what was met so far was called since the data stack was copied */

	if (w->beyond)
		return content_of(w, w->beyond);
	for (int i = 0; i < LINKS_MAX && frame_may_be(frame); i++) {
		uint8_t memory[PYABI_FRAME_MAX];
		uint32_t copied;
		const uint8_t *bytes = walk_copy(w, t, frame, 0, &copied);

		if (!bytes || (since && thread_in_chunks(t, frame)) || frame_code(w->abi, bytes) == 0) {
			if (remote_read(w->remote, frame, memory, (size_t)w->abi->frame.bytes) != 0)
				return 0;
			bytes = memory;
			since = true;
		}
		if (!frame_is_shim(w->abi, bytes) && !(since && thread_in_chunks(t, frame)))
			return frame_code(w->abi, bytes) ? content_of(w, frame_code(w->abi, bytes)) : 0;
		frame = frame_previous(w->abi, bytes);
	}
	return 0;
}

uint64_t owed_leaf(const struct walker *w, const struct thread *t)
{
	return t->seen.depth > 0 ? codes_content(w->codes, t->seen.frames[t->seen.depth - 1].code) : 0;
}

static bool is_of(const struct owed *owed, const struct thread *t, uint64_t function)
{
	return owed->thread == t->id && owed->function == function;
}

bool owed_add(struct target *target, const struct owed *samples)
{
	uint32_t i = 0;
	struct owed *owed;

	while (i < target->owed_count &&
	       !(target->owed[i].thread == samples->thread && target->owed[i].function == samples->function &&
	         target->owed[i].status == samples->status))
		i++;
	if (i == OWED_MAX)
		return false;
	owed = &target->owed[i];
	if (i == target->owed_count) {
		*owed = *samples;
		target->owed_count++;
		return true;
	}
	owed->count += samples->count;
	owed->weight_ns += samples->weight_ns;
	if (owed->t_first_ns > samples->t_first_ns)
		owed->t_first_ns = samples->t_first_ns;
	if (owed->t_last_ns < samples->t_last_ns)
		owed->t_last_ns = samples->t_last_ns;
	return true;
}

bool owed_any(const struct target *target, const struct thread *t, uint64_t function)
{
	for (uint32_t i = 0; i < target->owed_count; i++)
		if (is_of(&target->owed[i], t, function))
			return true;
	return false;
}

void owed_pay(struct target *target, struct thread *t, uint64_t function)
{
	for (uint32_t i = target->owed_count; i-- > 0;) {
		const struct owed *owed = &target->owed[i];

		if (!is_of(owed, t, function))
			continue;
		target->facts.deferred += owed->count;
		run_add_other(target, t, &t->seen,
		              &(struct run){.count = owed->count,
		                            .status = owed->status,
		                            .t_first_ns = owed->t_first_ns,
		                            .t_last_ns = owed->t_last_ns,
		                            .weight_ns = owed->weight_ns});
		target->owed[i] = target->owed[--target->owed_count];
	}
}

static void lose(struct target *target, uint32_t i)
{
	target->facts.lost[LOSS_TORN] += target->owed[i].count;
	target->facts.unsampled_ns += target->owed[i].weight_ns;
	target->owed[i] = target->owed[--target->owed_count];
}

void owed_lose(struct target *target, const struct thread *t)
{
	for (uint32_t i = target->owed_count; i-- > 0;)
		if (!t || target->owed[i].thread == t->id)
			lose(target, i);
}

void owed_lose_old(struct target *target, uint64_t now_ns)
{
	for (uint32_t i = target->owed_count; i-- > 0;)
		if (now_ns - target->owed[i].t_first_ns > OWED_NS)
			lose(target, i);
}
