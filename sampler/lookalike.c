/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/lookalike.h"

#include "base/hash.h"

#define LEARNT_FRAMES 3  /* of a stack, from the innermost on */
#define OFTEN         32 /* times as often: this tells more than where the callers stand, which may be in a loop */
#define COUNTED_OF    4  /* of so many looks, one is counted */
#define GONE_OF       8  /* of so many times that it was told, it was gone when it was copied at least once: else the copies show it as often as it runs */
#define SHORT_OF      16 /* what is told less often by one part in so many is told next */

/* What had called a frame of t->seen; NULL: it is not in t->seen. */
static const struct pyframe *caller_of(const struct walker *w, const struct thread *t, const struct pyframe *frame)
{
	const struct pyframe *caller;
	const struct code *code;

	if (frame == t->seen.frames || !thread_in_chunks(t, frame->frame))
		return NULL;
	caller = frame - 1;
	code = codes_find(w->codes, caller->code);
	if (!code)
		return NULL;
	return !thread_in_chunks(t, caller->frame) || caller->frame + code->frame_bytes == frame->frame ? caller : NULL;
}

static void note(const struct walker *w, const struct thread *t, struct end end, const struct pyframe *frame, bool proven)
{
	const struct pyframe *caller = caller_of(w, t, frame);

	end.frame = frame->frame;
	end.code = frame->code;
	end.content = codes_content(w->codes, frame->code);
	for (uint32_t i = 0; i < END_CALLS && caller && (proven || thread_in_chunks(t, caller->frame)); i++) {
		end.calls[i] = (struct end_call){.frame = thread_in_chunks(t, caller->frame) ? caller->frame : 0,
		                                 .code = caller->code,
		                                 .offset = caller->offset};
		caller = caller_of(w, t, caller);
	}
	ends_note(w->ends, &end);
}

/* The code of the innermost generator up to a frame of t->seen; 0: there is none. */
static raddr_t generator_below(const struct thread *t, uint32_t frame)
{
	if (!t->seen.apart)
		return 0;
	while (frame > 0 && thread_in_chunks(t, t->seen.frames[frame].frame))
		frame--;
	return thread_in_chunks(t, t->seen.frames[frame].frame) ? 0 : t->seen.frames[frame].code;
}

/* Whether what is copied and what is told is counted in this look. Both are in the same ones, so that they differ by nothing but what was called and left in between. */
static bool is_counted(const struct walker *w)
{
	return hash_u64(w->tick) % COUNTED_OF == 0;
}

static void learn(const struct walker *w, const struct thread *t, bool proven, bool counted)
{
	bool exact = w->abi->tstate.cframe == ABSENT;
	uint32_t depth = t->seen.depth;
	raddr_t loop = depth > 0 ? walk_loop_running(w, t, t->seen.frames[depth - 1].frame) : 0;

	for (uint32_t i = depth; i-- > 0 && i + LEARNT_FRAMES >= depth && thread_in_chunks(t, t->seen.frames[i].frame);) {
		const struct pyframe *frame = &t->seen.frames[i], *caller = caller_of(w, t, frame);
		const struct code *code = codes_find(w->codes, frame->code);
		struct end end = {.generator = generator_below(t, i), .met = i + 1 == depth, .copied = i + 1 == depth && counted};

		if (!code)
			return;
		end.end = frame->frame + code->frame_bytes;
		if (!exact) {
			end.loop = loop;
			note(w, t, end, frame, proven);
			if (!frame->direct)
				loop = 0; /* what called it runs in another one */
			continue;
		}
		end.current = frame->frame;
		note(w, t, end, frame, proven);
		if (caller && thread_in_chunks(t, caller->frame)) { /* which was current when this one was pushed */
			end.current = caller->frame;
			end.met = end.copied = 0;
			note(w, t, end, caller, proven);
		}
		note(w, t, (struct end){.current = frame->frame, .generator = end.generator}, frame, proven);
	}
}

void lookalike_learn(const struct walker *w, const struct thread *t, bool proven)
{
	learn(w, t, proven, false);
}

void lookalike_count(const struct walker *w, const struct thread *t)
{
	if (is_counted(w))
		learn(w, t, false, true);
}

enum passed { CALL_GONE, CALL_AHEAD, CALL_HERE, CALL_PASSED };

/* Where the callers are looked for. */
struct view {
	const struct walker *w;
	const struct thread *t;
	const uint8_t *generator; /* bytes of the innermost one's frame, as it was copied, or is now: it may have gone on to wait for something, but is there */
	uint8_t memory[PYABI_FRAME_MAX];
};

static void view_begin(struct view *v, const struct walker *w, const struct thread *t, const struct instant *instant)
{
	raddr_t frame = instant->generator_code ? instant->generator : 0;
	uint32_t copied;

	v->w = w;
	v->t = t;
	v->generator = frame ? walk_copy(w, t, frame, 0, &copied) : NULL;
	if (!v->generator && frame_may_be(frame) && remote_read(w->remote, frame, v->memory, (size_t)w->abi->frame.bytes) == 0)
		v->generator = v->memory;
}

/* Where what made the call stands now, also where that is no part of a whole stack. */
static enum passed passed(const struct view *v, const struct end *end, uint32_t i)
{
	const struct end_call *call = &end->calls[i];
	uint32_t copied;
	const uint8_t *bytes = call->frame ? walk_copy(v->w, v->t, call->frame, 0, &copied) : i == 0 ? v->generator : NULL;
	const struct code *code =
		call->code && bytes && frame_code(v->w->abi, bytes) == call->code ? codes_find(v->w->codes, call->code) : NULL;
	int64_t offset;

	if (!code || !frame_offset(v->w->abi, bytes, code, &offset))
		return CALL_GONE;
	return call->offset < offset ? CALL_PASSED : call->offset == offset ? CALL_HERE : CALL_AHEAD;
}

/* Whether one was told less often than the other, for as often as they were copied. */
static bool is_short(const struct end *a, const struct end *b)
{
	return (uint64_t)a->told * b->copied * SHORT_OF < (uint64_t)b->told * a->copied * (SHORT_OF - 1);
}

/* Whether a call was made later than another one, in a round of what made both, or of what called that. */
static bool is_behind(const struct end *a, const struct end *b, uint32_t calls)
{
	while (calls-- > 0) {
		if (a->calls[calls].code != b->calls[calls].code)
			return false;
		if (a->calls[calls].offset != b->calls[calls].offset)
			return a->calls[calls].offset > b->calls[calls].offset;
	}
	return false;
}

/* Whether of what ends at the same place the one is more likely to have ended there last: its caller has passed the call; or is gone, and its caller's caller has passed
 * that one. */
static bool is_later(const struct view *v, const struct end *a, const struct end *b)
{
	if (a->met / OFTEN > b->met || b->met / OFTEN > a->met)
		return a->met > b->met;
	for (uint32_t i = 0; i < END_CALLS; i++) {
		enum passed one = passed(v, a, i), other = passed(v, b, i);

		if (one == CALL_HERE || other == CALL_HERE) /* for the first time, or again, as in a loop */
			return false;
		if (one != other && (one == CALL_PASSED || other == CALL_PASSED))
			return one == CALL_PASSED;
		if (one == CALL_PASSED && !thread_is_apart(v->t)) /* all that is copied is of one instant */
			return is_short(a, b);
		if (one == other && one != CALL_GONE)
			return is_behind(a, b, i + 1);
	}
	return false;
}

static bool is_at(const struct walker *w, const struct end *known, const struct end *place)
{
	return ends_is_at(known, place) && codes_content(w->codes, known->code) == known->content;
}

static struct running as_running(const struct walker *w, struct end *end, bool gone)
{
	if (!end)
		return (struct running){0};
	end->told += is_counted(w);
	end->gone += gone && is_counted(w);
	return (struct running){.frame = end->frame, .code = end->code};
}

/* Of those of this loop, where it is not 0. */
static struct running find_of(const struct walker *w, const struct thread *t, const struct instant *instant, raddr_t end, raddr_t loop)
{
	struct end place = {.current = instant->current, .end = end, .generator = instant->generator_code};
	struct end *known = ends_find(w->ends, &place), *found = NULL;
	struct view v = {.w = NULL};

	if (instant->generator && !instant->generator_code)
		return (struct running){0};
	for (uint32_t i = 0; i < ENDS_WAYS; i++) {
		if (!is_at(w, &known[i], &place) || (loop && known[i].loop != loop))
			continue;
		if (found && !v.w)
			view_begin(&v, w, t, instant);
		if (!found || is_later(&v, &known[i], found))
			found = &known[i];
	}
	return as_running(w, found, true);
}

static struct running find(const struct walker *w, const struct thread *t, const struct instant *instant, raddr_t end)
{
	struct running running = instant->loop ? find_of(w, t, instant, end, instant->loop) : (struct running){0};

	return running.code ? running : find_of(w, t, instant, end, 0);
}

struct running lookalike_find(const struct walker *w, const struct thread *t, const struct instant *instant)
{
	return find(w, t, instant, instant->end);
}

struct running lookalike_at(const struct walker *w, const struct thread *t, const struct instant *instant)
{
	return find(w, t, instant, 0);
}

struct running lookalike_other(const struct walker *w, const struct thread *t, const struct instant *instant, struct running now)
{
	struct end place = {.current = instant->current, .end = instant->end, .generator = instant->generator_code};
	struct end *known = ends_find(w->ends, &place), *found = NULL;
	struct view v = {.w = w, .t = t};

	if (thread_is_apart(t))
		return now;
	for (uint32_t i = 0; i < ENDS_WAYS; i++)
		if (is_at(w, &known[i], &place) && known[i].code == now.code && known[i].frame == now.frame &&
		    (!found || passed(&v, &known[i], 0) == CALL_HERE))
			found = &known[i];
	for (uint32_t i = 0; i < ENDS_WAYS && found; i++)
		if (is_at(w, &known[i], &place) && known[i].code != found->code && known[i].gone * GONE_OF > known[i].told &&
		    is_short(&known[i], found) && passed(&v, &known[i], 0) == CALL_PASSED)
			found = &known[i];
	return found ? as_running(w, found, false) : now;
}

enum in_loop { LOOP_UNKNOWN, LOOP_THIS, LOOP_WITHIN, LOOP_AROUND };

/* In which run of the interpreter's loop what runs was last met: that of the instant, one that C has begun within it, or one around it. */
static enum in_loop loop_of(const struct walker *w, const struct instant *instant, struct running running)
{
	struct end place = {.end = instant->end, .generator = instant->generator_code};
	struct end *known = ends_find(w->ends, &place);
	enum in_loop found = LOOP_UNKNOWN;

	for (uint32_t i = 0; i < ENDS_WAYS && found != LOOP_THIS; i++) {
		if (!is_at(w, &known[i], &place) || known[i].code != running.code || known[i].loop == 0)
			continue;
		if (known[i].loop == instant->loop)
			found = LOOP_THIS;
		else
			found = known[i].loop < instant->loop ? LOOP_WITHIN : LOOP_AROUND; /* the C stack grows downwards */
	}
	return found;
}

struct running lookalike_in_loop(const struct walker *w, const struct thread *t, const struct instant *instant, struct running now)
{
	struct running other = {0};
	enum in_loop loop;

	if (!instant->loop || !now.code || !thread_in_chunks(t, now.frame))
		return now;
	loop = loop_of(w, instant, now);
	if (loop == LOOP_WITHIN || loop == LOOP_AROUND)
		other = find_of(w, t, instant, instant->end, instant->loop);
	if (loop == LOOP_WITHIN && !other.code)
		other = find_of(w, t, instant, now.frame, instant->loop);
	return other.code ? other : now;
}
