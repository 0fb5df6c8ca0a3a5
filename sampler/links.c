/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/links.h"

#define CHASE_MAX 256 /* frames of the data stack between them, on the way down */
/* From SEND to where a generator that yielded stands: SEND with its cache, YIELD_VALUE, and the instruction behind it. */
#define SEND_BYTES 8
#define TOP_SLOTS  2 /* of a value stack: what is resumed, and what is sent to it */

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

/* Reads the frame at this address, and those that it is remembered to be linked to: a coroutine that runs is soon awaited no more. */
static const uint8_t *fetch(struct walker *w, struct thread *t, raddr_t frame, uint32_t *ret_bytes)
{
	struct apart_copy *copy = &t->copy.apart;
	struct iovec frames[APART_FETCHES];
	uint32_t count = 0, ignored;
	raddr_t at = frame;

	for (uint32_t steps = 0; count < APART_FETCHES - copy->fetched_count && steps < APART_FETCHES && frame_may_be(at) &&
	                         !thread_in_chunks(t, at); steps++) {
		struct apart_link link = apart_link(t->apart, at);

		if (!link.shim || !apart_find(copy, w->plan, at, &ignored))
			frames[count++] = piece_at(at, bytes_of(w->abi, &link));
		at = link.previous;
	}
	if (count == 0 || apart_fetch(copy, w->plan, w->remote, frames, count, PLAN_TOGETHER) < 0)
		return NULL;
	return apart_find(copy, w->plan, frame, ret_bytes);
}

/* Whether a generator's frame lies there, as the target says now. */
static bool is_generator(const struct walker *w, raddr_t frame)
{
	uint8_t bytes[PYABI_FRAME_MAX];
	struct code *code;

	return frame_may_be(frame) && remote_read(w->remote, frame, bytes, (size_t)w->abi->frame.bytes) == 0 &&
	       frame_is_generator(w->abi, bytes) && frame_code(w->abi, bytes) != 0 &&
	       (codes_find(w->codes, frame_code(w->abi, bytes)) ||
	        codes_load(w->codes, w->remote, frame_code(w->abi, bytes), w->now_ns, &code) == 0);
}

/* Whether what looks like a shim links to a frame: once C has returned, what is called next writes over it. */
static bool is_live_shim(const struct walker *w, const struct thread *t, const uint8_t *shim)
{
	raddr_t previous = frame_previous(w->abi, shim);

	return thread_in_chunks(t, previous) || apart_link(t->apart, previous).frame != 0 || is_generator(w, previous);
}

const uint8_t *links_copy(struct walker *w, struct thread *t, raddr_t frame, uint32_t *ret_bytes)
{
	const uint8_t *bytes = apart_find(&t->copy.apart, w->plan, frame, ret_bytes);
	struct apart_link link = {.frame = frame, .bytes = (uint32_t)w->abi->frame.bytes};
	struct code *code;

	if (!t->apart)
		edges_widen(w->edges);
	if (!thread_apart(t))
		return NULL;
	if (!bytes && !apart_is_none(t->apart, frame, w->tick))
		bytes = fetch(w, t, frame, ret_bytes);
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
		link.bytes = code->frame_bytes < APART_FRAME_MAX ? code->frame_bytes : APART_FRAME_MAX;
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

uint32_t links_caller_bytes(const struct walker *w, raddr_t caller)
{
	const struct code *code = codes_find(w->codes, caller);

	return code && code->frame_bytes <= APART_FRAME_MAX ? code->frame_bytes : (uint32_t)w->abi->frame.bytes;
}

bool links_resumes_another(const struct walker *w, const struct thread *t, const struct pyframe *callee, const uint8_t *bytes, uint32_t count)
{
	const struct pyabi *abi = w->abi;
	const struct code *code = callee->generator ? codes_find(w->codes, callee[-1].code) : NULL;
	bool told = abi->frame.stackpointer != ABSENT, empty = told, another = false;
	uint64_t from, end, top;

	if (!code || !bytes || abi->gen.iframe == ABSENT || !t->apart)
		return false;
	if (!code_calls(code, callee[-1].offset) && !(code->resuming && code_resumes(code, callee[-1].offset)))
		return false; /* where a reference is given up, a generator is closed */
	from = top = (uint64_t)abi->frame.bytes + 8 * (uint64_t)code->locals;
	end = code->frame_bytes < count ? code->frame_bytes : count;
	if (told) {
		uint64_t used = frame_u64(bytes, abi->frame.stackpointer) - callee[-1].frame;

		end = used < end ? used : end;
		top = end > from + 8 * TOP_SLOTS ? end - 8 * TOP_SLOTS : from;
	}
	for (uint64_t at = from; at + 8 <= end; at += 8) {
		raddr_t iframe = (frame_u64(bytes, (int32_t)at) & ~UINT64_C(3)) + (uint64_t)abi->gen.iframe;
		struct apart_link link;

		if (iframe == callee->frame)
			return false;
		if (at < top || iframe == (uint64_t)abi->gen.iframe)
			continue;
		empty = false;
		if (!another) {
			link = apart_link(t->apart, iframe);
			another = link.frame != 0 ? !link.shim : is_generator(w, iframe);
		}
	}
	return another || empty;
}

void links_note_foreign(const struct walker *w, struct thread *t)
{
	for (uint32_t i = 1; t->seen.apart && i < t->seen.depth; i++) {
		struct pyframe *callee = &t->seen.frames[i];
		uint32_t count;
		const uint8_t *caller = callee->generator ? walk_copy(w, t, callee[-1].frame, 0, &count) : NULL;

		callee->foreign = caller && links_resumes_another(w, t, callee, caller, count);
	}
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
	by.bytes = links_copy(l->w, l->t, by.frame, &by.count);
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

raddr_t links_follow(struct links *l, raddr_t frame)
{
	const struct pyabi *abi = l->w->abi;
	bool yielded = false;

	while (frame_may_be(frame) && !thread_in_chunks(l->t, frame)) {
		struct link link = {.frame = frame};

		if (l->count == LINKS_MAX || links_find(l, frame))
			return 0;
		link.bytes = yielded && apart_link(l->t->apart, frame).shim
		                     ? NULL
		                     : links_copy(l->w, l->t, frame, &link.count);
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
		if (link.previous == 0)
			return 0;
		l->link[l->count++] = link;
		frame = link.previous;
	}
	return frame_may_be(frame) ? frame : 0;
}

void links_chase(struct links *l, raddr_t current)
{
	raddr_t frame = current, outermost = l->t->chunk_count > 0 ? l->t->chunks[0].base + CHUNK_FIRST : 0;

	for (uint32_t i = 0; frame != 0 && i < CHASE_MAX; i++) {
		uint32_t copied;
		const uint8_t *bytes;

		frame = links_follow(l, frame);
		bytes = frame && frame != outermost ? walk_copy(l->w, l->t, frame, 0, &copied) : NULL;
		frame = bytes ? frame_previous(l->w->abi, bytes) : 0;
	}
}

struct pair { /* a call of the stack */
	struct pyframe *callee; /* its caller is the one before it */
	raddr_t link;           /* what the callee's previous is while it runs: its caller, or a shim */
};

/* False: it is none. */
static bool take_pair(const struct walker *w, const struct thread *t, struct pyframe *callee, struct pair *ret_pair)
{
	raddr_t caller = callee[-1].frame;
	uint32_t ignored;
	const uint8_t *bytes = callee->provable ? walk_copy(w, t, callee->frame, 0, &ignored) : NULL;
	raddr_t link = bytes ? frame_previous(w->abi, bytes) : 0;
	struct apart_link known;

	if (link == 0)
		return false;
	*ret_pair = (struct pair){.callee = callee, .link = link};
	known = apart_link(t->apart, link);
	return link == caller || (known.shim && known.previous == caller);
}

/* Where in its code a copy of a frame stands; below 0: it is not this frame's any more. */
static int64_t stands_at(const struct walker *w, const uint8_t *bytes, const struct pyframe *frame)
{
	const struct code *code = codes_find(w->codes, frame->code);
	int64_t offset;

	return code && bytes && frame_code(w->abi, bytes) == frame->code && frame_offset(w->abi, bytes, code, &offset) ? offset : -1;
}

/* The same of one that still runs, on top of what it is linked to. */
static int64_t runs_at(const struct walker *w, const uint8_t *bytes, const struct pair *pair)
{
	int64_t offset = stands_at(w, bytes, pair->callee);

	return offset >= 0 && frame_previous(w->abi, bytes) == pair->link &&
	                       !frame_is_left(w->abi, bytes, codes_find(w->codes, pair->callee->code), offset)
	               ? offset
	               : -1;
}

/* The callee was read before and behind its caller, some 0.1 µs apart: where it runs at both times, and has not begun anew, as far as its
 * instruction tells, it was called from where the caller stood. That is where the stack has it; and below a call of its own, the callee, too. */
static bool is_proven(const struct walker *w, const struct thread *t, const struct pair *pair, uint32_t piece, bool innermost)
{
	int64_t first = runs_at(w, plan_bytes(w->plan, piece), pair), again = runs_at(w, plan_bytes(w->plan, piece + 2), pair);

	return first >= 0 && again >= first && (innermost || (first == pair->callee->offset && again == first)) &&
	       stands_at(w, plan_bytes(w->plan, piece + 1), &pair->callee[-1]) == pair->callee[-1].offset &&
	       !links_resumes_another(w, t, pair->callee, plan_bytes(w->plan, piece + 1), w->plan->pieces[piece + 1].bytes);
}

void links_prove(struct walker *w, struct thread *t)
{
	struct apart_copy *copy = &t->copy.apart;
	struct iovec frames[3 * APART_PROVEN];
	struct pair pairs[APART_PROVEN];
	uint32_t count = 0, first, outermost = 0, head_bytes = (uint32_t)w->abi->frame.bytes;

	while (outermost < t->seen.depth && !t->seen.frames[outermost].generator)
		outermost++;
	for (uint32_t i = t->seen.depth; i-- > 1;) {
		struct pyframe *callee = &t->seen.frames[i];

		callee->proven = false;
		if (i < outermost || count == APART_PROVEN || !take_pair(w, t, callee, &pairs[count]))
			continue;
		frames[3 * count] = frames[3 * count + 2] = piece_at(callee->frame, head_bytes);
		frames[3 * count + 1] = piece_at(callee[-1].frame, callee->generator ? links_caller_bytes(w, callee[-1].code) : head_bytes);
		count++;
	}
	copy->proven_count = 0;
	if (count == 0)
		return;
	t->apart->doubts--;
	if (apart_fetch(copy, w->plan, w->remote, frames, 3 * count, PLAN_SINGLY) < 0)
		return;
	first = copy->fetched + copy->fetched_count - 3 * count;
	for (uint32_t i = 0; i < 3 * count; i++)
		w->plan->pieces[first + i].from = 0; /* nobody else is to find these */
	for (uint32_t i = 0; i < count && !w->plan->slow_fetch; i++) {
		pairs[i].callee->proven = is_proven(w, t, &pairs[i], first + 3 * i, pairs[i].callee + 1 == t->seen.frames + t->seen.depth);
		copy->proven_count += pairs[i].callee->proven;
	}
}
