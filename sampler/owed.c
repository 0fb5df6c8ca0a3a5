/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/owed.h"

#include "base/clock.h"
#include "base/hash.h"

#define OWED_NS   (10 * NS_PER_S)
#define SWEEP_NS  (100 * NS_PER_MS) /* old ones are looked for no more often than this */
#define LINKS_MAX 8                 /* followed from the current frame down to the function that ran */

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

/* Where the chain of a thread's samples of a function begins. */
static uint32_t *head_of(struct target *target, uint32_t thread, uint64_t function)
{
	return &target->owed_heads[hash_combine(function, thread) % OWED_HEADS];
}

static bool is_of(const struct owed *owed, uint32_t thread, uint64_t function)
{
	return owed->thread == thread && owed->function == function;
}

static void take_out(struct target *target, uint32_t i)
{
	uint32_t last = target->owed_count - 1;
	uint32_t *link = head_of(target, target->owed[i].thread, target->owed[i].function);

	while (*link != i + 1)
		link = &target->owed[*link - 1].next;
	*link = target->owed[i].next;
	if (i != last) {
		link = head_of(target, target->owed[last].thread, target->owed[last].function);
		while (*link != last + 1)
			link = &target->owed[*link - 1].next;
		*link = i + 1;
		target->owed[i] = target->owed[last];
	}
	target->owed_count = last;
}

bool owed_add(struct target *target, const struct owed *samples)
{
	uint32_t *head = head_of(target, samples->thread, samples->function);
	uint32_t at = *head;
	struct owed *owed;

	while (at && !(is_of(&target->owed[at - 1], samples->thread, samples->function) &&
	               target->owed[at - 1].status == samples->status))
		at = target->owed[at - 1].next;
	if (!at) {
		if (target->owed_count == OWED_MAX)
			return false;
		owed = &target->owed[target->owed_count++];
		*owed = *samples;
		owed->next = *head;
		*head = target->owed_count;
		return true;
	}
	owed = &target->owed[at - 1];
	owed->count += samples->count;
	owed->weight_ns += samples->weight_ns;
	if (owed->t_first_ns > samples->t_first_ns)
		owed->t_first_ns = samples->t_first_ns;
	if (owed->t_last_ns < samples->t_last_ns)
		owed->t_last_ns = samples->t_last_ns;
	return true;
}

/* One of them; NULL: none. */
static struct owed *find(struct target *target, uint32_t thread, uint64_t function)
{
	uint32_t at = *head_of(target, thread, function);

	while (at && !is_of(&target->owed[at - 1], thread, function))
		at = target->owed[at - 1].next;
	return at ? &target->owed[at - 1] : NULL;
}

bool owed_any(struct target *target, const struct thread *t, uint64_t function)
{
	return find(target, t->id, function) != NULL;
}

void owed_pay(struct target *target, struct thread *t, uint64_t function)
{
	for (struct owed *owed = find(target, t->id, function); owed; owed = find(target, t->id, function)) {
		struct run run = {.count = owed->count,
		                  .status = owed->status,
		                  .t_first_ns = owed->t_first_ns,
		                  .t_last_ns = owed->t_last_ns,
		                  .weight_ns = owed->weight_ns};

		take_out(target, (uint32_t)(owed - target->owed));
		target->facts.deferred += run.count;
		run_add_other(target, t, &t->seen, &run);
	}
}

static void lose(struct target *target, uint32_t i)
{
	target->facts.lost[LOSS_TORN] += target->owed[i].count;
	target->facts.unsampled_ns += target->owed[i].weight_ns;
	take_out(target, i);
}

void owed_lose(struct target *target, const struct thread *t)
{
	for (uint32_t i = target->owed_count; i-- > 0;)
		if (!t || target->owed[i].thread == t->id)
			lose(target, i);
}

void owed_lose_old(struct target *target, uint64_t now_ns)
{
	if (target->owed_count == 0 || now_ns - target->t_owed_ns < SWEEP_NS)
		return;
	target->t_owed_ns = now_ns;
	for (uint32_t i = target->owed_count; i-- > 0;)
		if (now_ns - target->owed[i].t_first_ns > OWED_NS)
			lose(target, i);
}
