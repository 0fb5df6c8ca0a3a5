/* SPDX-License-Identifier: Apache-2.0 */
/* Run-length batches: identical consecutive samples of a thread are one record with a count. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sampler/exact.h"
#include "sampler/shown.h"
#include "sampler/still.h"
#include "sampler/target.h"

#define RUN_NS    (100 * NS_PER_MS)
#define MOMENT_NS (10 * NS_PER_MS)

static bool grow_frames(struct frame **frames, uint32_t *room, uint32_t depth)
{
	uint32_t want = *room ? *room : 64;
	struct frame *grown;

	while (want < depth)
		want *= 2;
	if (want == *room)
		return true;
	grown = realloc(*frames, want * sizeof(*grown));
	if (!grown)
		return false;
	*frames = grown;
	*room = want;
	return true;
}

/* Whatever is written names only what the consumer knows. */
static bool publish_symbols(struct target *target, const struct frame *frames, uint32_t from, uint32_t depth)
{
	for (uint32_t i = from; i < depth; i++)
		if (!symtab_publish(target->symbols, frames[i].id, target->ring))
			return false;
	return true;
}

static bool write_stack(struct target *target, struct thread *t, const struct run *run, const struct frame *frames,
                        uint32_t depth)
{
	uint32_t shared = 0, most = depth < t->sent_depth ? depth : t->sent_depth;
	struct rec_stack *record;

	if (!t->announced && !thread_announce(target, t))
		return false;
	while (shared < most && memcmp(&frames[shared], &t->sent[shared], sizeof(*frames)) == 0)
		shared++;
	if (!grow_frames(&t->sent, &t->sent_room, depth) || !publish_symbols(target, frames, shared, depth))
		return false;
	record = ring_reserve(target->ring, rec_round(sizeof(*record) + (depth - shared) * sizeof(*frames)), REC_STACK);
	if (!record)
		return false;
	record->thread = t->id;
	record->count = run->count;
	record->t_first_ns = run->t_first_ns;
	record->t_last_ns = run->t_last_ns;
	record->weight_ns = run->weight_ns;
	record->status = run->status;
	record->flags = run->flags;
	record->depth = depth;
	record->shared = shared;
	record->pad = 0;
	memcpy(record->frames, frames + shared, (depth - shared) * sizeof(*frames));
	memcpy(t->sent + shared, frames + shared, (depth - shared) * sizeof(*frames));
	t->sent_depth = depth;
	ring_commit(target->ring);
	return true;
}

static void account(struct target *target, struct thread *t, const struct run *run, bool written)
{
	if (written) {
		target->facts.samples += run->count;
		target->facts.runs++;
		if (run->flags & STACK_TRUNCATED)
			target->facts.truncated += run->count;
		return;
	}
	target->facts.lost[LOSS_DROPPED] += run->count;
	target->facts.unsampled_ns += run->weight_ns;
	t->sent_depth = 0;
}

void run_close(struct target *target, struct thread *t)
{
	still_account(target, t);
	if (t->run.count == 0)
		return;
	account(target, t, &t->run, write_stack(target, t, &t->run, t->frames, t->depth));
	t->run.count = 0;
	t->cputime.ran |= (t->run.status & (STATUS_RUNNABLE | STATUS_GIL | STATUS_GIL_WAIT | STATUS_UNKNOWN)) != 0;
	t->cputime.others = true;
}

void runs_close_all(struct target *target)
{
	for (uint32_t i = 0; i < target->thread_count; i++)
		run_close(target, target->threads[i]);
}

void runs_settle(struct target *target)
{
	runs_close_all(target);
	for (uint32_t i = 0; i < target->thread_count; i++)
		thread_write_time(target, target->threads[i]);
}

/* CPU time is told behind the sample that stands for the latest part of it: on a busy machine a thread that was given a CPU has run for milliseconds when
 * it is met. */
void run_close_if_due(struct target *target, struct thread *t, uint64_t now_ns)
{
	bool mixed = t->cputime.others && cputime_is_due(&t->cputime, now_ns);

	still_account(target, t);
	if (!mixed && (t->run.count == 0 || now_ns - t->run.t_first_ns < RUN_NS))
		return;
	run_close(target, t);
	if (cputime_is_due(&t->cputime, now_ns))
		thread_write_time(target, t);
}

void runs_close_due(struct target *target, uint64_t now_ns)
{
	for (uint32_t i = 0; i < target->awake_count; i++)
		run_close_if_due(target, target->awake[i], now_ns);
}

void runs_retire_codes(struct target *target)
{
	if (!codes_any_retired(target->codes))
		return;
	runs_close_all(target);
	for (uint32_t i = 0; i < target->thread_count; i++) {
		target->threads[i]->sent_depth = target->threads[i]->last.depth = target->threads[i]->last_plain.count = 0;
		exact_thread_forget(target->threads[i]->exact);
	}
	if (target->exact)
		exact_forget(target->exact);
	codes_drop_retired(target->codes);
	symtab_flush_forgotten(target->symbols, target->ring);
	still_wake_all(target); /* what is written of them next is decoded anew */
}

static bool leaf_stands(const struct thread *t)
{
	uint32_t depth = t->seen.depth;

	return depth == t->last.depth && depth > 0 &&
	       t->seen.frames[depth - 1].code == t->last.frames[depth - 1].code &&
	       t->seen.frames[depth - 1].offset == t->last.frames[depth - 1].offset;
}

/* A thread that was runnable without the GIL and next, standing where it stood, waits for it or has it, was on its way to
 * it: on a busy machine that takes a while. Longer than a moment, it was C code that runs without the GIL. */
static void mend_status(struct thread *t, uint16_t status)
{
	const uint16_t gil = STATUS_GIL | STATUS_GIL_WAIT;

	if (t->run.count > 0 && !(t->run.status & gil) && (t->run.status & STATUS_RUNNABLE) && (status & gil) &&
	    (t->still || leaf_stands(t)) && t->run.t_last_ns - t->run.t_first_ns < MOMENT_NS)
		t->run.status |= STATUS_GIL_WAIT;
}

void run_change_status(struct target *target, struct thread *t, uint16_t status)
{
	still_account(target, t);
	mend_status(t, status);
	if (t->run.count > 0 && t->run.status != status)
		run_close(target, t);
	t->still_status = status;
}

/* What `now` is shown as, into t->frames, where the first `same` of its frames are shown already; the run in progress is closed while these still
 * stand. */
static void show_run(struct target *target, struct thread *t, const struct shown *shown, uint64_t now_ns, bool changed,
                     uint32_t same)
{
	uint32_t at = shown_count(shown, same), depth = shown->stack->depth;

	for (uint32_t i = same; i <= depth; i++) {
		struct frame frames[SHOWN_EACH];
		uint32_t count = i < depth ? shown_frames(shown, i, now_ns, frames) : shown_tail(shown, frames);

		if (changed || memcmp(frames, &t->frames[at], count * sizeof(*frames)) != 0) {
			if (!changed || i == same)
				run_close(target, t);
			changed = true;
			memcpy(&t->frames[at], frames, count * sizeof(*frames));
		}
		at += count;
	}
}

/* Into the run in progress, or a new one. */
static void count_sample(struct thread *t, uint16_t flags, const struct sample *sample)
{
	if (t->run.count == 0)
		t->run = (struct run){.status = sample->status, .flags = flags, .t_first_ns = sample->t_first_ns};
	t->run.count += sample->count;
	t->run.weight_ns += sample->weight_ns;
	t->run.t_last_ns = sample->now_ns;
}

/* Adds a sample to the thread's run, or closes that and begins another. `before`: the stack of the sample before, of which the first `same` frames
 * are known to be the same; it and `now` are exchanged. False: no memory. */
static bool add(struct target *target, struct thread *t, struct pystack *now, struct pystack *before, uint32_t same,
                uint16_t flags, const struct sample *sample)
{
	struct shown shown = shown_as(target, now, sample->status);
	uint32_t depth = shown_depth(&shown);
	bool changed =
		depth != t->depth || t->run.count == 0 || sample->status != t->run.status || flags != t->run.flags;

	same = t->collects ? 0 : shown_same(&shown, before, same);
	mend_status(t, sample->status);
	if (!grow_frames(&t->frames, &t->room, depth)) {
		target->facts.lost[LOSS_DROPPED] += sample->count;
		target->facts.unsampled_ns += sample->weight_ns;
		return false;
	}
	show_run(target, t, &shown, sample->now_ns, changed, same);
	t->cputime.ran |= t->run.count == 0;
	t->collects = t->collects && shown_any_collects(now);
	pystack_swap(before, now);
	t->depth = depth;
	count_sample(t, flags, sample);
	return true;
}

void run_add(struct target *target, struct thread *t, const struct sample *sample)
{
	uint16_t flags = shown_cut(target, &t->seen);

	if (!add(target, t, &t->seen, &t->last, flags & STACK_TRUNCATED ? 0 : t->same, flags, sample))
		return;
	t->last_plain = t->seen_plain;
	if (flags & STACK_TRUNCATED)
		plain_cut(&t->last_plain, 0);
}

void run_add_merged(struct target *target, struct thread *t, struct pystack *merged, struct pystack *before,
                    uint16_t flags, const struct sample *sample)
{
	flags |= shown_cut(target, merged);
	add(target, t, merged, before, 0, flags, sample);
	pystack_swap(&t->last, &t->seen);
	t->last_plain.count = 0;
}

void run_repeat(struct target *target, struct thread *t, const struct sample *sample)
{
	if (t->run.count > 0 && t->run.status != sample->status)
		run_close(target, t);
	count_sample(t, t->run.flags, sample);
}
