/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/special.h"

#include <string.h>

#include "sampler/frames.h"

#define ARGUMENT_UNITS 4 /* an instruction, and what can stand before it for a long argument */

/* A generator that had yielded by the time it was looked at names no caller any more; where its caller stands tells. */
static bool was_resumed(const struct target *target, const struct thread *t, uint32_t i)
{
	const struct code *code;

	if (!t->recalled || !t->seen.frames[i].generator || frame_sends_through_c(&target->proc.abi))
		return false;
	code = codes_find(target->codes, t->seen.frames[i - 1].code);
	return code && code->resuming && code_resumes(code, t->seen.frames[i - 1].offset);
}

/* Whether frame `i` was called by C, and not by the loop that runs its caller. */
static bool is_called_by_c(const struct target *target, const struct thread *t, uint32_t i)
{
	return i > 0 && !t->seen.frames[i].direct && !was_resumed(target, t, i);
}

static void note_calls(const struct target *target, struct thread *t)
{
	for (uint32_t i = t->same; i < t->seen.depth; i++)
		t->seen.frames[i].through_c = is_called_by_c(target, t, i);
}

/* The opcode at an instruction, behind what extends its argument: while that is executed, the frame stands there for a moment. */
static uint16_t read_opcode(const struct target *target, const struct code *code, int64_t offset)
{
	static const char extends[] = "EXTENDED_ARG";
	const char *const *names = target->proc.abi.opnames;
	uint64_t left = code->bytecode_bytes - (uint64_t)offset;
	uint8_t bytes[2 * ARGUMENT_UNITS] = {0};
	uint32_t units = ARGUMENT_UNITS, i = 0;

	if (left < sizeof(bytes))
		units = (uint32_t)left / 2;
	if (remote_read(&target->remote, code->bytecode + (uint64_t)offset, bytes, units * (size_t)2) != 0)
		return 0;
	while (i + 1 < units && names[bytes[2 * i]] && strncmp(names[bytes[2 * i]], extends, sizeof(extends) - 1) == 0)
		i++;
	return (uint16_t)(bytes[2 * i] + 1);
}

static void note_opcode(const struct target *target, struct thread *t)
{
	struct pyframe *leaf = &t->seen.frames[t->seen.depth - 1];
	const struct code *code = codes_find(target->codes, leaf->code);

	leaf->opcode = 0;
	if (target->proc.abi.opnames && code && leaf->offset >= 0 && leaf->offset + 2 <= (int64_t)code->bytecode_bytes)
		leaf->opcode = read_opcode(target, code, leaf->offset);
}

static void note_collector(const struct target *target, struct thread *t, uint16_t status)
{
	const struct interp *interp = target_interp(target, t->interp);
	raddr_t frame = (status & STATUS_GC) && interp ? interp->gc_frame : 0;

	for (uint32_t i = 0; i < t->seen.depth; i++) {
		t->seen.frames[i].collects = frame != 0 && t->seen.frames[i].frame == frame;
		t->collects |= t->seen.frames[i].collects;
	}
}

/* What an interpreter that ends collects is no garbage of the program's: it has no frame any more. */
static void note_shutdown(struct target *target, const struct thread *t, uint16_t status)
{
	uint64_t ending;

	if (!(status & STATUS_GC) || t->seen.depth > 0 || target->shuts_down || !target->proc.finalizing)
		return;
	target->shuts_down = remote_read_u64(&target->remote, target->proc.finalizing, &ending) == 0 && ending != 0;
}

bool special_can_collect(const struct target *target, const struct thread *t, raddr_t starter)
{
	for (uint32_t i = 0; i + 1 < t->seen.depth; i++)
		if (t->seen.frames[i].frame == starter)
			return is_called_by_c(target, t, i + 1);
	/* What lies above the innermost frame was called since: so it began to collect since. */
	return t->seen.depth == 0 || !thread_in_chunks(t, starter) || starter <= t->seen.frames[t->seen.depth - 1].frame;
}

void special_note(struct target *target, struct thread *t, const struct walker *w, uint16_t status)
{
	if (target->options->native == NATIVE_MARKS && w->abi->frames == FRAMES_STACK)
		note_calls(target, t);
	if (target->options->opcodes && t->seen.depth > 0)
		note_opcode(target, t);
	if (w->abi->interp.gc_frame != ABSENT && (t->collects || (status & STATUS_GC)))
		note_collector(target, t, status);
	note_shutdown(target, t, status);
}
