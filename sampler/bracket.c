/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/bracket.h"

#include "base/hash.h"
#include "sampler/calls.h"
#include "sampler/links.h"

#define GENERATORS 8u /* in one go */
#define FUNCTIONS  4u
#define PIECES     6u   /* of one, at most */
#define SPAN_MAX   2048 /* bytes of the data stack, from the outermost frame that tells of the call, to the callee */
#define ABOVE_MAX  64u  /* frames above the caller in the latest stack: another one has fewer */
#define ALL_OF     8    /* of so many times, one is for all: also where some call by the same caller is known, or it seems to be in vain */
#define VAIN       32u  /* after so many readings, when … */
#define VAIN_OF    16u  /* … not one of so many has proven something */

struct bracket {
	struct apart_link callee; /* a generator; .frame 0: a function, whose frame lies on the caller's */
	raddr_t shim;             /* through which C called it; 0: none */
	struct pyframe callers[EDGE_SITES]; /* the caller, and before it as much of what led to it as counts, which is read with it */
	uint32_t caller_count;
	bool whole;     /* all that counts; else the caller is a generator, and alone */
	uint64_t bytes; /* of the callers, and of a function that is the callee */
	uint32_t piece; /* the first one */
};

/* The pieces of a generator, and of a function, in this order. */
enum { CALLER_BEFORE, CALLEE_BEFORE, CALLER, CALLEE_BEHIND, SHIM, CALLER_BEHIND };
enum { SHIM_BEFORE, BOTH, SHIM_BEHIND, FUNCTION_PIECES };

static struct iovec piece_at(raddr_t addr, uint64_t bytes)
{
	return (struct iovec){.iov_base = (void *)(uintptr_t)addr, .iov_len = bytes};
}

static const struct pyframe *caller_of(const struct bracket *b)
{
	return &b->callers[b->caller_count - 1];
}

/* Finds the caller in t->seen, and the frames that led to it, as far as they count. False: it, or they, are not there. */
static bool find_callers(const struct thread *t, raddr_t caller, struct bracket *b)
{
	const struct pyframe *frames = t->seen.frames;
	uint32_t depth = t->seen.depth;

	while (depth > 0 && frames[depth - 1].frame != caller && t->seen.depth - depth < ABOVE_MAX)
		depth--;
	if (depth == 0 || frames[depth - 1].frame != caller)
		return false;
	b->whole = true;
	b->caller_count = depth < EDGE_SITES ? depth : EDGE_SITES;
	for (uint32_t i = 0; i < b->caller_count; i++) {
		b->callers[i] = frames[depth - b->caller_count + i];
		/* As far as addresses tell, in one chunk: what is read goes from the first to the last. */
		if (!thread_in_chunks(t, b->callers[i].frame) || (i > 0 && b->callers[i].frame <= b->callers[i - 1].frame))
			return false;
	}
	return true;
}

/* Whether it can be read in one piece: the callers, and so many bytes from the last one on. */
static bool fits(struct bracket *b, uint64_t bytes)
{
	b->bytes = caller_of(b)->frame - b->callers[0].frame + bytes;
	return b->bytes <= SPAN_MAX;
}

/* What resumed the generator that is remembered to lie there. False: it is not known, or what led to it. */
static bool find_generator(const struct walker *w, const struct thread *t, struct apart_link callee, struct bracket *b)
{
	raddr_t caller = callee.previous;
	struct apart_link link = apart_link(t->apart, caller);
	const struct code *code;

	*b = (struct bracket){.callee = callee};
	if (link.shim) {
		b->shim = caller;
		caller = link.previous;
	}
	if (thread_in_chunks(t, caller))
		return find_callers(t, caller, b) && fits(b, links_caller_bytes(w, caller_of(b)->code));
	code = b->shim || link.frame == 0 ? NULL : codes_find(w->codes, link.code);
	if (!code || code->given) /* what was given to it depends on what led to it */
		return false;
	b->callers[0] = (struct pyframe){.frame = caller, .code = code->addr, .generator = true};
	b->caller_count = 1;
	return fits(b, links_caller_bytes(w, code->addr));
}

/* What C called a function for, through the shim that is remembered to lie there: that has its frame behind the caller's. */
static bool find_function(const struct walker *w, const struct thread *t, struct apart_link shim, struct bracket *b)
{
	const struct code *code;

	*b = (struct bracket){.shim = shim.frame};
	if (!find_callers(t, shim.previous, b))
		return false;
	code = codes_find(w->codes, caller_of(b)->code);
	return code && fits(b, code->frame_bytes + (uint64_t)w->abi->frame.bytes);
}

/* The generator as it was read: where it stands, running on top of what it was linked to. Below 0: it does not. */
static int64_t runs_at(const struct walker *w, const struct bracket *b, uint32_t which)
{
	const uint8_t *bytes = plan_bytes(w->plan, b->piece + which);
	const struct code *code = bytes ? codes_find(w->codes, frame_code(w->abi, bytes)) : NULL;
	int64_t offset;

	if (!code || code->addr != b->callee.code || !frame_is_generator(w->abi, bytes) ||
	    frame_previous(w->abi, bytes) != b->callee.previous || !frame_offset(w->abi, bytes, code, &offset) ||
	    frame_is_left(w->abi, bytes, code, offset))
		return -1;
	return offset;
}

/* Whether the frame is linked to the one below it in the stack, or to a shim that was. */
static bool is_on(const struct thread *t, raddr_t previous, raddr_t below)
{
	struct apart_link link;

	if (previous == below)
		return true;
	link = apart_link(t->apart, previous);
	return link.shim && link.previous == below;
}

/* The callers as they were read, into `stack`. False: one is another, or has gone on, but for the last one. */
static bool take_callers(const struct walker *w, const struct thread *t, const struct bracket *b, const uint8_t *bytes,
                         struct pystack *stack)
{
	stack->depth = 0;
	for (uint32_t i = 0; i < b->caller_count; i++) {
		struct pyframe frame = b->callers[i];
		const uint8_t *at = bytes ? bytes + (frame.frame - b->callers[0].frame) : NULL;
		const struct code *code = codes_find(w->codes, frame.code);
		int64_t offset;

		if (!at || !code || frame_code(w->abi, at) != frame.code || !frame_offset(w->abi, at, code, &offset) ||
		    (i + 1 < b->caller_count && offset != frame.offset) ||
		    (i > 0 && !is_on(t, frame_previous(w->abi, at), b->callers[i - 1].frame)))
			return false;
		frame.offset = offset;
		frame.stored = frame_is_stored(w->abi, at, code);
		if (!stack_push(stack, frame))
			return false;
	}
	return true;
}

/* Whether the caller stands in this piece as it does in the one between the two of the callee. */
static bool stands(const struct walker *w, const struct bracket *b, uint32_t which)
{
	uint64_t from = caller_of(b)->frame - b->callers[0].frame;
	const uint8_t *bytes = plan_bytes(w->plan, b->piece + which), *between = plan_bytes(w->plan, b->piece + CALLER);

	return bytes && frame_code(w->abi, bytes + from) == frame_code(w->abi, between + from) &&
	       frame_u64(bytes + from, w->abi->frame.instr) == frame_u64(between + from, w->abi->frame.instr);
}

static bool is_shim(const struct walker *w, const struct bracket *b, uint32_t which)
{
	const uint8_t *shim = plan_bytes(w->plan, b->piece + which);

	return shim && frame_is_shim(w->abi, shim) && frame_previous(w->abi, shim) == caller_of(b)->frame;
}

static void judge_generator(struct target *target, struct walker *w, struct thread *t, const struct bracket *b)
{
	struct pystack *stack = &target->first_copy;
	int64_t offset = runs_at(w, b, CALLEE_BEFORE);
	struct apart_pair *pair = apart_pair(t->apart, caller_of(b)->code, b->callee.code);
	struct bracketed bracketed = {.whole = b->whole};
	struct pyframe *callee;
	uint64_t at;

	pair->tried++;
	pair->ran += offset >= 0;
	if (offset < 0 || !take_callers(w, t, b, plan_bytes(w->plan, b->piece + CALLER), stack) || !stands(w, b, CALLER_BEFORE))
		return;
	pair->met++;
	bracketed.survived = runs_at(w, b, CALLEE_BEHIND) >= 0 && stands(w, b, CALLER_BEHIND) && (!b->shim || is_shim(w, b, SHIM));
	bracketed.ran = pair->ran;
	bracketed.tried = pair->tried;
	pair->survived += bracketed.survived;
	if (!stack_push(stack, (struct pyframe){.frame = b->callee.frame,
	                                        .code = b->callee.code,
	                                        .offset = offset,
	                                        .generator = true,
	                                        .direct = !b->shim && !frame_is_entry(w->abi, plan_bytes(w->plan, b->piece + CALLEE_BEFORE))}))
		return;
	at = caller_of(b)->frame - b->callers[0].frame;
	callee = &stack->frames[b->caller_count];
	callee->foreign = links_resumes_another(w, t, callee, plan_bytes(w->plan, b->piece + CALLER) + at, (uint32_t)(b->bytes - at));
	target->edges_learnt += calls_sight_bracketed(w, stack, &bracketed, target->edges);
}

static void judge_function(struct target *target, struct walker *w, struct thread *t, const struct bracket *b)
{
	struct pystack *stack = &target->first_copy;
	const uint8_t *bytes = plan_bytes(w->plan, b->piece + BOTH), *callee;
	struct bracketed bracketed = {.whole = true, .ran = 1, .tried = 1};
	const struct code *code;
	raddr_t frame;
	int64_t offset;

	if (!is_shim(w, b, SHIM_BEFORE) || !take_callers(w, t, b, bytes, stack))
		return;
	callee = bytes + b->bytes - w->abi->frame.bytes; /* the last of what was read */
	frame = b->callers[0].frame + (uint64_t)(callee - bytes);
	code = codes_find(w->codes, frame_code(w->abi, callee));
	if (!code || frame_previous(w->abi, callee) != b->shim || !frame_offset(w->abi, callee, code, &offset) ||
	    offset < (int64_t)code->traceable_bytes || frame_is_left(w->abi, callee, code, offset))
		return;
	bracketed.survived = is_shim(w, b, SHIM_BEHIND);
	apart_pair(t->apart, caller_of(b)->code, b->shim)->met++;
	if (stack_push(stack, (struct pyframe){.frame = frame, .code = code->addr, .offset = offset}))
		target->edges_learnt += calls_sight_bracketed(w, stack, &bracketed, target->edges);
}

/* Whether readings of it prove something: not of a generator that runs for less time than they take. */
static bool is_worth(struct apart *apart, const struct bracket *b)
{
	const struct apart_pair *pair = apart_pair(apart, caller_of(b)->code, b->callee.code);

	return pair->met < VAIN || pair->survived * VAIN_OF > pair->met;
}

/* Finds those whose calls are to be proven. */
static uint32_t find_brackets(const struct target *target, const struct walker *w, struct thread *t, struct bracket *brackets)
{
	struct apart *apart = t->apart;
	uint32_t count = 0, generators, round = ++apart->brackets;

	for (uint32_t i = 0; i < apart->count && count < GENERATORS; i++) {
		struct bracket *b = &brackets[count];
		struct apart_link link = apart_link(apart, apart->frames[(round * GENERATORS + i) % apart->count].frame);

		if (link.frame != 0 && !link.shim && find_generator(w, t, link, b) &&
		    (round % ALL_OF == 0 ||
		     (is_worth(apart, b) && !calls_know_pair(w, caller_of(b)->code, link.code, target->edges))))
			count++;
	}
	generators = count;
	for (uint32_t i = 0; i < apart->count && count - generators < FUNCTIONS; i++) {
		struct apart_link link = apart_link(apart, apart->frames[(round * GENERATORS + i) % apart->count].frame);

		count += link.shim && find_function(w, t, link, &brackets[count]) &&
		         (round % ALL_OF == 0 || apart_pair(apart, caller_of(&brackets[count])->code, link.frame)->met < VAIN);
	}
	return count;
}

/* Adds what is read of one. How many pieces. */
static uint32_t add_pieces(const struct walker *w, const struct bracket *b, struct iovec *pieces)
{
	struct iovec callers = piece_at(b->callers[0].frame, b->bytes), shim = piece_at(b->shim, (uint64_t)w->abi->frame.bytes);
	struct iovec callee = piece_at(b->callee.frame, (uint64_t)w->abi->frame.bytes);

	if (b->callee.frame == 0) {
		pieces[SHIM_BEFORE] = pieces[SHIM_BEHIND] = shim;
		pieces[BOTH] = callers;
		return FUNCTION_PIECES;
	}
	pieces[CALLER_BEFORE] = pieces[CALLER] = pieces[CALLER_BEHIND] = callers;
	pieces[CALLEE_BEFORE] = pieces[CALLEE_BEHIND] = callee;
	pieces[SHIM] = b->shim ? shim : callee;
	return PIECES;
}

void bracket_calls(struct target *target, struct walker *w, struct thread *t)
{
	struct plan *p = &target->again;
	struct bracket brackets[GENERATORS + FUNCTIONS];
	struct iovec pieces[GENERATORS * PIECES + FUNCTIONS * FUNCTION_PIECES];
	uint32_t count = find_brackets(target, w, t, brackets), piece_count = 0, first;
	uint64_t bytes = 0;
	int read;

	for (uint32_t i = 0; i < count; i++) {
		brackets[i].piece = piece_count;
		piece_count += add_pieces(w, &brackets[i], &pieces[piece_count]);
	}
	for (uint32_t i = 0; i < piece_count; i++)
		bytes += pieces[i].iov_len + PLAN_PADDING;
	plan_clear(p);
	if (count == 0 || !plan_reserve(p, (uint32_t)bytes))
		return;
	first = plan_put(p, w->remote, pieces, piece_count, PLAN_SINGLY, &read);
	target->facts.confirms++;
	if (first == PLAN_FULL || p->slow_fetch)
		return;
	w->plan = p;
	for (uint32_t i = 0; i < count; i++) {
		brackets[i].piece += first;
		if (brackets[i].callee.frame == 0)
			judge_function(target, w, t, &brackets[i]);
		else
			judge_generator(target, w, t, &brackets[i]);
	}
}
