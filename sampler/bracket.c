/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/bracket.h"

#include "base/hash.h"
#include "sampler/calls.h"

#define BRACKETS    8u   /* in one go */
#define PIECES      6u   /* of one, at most */
#define WAITS       3u   /* the caller is read so many times less one, at random: in step, what is torn once is torn again and again */
#define SPAN_MAX    2048 /* bytes of the data stack from the outermost frame of the context to the caller */

struct bracket {
	struct apart_link callee;
	raddr_t shim;         /* through which C resumed it; 0: none */
	uint32_t caller;      /* index in t->seen; */
	uint32_t context;     /* … of the outermost frame that its call's key is made of */
	uint32_t first, last; /* pieces: of the callee; the caller is the one behind the first, a shim the one behind the last */
};

static struct iovec piece_at(raddr_t addr, uint64_t bytes)
{
	return (struct iovec){.iov_base = (void *)(uintptr_t)addr, .iov_len = bytes};
}

static bool find_in_seen(const struct thread *t, raddr_t frame, uint32_t *ret_index)
{
	for (uint32_t i = t->seen.depth; i-- > 0;) {
		if (t->seen.frames[i].frame == frame) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

/* Where the generator that lies there was resumed from. False: not from the data stack, as far as that is remembered, or with others below. */
static bool find_bracket(const struct thread *t, raddr_t frame, struct bracket *ret_bracket)
{
	struct bracket b = {.callee = apart_link(t->apart, frame)};
	raddr_t caller = b.callee.previous;

	if (b.callee.frame == 0 || b.callee.shim || caller == 0)
		return false;
	if (!thread_in_chunks(t, caller)) {
		struct apart_link shim = apart_link(t->apart, caller);

		if (!shim.shim)
			return false;
		b.shim = caller;
		caller = shim.previous;
	}
	if (!thread_in_chunks(t, caller) || !find_in_seen(t, caller, &b.caller))
		return false;
	b.context = b.caller + 1 > EDGE_SITES ? b.caller + 1 - EDGE_SITES : 0;
	for (uint32_t i = b.context; i < b.caller; i++)
		if (!thread_in_chunks(t, t->seen.frames[i].frame))
			return false;
	if (caller - t->seen.frames[b.context].frame > SPAN_MAX)
		return false;
	*ret_bracket = b;
	return true;
}

/* The callee as it was read: where it stands, running on top of what it was linked to. Below 0: it does not. */
static int64_t runs_at(const struct walker *w, const struct bracket *b, uint32_t piece)
{
	const uint8_t *bytes = plan_bytes(w->plan, piece);
	const struct code *code = bytes ? codes_find(w->codes, frame_code(w->abi, bytes)) : NULL;
	int64_t offset;

	if (!code || code->addr != b->callee.code || !frame_is_generator(w->abi, bytes) ||
	    frame_previous(w->abi, bytes) != b->callee.previous || !frame_offset(w->abi, bytes, code, &offset) ||
	    frame_is_left(w->abi, bytes, code, offset))
		return -1;
	return offset;
}

/* The caller, and what led to it, into `stack`. False: it is another one. */
static bool take_callers(const struct walker *w, const struct thread *t, const struct bracket *b, struct pystack *stack)
{
	const struct pyframe *outermost = &t->seen.frames[b->context];
	const uint8_t *bytes = plan_bytes(w->plan, b->first + 1);

	if (!bytes || !stack_copy(stack, &t->seen, b->caller + 1))
		return false;
	for (uint32_t i = b->context; i <= b->caller; i++) {
		struct pyframe *frame = &stack->frames[i];
		const uint8_t *at = bytes + (frame->frame - outermost->frame);
		const struct code *code = codes_find(w->codes, frame->code);
		int64_t offset;

		if (!code || frame_code(w->abi, at) != frame->code || !frame_offset(w->abi, at, code, &offset) ||
		    (i < b->caller && offset != frame->offset))
			return false;
		frame->offset = offset;
		frame->stored = frame_is_stored(w->abi, at, code);
	}
	return true;
}

static void judge(struct target *target, struct walker *w, struct thread *t, const struct bracket *b)
{
	struct pystack *stack = &target->first_copy;
	const uint8_t *shim = b->shim ? plan_bytes(w->plan, b->last + 1) : NULL;
	const uint8_t *callee = plan_bytes(w->plan, b->first);
	raddr_t caller = t->seen.frames[b->caller].frame;
	int64_t offset = runs_at(w, b, b->first);
	bool survived = runs_at(w, b, b->last) >= 0;

	if (offset < 0 || !take_callers(w, t, b, stack))
		return;
	if (survived && b->shim)
		survived = shim && frame_is_shim(w->abi, shim) && frame_previous(w->abi, shim) == caller;
	if (!stack_push(stack, (struct pyframe){.frame = b->callee.frame,
	                                        .code = b->callee.code,
	                                        .offset = offset,
	                                        .generator = true,
	                                        .direct = !b->shim && !frame_is_entry(w->abi, callee)}))
		return;
	target->edges_learnt += calls_sight_bracketed(w, stack, survived, target->edges);
}

void bracket_calls(struct target *target, struct walker *w, struct thread *t)
{
	struct apart *apart = t->apart;
	struct plan *p = &target->again;
	uint32_t head_bytes = (uint32_t)w->abi->frame.bytes, count = 0, piece_count = 0, first;
	struct bracket brackets[BRACKETS];
	struct iovec pieces[BRACKETS * PIECES];
	int read;

	plan_clear(p);
	if (!plan_reserve(p, BRACKETS * (WAITS * (SPAN_MAX + PYABI_FRAME_MAX) + PIECES * (head_bytes + 16))))
		return;
	for (uint32_t i = 0; i < apart->count && count < BRACKETS; i++) {
		struct bracket *b = &brackets[count];
		const struct pyframe *caller, *outermost;

		if (!find_bracket(t, apart->frames[(apart->bracketed + i) % apart->count].frame, b))
			continue;
		caller = &t->seen.frames[b->caller];
		outermost = &t->seen.frames[b->context];
		b->first = piece_count;
		pieces[piece_count++] = piece_at(b->callee.frame, head_bytes);
		for (uint64_t waits = hash_u64(++target->random) % WAITS + 1; waits > 0; waits--)
			pieces[piece_count++] = piece_at(outermost->frame, caller->frame - outermost->frame + head_bytes);
		b->last = piece_count;
		pieces[piece_count++] = piece_at(b->callee.frame, head_bytes);
		if (b->shim)
			pieces[piece_count++] = piece_at(b->shim, head_bytes);
		count++;
	}
	apart->bracketed += BRACKETS;
	if (count == 0)
		return;
	first = plan_put(p, w->remote, pieces, piece_count, &read);
	target->facts.confirms++;
	if (first == PLAN_FULL || p->slow_fetch)
		return;
	w->plan = p;
	for (uint32_t i = 0; i < count; i++) {
		brackets[i].first += first;
		brackets[i].last += first;
		judge(target, w, t, &brackets[i]);
	}
}
