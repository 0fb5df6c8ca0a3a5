/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heaplook.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/ways.h"
#include "sampler/callee.h"
#include "sampler/heapcalls.h"
#include "sampler/owed.h"

#define LINK_WAYS  4u
#define POLLS      8          /* of a frame whose caller is not known */
#define TELLING    HEAP_AGAIN /* of so many innermost frames, the value stack is copied, too, … */
#define TOLD       4u         /* … and so many are asked what they call */
#define OTHERS     8u         /* frames that these may lie on instead, at most */

/* Its entry; NULL: it has none. */
static struct heap_link *find_link(const struct thread *t, raddr_t frame)
{
	struct heap_link *set = &t->heap_links[ways_set(hash_u64(frame), HEAP_LINKS, LINK_WAYS)];

	for (uint32_t i = 0; i < LINK_WAYS; i++)
		if (set[i].frame == frame)
			return &set[i];
	return NULL;
}

raddr_t heaplook_code(const struct thread *t, raddr_t frame)
{
	const struct heap_link *link = t->heap_links ? find_link(t, frame) : NULL;

	return link ? link->code : 0;
}

void heaplook_note(struct thread *t, raddr_t frame, raddr_t previous, raddr_t code)
{
	struct heap_link *set;
	raddr_t other = 0;
	uint32_t way = 0;

	if (!t->heap_links && t->heap_misses > 0)
		t->heap_links = calloc(HEAP_LINKS, sizeof(*t->heap_links));
	if (!t->heap_links)
		return;
	set = &t->heap_links[ways_set(hash_u64(frame), HEAP_LINKS, LINK_WAYS)];
	while (way < LINK_WAYS - 1 && set[way].frame != frame)
		way++;
	if (set[way].frame == frame && set[way].code == code)
		other = set[way].previous != previous ? set[way].previous : set[way].other;
	ways_make_first(set, sizeof(*set), way);
	*set = (struct heap_link){.frame = frame, .previous = previous, .code = code, .other = other};
}

/* Reads a frame until it is executed, some times. NULL: it never was. */
static const struct heap_link *poll_link(struct walker *w, struct thread *t, raddr_t frame)
{
	for (int i = 0; i < POLLS; i++) {
		uint8_t bytes[PYABI_FRAME_MAX];
		struct code *code;
		int64_t offset;
		raddr_t addr;

		if (remote_read(w->remote, frame, bytes, (size_t)w->abi->frame.bytes) != 0)
			return NULL;
		addr = frame_code(w->abi, bytes);
		code = codes_find(w->codes, addr);
		if (!code && codes_load(w->codes, w->remote, addr, w->now_ns, &code) != 0)
			return NULL;
		if (!frame_is_executing(w->abi, bytes) || !frame_offset(w->abi, bytes, code, &offset))
			continue;
		heaplook_note(t, frame, frame_previous(w->abi, bytes), addr);
		return find_link(t, frame);
	}
	return NULL;
}

/* So many frames of the latest sample lead to this one, which is the last of them; 0: it is not among them, or one of the innermost of these has been called
 * by another one since. */
static uint32_t depth_in_last(const struct thread *t, raddr_t frame)
{
	const struct pyframe *frames = t->last.frames;
	uint32_t depth = t->last.depth;

	while (depth > 0 && frames[depth - 1].frame != frame)
		depth--;
	for (uint32_t i = depth; i-- > 1 && depth - i <= TELLING;) {
		const struct heap_link *link = find_link(t, frames[i].frame);

		if (link && link->previous != frames[i - 1].frame)
			return 0;
	}
	return depth;
}

/* The first of the `most` innermost of `count` frames. */
static uint32_t first_telling(uint32_t count, uint32_t most)
{
	return count > most ? count - most : 0;
}

/* What each frame of the latest copy lay on. */
static void note_links(const struct walker *w, struct thread *t)
{
	for (uint32_t k = 0; k < t->copy.heap_count; k++) {
		const uint8_t *bytes = plan_bytes(w->plan, copy_heap_piece(&t->copy, k));
		const struct code *code = bytes ? codes_find(w->codes, frame_code(w->abi, bytes)) : NULL;
		int64_t offset;

		if (code && frame_is_executing(w->abi, bytes) && frame_offset(w->abi, bytes, code, &offset))
			heaplook_note(t, t->heap[k].frame, frame_previous(w->abi, bytes), code->addr);
	}
}

/* The code that frame `k` of the latest copy says it is calling. */
static raddr_t ask(struct target *target, struct walker *w, const struct thread *t, uint32_t k)
{
	uint32_t piece = copy_heap_piece(&t->copy, k);
	const uint8_t *bytes = plan_bytes(w->plan, piece);
	raddr_t before = bytes ? frame_previous(w->abi, bytes) : 0;

	return bytes ? callee_told(target->callees, w, piece, before ? heaplook_code(t, before) : 0, target->edges) : 0;
}

static bool is_among(const struct pyframe *frames, uint32_t count, raddr_t frame)
{
	while (count > 0 && frames[count - 1].frame != frame)
		count--;
	return count > 0;
}

/* What else the innermost frames of the chain in t->seen were called by lately, and what that lay on: a function that is called at several depths has
 * one frame for each, and one frame for several callers. Innermost first. */
static uint32_t find_others(const struct thread *t, struct pyframe *others)
{
	const struct pystack *chain = &t->seen;
	uint32_t count = 0;

	for (uint32_t i = chain->depth; i-- > 0 && chain->depth - i <= TELLING;) {
		const struct heap_link *link = find_link(t, chain->frames[i].frame);
		raddr_t at = link ? link->other : 0;

		while (at != 0 && count < OTHERS && !is_among(chain->frames, chain->depth, at) && !is_among(others, count, at)) {
			link = find_link(t, at);
			if (!link)
				break;
			others[count++] = (struct pyframe){.frame = at, .code = link->code};
			at = link->previous;
		}
	}
	return count;
}

/* Puts the others in front of the chain in t->seen. */
static bool add_others(struct thread *t)
{
	struct pyframe others[OTHERS];
	uint32_t count = find_others(t, others);

	t->heap_others = count;
	for (uint32_t i = 0; i < count; i++)
		if (!stack_push(&t->seen, others[i]))
			return false;
	for (uint32_t i = t->seen.depth; i-- > count;)
		t->seen.frames[i] = t->seen.frames[i - count];
	for (uint32_t i = 0; i < count; i++)
		t->seen.frames[i] = others[count - 1 - i];
	return true;
}

bool heaplook_expect(struct walker *w, struct thread *t, raddr_t current)
{
	struct pyframe linked[HEAP_LINKED];
	uint32_t count = 0, outer = 0;

	t->heap_expected = t->heap_others = 0;
	if (!t->heap_links)
		return false;
	for (raddr_t at = current; at != 0;) {
		const struct heap_link *link;

		outer = depth_in_last(t, at);
		if (outer > 0)
			break;
		link = find_link(t, at);
		if (!link)
			link = poll_link(w, t, at);
		if (!link || count == HEAP_LINKED)
			return false;
		linked[count++] = (struct pyframe){.frame = at, .code = link->code};
		at = link->previous;
	}
	t->seen.depth = 0;
	for (uint32_t i = 0; i < outer; i++)
		if (!stack_push(&t->seen, t->last.frames[i]))
			return false;
	while (count > 0)
		if (!stack_push(&t->seen, linked[--count]))
			return false;
	if (!add_others(t) || !thread_order_heap(t, w->tick))
		return false;
	t->heap_expected = t->seen.depth;
	for (uint32_t i = 0; i < t->seen.depth; i++) {
		const struct code *code =
			i < first_telling(t->seen.depth, TELLING) ? NULL : codes_find(w->codes, t->seen.frames[i].code);

		t->heap[i].bytes = code ? code->frame_bytes : 0;
	}
	return true;
}

bool heaplook_stands(const struct walker *w)
{
	return w->expected != 0 && w->current == w->expected;
}

void heaplook_count(struct thread *t, bool torn)
{
	if (!t->copy.expected)
		t->heap_misses = t->heap_misses - t->heap_misses / 16 + (torn ? 16 : 0);
}

void heaplook_accepted(const struct walker *w, struct thread *t)
{
	bool stands = t->last.depth > 0 && t->seen.depth > 0 &&
	              t->last.frames[t->last.depth - 1].frame == t->seen.frames[t->seen.depth - 1].frame;

	t->heap_expected = thread_order_heap(t, w->tick) && stands ? t->seen.depth : 0;
}

/* Where the last frame of the copy lies; a generator's that waits is resumed where it stands. False: it is not to be told. */
static bool take_expected(const struct walker *w, const struct thread *t, struct pyframe *leaf)
{
	uint32_t k = t->copy.heap_count - 1;
	const struct piece *piece = &w->plan->pieces[copy_heap_piece(&t->copy, k)];
	const uint8_t *bytes = w->plan->memory + piece->at;
	const struct code *code = codes_find(w->codes, leaf->code);

	leaf->frame = t->heap[k].frame;
	if (!piece->ok || !code)
		return false;
	leaf->generator = frame_code(w->abi, bytes) == leaf->code && frame_is_generator(w->abi, bytes);
	return !leaf->generator || frame_offset(w->abi, bytes, code, &leaf->offset);
}

/* The stack up to frame `k` of the copy, and the function that it is calling, `code`, at its beginning. `told`: it says so. */
static int compose(struct target *target, struct walker *w, struct thread *t, uint32_t k, raddr_t code, bool told)
{
	const struct code *function = codes_find(w->codes, code);
	struct pyframe leaf = {.code = code, .offset = -1, .told = told};
	uint32_t unknown;

	if (!function || (k + 2 == t->copy.heap_count && !take_expected(w, t, &leaf)))
		return -EAGAIN;
	if (walk_chain(w, t, t->heap[k].frame) != 0 || !stack_push(&t->seen, leaf))
		return -EAGAIN;
	w->moves = thread_moves(t);
	return told || heap_knows_calls(w, &t->seen, 0, target->edges, &unknown) ? 0 : -EAGAIN;
}

int heaplook_take(struct target *target, struct walker *w, struct thread *t, int err)
{
	uint32_t count = t->copy.heap_count, first = first_telling(count, TOLD + t->copy.heap_others);
	raddr_t told[TOLD + OTHERS] = {0}, last;

	note_links(w, t);
	for (uint32_t k = first; k < count; k++)
		told[k - first] = ask(target, w, t, k);
	if (t->copy.again)
		target->edges_learnt += callee_learn_chain(target->callees, w, t, err == 0, target->edges) > 0;
	if (err != -EAGAIN || count < t->copy.heap_others + 2)
		return err;
	last = heaplook_code(t, t->heap[count - 1].frame);
	for (uint32_t k = count; k-- > first;) {
		raddr_t code = told[k - first];

		if (code == 0 && k + 2 == count)
			err = compose(target, w, t, k, last, false);
		else if (code != 0 && (code == last || owed_any(target, t, codes_content(w->codes, code), w->now_ns)))
			err = compose(target, w, t, k, code, true);
		if (err == 0)
			break;
	}
	return err;
}
