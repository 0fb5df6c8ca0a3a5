/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/values/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sampler/target.h"
#include "sampler/values/locals.h"

enum {
	PASSES_MOVING = 3,
	READS_MAX = 1 << 22, /* of a dump: seconds */
	CHAIN_SPARE = 64, /* frames that a thread may have entered since */
};

#define BYTES_MAX (UINT64_C(64) << 20)

static const struct value_limits limits[] = {
	[VALUES_SHORT] = {.points = 200, .items = 20, .depth = 4, .bytes = 1000, .reads = 4000, .attributes = false},
	[VALUES_LONG] = {.points = VALUE_POINTS_MAX, .items = 200, .depth = VALUE_DEPTH_MAX, .bytes = 16000, .reads = 40000, .attributes = true},
};

bool values_supported(const struct pyproc *proc)
{
	return pyobjects_of(&proc->abi) != NULL;
}

static void release_frame(struct frame_locals *frame)
{
	for (uint32_t i = 0; i < frame->count; i++) {
		free(frame->items[i].name);
		free(frame->items[i].value);
		free(frame->items[i].type);
	}
	free(frame->items);
	frame->items = NULL;
	frame->count = frame->room = 0;
}

static void release_thread(struct thread_locals *thread)
{
	for (uint32_t i = 0; i < thread->count; i++)
		release_frame(&thread->frames[i]);
	free(thread->frames);
	thread->frames = NULL;
	thread->count = 0;
}

void values_release(struct values *values)
{
	for (uint32_t i = 0; i < values->count; i++)
		release_thread(&values->threads[i]);
	free(values->threads);
	values->threads = NULL;
	values->count = 0;
	quiet_release(&values->before);
	quiet_release(&values->after);
}

static struct thread_locals *find(const struct values *values, uint32_t thread)
{
	for (uint32_t i = 0; i < values->count; i++)
		if (values->threads[i].thread == thread)
			return &values->threads[i];
	return NULL;
}

const struct thread_locals *values_of(const struct values *values, uint32_t thread)
{
	return find(values, thread);
}

/* An empty place for a thread's. */
static struct thread_locals *place(struct values *values, uint32_t thread)
{
	struct thread_locals *found = find(values, thread), *threads;

	if (found) {
		release_thread(found);
		return found;
	}
	threads = realloc(values->threads, (values->count + 1) * sizeof(*threads));
	if (!threads) {
		values->err = -ENOMEM;
		return NULL;
	}
	values->threads = threads;
	found = &threads[values->count++];
	*found = (struct thread_locals){.thread = thread};
	return found;
}

static void count_bytes(struct values *values, const struct frame_locals *frame)
{
	for (uint32_t i = 0; i < frame->count; i++)
		values->bytes += strlen(frame->items[i].value);
}

static int current_frame(const struct target *target, const struct thread *t, raddr_t *ret_frame)
{
	const struct pyabi *abi = &target->proc.abi;
	raddr_t cframe;
	int err;

	if (abi->tstate.frame != ABSENT)
		return remote_read_u64(&target->remote, t->tstate + (raddr_t)abi->tstate.frame, ret_frame);
	err = remote_read_u64(&target->remote, t->tstate + (raddr_t)abi->tstate.cframe, &cframe);
	return err ? err : remote_read_u64(&target->remote, cframe + (raddr_t)abi->tstate.cframe_frame, ret_frame);
}

/* Of a thread that runs, a frame may have been left, and what it held be freed, while it was read: only those are believed that the thread is in still. */
static void drop_left(const struct target *target, const struct thread *t, struct thread_locals *to)
{
	uint32_t below = to->count, most = 2 * to->count + CHAIN_SPARE; /* frames from `below` on are settled */
	raddr_t frame = 0;
	int err = current_frame(target, t, &frame);

	for (uint32_t steps = 0; !err && frame_may_be(frame) && below > 0 && steps < most; steps++) {
		uint32_t k = below;

		while (k > 0 && to->frames[k - 1].frame != frame)
			k--;
		if (k > 0) { /* those between were left */
			while (below > k)
				to->frames[--below].gone = true;
			below--;
		}
		err = remote_read_u64(&target->remote, frame + (raddr_t)target->proc.abi.frame.previous, &frame);
	}
	while (below > 0)
		to->frames[--below].gone = true;
}

static void take_frames(struct values *values, const struct target *target, const struct pystack *stack, enum values_stand stand,
                        struct thread_locals *to)
{
	struct value_reader reader = {.remote = &target->remote,
	                              .abi = &target->proc.abi,
	                              .objects = pyobjects_of(&target->proc.abi),
	                              .limits = &limits[values->options.level],
	                              .secrets = values->options.secrets};

	for (uint32_t i = 0; reader.objects && i < stack->depth; i++) {
		const struct pyframe *frame = &stack->frames[i];
		const struct code *code = frame->code && !frame->mapping ? codes_find(target->codes, frame->code) : NULL;
		struct frame_locals *locals = &to->frames[to->count];

		if (!code)
			continue;
		to->count++;
		*locals = (struct frame_locals){.frame = frame->frame, .symbol = code->symbol, .line = code_line(code, frame->offset)};
		if (values->reads >= READS_MAX || values->bytes >= BYTES_MAX) {
			locals->left_out = 1;
			continue;
		}
		values->reads += locals_read(&reader, frame->frame, frame->code, stand == STAND_MOVING ? PASSES_MOVING : 1, locals);
		count_bytes(values, locals);
	}
}

void values_take(struct values *values, const struct target *target, const struct thread *t, const struct pystack *stack,
                 enum values_stand stand)
{
	struct thread_locals *to = place(values, t->id);

	if (!to)
		return;
	to->stopped = to->whole = stand == STAND_STOPPED;
	to->frames = calloc(stack->depth + (size_t)1, sizeof(*to->frames));
	if (!to->frames) {
		values->err = -ENOMEM;
		return;
	}
	take_frames(values, target, stack, stand, to);
	for (uint32_t i = 0; i < to->count; i++)
		to->whole &= !to->frames[i].gone;
	if (stand == STAND_MOVING)
		drop_left(target, t, to);
}

/* Only the holder of the GIL changes objects: where it stands, all do. 0: nobody holds it, there are several, or it is not known; then all threads have to
 * stand. */
static pid_t holder_of(const struct target *target)
{
	const struct thread *holder = target->interp_count == 1 ? near_find_holder(target) : NULL;

	return holder ? holder->tid : 0;
}

static void look(struct values *values, const struct target *target)
{
	values->holder = holder_of(target);
	if (quiet_look(&values->before, target->proc.pid, values->holder) != 0 || holder_of(target) != values->holder)
		values->before.stands = false;
}

void values_begin(struct values *values, const struct target *target, bool go)
{
	cpu_set_t there;

	if (target->remote.core)
		return;
	look(values, target);
	if (values->before.stands || !go || values->before.cpu < 0 || values->before.cpu >= CPU_SETSIZE)
		return;
	CPU_ZERO(&there);
	CPU_SET((size_t)values->before.cpu, &there);
	if (!values->went && sched_getaffinity(0, sizeof(values->cpus), &values->cpus) != 0)
		return;
	values->went |= sched_setaffinity(0, sizeof(there), &there) == 0;
	look(values, target);
}

void values_leave(struct values *values)
{
	if (values->went)
		sched_setaffinity(0, sizeof(values->cpus), &values->cpus);
	values->went = false;
}

static void take_others(struct values *values, const struct target *target, enum values_stand stand)
{
	for (uint32_t i = 0; i < target->thread_count; i++) {
		const struct thread *t = target->threads[i];
		struct thread_locals *known = find(values, t->id);

		if (known && known->stopped)
			continue;
		values_take(values, target, t, &t->last, stand);
		known = find(values, t->id);
		if (known)
			known->stopped = false;
	}
}

bool values_take_all(struct values *values, const struct target *target, bool last)
{
	if (target->remote.core || values->before.stands)
		take_others(values, target, STAND_STOPPED);
	if (target->remote.core || (values->before.stands && quiet_look(&values->after, target->proc.pid, values->holder) == 0 &&
	                            quiet_stood(&values->before, &values->after) && holder_of(target) == values->holder))
		return true;
	if (last)
		take_others(values, target, STAND_MOVING);
	return last;
}
