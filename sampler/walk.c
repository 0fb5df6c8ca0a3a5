/* SPDX-License-Identifier: Apache-2.0 */
/* What both ways of walking share, and the walk down the chain of previous pointers. */
#include "sampler/walk.h"

#include <errno.h>

#include "base/hash.h"
#include "sampler/record.h"

#define COUNT_TICKS     16   /* one stack in so many is counted */
#define ADJACENT_BYTES  4096 /* a frame is smaller, with few exceptions */
#define COUNT_ALL_TICKS 4096 /* but all of the first */

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
		uint32_t k = thread_find_heap(t, addr);

		if (k == UINT32_MAX)
			return NULL;
		t->heap[k].used_tick = w->tick;
		*ret_bytes = bytes;
		return plan_bytes(p, copy_heap_piece(&t->copy, k));
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

int walk_current(struct walker *w, struct thread *t, raddr_t *ret_current)
{
	const struct pyabi *abi = w->abi;
	const uint8_t *head = plan_bytes(w->plan, t->copy.head);
	raddr_t at;

	if (!head)
		return -EFAULT;
	if (abi->tstate.cframe == ABSENT) {
		*ret_current = frame_u64(head, abi->tstate.frame);
		return 0;
	}
	at = frame_u64(head, abi->tstate.cframe);
	for (uint32_t i = 0; i < t->copy.cframe_count; i++) {
		const struct piece *piece = &w->plan->pieces[t->copy.cframes + i];

		if (piece->from != at + (uint64_t)abi->tstate.cframe_frame)
			continue;
		if (!piece->ok)
			return -EAGAIN;
		for (uint32_t k = 0; k < t->cframe_count; k++)
			if (t->cframes[k].frame == at)
				t->cframes[k].used_tick = w->tick;
		*ret_current = frame_u64(w->plan->memory + piece->at, 0);
		return 0;
	}
	thread_want_cframe(t, at, w->tick);
	w->grew = true;
	return -EAGAIN;
}

static void reverse(struct pystack *stack)
{
	for (uint32_t i = 0, k = stack->depth; i + 1 < k; i++) {
		struct pyframe swap = stack->frames[i];

		stack->frames[i] = stack->frames[--k];
		stack->frames[k] = swap;
	}
}

/* Adds a frame of the chain to t->seen; 1: it is one that CPython's own tracebacks leave out. */
static int chain_add(struct walker *w, struct thread *t, raddr_t frame, const uint8_t *bytes)
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
		if (offset >= 0 && !frame_is_executing(abi, bytes))
			return -EAGAIN;
	} else if (offset < (int64_t)code->traceable_bytes && !frame_is_generator(abi, bytes)) {
		return 1;
	}
	return stack_push(&t->seen, (struct pyframe){.frame = frame,
	                                             .code = addr,
	                                             .offset = offset,
	                                             .generator = frame_is_generator(abi, bytes)})
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
	bool from_generator = false;
	raddr_t outermost = 0;
	int missing = 0;

	if (end) {
		const uint8_t *head = plan_bytes(w->plan, t->copy.head);

		end = head ? frame_u64(head, abi->tstate.base_frame) : 0;
	}
	t->seen.depth = t->same = t->seen_plain = 0;
	t->seen.apart = false;
	for (raddr_t frame = current; frame != 0 && frame != end;) {
		uint8_t fetched[PYABI_FRAME_MAX];
		const uint8_t *bytes = find_copy(w, t, frame, (uint32_t)abi->frame.bytes, &hint, &copied);
		int err;

		if (++steps > 2 * REC_DEPTH_MAX || !frame_may_be(frame))
			return -EPROTO;
		if (!bytes) {
			if (!thread_want(t, frame, w->tick))
				return -ENOMEM;
			missing++;
			w->grew = true;
			err = remote_read(w->remote, frame, fetched, (size_t)abi->frame.bytes);
			if (err)
				return err == -EFAULT ? -EAGAIN : err;
			bytes = fetched;
		}
		if (!frame_is_shim(abi, bytes)) {
			err = chain_add(w, t, frame, bytes);
			if (err < 0)
				return err;
			from_generator = frame_is_generator(abi, bytes);
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

/* A frame's code, and where it stands in it, as hashes; whether mostly nothing is called there. */
static uint64_t site_of(const struct walker *w, const struct pyframe *frame, uint64_t *ret_content, bool *ret_seldom)
{
	const struct code *code = codes_find(w->codes, frame->code);

	if (!code)
		code = codes_find_retired(w->codes, frame->code);
	*ret_content = code ? code->content : frame->code;
	*ret_seldom = code && code_calls_seldom(code, frame->offset);
	return hash_combine(*ret_content, (uint64_t)frame->offset) | 1;
}

/* Whether both lie on the data stack, one on the other. */
static bool is_adjacent(const struct pyframe *caller, const struct pyframe *callee)
{
	return !caller->generator && !callee->generator && callee->frame - caller->frame < ADJACENT_BYTES;
}

/* Goes through the calls of a stack from the one of frame `from` on, outermost first, up to that of frame `to` - 1. fn returns
 * false to stop. */
static bool each_call(const struct walker *w, const struct pystack *stack, uint32_t from, uint32_t to, void *context,
                      bool (*fn)(void *context, const struct call *call))
{
	uint32_t first = from > EDGE_SITES ? from - EDGE_SITES : 0;
	uint64_t sites[EDGE_SITES] = {0}; /* the latest ones, in a circle */
	bool caller_seldom = false;

	for (uint32_t i = first; i < to; i++) {
		bool seldom;
		uint64_t content, site = site_of(w, &stack->frames[i], &content, &seldom), key = content;

		if (i >= from) {
			struct call call = {.site = i > 0 ? sites[(i + EDGE_SITES - 1) % EDGE_SITES] : 1,
			                    .callee = content | 1,
			                    .seldom = caller_seldom,
			                    .adjacent = i > 0 && is_adjacent(&stack->frames[i - 1], &stack->frames[i])};

			for (uint32_t k = 1; k <= EDGE_SITES; k++)
				key = hash_combine(key, sites[(i + EDGE_SITES - k) % EDGE_SITES]);
			call.key = key | 1;
			if (!fn(context, &call))
				return false;
		}
		sites[i % EDGE_SITES] = site;
		caller_seldom = seldom;
	}
	return true;
}

struct sighting {
	struct edges *edges;
	uint64_t now_ns;
	bool learnt;
};

static bool call_known(void *context, const struct call *call)
{
	return edges_has(context, call->key);
}

static bool call_known_apart(void *context, const struct call *call)
{
	return edges_has(context, call->key) || edges_has_single(context, call);
}

static bool site_known(void *context, const struct call *call)
{
	return edges_has(context, call->site);
}

static bool call_rare(void *context, const struct call *call)
{
	return edges_is_rare(context, call);
}

static bool sight(void *context, const struct call *call)
{
	struct sighting *s = context;

	s->learnt |= edges_sight(s->edges, call, s->now_ns);
	return true;
}

static bool sight_once(void *context, const struct call *call)
{
	struct sighting *s = context;

	s->learnt |= edges_sight_once(s->edges, call, s->now_ns);
	return true;
}

bool walk_knows_calls(const struct walker *w, const struct pystack *stack, uint32_t from, struct edges *edges)
{
	return each_call(w, stack, from, stack->depth, edges, stack->apart ? call_known_apart : call_known);
}

bool walk_knows_sites(const struct walker *w, const struct pystack *stack, struct edges *edges)
{
	return each_call(w, stack, 0, stack->depth, edges, site_known);
}

static bool call_not_false(void *context, const struct call *call)
{
	return !edges_is_false(context, call);
}

bool walk_has_false_call(const struct walker *w, const struct pystack *stack, struct edges *edges)
{
	return !each_call(w, stack, 0, stack->depth, edges, call_not_false);
}

bool walk_calls_are_rare(const struct walker *w, const struct pystack *stack, struct edges *edges)
{
	return each_call(w, stack, 0, stack->depth, edges, call_rare);
}

bool walk_sight_calls(const struct walker *w, const struct pystack *stack, uint32_t count, struct edges *edges)
{
	struct sighting s = {.edges = edges, .now_ns = w->now_ns};

	each_call(w, stack, 0, count, &s, sight);
	return s.learnt;
}

static bool sight_single(void *context, const struct call *call)
{
	struct sighting *s = context;

	if (call->adjacent)
		s->learnt |= edges_sight_single(s->edges, call, s->now_ns);
	return true;
}

bool walk_sight_once(const struct walker *w, const struct pystack *stack, struct edges *edges)
{
	struct sighting s = {.edges = edges, .now_ns = w->now_ns};

	each_call(w, stack, 0, stack->depth, &s, stack->apart ? sight_single : sight_once);
	return s.learnt;
}

static bool sight_left(void *context, const struct call *call)
{
	struct sighting *s = context;

	s->learnt = edges_sight_left(s->edges, call, s->now_ns);
	return true;
}

bool walk_knows_left(const struct walker *w, const struct pystack *stack)
{
	struct sighting s = {.edges = w->edges, .now_ns = w->now_ns};

	each_call(w, stack, stack->depth - 1, stack->depth, &s, sight_left);
	return s.learnt;
}

static bool learn(void *context, const struct call *call)
{
	edges_learn(context, call);
	return true;
}

void walk_learn_calls(const struct walker *w, const struct pystack *stack, struct edges *edges)
{
	each_call(w, stack, 0, stack->depth, edges, learn);
}

/* Notes one more of the latest parts of a stack. False: it is among them, as in recursion, which counts once. */
static bool is_new_part(uint64_t *latest, uint32_t i, uint64_t part)
{
	for (uint32_t k = 0; k < EDGE_SITES; k++)
		if (latest[k] == part)
			return false;
	latest[i % EDGE_SITES] = part;
	return true;
}

void walk_count(const struct walker *w, const struct pystack *stack, struct edges *edges)
{
	uint32_t weight = w->tick < COUNT_ALL_TICKS ? 1 : COUNT_TICKS;
	uint64_t sites[EDGE_SITES] = {0}, callees[EDGE_SITES] = {0};

	if (w->tick % weight != 0)
		return;
	for (uint32_t i = 0; i < stack->depth; i++) {
		bool seldom;
		uint64_t content, site = site_of(w, &stack->frames[i], &content, &seldom);

		if (is_new_part(sites, i, site))
			edges_count(edges, site, weight, w->now_ns);
		if (is_new_part(callees, i, content | 1))
			edges_count(edges, content | 1, weight, w->now_ns);
	}
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
