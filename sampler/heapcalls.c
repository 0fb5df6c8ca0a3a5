/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a stack whose frames lie on the heap (to 3.10), and which of them are known to be possible: by themselves together with
 * the call sites that led to them, or by what frames told of themselves (callee.c). */
#include "base/hash.h"
#include "sampler/heapcalls.h"

static uint64_t site_of(const struct walker *w, const struct pyframe *frame, uint64_t *ret_identity)
{
	const struct code *code = codes_find(w->codes, frame->code);

	*ret_identity = code ? code->identity : frame->code;
	return hash_combine(*ret_identity, (uint64_t)frame->offset);
}

/* What is asked of one frame of a stack: whether the call that made it is known. */
struct heap_call {
	uint64_t key;          /* of the callee and the innermost call sites that led to it */
	uint64_t caller;       /* of the innermost of these alone; 1: the frame is the outermost */
	uint64_t place;        /* where the frame itself stands, and the call sites that led to it */
	uint64_t caller_place; /* the same of the frame before it; 0: none */
	uint64_t line;         /* as `place`, but by the line */
	uint32_t frame;
};

static uint64_t line_of(const struct walker *w, const struct pyframe *frame, uint64_t identity)
{
	const struct code *code = codes_find(w->codes, frame->code);

	return hash_combine(~identity, code ? code_line(code, frame->offset) : 0);
}

/* Goes through a stack from frame `from` on, outermost first; fn returns false to stop. */
static bool each_call(const struct walker *w, const struct pystack *stack, uint32_t from, void *context,
                      bool (*fn)(void *context, const struct heap_call *call))
{
	uint32_t first = from > EDGE_SITES ? from - EDGE_SITES : 0;
	uint64_t sites[EDGE_SITES] = {0}; /* the latest ones, in a circle */
	uint64_t place = 0;

	for (uint32_t i = first; i < stack->depth; i++) {
		uint64_t identity, site = site_of(w, &stack->frames[i], &identity);
		struct heap_call call = {
			.key = identity, .place = site, .caller = 1, .caller_place = place, .frame = i};

		if (i > 0)
			call.caller |= sites[(i + EDGE_SITES - 1) % EDGE_SITES];
		call.line = line_of(w, &stack->frames[i], identity);
		for (uint32_t k = 1; i + 1 >= from && k < EDGE_SITES; k++) {
			call.place = hash_combine(call.place, sites[(i + EDGE_SITES - k) % EDGE_SITES]);
			call.line = hash_combine(call.line, sites[(i + EDGE_SITES - k) % EDGE_SITES]);
		}
		call.place = place = call.place | 1;
		call.line |= 1;
		if (i >= from) {
			for (uint32_t k = 1; k <= EDGE_SITES; k++)
				call.key = hash_combine(call.key, sites[(i + EDGE_SITES - k) % EDGE_SITES]);
			call.key |= 1;
			if (!fn(context, &call))
				return false;
		}
		sites[i % EDGE_SITES] = site;
	}
	return true;
}

/* Whether all functions that are called on the way to frame `end` are called from one place only: then it does not matter to any
 * of them who called. */
static bool has_one_way(const struct walker *w, const struct pystack *stack, uint32_t end)
{
	for (uint32_t i = 1; i < end; i++) {
		const struct code *code = codes_find(w->codes, stack->frames[i].code);

		if (!code || !code_has_one_caller(code))
			return false;
	}
	return true;
}

uint64_t heap_local_call(const struct code *before, const struct code *caller, int64_t offset,
                         const struct code *callee)
{
	uint64_t key = hash_combine(before ? before->identity : 0, caller->identity);

	return hash_combine(hash_combine(key, (uint64_t)offset), callee->identity) | 1;
}

uint64_t heap_calls_itself(const struct code *caller, const struct code *callee)
{
	return hash_combine(caller->identity, ~callee->identity) | 1;
}

/* What single copies of frames said that they call. The value stack can be of a later call than the instruction, by as long as it takes to fetch a line of
 * memory: so a call is not believed before it was told so often, and is so great a part of what was told at its place; nor that nothing else is called
 * there, where others are more than another one. */
#define TOLD_SIGHTINGS 4
#define TOLD_SHARE(n)  ((n) - (n) / 3)
#define TOLD_OTHERS    16
#define TOLD_SALT      0x746f6c64

static uint64_t told_at(const struct code *before, const struct code *caller, int64_t offset)
{
	return hash_combine(hash_combine(before ? before->identity : 0, caller->identity), TOLD_SALT + (uint64_t)offset) | 1;
}

void heap_sight_told(uint64_t now_ns, const struct code *before, const struct code *caller, int64_t offset, struct code *callee, struct edges *edges)
{
	uint32_t seen = edges_tally(edges, told_at(before, caller, offset), 0), same;
	uint64_t call;

	if (!callee)
		return;
	call = heap_local_call(before, caller, offset, callee);
	same = edges_tally(edges, hash_combine(call, TOLD_SALT) | 1, 0);
	if (same < TOLD_SIGHTINGS || same < TOLD_SHARE(seen))
		return;
	code_called_from(callee, hash_combine(caller->identity, (uint64_t)offset) | 1);
	edges_sight_key(edges, call, now_ns);
}

/* Whether frames that stood there hardly ever said that they call anything else. */
static bool is_only_told(const struct code *before, const struct code *caller, int64_t offset, const struct code *callee, const struct edges *edges)
{
	uint64_t call = heap_local_call(before, caller, offset, callee);
	uint32_t seen = edges_tallied(edges, told_at(before, caller, offset)), same = edges_tallied(edges, hash_combine(call, TOLD_SALT) | 1);

	return same >= TOLD_SIGHTINGS && seen < same + same / TOLD_OTHERS;
}

/* So many times as often a function was seen to be called from another place in the same caller, and it was never called from here. */
#define MISPLACED 16

static bool refutes_call(const struct walker *w, const struct pystack *stack, uint32_t i, struct edges *edges)
{
	const struct code *callee = codes_find(w->codes, stack->frames[i].code);
	const struct code *caller = codes_find(w->codes, stack->frames[i - 1].code);
	const struct callsite *site;

	if (!caller || !callee || !w->moves)
		return false;
	site = callsites_at(caller->sites, caller->site_count, stack->frames[i - 1].offset);
	if (site && site->unsure)
		return false;
	if (!site || callsite_is_open(site)) /* it says so where it does */
		return edges_has(edges, heap_calls_itself(caller, callee));
	return site->callee != callee->identity && callsite_is_python(site) && callsite_is_of(site, site->callee);
}

bool heap_refutes(const struct walker *w, const struct pystack *stack, struct edges *edges)
{
	for (uint32_t i = 1; i < stack->depth; i++)
		if (refutes_call(w, stack, i, edges))
			return true;
	return false;
}

/* Counts of a function's calls of another one: from one place, and the most from any one place. */
static uint64_t count_key(const struct walker *w, const struct pystack *stack, uint32_t i, bool anywhere)
{
	uint64_t caller, callee, site = site_of(w, &stack->frames[i - 1], &caller);

	site_of(w, &stack->frames[i], &callee);
	return hash_combine(anywhere ? caller : site, callee) | 1;
}

static void count_call(const struct walker *w, const struct pystack *stack, uint32_t i, struct edges *edges)
{
	uint32_t count = edges_tally(edges, count_key(w, stack, i, false), 0);

	if (count == 1) /* or it was forgotten: what is compared with it begins anew, too */
		edges_untally(edges, count_key(w, stack, i, true));
	edges_tally(edges, count_key(w, stack, i, true), count);
}

static bool is_misplaced(const struct walker *w, const struct pystack *stack, uint32_t i, const struct edges *edges)
{
	return i > 0 && (uint64_t)MISPLACED * edges_tallied(edges, count_key(w, stack, i, false)) <
	                        edges_tallied(edges, count_key(w, stack, i, true));
}

struct question {
	const struct walker *w;
	const struct pystack *stack;
	struct edges *edges;
	uint32_t at; /* the frame asked about last */
};

/* Whether frame i, seen from what its caller says: that stands where it calls nothing else, and it can stand there in this context; or
 * no more than one way leads to it at all. */
static bool is_told_call(const struct question *q, uint32_t i, uint64_t caller_place)
{
	const struct pyframe *frames = q->stack->frames;
	const struct code *callee = codes_find(q->w->codes, frames[i].code), *caller, *before;
	const struct callsite *site;

	if (i == 0 || q->w->abi->frames != FRAMES_HEAP)
		return false;
	caller = codes_find(q->w->codes, frames[i - 1].code);
	before = i > 1 ? codes_find(q->w->codes, frames[i - 2].code) : NULL;
	if (!callee || !caller || (!before && i > 1))
		return false;
	site = callsites_at(caller->sites, caller->site_count, frames[i - 1].offset);
	if (!site || !edges_has(q->edges, heap_local_call(before, caller, frames[i - 1].offset, callee)))
		return false;
	return (frames[i].told || callsite_is_of(site, callee->identity) ||
	        is_only_told(before, caller, frames[i - 1].offset, callee, q->edges)) &&
	       (edges_has(q->edges, caller_place) || has_one_way(q->w, q->stack, i));
}

static bool calls_itself_again(const struct pystack *stack, uint32_t i)
{
	for (uint32_t k = 1; k <= EDGE_SITES && k <= i; k++)
		if (stack->frames[i - k].code == stack->frames[i].code)
			return true;
	return false;
}

/* The innermost frame stands at a call, though nothing that it calls was there, or it is of a recursive function, whose frames change
 * their levels: it must be able to stand on this line. */
static bool leaf_known(const struct question *q, const struct heap_call *call)
{
	const struct pyframe *leaf = &q->stack->frames[call->frame];
	const struct code *code = codes_find(q->w->codes, leaf->code);

	if (call->frame + 1 < q->stack->depth || q->w->abi->frames != FRAMES_HEAP || !code)
		return true;
	if (!callsites_at(code->sites, code->site_count, leaf->offset) && !calls_itself_again(q->stack, call->frame))
		return true;
	return edges_has(q->edges, call->line) || has_one_way(q->w, q->stack, call->frame + 1);
}

static bool call_known(void *context, const struct heap_call *call)
{
	struct question *q = context;
	bool known = edges_has(q->edges, call->key);

	q->at = call->frame;
	if (q->w->abi->frames == FRAMES_HEAP && call->frame > 0) {
		if (refutes_call(q->w, q->stack, call->frame, q->edges))
			return false;
		known = known && !(q->w->moves && is_misplaced(q->w, q->stack, call->frame, q->edges));
	}
	return (known || is_told_call(q, call->frame, call->caller_place)) && leaf_known(q, call);
}

static bool site_known(void *context, const struct heap_call *call)
{
	const struct question *q = context;

	return edges_has(q->edges, call->caller) || is_told_call(q, call->frame, call->caller_place);
}

struct sighting {
	const struct walker *w;
	const struct pystack *stack;
	struct edges *edges;
	bool stood; /* then the first is enough */
	bool learnt;
};

static void sight_key(struct sighting *s, uint64_t key)
{
	if (s->stood)
		edges_learn_key(s->edges, key);
	else
		s->learnt |= edges_sight_key(s->edges, key, s->w->now_ns);
}

static bool sight(void *context, const struct heap_call *call)
{
	struct sighting *s = context;
	struct code *code = codes_find(s->w->codes, s->stack->frames[call->frame].code);

	sight_key(s, call->key);
	sight_key(s, call->caller);
	if (s->w->abi->frames == FRAMES_HEAP) {
		sight_key(s, call->place);
		sight_key(s, call->line);
		if (code && call->frame > 0)
			code_called_from(code, call->caller);
		if (call->frame > 0)
			count_call(s->w, s->stack, call->frame, s->edges);
	}
	return true;
}

bool heap_knows_calls(const struct walker *w, const struct pystack *stack, uint32_t from, struct edges *edges,
                      uint32_t *ret_unknown)
{
	struct question q = {.w = w, .stack = stack, .edges = edges};

	if (each_call(w, stack, from, &q, call_known))
		return true;
	if (ret_unknown)
		*ret_unknown = q.at;
	return false;
}

bool heap_knows_sites(const struct walker *w, const struct pystack *stack, struct edges *edges)
{
	struct question q = {.w = w, .stack = stack, .edges = edges};

	return each_call(w, stack, 0, &q, site_known);
}

bool heap_sight_calls(const struct walker *w, const struct pystack *stack, uint32_t from, struct edges *edges)
{
	struct sighting s = {.w = w, .stack = stack, .edges = edges};

	each_call(w, stack, from, &s, sight);
	return s.learnt;
}

void heap_learn_calls(const struct walker *w, const struct pystack *stack, struct edges *edges)
{
	struct sighting s = {.w = w, .stack = stack, .edges = edges, .stood = true};

	each_call(w, stack, 0, &s, sight);
}
