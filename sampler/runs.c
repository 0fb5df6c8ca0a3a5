/* SPDX-License-Identifier: Apache-2.0 */
/* Run-length batches: identical consecutive samples of a thread are one record with a count. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sampler/procfs.h"
#include "sampler/held.h"
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

bool target_announce(struct target *target, enum target_event event, uint64_t now_ns)
{
	char name[1024];
	bool named = (event == TARGET_ATTACHED || event == TARGET_EXECED) &&
	             proc_command_line(target->proc.pid, name, sizeof(name)) == 0;
	size_t bytes = named ? strlen(name) : 0;
	struct rec_target *record;

	record = ring_reserve(target->ring, rec_round(sizeof(*record) + bytes), REC_TARGET);
	if (!record)
		return false;
	record->id = target->id;
	record->event = event;
	record->t_ns = now_ns;
	record->pid = target->proc.pid;
	record->parent_pid = target->proc.parent_pid;
	record->start_time = target->proc.start_time;
	record->version = target->proc.version;
	record->group = target->group;
	record->pad = 0;
	record->name_bytes = (uint32_t)bytes;
	memcpy(record->text, name, bytes);
	ring_commit(target->ring);
	return true;
}

/* Samples that are neither in the stream yet nor lost: held, owed, or of a run in progress. */
static uint64_t undecided(const struct target *target)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < target->thread_count; i++) {
		const struct thread *t = target->threads[i];

		count += t->run.count + (t->still && !t->shadow ? target->passed_ticks - t->still_ticks : 0);
	}
	for (uint32_t i = 0; i < target->held_count; i++)
		count += target->held[i].count;
	for (uint32_t i = 0; i < target->owed_count; i++)
		count += target->owed[i].count;
	return count;
}

void target_write_facts(struct target *target)
{
	struct rec_facts *record = ring_reserve(target->ring, sizeof(*record), REC_FACTS);
	struct rec_head head;

	if (!record)
		return; /* the next one says it all */
	head = record->head;
	target->facts.reads = target->plan.reads + target->again.reads;
	target->facts.read_segments = target->plan.read_segments + target->again.read_segments;
	target->facts.read_bytes = target->plan.read_bytes + target->again.read_bytes;
	target->facts.read_ns = target->plan.read_ns + target->again.read_ns;
	target->facts.symbols = symtab_defined(target->symbols);
	*record = target->facts;
	record->head = head;
	/* They become attempts when they are decided: so in each record attempts are samples and losses, and never fall. */
	record->attempts -= undecided(target);
	ring_commit(target->ring);
}

static bool write_thread(struct target *target, const struct thread *t, uint64_t start_time, uint32_t flags)
{
	const struct interp *interp = target_interp(target, t->interp);
	size_t bytes = strlen(t->name);
	struct rec_thread *record = ring_reserve(target->ring, rec_round(sizeof(*record) + bytes), REC_THREAD);

	if (!record)
		return false;
	record->id = t->id;
	record->target = target->id;
	record->interpreter = interp ? interp->id : 0;
	record->tid = (uint64_t)t->tid;
	record->start_time = start_time;
	record->flags = flags | (t->tid == target->proc.pid ? THREAD_MAIN : 0);
	record->name_bytes = (uint32_t)bytes;
	memcpy(record->text, t->name, bytes);
	ring_commit(target->ring);
	return true;
}

bool thread_announce(struct target *target, struct thread *t)
{
	struct proc_stat stat = {0};

	if (!target->attached)
		target->attached = target_announce(target, TARGET_ATTACHED, clock_now_ns());
	if (!target->attached)
		return false;
	if (t->tid > 0 && t->start_time == 0 && proc_stat_read(&stat, target->proc.pid, t->tid) == 0)
		t->start_time = stat.start_time;
	t->announced = write_thread(target, t, t->start_time, 0);
	return t->announced;
}

void thread_end(struct target *target, const struct thread *t)
{
	/* When the ring is full the consumer keeps one thread longer than it need. */
	if (t->announced)
		write_thread(target, t, t->start_time, THREAD_ENDED);
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

/* frames has room for one more than its depth. */
static uint32_t with_special_frames(const struct target *target, uint16_t status, struct frame *frames, uint32_t depth)
{
	if (!(status & STATUS_GC) || !target->options->gc)
		return depth;
	frames[depth] = frame_make(FRAME_SPECIAL, target->gc_symbol, 0);
	return depth + 1;
}

void run_close(struct target *target, struct thread *t)
{
	uint32_t depth;

	still_account(target, t);
	if (t->run.count == 0)
		return;
	depth = with_special_frames(target, t->run.status, t->frames, t->depth);
	account(target, t, &t->run, write_stack(target, t, &t->run, t->frames, depth));
	t->run.count = 0;
}

void runs_close_all(struct target *target)
{
	for (uint32_t i = 0; i < target->thread_count; i++)
		run_close(target, target->threads[i]);
}

void run_close_if_due(struct target *target, struct thread *t, uint64_t now_ns)
{
	still_account(target, t);
	if (t->run.count > 0 && now_ns - t->run.t_first_ns >= RUN_NS)
		run_close(target, t);
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
	held_forget(target);
	for (uint32_t i = 0; i < target->thread_count; i++)
		target->threads[i]->sent_depth = target->threads[i]->last.depth = target->threads[i]->last_plain = 0;
	codes_drop_retired(target->codes);
	symtab_flush_forgotten(target->symbols, target->ring);
	still_wake_all(target); /* what is written of them next is decoded anew */
}

static struct frame decode(struct target *target, const struct pyframe *raw, uint64_t now_ns)
{
	struct code *code = codes_find(target->codes, raw->code);

	if (!code)
		code = codes_find_retired(target->codes, raw->code);
	if (!code)
		return frame_make(FRAME_SPECIAL, raw->code ? target->unreadable_symbol : target->truncated_symbol, 0);
	code->used_ns = now_ns;
	return frame_make(FRAME_PYTHON, code->symbol, code_line(code, raw->offset));
}

/* Too deep to keep whole: the root side goes, and a special frame stands for it. */
static uint16_t cut_to_bound(struct pystack *stack)
{
	uint32_t extra = stack->depth > REC_DEPTH_MAX - 2 ? stack->depth - (REC_DEPTH_MAX - 2) : 0;

	if (!extra)
		return 0;
	memmove(stack->frames + 1, stack->frames + extra + 1, (stack->depth - extra - 1) * sizeof(*stack->frames));
	stack->frames[0] = (struct pyframe){0};
	stack->depth -= extra;
	return STACK_TRUNCATED;
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

	if (t->run.count > 0 && !(t->run.status & gil) && (t->run.status & STATUS_ON_CPU) && (status & gil) &&
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

void run_add(struct target *target, struct thread *t, uint16_t status, uint64_t now_ns, uint64_t weight_ns)
{
	uint16_t flags = cut_to_bound(&t->seen);
	uint32_t depth = t->seen.depth, most = depth < t->last.depth ? depth : t->last.depth;
	uint32_t same = flags & STACK_TRUNCATED ? 0 : t->same;
	bool changed = depth != t->depth || t->run.count == 0 || status != t->run.status || flags != t->run.flags;
	struct pystack swap;

	mend_status(t, status);
	if (!grow_frames(&t->frames, &t->room, depth + 1)) {
		target->facts.lost[LOSS_DROPPED]++;
		target->facts.unsampled_ns += weight_ns;
		return;
	}
	while (same < most && t->seen.frames[same].code == t->last.frames[same].code &&
	       t->seen.frames[same].offset == t->last.frames[same].offset)
		same++;
	for (uint32_t i = same; i < depth; i++) {
		struct frame frame = decode(target, &t->seen.frames[i], now_ns);

		if (!changed && memcmp(&frame, &t->frames[i], sizeof(frame)) == 0)
			continue;
		if (!changed || i == same) {
			run_close(target, t); /* while the old frames still stand */
			changed = true;
		}
		t->frames[i] = frame;
	}
	if (changed && t->run.count > 0)
		run_close(target, t);
	if (depth > 0) {
		t->empty_tick = 0;
		t->begun = true;
	}
	swap = t->last;
	t->last = t->seen;
	t->last_plain = flags & STACK_TRUNCATED ? 0 : t->seen_plain;
	t->seen = swap;
	t->depth = depth;
	if (t->run.count == 0)
		t->run = (struct run){.status = status, .flags = flags, .t_first_ns = now_ns};
	t->run.count++;
	t->run.weight_ns += weight_ns;
	t->run.t_last_ns = now_ns;
}

void run_add_other(struct target *target, struct thread *t, struct pystack *stack, struct run *run)
{
	struct frame *frames = NULL;
	uint32_t room = 0, depth;

	run->flags = cut_to_bound(stack);
	if (!grow_frames(&frames, &room, stack->depth + 1)) {
		account(target, t, run, false);
		return;
	}
	for (uint32_t i = 0; i < stack->depth; i++)
		frames[i] = decode(target, &stack->frames[i], run->t_last_ns);
	run_close(target, t);
	depth = with_special_frames(target, run->status, frames, stack->depth);
	account(target, t, run, write_stack(target, t, run, frames, depth));
	free(frames);
}

void run_add_held(struct target *target, const struct held *held, struct pystack *stack)
{
	struct run run = {.count = held->count,
	                  .status = held->status,
	                  .t_first_ns = held->t_first_ns,
	                  .t_last_ns = held->t_last_ns,
	                  .weight_ns = held->weight_ns};

	for (uint32_t i = 0; i < target->thread_count; i++) {
		if (target->threads[i]->id == held->thread) {
			run_add_other(target, target->threads[i], stack, &run);
			return;
		}
	}
	target->facts.lost[LOSS_GONE] += held->count;
	target->facts.unsampled_ns += held->weight_ns;
}
