/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/shown.h"

#include <stdio.h>
#include <string.h>

#include "sampler/merge.h"

/* Room for what is not of the stack: <truncated> is one of its frames, the instruction and <GC> are not. */
#define OWN_MAX (REC_DEPTH_MAX - 2)

/* How many of the innermost frames fit. */
static uint32_t fitting(const struct target *target, const struct pystack *stack)
{
	uint32_t used = 1, i = stack->depth; /* the one for those that go */

	if (target->options->native != NATIVE_MARKS || stack->depth <= OWN_MAX / 2)
		return stack->depth <= OWN_MAX ? stack->depth : OWN_MAX - 1;
	for (uint32_t k = 0, all = 0; k < stack->depth && all <= OWN_MAX; k++) {
		all += 1 + stack->frames[k].through_c;
		if (k + 1 == stack->depth && all <= OWN_MAX)
			return stack->depth;
	}
	while (i > 0 && used + 1 + stack->frames[i - 1].through_c <= OWN_MAX)
		used += 1 + stack->frames[--i].through_c;
	return stack->depth - i;
}

uint16_t shown_cut(const struct target *target, struct pystack *stack)
{
	uint32_t kept = fitting(target, stack);

	if (kept < stack->depth) {
		memmove(stack->frames + 1, stack->frames + stack->depth - kept, kept * sizeof(*stack->frames));
		stack->frames[0] = (struct pyframe){0};
		stack->depth = kept + 1;
	}
	/* It may have been cut already. */
	return stack->depth > 0 && !stack->frames[0].code && !stack->frames[0].mapping ? STACK_TRUNCATED : 0;
}

static uint32_t innermost_python(const struct pystack *stack)
{
	uint32_t i = stack->depth;

	while (i > 0 && (stack->frames[i - 1].mapping || stack->frames[i - 1].code == MERGE_CUT_CODE))
		i--;
	return i > 0 ? i - 1 : SHOWN_NONE;
}

static uint32_t find_collector(const struct pystack *stack)
{
	for (uint32_t i = stack->depth; i-- > 0;)
		if (stack->frames[i].collects)
			return i;
	return SHOWN_NONE;
}

bool shown_any_collects(const struct pystack *stack)
{
	return find_collector(stack) != SHOWN_NONE;
}

struct shown shown_as(struct target *target, const struct pystack *stack, uint16_t status)
{
	const struct sampler_options *options = target->options;
	struct shown s = {.target = target, .stack = stack, .leaf = SHOWN_NONE, .collector = SHOWN_NONE};

	/* Where C is shown, the collector is. */
	if ((status & STATUS_GC) && options->gc && options->native <= NATIVE_MARKS) {
		if (target->proc.abi.interp.gc_frame != ABSENT)
			s.collector = find_collector(stack);
		s.tail = s.collector == SHOWN_NONE;
	}
	if (options->opcodes)
		s.leaf = innermost_python(stack);
	s.plain = s.collector == SHOWN_NONE && !options->opcodes && options->native != NATIVE_MARKS;
	return s;
}

uint32_t shown_count(const struct shown *s, uint32_t count)
{
	uint32_t shown = count;

	if (s->plain)
		return count;
	for (uint32_t i = 0; i < count; i++)
		shown += s->stack->frames[i].through_c;
	if (s->leaf < count)
		shown += s->stack->frames[s->leaf].opcode != 0;
	return shown + (s->collector < count);
}

uint32_t shown_depth(const struct shown *s)
{
	return shown_count(s, s->stack->depth) + s->tail;
}

static struct frame special(uint32_t symbol)
{
	return frame_make(FRAME_SPECIAL, symbol, 0);
}

static struct frame decode(struct target *target, const struct pyframe *raw, uint64_t now_ns)
{
	struct code *code;

	if (raw->mapping)
		return frame_make(FRAME_NATIVE, raw->mapping, (uint32_t)raw->offset);
	if (raw->code == MERGE_CUT_CODE)
		return special(target->cut_symbol);
	code = codes_find(target->codes, raw->code);
	if (!code)
		code = codes_find_retired(target->codes, raw->code);
	if (!code)
		return special(raw->code ? target->unreadable_symbol : target->truncated_symbol);
	code->used_ns = now_ns;
	return frame_make(FRAME_PYTHON, code->symbol, code_line(code, raw->offset));
}

/* Named when it is first met: a program executes some of them only. */
static struct frame opcode_frame(struct target *target, uint16_t opcode)
{
	uint32_t *symbol = &target->opcode_symbols[opcode - 1];
	const char *known = target->proc.abi.opnames[opcode - 1];
	char name[64];

	if (!*symbol) {
		if (known)
			snprintf(name, sizeof(name), "<%s>", known);
		else
			snprintf(name, sizeof(name), "<opcode %d>", opcode - 1);
		*symbol = symtab_special(target->symbols, name);
	}
	return special(*symbol ? *symbol : target->unreadable_symbol);
}

uint32_t shown_frames(const struct shown *s, uint32_t i, uint64_t now_ns, struct frame *to)
{
	const struct pyframe *raw = &s->stack->frames[i];
	uint32_t count = 0;

	if (raw->through_c && !s->plain)
		to[count++] = special(s->target->native_symbol);
	to[count++] = decode(s->target, raw, now_ns);
	if (i == s->leaf && raw->opcode)
		to[count++] = opcode_frame(s->target, raw->opcode);
	if (i == s->collector)
		to[count++] = special(s->target->gc_symbol);
	return count;
}

uint32_t shown_tail(const struct shown *s, struct frame *to)
{
	const struct target *target = s->target;

	if (s->tail)
		*to = special(target->shuts_down && s->stack->depth == 0 ? target->shutdown_symbol : target->gc_symbol);
	return s->tail;
}

static bool is_alike(const struct pyframe *a, const struct pyframe *b)
{
	return a->code == b->code && a->offset == b->offset && a->mapping == b->mapping &&
	       a->through_c == b->through_c && !a->collects && !b->collects;
}

uint32_t shown_same(const struct shown *shown, const struct pystack *before, uint32_t same)
{
	const struct pystack *now = shown->stack;
	uint32_t most = now->depth < before->depth ? now->depth : before->depth;

	if (shown->leaf != SHOWN_NONE) { /* behind the innermost frames stood what does not stand there now */
		uint32_t leaf = innermost_python(before);

		most = most < shown->leaf ? most : shown->leaf;
		most = most < leaf ? most : leaf;
	}
	if (same > most)
		same = most;
	while (same < most && is_alike(&now->frames[same], &before->frames[same]))
		same++;
	return same;
}
