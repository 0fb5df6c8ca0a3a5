/* SPDX-License-Identifier: Apache-2.0 */
/* From a double read of some frames to what they tell of their calls; what one copy of one frame tells is in told.c. */
#include "sampler/callee.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sampler/heapcalls.h"
#include "sampler/told.h"

#define WINDOW          12u /* heap frames that are copied twice */
#define ARGUMENTS       16
#define READS_LATEST    256u
#define EXTRAS          4u   /* others, between the two copies */
#define OBJECT_HEAD     16   /* PyObject_HEAD: the count of references can change */

enum link {            /* a frame, and one that has it as its caller */
	    LINK_OPEN, /* it cannot be told: C calls it, or an operator, or the value stack was not copied */
	    LINK_NAMED, /* the other one is a generator, or a function, that was given to what the frame calls, or that it resumes. A generator
	               * is freed soon, and its address used again */
	    LINK_PROVEN,  /* the frame calls the other one */
	    LINK_REFUTED, /* it calls a Python function, but another one */
};

struct callees {
	struct told_objects objects;
	struct told *first, *second;
	struct pyframe *frames; /* one more */
	uint32_t room;          /* of these three */
};

int callees_new(struct callees **ret_callees)
{
	struct callees *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*ret_callees = c;
	return 0;
}

void callees_free(struct callees *c)
{
	if (!c)
		return;
	free(c->first);
	free(c->second);
	free(c->frames);
	free(c);
}

static bool is_alike(const struct told *a, const struct told *b)
{
	return a->ok && b->ok && a->code == b->code && a->frame.offset == b->frame.offset &&
	       a->previous == b->previous && a->frame.callable == b->frame.callable;
}

/* Whether one of the arguments is a function with this code: then C that was given it may call it. */
static bool is_argument(struct callees *c, struct walker *w, const struct told *caller, raddr_t code)
{
	int count = caller->site->end - caller->site->slot;

	for (int k = 1; k < count && k <= ARGUMENTS; k++)
		if (told_code_at(&c->objects, w, frame_u64(caller->slots, 8 * k)) == code)
			return true;
	return false;
}

/* What a frame says of one that has it as its caller. */
static enum link link_of(struct callees *c, struct walker *w, const struct told *caller, const struct told *callee)
{
	const struct callsite *site = caller->site;
	const struct told_object *object;

	if (!caller->slots)
		return LINK_OPEN;
	/* A generator is resumed by what iterates over it, or by C that was given it. */
	for (int k = 0; callee->generator != 0 && k < site->end - site->slot; k++)
		if (frame_u64(caller->slots, 8 * k) == callee->generator)
			return LINK_NAMED;
	object = told_object_at(&c->objects, w, caller->frame.callable, false);
	if (site->kind == CALLSITE_RESUME)
		return object && object->resumes ? LINK_REFUTED : LINK_OPEN;
	if (object && object->code != 0 && object->code != callee->frame.code)
		object = told_object_at(&c->objects, w, caller->frame.callable, true);
	if (object && object->code != 0)
		return object->code == callee->frame.code && callee->generator == 0 ? LINK_PROVEN : LINK_REFUTED;
	return is_argument(c, w, caller, callee->frame.code) ? LINK_NAMED : LINK_OPEN;
}

/* The same, and what is known of the place besides. */
static enum link judge_link(struct callees *c, struct walker *w, const struct told *caller, const struct told *callee,
                            struct edges *edges)
{
	enum link link = link_of(c, w, caller, callee);

	if (link != LINK_OPEN || (caller->site && caller->site->unsure))
		return link;
	if (caller->site && callsite_is_python(caller->site))
		return LINK_REFUTED;
	/* It calls this function elsewhere, and says so there. */
	return edges_has(edges, heap_calls_itself(caller->code, callee->code)) ? LINK_REFUTED : LINK_OPEN;
}

/* Both copies of the frames of a stack, or of a part of it, outermost first. */
struct window {
	uint32_t count, extra_count;
	uint32_t first; /* of the stack's frames */
	struct told *a, *b, extra[EXTRAS];
	struct pyframe *frames; /* those that were alike, as a stack; and room for one more */
	uint32_t alike;
};

/* One frame by itself: what it calls, and from where. True: that has become known. What makes a generator runs no frame of it. */
static bool observe(struct callees *c, struct walker *w, const struct told *told, raddr_t before_code,
                    struct edges *edges)
{
	const struct code *before = told->previous ? codes_find(w->codes, before_code) : NULL;
	struct code *callee;

	if (!told->slots || told->site->kind == CALLSITE_RESUME)
		return false;
	callee = codes_find(w->codes, told_code_at(&c->objects, w, told->frame.callable));
	if (callee)
		callsite_count(told->site, callee->identity);
	if (!callee || callee->is_generator || (told->previous && !before))
		return false;
	edges_sight_key(edges, heap_calls_itself(told->code, callee), w->now_ns);
	code_called_from(callee, hash_combine(told->code->identity, (uint64_t)told->frame.offset) | 1);
	return edges_sight_key(edges, heap_local_call(before, told->code, told->frame.offset, callee), w->now_ns);
}

/* The code of the frame that called frame i, as the window has it; 0: it has not. */
static raddr_t code_before(const struct window *v, uint32_t i)
{
	raddr_t frame = v->a[i].previous;

	if (i > 0 && v->a[i - 1].frame.frame == frame)
		return v->a[i - 1].frame.code;
	for (uint32_t k = 0; k < v->count && k < WINDOW; k++)
		if (v->a[k].frame.frame == frame)
			return v->a[k].frame.code;
	for (uint32_t k = 0; k < v->extra_count; k++)
		if (v->extra[k].frame.frame == frame)
			return v->extra[k].frame.code;
	return 0;
}

/* A frame that was called by the innermost of those that are alike, in a copy made between their two. */
static bool learn_next(struct callees *c, struct walker *w, struct window *v, const struct told *next,
                       struct edges *edges)
{
	const struct told *caller = &v->a[v->alike - 1];
	struct pystack stack = {.frames = v->frames, .depth = v->alike + 1};

	if (!next->ok || next->previous != caller->frame.frame || link_of(c, w, caller, next) != LINK_PROVEN)
		return false;
	v->frames[v->alike] = next->frame;
	return (v->first == 0 || v->alike >= EDGE_SITES) && heap_sight_calls(w, &stack, v->alike, edges);
}

/* Whether both copies are of one run of the function, as far as its variables and its value stack tell: a short loop comes by as it was before soon, but
 * mostly with other arguments. */
static bool is_one_run(const struct told *a, const struct told *b)
{
	return a->bytes == b->bytes && memcmp(a->copy + OBJECT_HEAD, b->copy + OBJECT_HEAD, a->bytes - OBJECT_HEAD) == 0;
}

/* Whether frame i - 1 may have the next one as its callee. Counts what it calls, where it is C that does. */
static bool take_link(struct callees *c, struct walker *w, const struct window *v, uint32_t i, struct edges *edges)
{
	const struct told *caller = &v->a[i - 1], *callee = &v->a[i];
	enum link link = judge_link(c, w, caller, callee, edges);

	/* Unnamed; or named by a generator's address, at which the next one lies soon. */
	if ((link == LINK_OPEN || callee->generator != 0) && w->moves && !is_one_run(caller, &v->b[i - 1]))
		return false;
	/* Traces and finalizers run where another function is called. What stands still is taken as it is. */
	if (link == LINK_REFUTED)
		return !w->moves;
	if (caller->site && told_code_at(&c->objects, w, caller->frame.callable) == 0)
		callsite_count(caller->site, link == LINK_NAMED ? callee->code->identity : 0);
	if (link == LINK_NAMED)
		edges_sight_key(edges, heap_calls_itself(caller->code, callee->code), w->now_ns);
	return true;
}

/* How many frames are alike in both copies and linked, from the outermost on. */
static uint32_t count_alike(const struct window *v)
{
	uint32_t i = 0;

	/* A generator is never outermost; one that is just being made looks so. */
	if (v->first == 0 && v->count > 0 &&
	    (v->a[0].previous != 0 || v->a[0].generator != 0 || v->a[0].frame.offset < 0))
		return 0;
	while (i < v->count && is_alike(&v->a[i], &v->b[i]) && (i == 0 || v->a[i].previous == v->a[i - 1].frame.frame))
		i++;
	return i;
}

static bool learn_window(struct callees *c, struct walker *w, struct window *v, struct edges *edges)
{
	struct pystack stack = {.frames = v->frames};
	uint32_t alike = count_alike(v);
	bool learnt = false;

	for (uint32_t i = 0; i < v->count; i++)
		if (is_alike(&v->a[i], &v->b[i]))
			learnt |= observe(c, w, &v->a[i], code_before(v, i), edges);
	if (v->count > WINDOW && alike < v->count)
		return learnt; /* the copy of many frames takes its time */
	for (; v->alike < alike; v->alike++) {
		if (v->alike > 0 && !take_link(c, w, v, v->alike, edges))
			break;
		v->frames[v->alike] = v->a[v->alike].frame;
	}
	stack.depth = v->alike;
	learnt |= heap_sight_calls(w, &stack, v->first == 0 ? 0 : EDGE_SITES, edges);
	if (v->alike == 0)
		return learnt;
	if (v->alike < v->count) {
		learnt |= learn_next(c, w, v, &v->a[v->alike], edges);
		learnt |= learn_next(c, w, v, &v->b[v->alike], edges);
	}
	for (uint32_t i = 0; i < v->extra_count; i++)
		learnt |= learn_next(c, w, v, &v->extra[i], edges);
	return learnt;
}

static void note_read(struct thread *t, struct walker *w, bool alike)
{
	t->stood = alike;
	thread_count_read(t, alike, READS_LATEST);
	w->moves = thread_moves(t);
}

static uint32_t plan_frame(const struct walker *w, const struct pyframe *frame)
{
	const struct code *code = codes_find(w->codes, frame->code);

	return plan_add(w->plan, frame->frame, code && code->frame_bytes ? code->frame_bytes : (uint32_t)w->abi->frame.bytes);
}

static bool is_in_window(const struct pystack *stack, const struct window *v, raddr_t frame)
{
	for (uint32_t i = 0; i < v->count; i++)
		if (stack->frames[v->first + i].frame == frame)
			return true;
	return false;
}

static bool make_room(struct callees *c, uint32_t frames)
{
	struct told *first, *second;
	struct pyframe *stack;

	if (frames <= c->room)
		return true;
	first = realloc(c->first, frames * sizeof(*first));
	if (first)
		c->first = first;
	second = realloc(c->second, frames * sizeof(*second));
	if (second)
		c->second = second;
	stack = realloc(c->frames, (frames + (size_t)1) * sizeof(*stack));
	if (stack)
		c->frames = stack;
	if (!first || !second || !stack)
		return false;
	c->room = frames;
	return true;
}

/* Plans both copies of a window, and up to EXTRAS other frames between them. False: out of memory. */
static bool plan_window(const struct walker *w, const struct thread *t, const struct pystack *stack, struct window *v)
{
	uint32_t extras = v->count <= WINDOW && !stack->frames[stack->depth - 1].told ? EXTRAS : 0, last = 0;

	plan_clear(w->plan);
	for (uint32_t i = 0; i < v->count && last != PLAN_FULL; i++)
		last = plan_frame(w, &stack->frames[v->first + i]);
	for (uint32_t i = 0; i < t->heap_count && v->extra_count < extras && last != PLAN_FULL; i++) {
		if (is_in_window(stack, v, t->heap[i].frame))
			continue;
		last = plan_add(w->plan, t->heap[i].frame, (uint32_t)w->abi->frame.bytes);
		v->extra_count++;
	}
	for (uint32_t i = v->count; i-- > 0 && last != PLAN_FULL;)
		last = plan_frame(w, &stack->frames[v->first + i]);
	return last != PLAN_FULL;
}

int callee_learn(struct callees *c, struct walker *w, struct thread *t, const struct pystack *stack, uint32_t wanted,
                 struct edges *edges)
{
	/* A frame that was not copied is too short to be copied twice: it is its caller that tells. */
	uint32_t depth = stack->depth - stack->frames[stack->depth - 1].told;
	uint32_t end = depth < wanted + 3 ? depth : wanted + 3;
	struct window v = {.count = end < WINDOW ? end : WINDOW, .first = end < WINDOW ? 0 : end - WINDOW};
	int err;

	/* What stands still is learnt as a whole. */
	if (t->stood && depth > WINDOW) {
		v.count = depth;
		v.first = 0;
	}
	if (!make_room(c, v.count))
		return -ENOMEM;
	v.a = c->first;
	v.b = c->second;
	v.frames = c->frames;
	if (!plan_window(w, t, stack, &v))
		return -ENOMEM;
	err = plan_read(w->plan, w->remote);
	if (err)
		return err;
	for (uint32_t i = 0; i < v.count; i++) {
		v.a[i] = told_read(w, i, true);
		v.b[i] = told_read(w, 2 * v.count + v.extra_count - 1 - i, true);
	}
	for (uint32_t i = 0; i < v.extra_count; i++)
		v.extra[i] = told_read(w, v.count + i, false);
	if (!w->grew)
		note_read(t, w, count_alike(&v) == v.count);
	return learn_window(c, w, &v, edges);
}
