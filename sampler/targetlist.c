/* SPDX-License-Identifier: Apache-2.0 */
/* Which interpreters and threads a target has. The lists are walked when the copy of a tick shows that they changed,
 * and now and then. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sampler/current.h"
#include "sampler/exact.h"
#include "sampler/host.h"
#include "sampler/still.h"
#include "sampler/pyobj.h"
#include "sampler/target.h"

#define INTERPS_MAX 256u
#define THREADS_MAX 16384u
/* The count of freed code objects is read again after this part of the time for which it has stood still: a segment of each
 * read is much, and where code comes and goes it is read every time all the same. */
#define GENERATION_PART 1000
#define NAMES_A_TICK                                                                                                   \
	8u /* names are found by walking dictionaries: some 10 to 20 µs each, and as much for all of them */
#define NAME_LOOKS    32u              /* threads looked at a tick */
#define NAME_RETRY_NS (50 * NS_PER_MS) /* then twice as long each time */
#define NAME_RENEW_NS (10 * NS_PER_S)

static uint32_t next_thread_id(void)
{
	static atomic_uint next;

	/* relaxed: only uniqueness matters */
	return atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) + 1;
}

static uint64_t native_id(const struct pyabi *abi, const uint8_t *head)
{
	return abi->tstate.native_thread_id != ABSENT ? frame_u64(head, abi->tstate.native_thread_id) : 0;
}

bool target_is_same_thread(const struct pyabi *abi, const struct thread *t, const uint8_t *head)
{
	return frame_u64(head, abi->tstate.thread_id) == t->thread_id && native_id(abi, head) == t->native_id;
}

/* The tid in our pid namespace; 0: could not be found out. */
static pid_t find_tid(const struct target *target, const uint8_t *head)
{
	const struct pyabi *abi = &target->proc.abi;
	pid_t ns_tid = abi->tstate.native_thread_id != ABSENT ? (pid_t)native_id(abi, head) : -1;

	return host_of(&target->remote)
	        ->find_tid(&target->remote, target->proc.ns_pid, frame_u64(head, abi->tstate.thread_id), ns_tid);
}

/* Opens what the kernel says of the thread, and notes what it has used so far. */
static void ask_about(const struct target *target, struct thread *t)
{
	host_of(&target->remote)->open_oncpu(&target->remote, &t->oncpu, t->tid);
	if (target->options && target->options->cpu_time)
		cputime_begin(&t->cputime, target->proc.pid, t->tid, clock_now_ns());
}

static struct thread *thread_new(struct target *target, const struct thread *of)
{
	struct thread *t;

	if (target->thread_count == target->thread_room) {
		uint32_t room = target->thread_room ? 2 * target->thread_room : 16;
		struct thread **threads = realloc(target->threads, room * sizeof(struct thread *));

		if (!threads)
			return NULL;
		target->threads = threads;
		target->thread_room = room;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	*t = *of;
	target->tids_known |= t->tid > 0;
	t->id = next_thread_id();
	ask_about(target, t);
	target->threads[target->thread_count++] = t;
	return t;
}

static void thread_free(struct thread *t)
{
	thread_release(t);
	free(t);
}

void target_free_threads(struct target *target)
{
	for (uint32_t i = 0; i < target->thread_count; i++)
		thread_free(target->threads[i]);
	free(target->threads);
	free(target->awake);
	target->awake = target->threads = NULL;
	target->awake_count = target->awake_room = 0;
	target->thread_count = target->thread_room = 0;
}

/* Puts a thread found in the list at its place in the same order. */
static int place_thread(struct target *target, uint32_t at, raddr_t tstate, raddr_t interp, const uint8_t *head)
{
	const struct pyabi *abi = &target->proc.abi;
	struct thread *t = NULL;
	uint32_t found;

	for (found = at; found < target->thread_count; found++) {
		struct thread *candidate = target->threads[found];

		if (candidate->tstate == tstate && candidate->interp == interp &&
		    target_is_same_thread(abi, candidate, head)) {
			t = candidate;
			break;
		}
	}
	if (!t) {
		t = thread_new(target, &(struct thread){.tstate = tstate,
		                                        .interp = interp,
		                                        .thread_id = frame_u64(head, abi->tstate.thread_id),
		                                        .native_id = native_id(abi, head),
		                                        .tid = find_tid(target, head)});
		if (!t)
			return -ENOMEM;
		found = target->thread_count - 1;
	}
	memmove(&target->threads[at + 1], &target->threads[at], (found - at) * sizeof(struct thread *));
	target->threads[at] = t;
	if (t->tid == 0 && !t->unplaced) { /* not bound to a system thread yet at the last look */
		t->tid = find_tid(target, head);
		if (t->tid > 0) {
			oncpu_release(&t->oncpu);
			ask_about(target, t);
			target->tids_known = true;
		}
	}
	return 0;
}

static int list_threads(struct target *target, const struct interp *interp, uint32_t *count)
{
	const struct pyabi *abi = &target->proc.abi;
	raddr_t tstate;
	int err = remote_read_u64(&target->remote, interp->addr + (uint64_t)abi->interp.threads, &tstate);

	while (!err && tstate != 0) {
		uint8_t head[PYABI_TSTATE_MAX];

		if (*count == THREADS_MAX)
			return -EPROTO;
		err = remote_read(&target->remote, tstate, head, (size_t)abi->tstate.bytes);
		if (err)
			break;
		if (frame_u64(head, abi->tstate.interp) != interp->addr)
			return -EAGAIN;
		/* An idle state with the creator's ids and no frame, as 3.8 to 3.12 make for subinterpreters, has an empty stack. */
		err = place_thread(target, *count, tstate, interp->addr, head);
		if (err)
			break;
		++*count;
		tstate = frame_u64(head, abi->tstate.next);
	}
	return err == -EFAULT ? -EAGAIN : err;
}

static raddr_t gil_of(const struct target *target, raddr_t interp)
{
	raddr_t gil = target->proc.gil;

	if (target->proc.abi.gil == GIL_INTERPRETER &&
	    remote_read_u64(&target->remote, interp + (uint64_t)target->proc.abi.interp.gil, &gil) != 0)
		return 0;
	return gil;
}

static int list_interps(struct target *target)
{
	const struct pyabi *abi = &target->proc.abi;
	struct interp found[INTERPS_MAX];
	uint32_t count = 0;
	raddr_t at;
	int err = remote_read_u64(&target->remote, target->proc.interp_head, &at);

	while (!err && at != 0) {
		const struct interp *known;
		int64_t id = 0;

		if (count == INTERPS_MAX)
			return -EPROTO;
		if (abi->interp.id != ABSENT)
			err = remote_read_u64(&target->remote, at + (uint64_t)abi->interp.id, (uint64_t *)&id);
		else
			id = count;
		known = target_interp(target, at);
		found[count] = known ? *known : (struct interp){.addr = at};
		found[count].gil = gil_of(target, at);
		found[count++].id = id;
		if (!err)
			err = remote_read_u64(&target->remote, at + (uint64_t)abi->interp.next, &at);
	}
	if (err)
		return err == -EFAULT ? -EAGAIN : err;
	if (count != target->interp_count) {
		struct interp *interps = realloc(target->interps, (count ? count : 1) * sizeof(*interps));

		if (!interps)
			return -ENOMEM;
		target->interps = interps;
		target->interp_count = count;
	}
	memcpy(target->interps, found, count * sizeof(*found));
	return 0;
}

/* The last in the list is a thread no more. */
static void drop_last(struct target *target)
{
	struct thread *gone = target->threads[target->thread_count - 1];

	exact_end(target, gone, true);
	run_close(target, gone);
	thread_end(target, gone);
	target->thread_count--;
	thread_free(gone);
}

/* Another system thread runs the state from now on. */
static int hand_over(struct target *target, uint32_t at, pid_t tid)
{
	struct thread *t = target->threads[at];
	struct thread *next = thread_new(target, &(struct thread){.tstate = t->tstate,
	                                                          .interp = t->interp,
	                                                          .thread_id = t->thread_id,
	                                                          .native_id = t->native_id,
	                                                          .tid = tid,
	                                                          .unplaced = tid == 0,
	                                                          .place = t->place,
	                                                          .place_word = t->place_word,
	                                                          .stack_from = t->stack_from,
	                                                          .stack_to = t->stack_to,
	                                                          .t_sought_ns = t->t_sought_ns});

	if (!next)
		return -ENOMEM;
	target->threads[at] = next;
	target->threads[target->thread_count - 1] = t;
	drop_last(target);
	return 0;
}

/* Finds out which system threads run the states whose ids do not say it. */
static int place_foreign(struct target *target, uint64_t now_ns)
{
	pid_t tid;
	int err = 0;

	for (uint32_t i = 0; !err && i < target->thread_count; i++)
		if (current_is_foreign(target, target->threads[i]) &&
		    current_find(target, target->threads[i], now_ns, &tid) && tid != target->threads[i]->tid)
			err = hand_over(target, i, tid);
	return err ? err : current_arrange(target);
}

int target_list(struct target *target, uint64_t now_ns)
{
	uint32_t count = 0;
	int err;

	still_wake_all(target); /* from time to time all are read, whatever the GIL says */
	target->awake_stale = true;
	err = list_interps(target);
	for (uint32_t i = 0; !err && i < target->interp_count; i++)
		err = list_threads(target, &target->interps[i], &count);
	if (err)
		return err;
	/* What was not met any more has ended. */
	while (target->thread_count > count)
		drop_last(target);
	target->t_listed_ns = now_ns;
	if (!target->tids_known && target->tids_sought < TIDS_SOUGHT_MAX)
		target->tids_sought++;
	return place_foreign(target, now_ns);
}

struct interp *target_interp(const struct target *target, raddr_t addr)
{
	for (uint32_t i = 0; i < target->interp_count; i++)
		if (target->interps[i].addr == addr)
			return &target->interps[i];
	return NULL;
}

bool target_generation_is_due(const struct target *target, raddr_t interp, uint64_t now_ns)
{
	const struct interp *of = target_interp(target, interp);

	return target->proc.abi.interp.code_generation != ABSENT && of &&
	       now_ns - of->t_generation_ns >= (of->t_generation_ns - of->t_freed_ns) / GENERATION_PART;
}

uint32_t target_plan_generation(const struct target *target, raddr_t interp, struct plan *plan, uint64_t now_ns)
{
	return target_generation_is_due(target, interp, now_ns)
	               ? plan_add(plan, interp + (uint64_t)target->proc.abi.interp.code_generation, 8)
	               : PLAN_FULL;
}

uint64_t target_generation(const struct target *target, raddr_t interp, const struct plan *plan, uint32_t piece)
{
	const struct interp *of = target_interp(target, interp);
	const uint8_t *bytes = plan_bytes(plan, piece);

	if (piece == PLAN_FULL)
		return of ? of->generation : 0;
	/* 0 is kept for "none"; a count that cannot be read vouches for nothing. */
	return bytes ? frame_u64(bytes, 0) + 1 : 0;
}

void target_take_generation(const struct target *target, raddr_t interp, const struct plan *plan, uint32_t piece,
                            uint64_t now_ns)
{
	struct interp *of = target_interp(target, interp);
	uint64_t generation = target_generation(target, interp, plan, piece);

	if (!of || piece == PLAN_FULL)
		return;
	if (now_ns < of->t_generation_ns) /* a look on the target's CPU comes before the tick's own read, and knows a later time */
		now_ns = of->t_generation_ns;
	if (generation != of->generation || generation == 0)
		of->t_freed_ns = now_ns;
	of->generation = generation;
	of->t_generation_ns = now_ns;
}

bool target_list_changed(const struct target *target)
{
	const struct pyabi *abi = &target->proc.abi;
	uint32_t k = 0;

	for (uint32_t i = 0; i < target->interp_count; i++) {
		const uint8_t *first = plan_bytes(&target->plan, target->interps[i].piece_threads);
		raddr_t expect;

		if (!first) {
			if (target->interps[i].piece_threads != PLAN_FULL)
				return true;
			while (k < target->thread_count && target->threads[k]->interp == target->interps[i].addr)
				k++;
			continue;
		}
		expect = frame_u64(first, 0);
		for (; k < target->thread_count && target->threads[k]->interp == target->interps[i].addr; k++) {
			const struct thread *t = target->threads[k];
			bool last = k + 1 == target->thread_count || target->threads[k + 1]->interp != t->interp;
			const uint8_t *head;

			if (expect == t->tstate &&
			    t->still) { /* neither it nor who comes behind it went without its moving */
				expect = last ? 0 : target->threads[k + 1]->tstate;
				continue;
			}
			head = plan_bytes(&target->plan, t->copy.head);

			if (expect != t->tstate || !head || !target_is_same_thread(abi, t, head))
				return true;
			expect = frame_u64(head, abi->tstate.next);
		}
		if (expect != 0)
			return true;
	}
	return k != target->thread_count;
}

static void take_name(struct target *target, struct thread *t, raddr_t object)
{
	char name[sizeof(t->name)];

	if (object == 0 || pyobj_thread_name(&target->remote, &target->proc.abi, object, name, sizeof(name)) <= 0)
		return;
	command_line_show(name, sizeof(name), name, strlen(name), COMMAND_LINE_FULL); /* some have what they do as a name */
	if (strcmp(name, t->name) == 0)
		return;
	memcpy(t->name, name, sizeof(name));
	t->announced = false; /* again, with its name, before its next stack */
	for (struct thread *other = t->sibling; other && other != t; other = other->sibling)
		other->announced = false;
}

static bool is_name_due(const struct thread *t, uint64_t now_ns)
{
	return t->name_checked_ns == 0 || now_ns - t->name_checked_ns >= t->name_wait_ns;
}

void target_name_threads(struct target *target, uint64_t now_ns)
{
	struct thread *due[NAMES_A_TICK];
	uint64_t idents[NAMES_A_TICK];
	raddr_t objects[NAMES_A_TICK];
	uint32_t count = 0;

	for (uint32_t i = 0; i < target->thread_count && i < NAME_LOOKS && count < NAMES_A_TICK; i++) {
		struct thread *t = target->threads[target->name_next++ % target->thread_count];

		if (!is_name_due(t, now_ns) || (count > 0 && t->interp != due[0]->interp))
			continue;
		t->name_checked_ns = now_ns;
		t->name_wait_ns = t->name[0] ? NAME_RENEW_NS : t->name_wait_ns ? 2 * t->name_wait_ns : NAME_RETRY_NS;
		if (t->name_wait_ns > NAME_RENEW_NS)
			t->name_wait_ns = NAME_RENEW_NS;
		due[count] = t;
		idents[count++] = t->thread_id;
	}
	if (count == 0 ||
	    pyobj_find_threads(&target->remote, &target->proc.abi, due[0]->interp, idents, objects, count) <= 0)
		return;
	for (uint32_t i = 0; i < count; i++)
		take_name(target, due[i], objects[i]);
}
