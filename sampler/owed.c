/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/owed.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "sampler/recheck.h"
#include "sampler/status.h"

#define OWED_NS    (10 * NS_PER_S)
#define ALIKE_NS   NS_PER_S /* so long a stack is waited for in the same context, and with an exception in hand or none alike: it may never be met */
#define KEPT_MAX   256u  /* stacks of a kind that are kept to stand in */
#define KEPT_DEPTH 1024u /* of one that was met beside: a deeper one is counted at once */
#define THROUGH_FRAMES 64u /* of a stack, from the innermost on, that are looked at: it may be thousands deep */
#define SWEEP_NS   (100 * NS_PER_MS) /* old ones are looked for no more often than this */
#define LINKS_MAX  8                 /* followed from the current frame down to the function that ran */

static uint64_t content_of(struct walker *w, raddr_t addr)
{
	struct code *code = addr ? codes_find(w->codes, addr) : NULL;

	if (addr == 0 || (!code && codes_load(w->codes, w->remote, addr, w->now_ns, &code) != 0))
		return 0;
	return code->content;
}

/* The function that ran, where the walk of w->plan ended at C that led on to what was not found (w->outside). */
static uint64_t current_of(struct walker *w, struct thread *t)
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
			return content_of(w, frame_code(w->abi, bytes));
		frame = frame_previous(w->abi, bytes);
	}
	return 0;
}

struct ran owed_told(struct walker *w, struct thread *t, bool failed)
{
	struct ran ran = {.context = w->place ? hash_combine(w->place, content_of(w, w->generator_code)) : content_of(w, w->resumer)};

	if (failed && w->ran)
		ran.function = content_of(w, w->ran);
	else if (failed && w->outside)
		ran.function = current_of(w, t);
	return ran;
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

static void drop_through(struct target *target, struct owed *owed)
{
	if (owed->through.depth > 0)
		*(owed->beside ? &target->owed_beside : &target->owed_through) -= 1;
	free(owed->through.frames);
	owed->through = (struct pystack){0};
	owed->beside = false;
}

static void take_out(struct target *target, uint32_t i)
{
	uint32_t last = target->owed_count - 1;
	uint32_t *link = head_of(target, target->owed[i].thread, target->owed[i].function);

	drop_through(target, &target->owed[i]);
	target->owed_plain -= target->owed[i].plain;
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

struct owed *owed_add(struct target *target, const struct owed *samples)
{
	uint32_t *head = head_of(target, samples->thread, samples->function);
	uint32_t at = *head;
	struct owed *owed;

	while (at && !(is_of(&target->owed[at - 1], samples->thread, samples->function) &&
	               target->owed[at - 1].status == samples->status && target->owed[at - 1].context == samples->context))
		at = target->owed[at - 1].next;
	if (!at) {
		if (target->owed_count == OWED_MAX)
			return NULL;
		owed = &target->owed[target->owed_count++];
		*owed = *samples;
		owed->next = *head;
		*head = target->owed_count;
		target->owed_plain += owed->plain;
		return owed;
	}
	owed = &target->owed[at - 1];
	owed->count += samples->count;
	owed->weight_ns += samples->weight_ns;
	if (owed->t_first_ns > samples->t_first_ns)
		owed->t_first_ns = samples->t_first_ns;
	if (owed->t_last_ns < samples->t_last_ns)
		owed->t_last_ns = samples->t_last_ns;
	return owed;
}

int owed_put_off(struct target *target, struct thread *t, const struct walker *w, struct ran ran, uint64_t weight_ns, uint16_t *ret_status)
{
	struct owed owed = {.thread = t->id,
	                    .count = 1,
	                    .function = ran.function,
	                    .frame = w->expected,
	                    .context = ran.context,
	                    .plain = w->whole && !thread_is_apart(t),
	                    .t_first_ns = w->now_ns,
	                    .t_last_ns = w->now_ns,
	                    .weight_ns = weight_ns};

	struct owed *added;

	if (status_of(target, t, w, ret_status) != 0)
		return -EAGAIN;
	if (ran.handled != HANDLED_UNKNOWN)
		*ret_status = (uint16_t)((*ret_status & ~STATUS_EXCEPTION) | (ran.handled == HANDLED_ANY ? STATUS_EXCEPTION : 0));
	if (w->whole && (target->owed_beside == KEPT_MAX || t->seen.depth > KEPT_DEPTH))
		return 0;
	owed.status = *ret_status;
	added = owed_add(target, &owed);
	if (!added)
		return w->whole ? 0 : -EAGAIN;
	if (w->whole && added->through.depth == 0 && stack_keep(&added->through, &t->seen, t->seen.depth)) {
		added->beside = true;
		target->owed_beside++;
	}
	return -EINPROGRESS;
}

/* What owed_told() tells of the innermost function of t->seen, if it runs there. 0: nothing. */
static uint64_t context_of(const struct target *target, const struct thread *t)
{
	const struct pyframe *frames = t->seen.frames;
	uint32_t depth = t->seen.depth;
	raddr_t place = depth > 0 && thread_in_chunks(t, frames[depth - 1].frame) ? frames[depth - 1].frame : 0;
	uint64_t outer;

	if (place && !t->seen.apart)
		return hash_combine(place, 0);
	while (depth > 0 && thread_in_chunks(t, frames[depth - 1].frame) == (place != 0))
		depth--;
	outer = depth > 0 ? codes_content(target->codes, frames[depth - 1].code) : 0;
	return place ? hash_combine(place, outer) : outer;
}

/* One of them that a stack of this status pays for; NULL: none. */
static struct owed *find(struct target *target, const struct thread *t, uint64_t function, const uint16_t *status, uint64_t now_ns)
{
	uint32_t at = *head_of(target, t->id, function);
	uint64_t context = context_of(target, t);

	for (; at; at = target->owed[at - 1].next) {
		struct owed *owed = &target->owed[at - 1];
		bool alike = (owed->context == context || owed->context == 0) &&
		             (!status || ((owed->status ^ *status) & STATUS_EXCEPTION) == 0);

		if (is_of(owed, t->id, function) && (alike || now_ns - owed->t_first_ns > ALIKE_NS))
			return owed;
	}
	return NULL;
}

bool owed_any(struct target *target, const struct thread *t, uint64_t function, uint64_t now_ns)
{
	return find(target, t, function, NULL, now_ns) != NULL;
}

static void count_at(struct target *target, struct thread *t, const struct owed *owed, struct pystack *stack)
{
	struct run run = {.count = owed->count,
	                  .status = owed->status,
	                  .t_first_ns = owed->t_first_ns,
	                  .t_last_ns = owed->t_last_ns,
	                  .weight_ns = owed->weight_ns};

	target->facts.deferred += run.count;
	run_add_other(target, t, stack, &run);
}

void owed_pay(struct target *target, struct thread *t, uint64_t function, uint16_t status, uint64_t now_ns)
{
	struct owed *owed;

	while ((owed = find(target, t, function, &status, now_ns))) {
		count_at(target, t, owed, &t->seen);
		take_out(target, (uint32_t)(owed - target->owed));
	}
}

/* The frame stands at a call: with it innermost the stack was this one just before. */
static void keep_through(struct target *target, const struct thread *t, uint32_t frame)
{
	uint64_t function = codes_content(target->codes, t->seen.frames[frame].code);

	for (uint32_t at = *head_of(target, t->id, function); at; at = target->owed[at - 1].next) {
		struct owed *owed = &target->owed[at - 1];

		if (!is_of(owed, t->id, function) || (owed->through.depth > 0 && !owed->beside) || target->owed_through == KEPT_MAX)
			continue;
		drop_through(target, owed);
		if (!stack_keep(&owed->through, &t->seen, frame + 1))
			continue;
		owed->through.frames[frame].opcode = 0; /* was noted when it was the innermost, if ever */
		target->owed_through++;
	}
}

void owed_note_through(struct target *target, const struct thread *t)
{
	if (target->owed_through == target->owed_count)
		return;
	for (uint32_t i = t->seen.depth; i-- > 1 && t->seen.depth - i <= THROUGH_FRAMES;)
		if (!t->seen.frames[i - 1].collects)
			keep_through(target, t, i - 1);
}

void owed_forget(struct target *target)
{
	for (uint32_t i = 0; i < target->owed_count; i++)
		if (!recheck_has_codes(target, &target->owed[i].through))
			drop_through(target, &target->owed[i]);
}

/* What was not met with this function innermost is counted at what stands in for it, or lost. */
static void give_up(struct target *target, uint32_t i)
{
	struct owed *owed = &target->owed[i];
	struct thread *t = NULL;

	for (uint32_t k = 0; owed->through.depth > 0 && !t && k < target->thread_count; k++)
		if (target->threads[k]->id == owed->thread)
			t = target->threads[k];
	if (t) {
		count_at(target, t, owed, &owed->through);
	} else {
		target->facts.lost[LOSS_TORN] += owed->count;
		target->facts.unsampled_ns += owed->weight_ns;
	}
	take_out(target, i);
}

bool owed_by(const struct target *target, const struct thread *t)
{
	for (uint32_t i = 0; i < target->owed_count; i++)
		if (target->owed[i].thread == t->id)
			return true;
	return false;
}

void owed_lose(struct target *target, const struct thread *t)
{
	for (uint32_t i = target->owed_count; i-- > 0;)
		if (!t || target->owed[i].thread == t->id)
			give_up(target, i);
}

void owed_lose_old(struct target *target, uint64_t now_ns)
{
	if (target->owed_count == 0 || now_ns - target->t_owed_ns < SWEEP_NS)
		return;
	target->t_owed_ns = now_ns;
	for (uint32_t i = target->owed_count; i-- > 0;)
		if (now_ns - target->owed[i].t_first_ns > OWED_NS)
			give_up(target, i);
}
