/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/running.h"

#include "sampler/lookalike.h"

#define TSTATE_SPAN 512 /* PyThreadState.exc_state, to which exc_info points where no generator runs, lies within so many bytes */
/* From gi_exc_state to gi_iframe (_PyGenObject_HEAD, Include/cpython/genobject.h; since 3.14 Include/internal/pycore_interpframe_structs.h). */
#define ITEM_TO_FRAME 32
#define ANY_END       1 /* no frame ends there */

static raddr_t tstate_word(const struct walker *w, const struct thread *t, int32_t offset)
{
	const uint8_t *head = plan_bytes(w->plan, t->copy.head);

	return head ? frame_u64(head, offset) : 0;
}

/* The frame of the generator that runs, or is called from. One that is resumed links the item in which it notes handled exceptions in front of
 * the thread's (gen_send_ex2, Objects/genobject.c; SEND and FOR_ITER, Python/bytecodes.c). 0: none. */
static raddr_t innermost_generator(const struct walker *w, const struct thread *t)
{
	raddr_t item = tstate_word(w, t, w->abi->tstate.exc_info);

	return item == 0 || item - t->tstate < TSTATE_SPAN ? 0 : item + ITEM_TO_FRAME;
}

raddr_t running_named(const struct walker *w, const struct thread *t, raddr_t current)
{
	raddr_t generator = w->abi->tstate.cframe == ABSENT ? 0 : innermost_generator(w, t);

	return generator ? generator : current;
}

/* The innermost frame on the data stack so far, and the innermost generator below or on it, which is the innermost one of all. */
struct stand {
	raddr_t frame, end, code;
	struct apart_state generator; /* .generator 0: none */
};

static void note_called(const struct thread *t, struct apart_state state, raddr_t end)
{
	state.end = end;
	state.called = true;
	apart_note_state(t->apart, state);
}

/* Notes what the data stack says that lies above: called by a generator that stands there, it runs, or has not begun, as where a coroutine is
 * made. It may have been left: its size is what tells. */
static void note_above(const struct walker *w, const struct thread *t, const struct stand *stand)
{
	uint32_t copied;
	const uint8_t *bytes = walk_copy(w, t, stand->end, 0, &copied);
	const struct code *code = bytes ? codes_find(w->codes, frame_code(w->abi, bytes)) : NULL;
	raddr_t previous = bytes ? frame_previous(w->abi, bytes) : 0;
	struct apart_link link;
	int64_t offset;

	if (!code || !frame_offset(w->abi, bytes, code, &offset))
		return;
	link = apart_link(t->apart, previous);
	if (link.code != 0)
		apart_note_state(t->apart, (struct apart_state){.generator = previous,
		                                                .end = stand->end + code->frame_bytes,
		                                                .code = link.code,
		                                                .resumer = stand->code,
		                                                .resumer_frame = stand->frame,
		                                                .called = offset >= (int64_t)code->traceable_bytes});
	else if (stand->generator.generator != 0 && previous == stand->frame &&
	         stand->generator.resumer_frame != stand->frame)
		note_called(t, stand->generator, stand->end + code->frame_bytes);
}

void running_note(const struct walker *w, const struct thread *t)
{
	struct stand stand = {0};
	struct apart_state latest;

	if (!t->apart)
		return;
	/* There is no generator among those that are plain. */
	for (uint32_t i = t->seen_plain.count > 0 ? t->seen_plain.count - 1 : 0; i < t->seen.depth; i++) {
		const struct pyframe *frame = &t->seen.frames[i];
		const struct code *code;

		if (thread_in_chunks(t, frame->frame)) {
			code = codes_find(w->codes, frame->code);
			stand.frame = frame->frame;
			stand.end = code ? frame->frame + code->frame_bytes : 0;
			stand.code = frame->code;
			if (stand.generator.generator != 0)
				note_called(t, stand.generator, stand.end);
			continue;
		}
		stand.generator = (struct apart_state){.generator = frame->frame,
		                                       .end = stand.end,
		                                       .code = frame->code,
		                                       .resumer = stand.code,
		                                       .resumer_frame = stand.frame};
		apart_note_state(t->apart, stand.generator);
		latest = stand.generator;
		latest.end = ANY_END;
		apart_note_state(t->apart, latest);
	}
	if (stand.end != 0)
		note_above(w, t, &stand);
}

/* The code that a generator's frame at this address executes, as it was copied, or, where it has ended, last seen. 0: it is none. */
static raddr_t code_at(const struct walker *w, const struct thread *t, raddr_t frame)
{
	struct apart_link link = apart_link(t->apart, frame);
	uint32_t copied;
	const uint8_t *bytes = walk_copy(w, t, frame, 0, &copied);
	raddr_t code = bytes ? frame_code(w->abi, bytes) : 0;

	if (link.frame != frame || link.shim)
		return 0;
	return code && codes_find(w->codes, code) ? code : link.code;
}

/* The code of a frame on the data stack, as it was copied; NULL: not known. */
static const struct code *placed_code(const struct walker *w, const struct thread *t, raddr_t frame, const uint8_t **ret_bytes)
{
	uint32_t copied;

	*ret_bytes = thread_in_chunks(t, frame) ? walk_copy(w, t, frame, 0, &copied) : NULL;
	return *ret_bytes ? codes_find(w->codes, frame_code(w->abi, *ret_bytes)) : NULL;
}

/* Whether the frame can have been there when the thread state was copied: what lies right above the one that resumed the generator which ran, or is called
 * from, was called by that generator; and where there is none, by none. */
static bool is_of_instant(const struct walker *w, const struct thread *t, const struct instant *instant, const uint8_t *bytes)
{
	raddr_t caller = frame_previous(w->abi, bytes), generator = instant->generator;

	if (!t->apart)
		return true;
	if (!thread_in_chunks(t, caller))
		return caller == generator || code_at(w, t, caller) == 0;
	return generator == 0 || apart_state(t->apart, generator, ANY_END, instant->generator_code).resumer_frame != caller;
}

/* Who runs where this frame is the innermost one: it; or, if it has not begun, its caller, which makes it. */
static struct running running_at(const struct walker *w, const struct thread *t, raddr_t frame, const uint8_t *bytes, const struct code *code)
{
	raddr_t caller = frame_previous(w->abi, bytes);
	int64_t offset;

	if (!frame_offset(w->abi, bytes, code, &offset))
		return (struct running){0};
	if (offset >= (int64_t)code->traceable_bytes)
		return (struct running){.frame = frame, .code = code->addr};
	if (!thread_in_chunks(t, caller))
		return (struct running){.frame = caller, .code = t->apart ? code_at(w, t, caller) : 0};
	code = placed_code(w, t, caller, &bytes);
	return (struct running){.frame = caller, .code = code ? code->addr : 0};
}

/* The same where the frame ends where the data stack did; else that is not known. */
static struct running running_ending(const struct walker *w, const struct thread *t, const struct instant *instant, raddr_t frame)
{
	const uint8_t *bytes;
	const struct code *code = placed_code(w, t, frame, &bytes);

	return code && frame + code->frame_bytes == instant->end && is_of_instant(w, t, instant, bytes) ? running_at(w, t, frame, bytes, code)
	                                                                              : (struct running){0};
}

/* The same where no word of that instant names the frame: it is one of the stack, or lies above it. */
static struct running running_on_top(const struct walker *w, const struct thread *t, const struct instant *instant)
{
	raddr_t above = 0;

	for (uint32_t i = t->seen.depth; i-- > 0;) {
		const struct pyframe *frame = &t->seen.frames[i];
		const struct code *code = thread_in_chunks(t, frame->frame) ? codes_find(w->codes, frame->code) : NULL;
		raddr_t frame_end = code ? frame->frame + code->frame_bytes : 0;

		if (code && frame_end == instant->end)
			return (struct running){.frame = frame->frame, .code = code->addr};
		if (above == 0)
			above = frame_end;
	}
	return above ? running_ending(w, t, instant, above) : (struct running){0};
}

/* What a generator called that has ended since, and in whose place another one lies: as one coroutine is awaited after another. */
static struct running running_below_former(const struct walker *w, const struct thread *t, const struct instant *instant)
{
	struct apart_link link = instant->generator ? apart_link(t->apart, instant->generator) : (struct apart_link){0};
	struct instant before = *instant;

	struct running running = {0};

	before.generator_code = link.code != instant->generator_code ? link.code : link.former;
	if (before.generator_code && codes_find(w->codes, before.generator_code))
		running = lookalike_find(w, t, &before);
	running.generator_code = before.generator_code;
	return running;
}

/* The function on the data stack that ran. Its frame may have been left since, and another one lie there, mostly of another size. The word that says where the
 * data stack ends is copied a tenth of a microsecond behind the current frame's: what ended there may have been called since, or the frame left. To read
 * again then would favour what calls nothing, and does not return soon. */
static struct running running_placed(const struct walker *w, const struct thread *t, const struct instant *instant)
{
	raddr_t current = instant->current;
	struct running running = current ? running_ending(w, t, instant, current) : running_on_top(w, t, instant);
	const struct code *code;
	const uint8_t *bytes;

	running = running.code != 0 ? lookalike_other(w, t, instant, running) : lookalike_find(w, t, instant);
	if (running.code == 0)
		running = running_below_former(w, t, instant);
	if (!current)
		return lookalike_in_loop(w, t, instant, running);
	if (running.code != 0)
		return running;
	code = placed_code(w, t, current, &bytes);
	return code && is_of_instant(w, t, instant, bytes) ? running_at(w, t, current, bytes, code) : lookalike_at(w, t, instant);
}

/* The generator that ran itself, and did not call what lies above it; code 0: none. */
static struct running running_generator(const struct walker *w, const struct thread *t, raddr_t current, raddr_t end, bool exact)
{
	raddr_t generator = exact && code_at(w, t, current) ? current : innermost_generator(w, t);
	raddr_t code = generator ? code_at(w, t, generator) : 0;
	struct apart_state state = apart_state(t->apart, generator, end, code);

	if (code == 0 || (exact && current != generator && (state.code == 0 || state.called || current == state.resumer_frame)) ||
	    (!exact && state.called))
		return (struct running){0};
	if (state.code == 0)
		state = apart_state(t->apart, generator, ANY_END, code);
	return (struct running){.frame = generator, .code = code, .resumer = state.resumer};
}

/* Where C begins to run a frame, or has done, a shim is the current frame: the one below it. */
static raddr_t below_shim(const struct thread *t, raddr_t current)
{
	struct apart_link link = apart_link(t->apart, current);

	return link.frame == current && link.shim ? link.previous : 0;
}

/* The code of a generator that is met for the first time: what it is, it stays, where it has yielded since. Remembered; 0: it is none, or has ended. */
static raddr_t new_code(const struct walker *w, const struct thread *t, raddr_t generator)
{
	uint8_t bytes[PYABI_FRAME_MAX];
	const struct code *code;
	int64_t offset;

	if (!frame_may_be(generator) || remote_read(w->remote, generator, bytes, (size_t)w->abi->frame.bytes) != 0 ||
	    frame_is_shim(w->abi, bytes) || !frame_is_generator(w->abi, bytes))
		return 0;
	code = codes_find(w->codes, frame_code(w->abi, bytes));
	if (!code || !frame_offset(w->abi, bytes, code, &offset))
		return 0;
	apart_note_link(t->apart, (struct apart_link){.frame = generator,
	                                              .previous = frame_previous(w->abi, bytes),
	                                              .code = code->addr,
	                                              .bytes = code->frame_bytes < APART_FRAME_MAX ? code->frame_bytes : APART_FRAME_MAX});
	return code->addr;
}

struct running running_find(const struct walker *w, const struct thread *t, raddr_t current)
{
	bool exact = w->abi->tstate.cframe == ABSENT; /* the current frame is of the same instant */
	struct instant instant = {.end = tstate_word(w, t, w->abi->tstate.chunk + 8), .loop = walk_loop(w, t)};
	struct running running = {0};

	if (t->apart) {
		instant.generator = innermost_generator(w, t);
		instant.generator_code = instant.generator ? code_at(w, t, instant.generator) : 0;
		if (instant.generator && !instant.generator_code)
			instant.generator_code = new_code(w, t, instant.generator);
		running = running_generator(w, t, current, instant.end, exact);
	}
	if (running.code == 0 && exact && t->apart && !thread_in_chunks(t, current)) {
		raddr_t below = below_shim(t, current);

		if (!below)
			running = (struct running){.frame = current, .code = new_code(w, t, current)};
		current = below;
	}
	if (running.code != 0 || (exact && !thread_in_chunks(t, current)))
		return running;
	instant.current = exact ? current : 0;
	running = running_placed(w, t, &instant);
	if (running.generator_code == 0)
		running.generator_code = instant.generator_code;
	running.placed = running.code != 0 && thread_in_chunks(t, running.frame) && (instant.generator == 0 || running.generator_code != 0);
	return running;
}
