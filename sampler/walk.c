/* SPDX-License-Identifier: Apache-2.0 */
/* What both ways of walking share, and the walk down the chain of previous pointers. */
#include "sampler/walk.h"

#include <errno.h>

#include "base/hash.h"
#include "sampler/bytecode.h"
#include "sampler/links.h"
#include "sampler/record.h"

/* The copy of `bytes` bytes at addr, where the thread's pieces have it. *hint: the heap frame to look at first, then those
 * before it: a chain lies in the guess outermost first. */
static const uint8_t *find_copy(const struct walker *w, const struct thread *t, raddr_t addr, uint32_t bytes,
                                uint32_t *hint, uint32_t *ret_bytes)
{
	const struct plan *p = w->plan;

	for (uint32_t i = 0; i < t->copy.chunk_count; i++) {
		const struct piece *piece = &p->pieces[t->copy.chunks + i];

		if (addr - piece->from < piece->bytes && piece->bytes - (addr - piece->from) >= bytes) {
			*ret_bytes = piece->bytes - (uint32_t)(addr - piece->from);
			return piece->ok ? p->memory + piece->at + (addr - piece->from) : NULL;
		}
	}
	if (w->abi->frames == FRAMES_STACK) {
		return apart_find(&t->copy.apart, p, addr, ret_bytes);
	}
	for (uint32_t i = 0, n = t->copy.heap_count; i < n; i++) {
		uint32_t k = *hint >= n ? i : *hint >= i ? *hint - i : *hint + n - i;
		const struct piece *piece = &p->pieces[copy_heap_piece(&t->copy, k)];

		if (piece->from == addr) {
			*hint = k > 0 ? k - 1 : n - 1;
			t->heap[k].used_tick = w->tick;
			*ret_bytes = piece->bytes;
			return piece->ok ? p->memory + piece->at : NULL;
		}
	}
	return NULL;
}

const uint8_t *walk_copy(const struct walker *w, const struct thread *t, raddr_t frame, uint32_t hint,
                         uint32_t *ret_bytes)
{
	return find_copy(w, t, frame, (uint32_t)w->abi->frame.bytes, &hint, ret_bytes);
}

raddr_t walk_loop(const struct walker *w, const struct thread *t)
{
	const uint8_t *head = plan_bytes(w->plan, t->copy.head);

	return head && w->abi->tstate.cframe != ABSENT ? frame_u64(head, w->abi->tstate.cframe) : 0;
}

/* Where that of a run of the interpreter's loop names its current frame; NULL: that was not copied. */
static const struct piece *cframe_piece(const struct walker *w, const struct thread *t, raddr_t loop)
{
	for (uint32_t i = 0; i < t->copy.cframe_count; i++) {
		const struct piece *piece = &w->plan->pieces[t->copy.cframes + i];

		if (piece->from == loop + (uint64_t)w->abi->tstate.cframe_frame)
			return piece;
	}
	return NULL;
}

raddr_t walk_loop_running(const struct walker *w, const struct thread *t, raddr_t frame)
{
	raddr_t loop = walk_loop(w, t);
	const struct piece *piece = loop ? cframe_piece(w, t, loop) : NULL;

	return piece && piece->ok && frame_u64(w->plan->memory + piece->at, 0) == frame ? loop : 0;
}

int walk_current(struct walker *w, struct thread *t, raddr_t *ret_current)
{
	const struct pyabi *abi = w->abi;
	const uint8_t *head = plan_bytes(w->plan, t->copy.head);
	const struct piece *piece;
	raddr_t loop;

	if (!head)
		return -EFAULT;
	if (abi->tstate.cframe == ABSENT) {
		*ret_current = frame_u64(head, abi->tstate.frame);
		return 0;
	}
	loop = frame_u64(head, abi->tstate.cframe);
	piece = cframe_piece(w, t, loop);
	if (!piece) {
		thread_want_cframe(t, loop, w->tick);
		w->grew = true;
		return -EAGAIN;
	}
	if (!piece->ok)
		return -EAGAIN;
	for (uint32_t k = 0; k < t->cframe_count; k++)
		if (t->cframes[k].frame == loop)
			t->cframes[k].used_tick = w->tick;
	*ret_current = frame_u64(w->plan->memory + piece->at, 0);
	return 0;
}

static void reverse(struct pystack *stack)
{
	for (uint32_t i = 0, k = stack->depth; i + 1 < k; i++) {
		struct pyframe swap = stack->frames[i];

		stack->frames[i] = stack->frames[--k];
		stack->frames[k] = swap;
	}
}

/* What the frame that a walk down the chain has just passed says of how it was called. */

/* The end of the data stack's used part. */
static raddr_t data_stack_top(const struct walker *w, const struct thread *t)
{
	const uint8_t *head = plan_bytes(w->plan, t->copy.head);

	return head ? frame_u64(head, w->abi->tstate.chunk + 8) : 0;
}

/* Whether a frame can be the innermost one: it runs, or what it called is being taken down. What is named as current can have been left: in
 * 3.11 and 3.12 `tstate->cframe` is changed before the new cframe's `current_frame` is stored, which holds what the C stack has there. */
static bool can_be_leaf(const struct walker *w, const struct thread *t, raddr_t frame, const uint8_t *bytes)
{
	const uint8_t *left;
	uint32_t ignored;

	if (w->abi->call_mark != CALL_MARK_STACKTOP || frame_i32(bytes, w->abi->frame.stacktop) < 0)
		return true;
	if (w->stands && (!thread_in_chunks(t, frame) || frame < data_stack_top(w, t)))
		return true;
	left = t->left ? walk_copy(w, t, t->left, 0, &ignored) : NULL;
	return left && frame_previous(w->abi, left) == frame;
}

/* Whether a frame can have called the one above it, by where it stands and by what it says of itself. One that is traced says at any
 * instruction that it is suspended, but it was C that called what lies above it. */
static bool can_be_caller(const struct walker *w, const uint8_t *bytes, const struct code *code, int64_t offset,
                          enum called called)
{
	bool suspended = frame_is_suspended(w->abi, bytes, code);

	if (code->traceable_bytes >= code->bytecode_bytes)
		return true;
	if (offset < 0 || (called >= CALLED_DIRECTLY && !suspended))
		return false;
	if (called == CALLED_BY_C && frame_is_stored(w->abi, bytes, code))
		return true;
	if (w->abi->call_mark == CALL_MARK_STACKTOP && !suspended && frame_i32(bytes, w->abi->frame.stacktop) >= 0)
		return false; /* its variables have been released */
	return bytecode_has_call(w->abi, w->remote, code, offset, called);
}

/* Adds a frame of the chain to t->seen; 1: it is one that CPython's own tracebacks leave out. `called` is of the frame above it. */
static int chain_add(struct walker *w, struct thread *t, raddr_t frame, const uint8_t *bytes, enum called called)
{
	const struct pyabi *abi = w->abi;
	raddr_t addr = frame_code(abi, bytes);
	struct code *code = codes_find(w->codes, addr);
	int64_t offset;
	int err;

	if (!code) {
		err = codes_load(w->codes, w->remote, addr, w->now_ns, &code);
		if (err) {
			w->exhausted |= err == -ENOSPC;
			return err == -ENOMEM ? err : -EAGAIN;
		}
		w->grew = true;
	}
	if (!frame_offset(abi, bytes, code, &offset)) {
		w->doubted = addr;
		return -EAGAIN;
	}
	if (abi->frames == FRAMES_HEAP) {
		/* One that has not begun is executed all the same when its call is being traced. */
		if (offset >= 0 && !frame_is_executing(abi, bytes) && !(w->stands && called == CALLED_NONE))
			return -EAGAIN;
	} else {
		bool shown = offset >= (int64_t)code->traceable_bytes || frame_is_generator(abi, bytes);

		if (called != CALLED_NONE ? !can_be_caller(w, bytes, code, offset, called)
		                          : shown && !can_be_leaf(w, t, frame, bytes)) {
			w->refuted = true;
			return -EAGAIN;
		}
		if (!shown)
			return 1;
	}
	return stack_push(&t->seen, (struct pyframe){.frame = frame,
	                                             .code = addr,
	                                             .offset = offset,
	                                             .generator = frame_is_generator(abi, bytes),
	                                             .stored = frame_is_stored(abi, bytes, code)})
	               ? 0
	               : -ENOMEM;
}

/* The heap frame of the guess that most likely is the current one: the leaf of the latest sample. */
static uint32_t chain_start(const struct thread *t)
{
	uint32_t leaf = t->last.depth > 0 ? t->last.depth - 1 : 0;

	if (t->copy.heap_count == 0)
		return 0;
	return leaf < t->copy.heap_count ? leaf : t->copy.heap_count - 1;
}

int walk_chain(struct walker *w, struct thread *t, raddr_t current)
{
	const struct pyabi *abi = w->abi;
	raddr_t end = abi->tstate.base_frame != ABSENT ? t->tstate + (uint64_t)abi->tstate.base_frame : 0;
	uint32_t hint = chain_start(t), steps = 0, copied;
	raddr_t first = abi->frames == FRAMES_STACK && t->chunk_count > 0 ? t->chunks[0].base + CHUNK_FIRST : 0;
	bool from_generator = false, direct = true, entered = false;
	enum called called = CALLED_NONE;
	raddr_t outermost = 0;
	int missing = 0;

	if (end) {
		const uint8_t *head = plan_bytes(w->plan, t->copy.head);

		end = head ? frame_u64(head, abi->tstate.base_frame) : 0;
	}
	t->seen.depth = t->same = w->entries = 0;
	t->seen_plain = (struct plain){0};
	t->seen.apart = w->refuted = false;
	for (raddr_t frame = current; frame != 0 && frame != end;) {
		uint8_t fetched[PYABI_FRAME_MAX];
		const uint8_t *bytes = find_copy(w, t, frame, (uint32_t)abi->frame.bytes, &hint, &copied);
		int err;

		if (++steps > 2 * REC_DEPTH_MAX || !frame_may_be(frame))
			return -EPROTO;
		if (!bytes && thread_want_stack(t, frame, (uint32_t)abi->frame.bytes)) {
			w->grew = true;
			return -EAGAIN;
		}
		if (!bytes && abi->frames == FRAMES_STACK && !thread_in_chunks(t, frame)) {
			if (w->released) {
				w->grew = true; /* the next look is at one that stands */
				return -EAGAIN;
			}
			if (t->apart)
				apart_forget_none(t->apart, frame); /* the thread stands, and it is one now */
			bytes = links_copy(w, t, frame, &copied);
		}
		if (!bytes) {
			if (abi->frames == FRAMES_HEAP && !thread_want(t, frame, w->tick))
				return -ENOMEM;
			missing++;
			w->grew = true;
			err = remote_read(w->remote, frame, fetched, (size_t)abi->frame.bytes);
			if (err)
				return err == -EFAULT ? -EAGAIN : err;
			bytes = fetched;
		}
		if (frame_is_shim(abi, bytes)) {
			called = called == CALLED_NONE ? CALLED_NONE : CALLED_BY_C;
			w->entries += w->entries == 0; /* the loop was entered, and has no frame yet */
			entered = true;
		} else {
			uint32_t above = t->seen.depth;

			w->entries += entered || w->entries == 0;
			entered = abi->frames == FRAMES_HEAP || frame_is_entry(abi, bytes);

			err = chain_add(w, t, frame, bytes, called);
			if (err < 0)
				return err;
			if (err == 0)
				t->seen.frames[above].entry = w->entries - 1;
			direct &= called >= CALLED_DIRECTLY && abi->frames == FRAMES_STACK;
			if (above > 0 && err == 0)
				t->seen.frames[above - 1].direct = direct;
			direct |= err == 0; /* what is not shown, as what calls __init__() for a class, is passed over */
			from_generator = frame_is_generator(abi, bytes);
			called = frame_is_entry(abi, bytes) ? CALLED_BY_C
			         : from_generator           ? RESUMED_DIRECTLY
			                                    : CALLED_DIRECTLY;
			t->seen.apart |= from_generator;
			outermost = frame;
		}
		if (frame == first)
			break; /* what it lies on is known */
		frame = frame_previous(abi, bytes);
	}
	reverse(&t->seen);
	/* A chain can end too early: at a generator that yields, whose link to its caller is cleared, or at a frame that is just
	 * being made and has no link yet. On the data stack the outermost frame is the first. */
	if (missing || from_generator)
		return -EAGAIN;
	if (first != 0 && outermost != first)
		return -EAGAIN;
	return 0;
}

uint32_t stack_alike(const struct pystack *a, const struct pystack *b, bool *ret_same_callee)
{
	uint32_t most = a->depth < b->depth ? a->depth : b->depth, i = 0;

	while (i < most && a->frames[i].frame == b->frames[i].frame && a->frames[i].code == b->frames[i].code &&
	       a->frames[i].offset == b->frames[i].offset)
		i++;
	*ret_same_callee =
		i < most && a->frames[i].frame == b->frames[i].frame && a->frames[i].code == b->frames[i].code;
	return i;
}
