/* SPDX-License-Identifier: Apache-2.0 */
/* One thing still, above 400 lines: one climb, whose steps share its state (struct climb); what it finds outside the data stack is in
 * links.c. */
/* The walk up the data stack (3.11+): from the outermost frame to the leaf, told by the frames themselves.
 *
 * One copy of a chunk is close to one instant, while the thread state's "current frame", read a little later, is not
 * of that instant. So the leaf is found from the copy: a frame starts where its caller ends, links back to it, and
 * its caller says that it is suspended in a call. What lies above the leaf is dead: to 3.13 the leaf itself does not say
 * "suspended"; since 3.14 a dead frame's code is cleared. Two things lie elsewhere and are looked for by their link back
 * to the frame below: generators' frames in their objects, and the shims on the C stack through which C called Python. */
#include <errno.h>

#include "base/hash.h"
#include "sampler/links.h"
#include "sampler/record.h"
#include "sampler/walk.h"

/* Of so many frames that had been left when they were copied, all but one were alive when their caller was copied: by this share the
 * oracles' shares agree best with those of the stopped programs (tests/oracle/run --bias; 3.11 to 3.15). */
#define LEFT_OF      4
#define SHIMS_MAX    256 /* below the outermost frame */

struct climb {
	struct walker *w;
	struct thread *t;
	raddr_t current;
	uint32_t chunk; /* index of the chunk that `top` lies in */
	bool calls; /* the innermost frame so far stands where an instruction can call, or is the interpreter's own */
	bool through_c; /* a frame that is not suspended has a frame above it: only the leaf's own mark proves that one alive */
	struct links links;
	raddr_t top; /* where the innermost data-stack frame so far ends: the next one begins here, or in the next chunk */
};

/* Frame bytes in a chunk's copy. NULL with *ret_err 0: cannot be a frame; with -EAGAIN: more must be copied. */
static const uint8_t *chunk_frame(const struct climb *c, uint32_t chunk, raddr_t frame, int *ret_err)
{
	const struct plan *p = c->w->plan;
	const struct piece *piece = &p->pieces[c->t->copy.chunks + chunk];
	struct chunk *of = &c->t->chunks[chunk];
	uint64_t from = frame - piece->from;
	uint64_t end = from + (uint64_t)c->w->abi->frame.bytes;

	*ret_err = 0;
	if (end > of->size_bytes)
		return NULL;
	if (!piece->ok) {
		*ret_err = -EAGAIN;
		return NULL;
	}
	if (end > piece->bytes) {
		c->w->grew = true;
		thread_want_chunk(of, end);
		*ret_err = -EAGAIN;
		return NULL;
	}
	return p->memory + piece->at + from;
}

/* Whether the chain below the outermost frame ends as it must; asked of the target once for each link. */
static int check_root_link(const struct climb *c, raddr_t link)
{
	const struct pyabi *abi = c->w->abi;
	const uint8_t *head = plan_bytes(c->w->plan, c->t->copy.head);
	raddr_t end = abi->tstate.base_frame != ABSENT && head ? frame_u64(head, abi->tstate.base_frame) : 0;
	raddr_t at = link;

	if (c->t->root_link_known && link == c->t->root_link)
		return 0;
	for (int i = 0; at != 0 && at != end; i++) {
		uint8_t bytes[PYABI_FRAME_MAX];

		if (i == SHIMS_MAX || thread_in_chunks(c->t, at) ||
		    remote_read(c->w->remote, at, bytes, (size_t)abi->frame.bytes) != 0 || !frame_is_shim(abi, bytes))
			return -EAGAIN;
		at = frame_previous(abi, bytes);
	}
	c->t->root_link = link;
	c->t->root_link_known = true;
	return 0;
}

/* Whether a frame called nothing, as the thread state says. */
static bool is_current(const struct climb *c, raddr_t frame)
{
	return c->current == frame;
}

/* Whether C called a frame on the data stack through a shim that need not be read. Since 3.14 a frame that was left says so, to 3.13 one that C
 * called does not. */
static bool is_called_steadily(const struct climb *c, const uint8_t *bytes, raddr_t caller)
{
	return walk_passes_steady(c->w) && apart_is_steady(c->t->apart, frame_previous(c->w->abi, bytes), caller);
}

/* Does a data-stack frame called from `caller` begin here? Directly (from C, too, in 3.11), or through a shim that links to
 * the caller. */
static int is_called_from(struct climb *c, const uint8_t *bytes, raddr_t caller, bool suspended)
{
	const struct pyabi *abi = c->w->abi;
	raddr_t addr = frame_code(abi, bytes);
	raddr_t link = frame_previous(abi, bytes);
	const struct link *shim;
	struct code *code;

	if (addr == 0)
		return 0;
	if (link == caller && (suspended || !frame_is_entry(abi, bytes)))
		return suspended;
	if (link != caller && (!frame_may_be(link) || thread_in_chunks(c->t, link)))
		return 0;
	if (link != caller && suspended && abi->call_mark == CALL_MARK_STACKTOP)
		return 0;
	/* C called it: then the thread state tells, since to 3.13 a dead one still looks like this. What looks like a frame can
	 * be what is left of older ones that lay otherwise: it must at least execute code. */
	if (link == caller || is_current(c, caller))
		return !is_current(c, caller);
	if (!codes_find(c->w->codes, addr) &&
	    codes_load(c->w->codes, c->w->remote, addr, c->w->now_ns, &code) == -EPROTO)
		return 0;
	/* It lies on the C stack, where no generator is; and as deep in it, C was called by this frame each time, as one look in eight makes sure of. */
	if (suspended && is_called_steadily(c, bytes, caller))
		return 1;
	links_follow(&c->links, link);
	shim = links_to(&c->links, true, caller);
	if (!shim || shim->frame != link)
		return 0;
	if (shim->yielded)
		c->t->late = c->t->recalled = true;
	return 1;
}

/* Whether a frame has been left, by itself or by an exception. One that is traced stands below the frame that traces it. */
static bool is_left(const struct climb *c, uint32_t chunk, raddr_t frame, const uint8_t *bytes, const struct code *code,
                    int64_t offset)
{
	const struct chunk *of = &c->t->chunks[chunk];

	if (frame_is_left(c->w->abi, bytes, code, offset))
		return true;
	if (!frame_is_interrupted(c->w->abi, bytes, code, offset))
		return false;
	return (c->current <= frame || c->current - of->base >= of->size_bytes);
}

enum life { LIFE_NONE, LIFE_RUNS, LIFE_LEFT };

/* Whether a called frame has begun to run, or was left already. One that has not begun is being made, or is what a call of a
 * generator function leaves behind. The interpreter's own trampolines, no part of which is traceable, never "begin", but stand below
 * the frame that they call. */
static enum life life_of(const struct climb *c, uint32_t chunk, raddr_t frame, const uint8_t *bytes)
{
	const struct pyabi *abi = c->w->abi;
	raddr_t addr = frame_code(abi, bytes);
	struct code *code = codes_find(c->w->codes, addr);
	const uint8_t *above;
	int64_t offset;
	int err;

	if (!code && codes_load(c->w->codes, c->w->remote, addr, c->w->now_ns, &code) != 0)
		return LIFE_RUNS; /* the walk stumbles over it and tries again */
	if (!frame_offset(abi, bytes, code, &offset)) {
		c->w->doubted = addr;
		return LIFE_NONE;
	}
	if (is_left(c, chunk, frame, bytes, code, offset))
		return offset >= (int64_t)code->traceable_bytes ? LIFE_LEFT : LIFE_NONE;
	if (offset >= (int64_t)code->traceable_bytes || frame_is_generator(abi, bytes))
		return LIFE_RUNS;
	if (code->traceable_bytes < code->bytecode_bytes)
		return LIFE_NONE;
	above = chunk_frame(c, chunk, frame + code->frame_bytes, &err);
	return above && frame_previous(abi, above) == frame && frame_code(abi, above) != 0 ? LIFE_RUNS : LIFE_NONE;
}

/* Whether this frame above `caller` is one of the stack though it was left when it was copied. The caller was copied a little before:
 * where it says that it is in a call, the frame was alive then, most likely. Where a chunk begins it is given back as the frame is
 * left, which takes longer than the copy. */
static bool was_alive(const struct climb *c, uint32_t chunk, raddr_t caller, const uint8_t *bytes, bool suspended)
{
	return suspended && chunk == c->chunk && frame_previous(c->w->abi, bytes) == caller;
}

/* The generator's frame that links to `caller`, if it runs. One that has yielded since ran then. */
static const uint8_t *running_generator(const struct climb *c, raddr_t caller, raddr_t *ret_frame)
{
	const struct link *link = links_to(&c->links, false, caller);

	if (!link || (!link->yielded && life_of(c, c->chunk, link->frame, link->bytes) != LIFE_RUNS))
		return NULL;
	*ret_frame = link->frame;
	return link->bytes;
}

/* What is at the place where the next frame would begin may be a generator's callee: then that generator's frame, if `caller` runs it. */
static const uint8_t *generator_below(struct climb *c, uint32_t chunk, raddr_t at, const uint8_t *bytes, raddr_t caller,
                                      raddr_t *ret_frame)
{
	raddr_t link = frame_previous(c->w->abi, bytes);

	if (is_current(c, caller) || link == caller || frame_code(c->w->abi, bytes) == 0 || !frame_may_be(link) ||
	    thread_in_chunks(c->t, link) || life_of(c, chunk, at, bytes) != LIFE_RUNS)
		return NULL;
	links_follow(&c->links, link);
	return running_generator(c, caller, ret_frame);
}

/* Whether a frame that began is linked to a caller that says it is suspended, but stands where no instruction can call: two moments in
 * one copy. One that has not begun was left behind by the call of a generator function, and says nothing. */
static bool is_torn(const struct climb *c, const uint8_t *bytes, raddr_t caller, bool suspended, enum life life)
{
	return life != LIFE_NONE && suspended && !c->calls && frame_previous(c->w->abi, bytes) == caller &&
	       !frame_is_entry(c->w->abi, bytes);
}

/* The next frame above `caller`: its bytes and address, or NULL with *ret_err 0: the caller is the leaf. */
static const uint8_t *next_frame(struct climb *c, raddr_t caller, bool suspended, raddr_t *ret_frame, int *ret_err)
{
	const uint8_t *bytes = running_generator(c, caller, ret_frame), *left = NULL;
	const struct link *shim;
	raddr_t left_frame = 0;

	*ret_err = 0;
	if (bytes)
		return bytes;
	for (uint32_t k = c->chunk; k < c->t->copy.chunk_count && k <= c->chunk + 1; k++) {
		raddr_t at = k == c->chunk ? c->top : c->t->chunks[k].base + CHUNK_NEXT;
		enum life life;
		int err;

		bytes = chunk_frame(c, k, at, &err);
		if (!bytes && err) {
			*ret_err = err;
			return NULL;
		}
		err = bytes ? is_called_from(c, bytes, caller, suspended) : 0;
		if (err < 0) {
			*ret_err = err;
			return NULL;
		}
		if (err == 0 && bytes) {
			const uint8_t *generator = generator_below(c, k, at, bytes, caller, ret_frame);

			if (generator)
				return generator;
		}
		life = err > 0 ? life_of(c, k, at, bytes) : LIFE_NONE;
		if (is_torn(c, bytes, caller, suspended, life)) {
			*ret_err = -EAGAIN;
			return NULL;
		}
		if (life == LIFE_RUNS) {
			c->chunk = k;
			*ret_frame = at;
			return bytes;
		}
		if (life == LIFE_LEFT && was_alive(c, k, caller, bytes, suspended)) {
			left = bytes;
			left_frame = at;
		}
	}
	/* A generator that C resumed lies behind a shim. */
	shim = !is_current(c, caller) ? links_to(&c->links, true, caller) : NULL;
	if (shim) {
		bytes = running_generator(c, shim->frame, ret_frame);
		if (bytes)
			return bytes;
	}
	if (!left || hash_u64(c->w->tick) % LEFT_OF == 0)
		left_frame = 0;
	c->t->left = left_frame;
	c->t->leaf_left = left_frame != 0;
	*ret_frame = left_frame;
	return left_frame ? left : NULL;
}

/* The next copy takes what is in use and a little more, and shrinks slowly when less is. */
static void fit_copy(const struct climb *c)
{
	struct chunk *chunk = &c->t->chunks[c->chunk];
	uint64_t want = c->top - chunk->base + 512;

	if (c->chunk + 1 < c->t->chunk_count || want > chunk->size_bytes)
		return;
	if (want < chunk->copy_bytes)
		chunk->copy_bytes -= (uint32_t)((chunk->copy_bytes - want) / 16) & ~7u;
	else
		chunk->copy_bytes = (uint32_t)want;
}

/* The innermost frame found says that it is suspended in a call, but nothing is above it: its callee is just being made or
 * unmade (a thread can be preempted there for long), or it is itself being left, or it is long dead. The thread state tells.
 * 1: it is the leaf; 0: its caller is; -EAGAIN: read again. */
static int judge_suspended_leaf(const struct climb *c, raddr_t leaf, raddr_t caller)
{
	if (c->current == leaf || c->current == c->top)
		return 1;
	if (caller && c->current == caller)
		return 0;
	return c->through_c ? -EAGAIN : 1;
}

/* Up to where the shims that frames of the latest sample were called through need not be read, of so many frames that are the same. */
static uint32_t cut_at_shim(const struct climb *c, uint32_t same)
{
	const struct thread *t = c->t;

	for (uint32_t i = 0; i < t->last_plain.shims; i++) {
		uint32_t callee = t->last_plain.called_by_c[i], chunk = 0;
		raddr_t frame;
		const uint8_t *bytes;
		int err;

		if (callee >= same)
			break;
		frame = t->last.frames[callee].frame;
		while (frame - t->chunks[chunk].base >= t->chunks[chunk].size_bytes)
			chunk++;
		bytes = chunk_frame(c, chunk, frame, &err);
		if (!bytes || !is_called_steadily(c, bytes, t->last.frames[callee - 1].frame))
			return callee;
	}
	return same;
}

/* The frames that lie where this copy is the same as that of the latest accepted sample are the same. The walk goes on at the
 * outermost one that is not, or may have another callee: that one's address, or 0. */
static raddr_t skip_same(struct climb *c)
{
	struct thread *t = c->t;
	uint32_t same = cut_at_shim(c, thread_find_same(t, c->w->plan, (uint32_t)c->w->abi->frame.bytes));
	raddr_t frame;

	if (same < 2)
		return 0;
	same--; /* above the innermost one there may be another frame now */
	frame = t->last.frames[same].frame;
	if (!stack_copy(&t->seen, &t->last, same))
		return 0;
	t->same = same;
	t->seen_plain = t->last_plain;
	plain_cut(&t->seen_plain, same + 1); /* with the shim of the one that the walk goes on at */
	t->seen_plain.count = same;
	while (frame - t->chunks[c->chunk].base >= t->chunks[c->chunk].size_bytes)
		c->chunk++;
	return frame;
}

/* Whether the frame at the end of the data stack so far was called by this one, which lies outside. */
static bool is_called_by(const struct climb *c, raddr_t caller)
{
	int err;
	const uint8_t *above = chunk_frame(c, c->chunk, c->top, &err);

	return above && frame_previous(c->w->abi, above) == caller && frame_code(c->w->abi, above) != 0 &&
	       life_of(c, c->chunk, c->top, above) == LIFE_RUNS;
}

/* The coroutine has gone on, and it cannot be told where it called what lies above it. */
static int give_up(const struct climb *c)
{
	c->w->why = RETRY_LINK;
	return -EAGAIN;
}

/* Whether the next frame, which does not link to its caller, is plain all the same; that it is is noted. */
static bool note_called_by_c(const struct climb *c, const uint8_t *bytes, raddr_t frame, raddr_t caller)
{
	struct plain *plain = &c->t->seen_plain;

	if (plain->shims == PLAIN_SHIMS || !thread_in_chunks(c->t, frame) || !is_called_steadily(c, bytes, caller))
		return false;
	plain->called_by_c[plain->shims++] = c->t->seen.depth;
	return true;
}

int walk_up(struct walker *w, struct thread *t, raddr_t current, raddr_t *ret_leaf)
{
	const struct pyabi *abi = w->abi;
	struct code *code = NULL;
	struct climb c; /* not cleared: it is large */
	const uint8_t *bytes;
	raddr_t frame;
	const struct link *sender = NULL; /* the last frame, a generator's, stands where it sends to another one */
	bool on_generator = false;        /* the last frame is one's */
	bool plain;                       /* so far */
	int err;

	t->seen.depth = t->same = 0;
	t->seen_plain = (struct plain){0};
	t->seen.apart = t->late = t->recalled = false;
	t->leaf_left = false;
	t->left = 0;
	*ret_leaf = 0;
	if (t->copy.chunk_count == 0)
		return -EAGAIN;
	c.w = w;
	c.t = t;
	c.current = current;
	c.chunk = 0;
	links_init(&c.links, w, t);
	c.through_c = false;
	c.top = 0;
	if (w->chase)
		links_chase(&c.links, current);
	frame = skip_same(&c);
	if (frame) {
		*ret_leaf = t->last.frames[t->same - 1].frame;
		bytes = chunk_frame(&c, c.chunk, frame, &err);
	} else {
		frame = t->chunks[0].base + CHUNK_FIRST;
		bytes = chunk_frame(&c, 0, frame, &err);
		err = bytes ? check_root_link(&c, frame_previous(abi, bytes)) : -EAGAIN;
		if (err)
			return err;
	}
	plain = true;
	for (uint32_t steps = 0; bytes; steps++) {
		raddr_t addr = frame_code(abi, bytes);
		bool generator = frame_is_generator(abi, bytes);
		bool suspended, kept, resumed, awaited;
		raddr_t caller = *ret_leaf;
		const struct link *link = generator ? links_find(&c.links, frame) : NULL;
		int64_t offset;

		if (steps > 2 * REC_DEPTH_MAX)
			return -EPROTO;
		if (!code || code->addr != addr) /* recursion needs no look-up */
			code = codes_find(w->codes, addr);
		if (!code) {
			err = codes_load(w->codes, w->remote, addr, w->now_ns, &code);
			w->exhausted |= err == -ENOSPC;
			if (err)
				return -EAGAIN;
		}
		if (!frame_offset(abi, bytes, code, &offset)) {
			w->doubted = addr;
			return -EAGAIN;
		}
		resumed = false;
		if (link && link->yielded) {
			t->late = t->recalled = true;
			if (links_to(&c.links, false, frame))
				resumed = awaited_at(code, offset, &offset);
			else if (is_called_by(&c, frame))
				return give_up(&c);
		}
		awaited = sender && link_awaits(abi, sender, frame);
		kept = generator || offset >= (int64_t)code->traceable_bytes;
		if (kept &&
		    !stack_push(&t->seen, (struct pyframe){.frame = frame,
		                                           .code = addr,
		                                           .offset = offset,
		                                           .generator = generator,
		                                           .direct = caller != 0 && frame_previous(abi, bytes) == caller &&
		                                                     !frame_is_entry(abi, bytes),
		                                           .stored = frame_is_stored(abi, bytes, code),
		                                           .awaited = awaited,
		                                           .provable = awaited || !(generator && on_generator) ||
		                                                       (sender && frame_sends_through_c(abi))}))
			return -ENOMEM;
		on_generator = generator;
		sender = link && code->resuming && code_resumes(code, offset) ? link : NULL;
		t->seen.apart |= generator;
		plain &= kept && !generator;
		if (plain)
			t->seen_plain.count = t->seen.depth;
		*ret_leaf = frame;
		if (!generator)
			c.top = frame + code->frame_bytes;
		if (!resumed &&
		    (t->leaf_left || is_left(&c, c.chunk, frame, bytes, code, offset) || code_leaves(code, offset)))
			break; /* what lies above is dead, though a frame on its way out has a stack pointer, too */
		if (link && link->yielded && !resumed)
			break;
		suspended = resumed || frame_is_suspended(abi, bytes, code);
		c.calls = code_calls(code, offset) || code->traceable_bytes >= code->bytecode_bytes;
		bytes = next_frame(&c, frame, suspended, &frame, &err);
		if (err)
			return err;
		if (bytes && !kept && code->traceable_bytes < code->bytecode_bytes)
			return -EAGAIN; /* it has not begun: what lies above is of an earlier call */
		if (bytes) {
			c.through_c |= !suspended;
			plain = plain && suspended && (frame_previous(abi, bytes) == *ret_leaf || note_called_by_c(&c, bytes, frame, *ret_leaf));
			if (frame_previous(abi, bytes) != *ret_leaf || frame_is_generator(abi, bytes))
				code_mark_indirect(code, offset);
		} else if (suspended && abi->call_mark == CALL_MARK_STACKTOP) {
			err = judge_suspended_leaf(&c, *ret_leaf, caller);
			if (err < 0)
				return err;
			if (err == 0) {
				t->seen.depth -= kept;
				plain_cut(&t->seen_plain, t->seen.depth);
				*ret_leaf = caller;
			}
		}
	}
	fit_copy(&c);
	t->leads_on = t->seen.depth > 0 && code && code_is_indirect(code, t->seen.frames[t->seen.depth - 1].offset);
	t->agreed = current == *ret_leaf || current == c.top;
	t->late |= t->copy.apart.fetched_count > 0;
	return 0;
}
