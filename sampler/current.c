/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/current.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "sampler/host.h"
#include "sampler/target.h"

#define FRAMES_MAX  20000u
#define STACK_BYTES (256u << 10) /* of a C stack that are looked through: a subinterpreter is entered near its thread's begin */
#define PIECE_BYTES 4096u
#define MAIN_STACK_BYTES (8u << 20) /* a main thread may have, unless ulimit -s says more */
#define AGAIN_NS    (100 * NS_PER_MS) /* what was not found is looked for again */

bool current_is_foreign(const struct target *target, const struct thread *t)
{
	const struct pyabi *abi = &target->proc.abi;

	return (abi->frames == FRAMES_HEAP || abi->tstate.cframe != ABSENT) && target->interp_count > 1 &&
	       t->interp != target->interps[target->interp_count - 1].addr; /* the list ends with the main interpreter */
}

static raddr_t word_at(const struct target *target, raddr_t at)
{
	raddr_t word;

	return remote_read_u64(&target->remote, at, &word) == 0 ? word : 0;
}

/* To 3.10: the outermost frame; 0: there is none. */
static raddr_t outermost_frame(const struct target *target, const struct thread *t)
{
	const struct pyabi *abi = &target->proc.abi;
	raddr_t frame = word_at(target, t->tstate + (uint64_t)abi->tstate.frame), back = frame;

	for (uint32_t i = 0; back != 0 && i < FRAMES_MAX; i++) {
		frame = back;
		back = word_at(target, frame + (uint64_t)abi->frame.previous);
	}
	return frame;
}

/* 3.13 and later: the first frame on the data stack links to the shim that the interpreter's loop was entered by. */
static raddr_t entry_shim(const struct target *target, const struct thread *t)
{
	const struct pyabi *abi = &target->proc.abi;
	raddr_t frame = word_at(target, t->tstate + (uint64_t)abi->tstate.frame);
	raddr_t chunk = word_at(target, t->tstate + (uint64_t)abi->tstate.chunk), before = chunk;

	if (frame == 0 || chunk == 0 ||
	    (abi->tstate.base_frame != ABSENT && frame == word_at(target, t->tstate + (uint64_t)abi->tstate.base_frame)))
		return 0;
	for (uint32_t i = 0; before != 0 && i < CHUNKS_MAX; i++) {
		chunk = before;
		before = word_at(target, chunk);
	}
	return word_at(target, chunk + CHUNK_FIRST + (uint64_t)abi->frame.previous);
}

static bool has_heap_frames(const struct target *target, const struct thread *t)
{
	return word_at(target, t->tstate + (uint64_t)target->proc.abi.tstate.frame) != 0;
}

/* To 3.10: whether another state with its ids has frames, so that one of the two may be another thread's. Else ids are believed: mod_wsgi makes a
 * state for each thread and interpreter, and each request is a new outermost frame. */
static bool has_rival(const struct target *target, const struct thread *t)
{
	for (uint32_t i = 0; i < target->thread_count; i++) {
		const struct thread *other = target->threads[i];

		if (other != t && other->thread_id == t->thread_id && has_heap_frames(target, other))
			return true;
	}
	return false;
}

/* An address on the C stack, in what runs the state's frames; 0: it has none. To 3.10 the main interpreter's are taken for the outermost. */
static raddr_t place_now(const struct target *target, const struct thread *t)
{
	const struct pyabi *abi = &target->proc.abi;
	raddr_t place;

	if (abi->frames == FRAMES_HEAP) {
		if (!has_heap_frames(target, t))
			return 0;
		return !current_is_foreign(target, t) ? UINT64_MAX : t->place ? t->place : 1;
	}
	if (abi->tstate.cframe == ABSENT)
		return entry_shim(target, t);
	place = word_at(target, t->tstate + (uint64_t)abi->tstate.cframe);
	return place - t->tstate < PYABI_TSTATE_MAX ? 0 : place; /* without frames it is a part of the state */
}

/* 3.11 and 3.12: the outermost cframe on the C stack; the last is a part of the state. */
static raddr_t outermost_cframe(const struct target *target, const struct thread *t)
{
	const struct pyabi *abi = &target->proc.abi;
	raddr_t place = 0, next = word_at(target, t->tstate + (uint64_t)abi->tstate.cframe);

	for (uint32_t i = 0; next != 0 && next - t->tstate >= PYABI_TSTATE_MAX && i < FRAMES_MAX; i++) {
		place = next;
		next = word_at(target, place + (uint64_t)abi->tstate.cframe_frame + 8); /* struct _PyCFrame, previous: Include/cpython/pystate.h */
	}
	return place;
}

raddr_t current_entry(const struct target *target, const struct thread *t)
{
	if (target->proc.abi.frames == FRAMES_HEAP)
		return 0;
	return target->proc.abi.tstate.cframe == ABSENT ? entry_shim(target, t) : outermost_cframe(target, t);
}

/* Whether it still runs where it was found. */
static bool is_there(const struct target *target, const struct thread *t, raddr_t place)
{
	if (target->proc.abi.frames == FRAMES_HEAP)
		return t->place != 0 && word_at(target, t->place) == t->place_word;
	return place >= t->stack_from && place < t->stack_to;
}

/* Whether it has frames, and does not run where it was found. */
static bool is_elsewhere(const struct target *target, const struct thread *t)
{
	raddr_t place = place_now(target, t);

	if (place == 0 || is_there(target, t, place))
		return false;
	return target->proc.abi.frames == FRAMES_STACK || has_rival(target, t);
}

struct stack_search {
	raddr_t place; /* 0: the main thread's stack is asked for */
	raddr_t from, to;
	bool is_main;
};

static int find_mapping(void *context, const struct proc_map *map)
{
	struct stack_search *search = context;
	bool is_main = strcmp(map->path, "[stack]") == 0;

	if (search->place ? search->place < map->start || search->place >= map->end : !is_main)
		return 0;
	search->from = map->start;
	search->to = map->end;
	search->is_main = is_main;
	return 1;
}

/* Where a blocked thread, or one in a core, has its stack pointer; 0: not known. */
static raddr_t stack_pointer(const struct target *target, struct thread *of)
{
	struct unwind_regs regs;
	uint64_t sp, pc;

	if (host_of(&target->remote)->registers(&target->remote, of->tid, &regs) && unwind_knows(&regs, UNWIND_SP))
		return regs.values[UNWIND_SP];
	return oncpu_ask(&of->oncpu, clock_now_ns()) == 0 && oncpu_place(&of->oncpu, &sp, &pc) ? sp : 0;
}

/* The end of the pages that can be read from there on: a core does not name the main thread's stack. */
static raddr_t readable_to(const struct target *target, raddr_t from)
{
	raddr_t to = from & ~(raddr_t)(PIECE_BYTES - 1), most = to + MAIN_STACK_BYTES;
	uint64_t word;

	while (from != 0 && to < most && remote_read_u64(&target->remote, to, &word) == 0)
		to += PIECE_BYTES;
	return to;
}

/* Whether it is on the main thread's stack in a core; then where that is. */
static bool is_on_main_stack(const struct target *target, struct stack_search *search)
{
	struct unwind_regs regs;
	raddr_t from, to;

	if (!host_of(&target->remote)->registers(&target->remote, target->proc.pid, &regs) || !unwind_knows(&regs, UNWIND_SP))
		return false;
	from = regs.values[UNWIND_SP];
	to = readable_to(target, from);
	if (search->place < from || search->place >= to)
		return false;
	search->from = from;
	search->to = to;
	return true;
}

/* The thread whose pthread_self() is the next above, in the same mapping: a C library puts that at the end of a thread's stack. */
static pid_t tid_by_address(struct target *target, struct thread *t, raddr_t place)
{
	struct stack_search search = {.place = place, .to = UINT64_MAX};
	const struct thread *nearest = NULL;

	(void)host_of(&target->remote)->maps_each(&target->remote, find_mapping, &search);
	if (target->remote.core) {
		search.is_main = is_on_main_stack(target, &search);
		if (!search.is_main)
			search.to = UINT64_MAX;
	}
	for (uint32_t i = 0; i < target->thread_count; i++) {
		const struct thread *one = target->threads[i];

		if (one->tid > 0 && one->thread_id >= place && one->thread_id < search.to &&
		    (!nearest || one->thread_id < nearest->thread_id))
			nearest = one;
	}
	t->stack_from = search.from;
	t->stack_to = nearest && !search.is_main ? nearest->thread_id : search.to;
	if (search.is_main)
		return target->proc.pid;
	return nearest ? nearest->tid : 0;
}

/* Where a C stack holds the word, the outermost place; 0: nowhere. */
static raddr_t find_word(const struct target *target, raddr_t from, raddr_t to, uint64_t word)
{
	uint64_t words[PIECE_BYTES / 8];

	for (raddr_t end = to & ~(raddr_t)(PIECE_BYTES - 1); to > from && to - from <= STACK_BYTES;
	     to = end, end -= PIECE_BYTES) {
		size_t count = (size_t)(to - end) / 8;

		if (count > 0 && remote_read(&target->remote, end, words, 8 * count) != 0)
			return 0;
		while (count-- > 0)
			if (words[count] == word && end + 8 * count >= from)
				return end + 8 * count;
	}
	return 0;
}

/* Looks for the word on the used part of a thread's C stack, or, where it runs, on all of it. */
static raddr_t find_on_stack(struct target *target, struct thread *of, const struct stack_search *main_stack, uint64_t word)
{
	raddr_t sp = stack_pointer(target, of), to = of->thread_id, from;

	if (of->tid == target->proc.pid)
		to = main_stack->to ? main_stack->to : readable_to(target, sp);
	from = to - STACK_BYTES;
	return find_word(target, sp > from && sp < to ? sp : from, to, word);
}

/* The one thread on whose C stack its outermost frame is found. */
static pid_t tid_by_frame(struct target *target, struct thread *t)
{
	struct stack_search main_stack = {0};
	raddr_t frame = outermost_frame(target, t);
	pid_t tid = 0;

	t->place = 0;
	t->place_word = frame;
	(void)host_of(&target->remote)->maps_each(&target->remote, find_mapping, &main_stack);
	for (uint32_t i = 0; i < target->thread_count; i++) {
		struct thread *one = target->threads[i];
		raddr_t place;

		if (one->tid <= 0 || current_is_foreign(target, one))
			continue;
		place = find_on_stack(target, one, &main_stack, frame);
		if (place == 0 || one->tid == tid)
			continue;
		if (tid != 0) { /* one of them is what an earlier call has left there */
			t->place = 0;
			return 0;
		}
		t->place = place;
		tid = one->tid;
	}
	return tid;
}

bool current_find(struct target *target, struct thread *t, uint64_t now_ns, pid_t *ret_tid)
{
	if (!is_elsewhere(target, t))
		return false;
	t->t_sought_ns = now_ns;
	*ret_tid = target->proc.abi.frames == FRAMES_HEAP ? tid_by_frame(target, t) : tid_by_address(target, t, place_now(target, t));
	return true;
}

int current_arrange(struct target *target)
{
	struct thread **latest;
	uint32_t room = 16;

	while (room < 2 * target->thread_count)
		room *= 2;
	latest = calloc(room, sizeof(struct thread *)); /* of each system thread */
	if (!latest)
		return -ENOMEM;
	target->shared_count = 0;
	for (uint32_t i = 0; i < target->thread_count; i++) {
		struct thread *t = target->threads[i], *before;
		uint32_t at = (uint32_t)hash_u64((uint64_t)t->tid) & (room - 1);

		t->sibling = NULL;
		t->foreign = current_is_foreign(target, t);
		t->eldest = true;
		t->outer = t->nested = false;
		target->shared_count += t->foreign;
		if (t->tid <= 0)
			continue;
		while (latest[at] && latest[at]->tid != t->tid)
			at = (at + 1) & (room - 1);
		before = latest[at];
		latest[at] = t;
		if (!before)
			continue;
		t->sibling = before->sibling ? before->sibling : before;
		before->sibling = t;
		before->eldest = false;
		target->shared_count++;
	}
	free(latest);
	return 0;
}

const struct thread *current_eldest(const struct thread *t)
{
	while (t->sibling && !t->eldest)
		t = t->sibling;
	return t;
}

/* Of a ring of states. */
static void choose_one(const struct target *target, struct thread *eldest)
{
	struct thread *t = eldest, *current = eldest;
	raddr_t innermost = 0;
	uint32_t entered = 0;

	do {
		raddr_t place = place_now(target, t);

		entered += place != 0;
		if (place != 0 && (innermost == 0 || place < innermost)) {
			innermost = place;
			current = t;
		}
		t->outer = true;
		t->nested = t->entered = false;
		t = t->sibling;
	} while (t != eldest);
	current->outer = false;
	current->entered = entered > 0;
	current->nested = entered > 1;
}

void current_choose(struct target *target, uint64_t now_ns)
{
	if (target->shared_count == 0)
		return;
	for (uint32_t i = 0; i < target->thread_count; i++) {
		struct thread *t = target->threads[i];

		if (t->sibling && t->eldest)
			choose_one(target, t);
		else if (!t->sibling)
			t->outer = t->nested = t->entered = false;
	}
	for (uint32_t i = 0; i < target->thread_count; i++) {
		struct thread *t = target->threads[i];

		if (!t->foreign || !is_elsewhere(target, t))
			continue;
		if (!t->unplaced && !t->outer) {
			t->outer = true;
			target->facts.attempts++;
			sample_lose(target, -EAGAIN, target->interval_ns);
		}
		if (!t->unplaced || now_ns - t->t_sought_ns >= AGAIN_NS)
			target->t_listed_ns = target->t_watched_ns = 0; /* the lists are read anew, and it is looked for */
	}
}
