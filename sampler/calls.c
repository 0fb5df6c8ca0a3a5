/* SPDX-License-Identifier: Apache-2.0 */
/* One thing still, above 400 lines: each function here goes through the calls of a stack, one by one (each_call()), and asks edges.h about each, or tells it. */
#include "sampler/calls.h"

#include "base/hash.h"
#include "sampler/bytecode.h"

#define COUNT_TICKS    16   /* one stack in so many is counted */
#define ADJACENT_BYTES 4096 /* a frame is smaller, with few exceptions */

/* A frame's code, and where it stands in it, as hashes; *ret_code: NULL: not known any more. */
static uint64_t site_of(const struct walker *w, const struct pyframe *frame, uint64_t *ret_content, const struct code **ret_code)
{
	const struct code *code = codes_find(w->codes, frame->code);

	if (!code)
		code = codes_find_retired(w->codes, frame->code);
	*ret_content = code ? code->content : frame->code;
	*ret_code = code;
	return hash_combine(*ret_content, (uint64_t)frame->offset) | 1;
}

/* Whether both lie on the data stack, one on the other. */
static bool is_adjacent(const struct pyframe *caller, const struct pyframe *callee)
{
	return !caller->generator && !callee->generator && callee->frame - caller->frame < ADJACENT_BYTES;
}

struct place { /* where a call is made */
	const struct walker *w;
	const struct pyframe *caller; /* NULL: the callee is the outermost frame */
	enum called called;           /* what the callee is */
	const struct code *callee;    /* NULL: not known any more */
};

/* Whether what stands at its site can call at all. C can call above any instruction that is traced. */
static bool site_can_call(const struct call *call)
{
	const struct place *place = call->context;
	const struct code *code = place->caller ? codes_find(place->w->codes, place->caller->code) : NULL;

	return !code || (place->caller->stored && place->called == CALLED_BY_C) ||
	       bytecode_has_call(place->w->abi, place->w->remote, code, place->caller->offset, place->called);
}

/* Whether the callee is a generator that its caller did not resume, as that says itself: it resumes another one. */
static bool is_foreign(const struct call *call)
{
	const struct place *place = call->context;

	return place->caller && place->caller[1].generator && place->caller[1].foreign;
}

/* The same, whatever was seen: a copy can be torn in the same way again and again. */
static bool has_site(const struct call *call)
{
	return !is_foreign(call) && site_can_call(call);
}

/* A caller whose instruction is specialised for another function mostly calls that one. */
static bool specialised_for_another(const struct call *call)
{
	const struct place *place = call->context;
	const struct code *code = codes_find(place->w->codes, place->caller->code);
	uint32_t version = code && place->callee ? bytecode_specialised_for(place->w->abi, place->w->remote, code, place->caller->offset) : 0;

	return version != 0 && place->callee->version != 0 && version != place->callee->version;
}

/* Then it calls this one by another instruction, where one is specialised for it. Where none is, one instruction calls several functions in turn. */
static bool calls_another(const struct call *call)
{
	const struct place *place = call->context;
	const struct walker *w = place->w;
	int64_t elsewhere;
	uint32_t calls = 0;

	if (specialised_for_another(call))
		calls = bytecode_find_calls(w->abi, w->remote, codes_find(w->codes, place->caller->code), place->callee->version, &elsewhere);
	return calls > 0;
}

/* A caller whose instruction is specialised for C does not run a Python function in the same loop, nor does one that reads a plain attribute. */
static bool can_have_called(const struct call *call)
{
	const struct place *place = call->context;
	const struct code *code = codes_find(place->w->codes, place->caller->code);

	return !code || (bytecode_may_call(place->w->abi, place->w->remote, code, place->caller->offset) && !calls_another(call));
}

/* Of a callee that has been left: what lies there may be the frame of the next one, of which its link was written first. */
static bool can_have_called_left(const struct call *call)
{
	return can_have_called(call) && !specialised_for_another(call);
}

static enum called called_of(const struct pyframe *frame, const struct code *code)
{
	if (!frame->direct)
		return frame->generator && code && code->is_coroutine ? AWAITED_BY_C : CALLED_BY_C;
	return frame->generator ? RESUMED_DIRECTLY : CALLED_DIRECTLY;
}

/* Goes through the calls of a stack from the one of frame `from` on, outermost first, up to that of frame `to` - 1. fn returns
 * false to stop. */
static bool each_call(const struct walker *w, const struct pystack *stack, uint32_t from, uint32_t to, void *context,
                      bool (*fn)(void *context, const struct call *call))
{
	uint32_t first = from > EDGE_SITES ? from - EDGE_SITES : 0;
	uint64_t sites[EDGE_SITES] = {0}; /* the latest ones, in a circle */
	uint64_t caller = 0;
	const struct code *caller_code = NULL;

	for (uint32_t i = first; i < to; i++) {
		const struct code *code;
		uint64_t content, site = site_of(w, &stack->frames[i], &content, &code), key = content;

		if (i >= from) {
			struct place place = {.w = w,
			                      .caller = i > 0 ? &stack->frames[i - 1] : NULL,
			                      .called = called_of(&stack->frames[i], code),
			                      .callee = code};
			struct call call = {.site = i > 0 ? sites[(i + EDGE_SITES - 1) % EDGE_SITES] : 1,
			                    .callee = content | 1,
			                    .pair = i > 0 ? hash_combine(content, caller) | 1 : 0,
			                    .seldom = caller_code && code_calls_seldom(caller_code, stack->frames[i - 1].offset),
			                    .given = !caller_code || caller_code->given,
			                    .handed = stack->frames[i].handed,
			                    .can_be = i > 0 && stack->frames[i].direct ? can_have_called : NULL,
			                    .context = &place,
			                    .proven = stack->frames[i].proven,
			                    .adjacent = i > 0 && is_adjacent(&stack->frames[i - 1], &stack->frames[i])};

			for (uint32_t k = 1; k <= EDGE_SITES; k++)
				key = hash_combine(key, sites[(i + EDGE_SITES - k) % EDGE_SITES]);
			call.key = key | 1;
			if (!fn(context, &call))
				return false;
		}
		sites[i % EDGE_SITES] = site;
		caller_code = code;
		caller = content;
	}
	return true;
}

struct sighting {
	struct edges *edges;
	uint64_t now_ns;
	bool apart; /* some frames of the stack lie outside the data stack, and may be of other instants */
	bool outside;  /* a generator was met, … */
	bool unproven; /* … and a call from there on that was not proven */
	bool learnt;
};

static bool call_known(void *context, const struct call *call)
{
	return edges_has(context, call->key) || edges_has_always(context, call);
}

static bool call_known_apart(void *context, const struct call *call)
{
	return edges_has(context, call->key) || edges_has_single(context, call);
}

/* Of one that is known nothing is learnt; to ask what its site says can take two reads. */
static bool is_unknown(const struct sighting *s, const struct call *call)
{
	return !edges_has(s->edges, call->key);
}

/* Two copies of a loop that keeps step with them are torn alike: a caller at one call, with what it calls by the next. */
static bool sight(void *context, const struct call *call)
{
	struct sighting *s = context;
	const struct place *place = call->context;

	if (is_unknown(s, call) && has_site(call) && !(place->w->moves && call->can_be && calls_another(call)))
		s->learnt |= edges_sight(s->edges, call, s->now_ns);
	return true;
}

static bool sight_once(void *context, const struct call *call)
{
	struct sighting *s = context;

	if (is_unknown(s, call) && has_site(call))
		s->learnt |= edges_sight_once(s->edges, call, s->now_ns);
	return true;
}

bool calls_are_known(const struct walker *w, const struct pystack *stack, uint32_t from, struct edges *edges)
{
	return each_call(w, stack, from, stack->depth, edges, stack->apart ? call_known_apart : call_known);
}

bool calls_sight(const struct walker *w, const struct pystack *stack, uint32_t count, struct edges *edges)
{
	struct sighting s = {.edges = edges, .now_ns = w->now_ns};

	each_call(w, stack, 0, count, &s, sight);
	return s.learnt;
}

struct comparison {
	struct sighting s;
	const struct pystack *other;
	uint32_t at; /* frames of `other` before it lie further out */
};

/* Whether the caller stands alike in the other stack, and what it called was the same. */
static bool is_alike(struct comparison *c, const struct pyframe *caller)
{
	const struct pyframe *callee = caller + 1, *other;
	uint32_t at = c->at;

	while (at < c->other->depth && c->other->frames[at].frame != caller->frame)
		at++;
	if (at + 1 >= c->other->depth)
		return false;
	c->at = at;
	other = &c->other->frames[at];
	return other[0].code == caller->code && other[0].offset == caller->offset && other[1].frame == callee->frame &&
	       other[1].code == callee->code;
}

static bool sight_adjacent(void *context, const struct call *call)
{
	struct comparison *c = context;
	const struct place *place = call->context;

	if (call->adjacent && is_alike(c, place->caller) && has_site(call) && !(call->can_be && calls_another(call)))
		c->s.learnt |= edges_sight_edge(c->s.edges, call, c->s.now_ns);
	return true;
}

bool calls_sight_adjacent(const struct walker *w, const struct pystack *stack, const struct pystack *other,
                          uint32_t from, struct edges *edges)
{
	struct comparison c = {.s = {.edges = edges, .now_ns = w->now_ns}, .other = other};

	each_call(w, stack, from, stack->depth, &c, sight_adjacent);
	return c.s.learnt;
}

static bool sight_single(void *context, const struct call *call)
{
	struct sighting *s = context;

	if (call->adjacent && has_site(call))
		s->learnt |= edges_sight_single(s->edges, call, s->now_ns);
	return true;
}

bool calls_sight_once(const struct walker *w, const struct pystack *stack, struct edges *edges)
{
	struct sighting s = {.edges = edges, .now_ns = w->now_ns};

	each_call(w, stack, 0, stack->depth, &s, stack->apart ? sight_single : sight_once);
	return s.learnt;
}

/* What a caller was given is known with what led to it: that has to be proven in the same reading, from the outermost generator on. */
static bool sight_proven(void *context, const struct call *call)
{
	struct sighting *s = context;
	const struct place *place = call->context;

	s->outside |= place->caller && place->caller[1].generator;
	s->unproven |= s->outside && !call->proven;
	if (call->proven && !(call->given && s->unproven) && has_site(call) && (!call->can_be || call->can_be(call)))
		s->learnt |= edges_sight_proven(s->edges, call, s->now_ns);
	return true;
}

bool calls_sight_proven(const struct walker *w, const struct pystack *stack, struct edges *edges)
{
	struct sighting s = {.edges = edges, .now_ns = w->now_ns};

	each_call(w, stack, 0, stack->depth, &s, sight_proven);
	return s.learnt;
}

static bool sight_left(void *context, const struct call *call)
{
	struct sighting *s = context;
	struct call left = *call;

	if (left.can_be)
		left.can_be = can_have_called_left;
	/* A generator's frame was copied later than what it called: what has been left by then says nothing of where it was called. */
	if (!call->adjacent || !has_site(call))
		s->learnt = edges_has(s->edges, call->key);
	else if (s->apart)
		s->learnt = edges_sight_left_single(s->edges, &left, s->now_ns);
	else
		s->learnt = edges_sight_left(s->edges, &left, s->now_ns);
	return true;
}

bool calls_know_left(const struct walker *w, const struct pystack *stack)
{
	struct sighting s = {.edges = w->edges, .now_ns = w->now_ns, .apart = stack->apart};

	each_call(w, stack, stack->depth - 1, stack->depth, &s, sight_left);
	return s.learnt;
}

static bool learn(void *context, const struct call *call)
{
	if (site_can_call(call))
		edges_learn(context, call);
	return true;
}

void calls_learn(const struct walker *w, const struct pystack *stack, struct edges *edges)
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

void calls_count(const struct walker *w, const struct pystack *stack, struct edges *edges, bool often)
{
	uint32_t weight = often && w->tick >= CALLS_FIRST_TICKS ? COUNT_TICKS : 1;
	uint64_t sites[EDGE_SITES] = {0}, callees[EDGE_SITES] = {0};

	if (w->tick % weight != 0)
		return;
	for (uint32_t i = 0; i < stack->depth; i++) {
		const struct code *code;
		uint64_t content, site = site_of(w, &stack->frames[i], &content, &code);

		if (is_new_part(sites, i, site))
			edges_count(edges, site, weight, w->now_ns);
		if (is_new_part(callees, i, content | 1))
			edges_count(edges, content | 1, weight, w->now_ns);
	}
}
