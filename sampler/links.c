/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/links.h"

#define CHASE_MAX 256 /* frames of the data stack between them, on the way down */
/* From SEND to where a generator that yielded stands: SEND with its cache, YIELD_VALUE, and the instruction behind it. */
#define SEND_BYTES 8

static struct iovec piece_at(raddr_t addr, uint32_t bytes)
{
	return (struct iovec){.iov_base = (void *)(uintptr_t)addr, .iov_len = bytes};
}

/* How much of a frame to read, with its value stack. */
static uint32_t bytes_of(const struct pyabi *abi, const struct apart_link *known)
{
	uint32_t head_bytes = (uint32_t)abi->frame.bytes;

	if (known->bytes)
		return known->bytes;
	return head_bytes > APART_BYTES ? head_bytes : APART_BYTES;
}

/* A frame in two copies: the same code at the same instruction. */
static bool stands(const struct pyabi *abi, const uint8_t *a, const uint8_t *b)
{
	return a && b && frame_code(abi, a) != 0 && frame_code(abi, a) == frame_code(abi, b) &&
	       frame_u64(a, abi->frame.instr) == frame_u64(b, abi->frame.instr);
}

/* Where a frame stands that runs the code which it ran `before`, on top of what it should be linked to; below 0: it does not. */
static int64_t runs_at(const struct walker *w, const uint8_t *bytes, const uint8_t *before, raddr_t link)
{
	const struct code *code;
	int64_t offset;

	if (!bytes || !before || frame_code(w->abi, bytes) == 0 ||
	    frame_code(w->abi, bytes) != frame_code(w->abi, before) || frame_previous(w->abi, bytes) != link)
		return -1;
	code = codes_find(w->codes, frame_code(w->abi, bytes));
	return code && frame_offset(w->abi, bytes, code, &offset) && !frame_is_left(w->abi, bytes, code, offset)
	               ? offset
	               : -1;
}

struct pair {
	raddr_t callee, link, caller; /* link: what the callee's previous is when it runs: the caller, or a shim */
	uint32_t piece;               /* of the callee, the caller, and the callee again */
};

/* What was fetched has each callee before and behind its caller, some 0.1 µs apart: where it runs at both times, and has not begun
 * anew, as far as its instruction tells, it was called from where the caller stood. A caller in the data stack must stand as it did in the copy, too. */
static void prove_links(const struct walker *w, struct thread *t, const struct pair *pairs, uint32_t count)
{
	struct apart_copy *copy = &t->copy.apart;
	const struct plan *p = w->plan;
	uint32_t ignored;

	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *callee = plan_bytes(p, pairs[i].piece), *again = plan_bytes(p, pairs[i].piece + 2);
		const uint8_t *caller = plan_bytes(p, pairs[i].piece + 1);
		const uint8_t *before;
		int64_t offset;

		/* Nobody else is to find these. */
		p->pieces[pairs[i].piece].from = p->pieces[pairs[i].piece + 2].from = 0;
		before = walk_copy(w, t, pairs[i].callee, 0, &ignored);
		offset = runs_at(w, callee, before, pairs[i].link);
		if (offset >= 0 && runs_at(w, again, before, pairs[i].link) >= offset && !p->slow_fetch &&
		    stands(w->abi, caller, walk_copy(w, t, pairs[i].caller, 0, &ignored)))
			copy->proven[copy->proven_count++] =
				(struct apart_proven){.callee = pairs[i].callee, .caller = pairs[i].caller};
	}
}

/* Reads the frame at this address, and those that it is remembered to be linked to: a coroutine that runs is soon awaited no more. Where
 * there is doubt about calls like these, it reads what proves them, too. */
static const uint8_t *fetch(struct walker *w, struct thread *t, raddr_t frame, raddr_t above, uint32_t *ret_bytes)
{
	struct apart_copy *copy = &t->copy.apart;
	struct iovec frames[APART_FETCHES];
	struct pair pairs[APART_PROVEN];
	uint32_t count = 0, pair_count = 0, ignored, head_bytes = (uint32_t)w->abi->frame.bytes;
	bool doubt = copy->fetches == 0 && apart_in_doubt(t->apart, w->tick);
	raddr_t at = frame, callee = above, link_of_callee = frame;

	for (uint32_t steps = 0; count + 6 < APART_FETCHES && steps < APART_FETCHES && frame_may_be(at); steps++) {
		struct apart_link link = apart_link(t->apart, at);
		bool inside = thread_in_chunks(t, at);

		if (inside && !doubt)
			break;
		if (doubt && callee != 0 && !link.shim && pair_count < APART_PROVEN) {
			pairs[pair_count++] =
				(struct pair){.callee = callee, .link = link_of_callee, .caller = at, .piece = count};
			frames[count++] = piece_at(callee, head_bytes);
			frames[count++] = piece_at(at, inside ? head_bytes : bytes_of(w->abi, &link));
			frames[count++] = piece_at(callee, head_bytes);
		} else if (!inside && (!link.shim || !apart_find(copy, w->plan, at, &ignored))) {
			frames[count++] = piece_at(at, bytes_of(w->abi, &link));
		}
		if (inside)
			break;
		if (!link.shim)
			callee = at;
		link_of_callee = link.shim ? link_of_callee : link.previous;
		at = link.previous;
	}
	if (count == 0 || apart_fetch(copy, w->plan, w->remote, frames, count) < 0)
		return NULL;
	for (uint32_t i = 0; i < pair_count; i++)
		pairs[i].piece += copy->fetched;
	if (doubt) {
		t->apart->doubts--;
		prove_links(w, t, pairs, pair_count);
	}
	return apart_find(copy, w->plan, frame, ret_bytes);
}

/* Whether what looks like a shim links to a frame: once C has returned, what is called next writes over it. */
static bool is_live_shim(const struct walker *w, const struct thread *t, const uint8_t *shim)
{
	raddr_t previous = frame_previous(w->abi, shim);
	uint8_t bytes[PYABI_FRAME_MAX];
	struct code *code;

	if (thread_in_chunks(t, previous) || apart_link(t->apart, previous).frame != 0)
		return true;
	return frame_may_be(previous) && remote_read(w->remote, previous, bytes, (size_t)w->abi->frame.bytes) == 0 &&
	       frame_is_generator(w->abi, bytes) && frame_code(w->abi, bytes) != 0 &&
	       (codes_find(w->codes, frame_code(w->abi, bytes)) ||
	        codes_load(w->codes, w->remote, frame_code(w->abi, bytes), w->now_ns, &code) == 0);
}

const uint8_t *links_copy(struct walker *w, struct thread *t, raddr_t frame, raddr_t above, uint32_t *ret_bytes)
{
	const uint8_t *bytes = apart_find(&t->copy.apart, w->plan, frame, ret_bytes);
	struct apart_link link = {.frame = frame, .bytes = (uint32_t)w->abi->frame.bytes};
	struct code *code;

	if (!t->apart)
		edges_widen(w->edges);
	if (!thread_apart(t))
		return NULL;
	if (!bytes && !apart_is_none(t->apart, frame, w->tick))
		bytes = fetch(w, t, frame, above, ret_bytes);
	link.shim = bytes && frame_is_shim(w->abi, bytes);
	if (!bytes || (link.shim ? !is_live_shim(w, t, bytes) : !frame_is_generator(w->abi, bytes))) {
		if (!apart_link(t->apart, frame).shim)
			apart_note_none(t->apart, frame, w->tick);
		return NULL;
	}
	if (!link.shim) {
		raddr_t addr = frame_code(w->abi, bytes);

		code = addr ? codes_find(w->codes, addr) : NULL;
		if (addr && !code && codes_load(w->codes, w->remote, addr, w->now_ns, &code) != 0)
			code = NULL;
		if (!code)
			return NULL; /* it has ended */
		link.code = addr;
		link.bytes = code->frame_bytes < PYABI_FRAME_MAX ? code->frame_bytes : PYABI_FRAME_MAX;
	}
	link.previous = frame_previous(w->abi, bytes);
	apart_note(t->apart, frame, link.bytes, w->tick);
	if (link.previous != 0)
		apart_note_link(t->apart, link);
	return bytes;
}

const struct link *links_find(const struct links *l, raddr_t frame)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->link[i].frame == frame)
			return &l->link[i];
	return NULL;
}

const struct link *links_to(const struct links *l, bool shim, raddr_t caller)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->link[i].previous == caller && l->link[i].shim == shim)
			return &l->link[i];
	return NULL;
}

bool link_awaits(const struct pyabi *abi, const struct link *link, raddr_t callee)
{
	raddr_t object = callee - (uint64_t)abi->gen.iframe;
	uint64_t end;

	if (!link->bytes || link->shim || abi->gen.iframe == ABSENT)
		return false;
	if (abi->frame.stackpointer != ABSENT)
		end = frame_u64(link->bytes, abi->frame.stackpointer) - link->frame;
	else
		end = (uint64_t)abi->frame.bytes + 8 * (uint64_t)frame_i32(link->bytes, abi->frame.stacktop);
	if (end > link->count)
		return false;
	/* What is sent to it can lie on top. The low bits of a reference are flags (3.14+). */
	for (uint64_t slot = 1; slot <= 2 && end >= (uint64_t)abi->frame.bytes + 8 * slot; slot++)
		if ((frame_u64(link->bytes, (int32_t)(end - 8 * slot)) & ~UINT64_C(3)) == object)
			return true;
	return false;
}

bool awaited_at(const struct code *code, int64_t offset, int64_t *ret_offset)
{
	for (int64_t at = offset; at >= 0 && at >= offset - SEND_BYTES; at -= 2) {
		if (code->resuming && code_resumes(code, at)) {
			*ret_offset = at;
			return true;
		}
	}
	return false;
}

/* Of a frame whose link is cleared: who awaits it, or, where C links to it without a shim (3.11), called that C. 0: that is not known. */
static raddr_t find_awaiter(struct links *l, const struct link *link)
{
	const struct pyabi *abi = l->w->abi;
	struct apart_link known = apart_link(l->t->apart, link->frame);
	struct link by = {.frame = known.previous};
	const struct code *code;
	int64_t offset, place;

	if (known.previous == 0)
		return 0;
	if (thread_in_chunks(l->t, known.previous))
		return frame_sends_through_c(abi) ? known.previous : 0;
	if (apart_link(l->t->apart, known.previous).shim)
		return known.previous;
	by.bytes = links_copy(l->w, l->t, by.frame, 0, &by.count);
	if (!by.bytes || frame_is_shim(abi, by.bytes) || frame_previous(abi, by.bytes) != 0)
		return 0;
	code = codes_find(l->w->codes, frame_code(abi, by.bytes));
	return code && frame_offset(abi, by.bytes, code, &offset) && awaited_at(code, offset, &place) &&
	                       link_awaits(abi, &by, link->frame)
	               ? known.previous
	               : 0;
}

/* A shim lies on the C stack, and is gone when C has returned. What lies there mostly is the same again, called from the same frame. */
static bool recall_shim(const struct links *l, struct link *ret_link)
{
	struct apart_link known = apart_link(l->t->apart, ret_link->frame);

	if (!known.shim)
		return false;
	*ret_link = (struct link){.frame = ret_link->frame, .previous = known.previous, .shim = true, .yielded = true};
	return true;
}

raddr_t links_follow(struct links *l, raddr_t frame, raddr_t above)
{
	const struct pyabi *abi = l->w->abi;
	bool yielded = false;

	while (frame_may_be(frame) && !thread_in_chunks(l->t, frame)) {
		struct link link = {.frame = frame};

		if (l->count == LINKS_MAX || links_find(l, frame))
			return 0;
		link.bytes = yielded && apart_link(l->t->apart, frame).shim
		                     ? NULL
		                     : links_copy(l->w, l->t, frame, above, &link.count);
		if (link.bytes) {
			link.shim = frame_is_shim(abi, link.bytes);
			link.previous = frame_previous(abi, link.bytes);
			if (link.previous == 0 && !link.shim) {
				link.previous = find_awaiter(l, &link);
				link.yielded = yielded = true;
			}
		} else if (!recall_shim(l, &link)) {
			return 0;
		}
		if (link.previous == 0) {
			if (!link.shim && apart_link(l->t->apart, frame).previous == 0)
				apart_note_unlinked(l->t->apart, frame);
			return 0;
		}
		l->link[l->count++] = link;
		frame = link.previous;
		above = 0;
	}
	return frame_may_be(frame) ? frame : 0;
}

void links_chase(struct links *l, raddr_t current)
{
	raddr_t frame = current, above = 0, outermost = l->t->chunk_count > 0 ? l->t->chunks[0].base + CHUNK_FIRST : 0;

	for (uint32_t i = 0; frame != 0 && i < CHASE_MAX; i++) {
		uint32_t copied;
		const uint8_t *bytes;

		frame = links_follow(l, frame, above);
		bytes = frame && frame != outermost ? walk_copy(l->w, l->t, frame, 0, &copied) : NULL;
		above = frame;
		frame = bytes ? frame_previous(l->w->abi, bytes) : 0;
	}
}
