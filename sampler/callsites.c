/* SPDX-License-Identifier: Apache-2.0 */
/* Follows all paths through the bytecode with the depth of the value stack (compile.c, stackdepth(), does the same).
 *
 * To 3.8 the body of a `finally` is entered with different numbers of values. The compiler, and this, reckon with the
 * greatest; `sure` is up to where the stack is the same on all paths: slots above it cannot be named. Behind the `finally`
 * the depth is below `sure` again. */
#include "sampler/callsites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BYTECODE_MAX    (256u << 10)
#define DEPTH_MAX       4096
#define SLACK           32 /* 3.6 makes the stack smaller than it reckons at places that are not reached so */
#define EXCEPTION_SLOTS 6  /* pushed for a handler: the exception, and the one that was handled before */
#define VISITS_PER_UNIT 8u /* of hostile bytecode; real one is visited once, behind a `finally` a few times */

struct state {
	int16_t depth; /* -1: not reached yet */
	int16_t sure;
};

struct flow {
	const struct pyabi *abi;
	const uint8_t *bytecode;
	uint32_t units;
	int depth_max;
	struct state *at; /* by unit */
	uint32_t *todo;   /* units whose state changed; each at most once */
	bool *listed;     /* which are in it */
	uint32_t todo_count;
	bool sane;
};

struct instruction {
	struct py_opcode op;
	uint32_t arg;
	uint32_t next; /* unit */
};

/* One path more leads to `unit`. */
static void reach(struct flow *f, uint64_t unit, int depth, int sure)
{
	struct state *s;

	if (unit >= f->units || depth < 0 || depth > f->depth_max) {
		f->sane = false;
		return;
	}
	if (depth <= sure)
		sure = DEPTH_MAX; /* what was not sure has been taken off */
	s = &f->at[unit];
	if (s->depth >= 0 && s->depth != depth) {
		int less = s->depth < depth ? s->depth : depth;

		sure = less - 1 < sure ? less - 1 : sure;
		depth = s->depth > depth ? s->depth : depth;
	}
	if (s->depth >= 0 && s->sure < sure)
		sure = s->sure;
	if (s->depth == depth && s->sure == sure)
		return;
	*s = (struct state){.depth = (int16_t)depth, .sure = (int16_t)sure};
	if (!f->listed[unit]) {
		f->listed[unit] = true;
		f->todo[f->todo_count++] = (uint32_t)unit;
	}
}

/* A call of the body of a `finally`, which was reached as a handler before, with something else than an exception. */
static void unsure_finally(struct flow *f, uint64_t unit)
{
	if (unit >= f->units || f->at[unit].depth < EXCEPTION_SLOTS)
		f->sane = false;
	else
		reach(f, unit, f->at[unit].depth, f->at[unit].depth - EXCEPTION_SLOTS);
}

/* The instruction whose first unit, prefixes included, is `unit`. */
static struct instruction read_instruction(const struct flow *f, uint32_t unit)
{
	struct instruction i = {.arg = 0};

	do {
		i.op = f->abi->opcodes[f->bytecode[2 * unit]];
		i.arg = i.arg << 8 | f->bytecode[2 * unit + 1];
		unit++;
	} while (i.op.kind == OPCODE_EXTENDED && unit < f->units);
	i.next = unit;
	return i;
}

/* The change of depth where it goes on to the next instruction. */
static int64_t fall_effect(const struct instruction *i)
{
	uint32_t arg = i->arg;

	switch (i->op.kind) {
	case OPCODE_UNPACK_EX:
		return (int64_t)(arg & 0xff) + (arg >> 8);
	case OPCODE_MAKE_FUNCTION:
		return -1 - (int)(arg & 1) - (int)(arg >> 1 & 1) - (int)(arg >> 2 & 1) - (int)(arg >> 3 & 1);
	case OPCODE_BUILD_SLICE:
		return arg == 3 ? -2 : -1;
	case OPCODE_FORMAT_VALUE:
		return (arg & 4) != 0 ? -1 : 0;
	case OPCODE_CALL_EX:
		return -1 - (int)(arg & 1);
	default:
		return i->op.fall + (int64_t)arg * i->op.each;
	}
}

static void follow(struct flow *f, uint32_t unit)
{
	struct instruction i = read_instruction(f, unit);
	struct state s = f->at[unit];
	uint64_t target = f->abi->instr == INSTR_LASTI_UNITS ? i.arg : i.arg / 2;
	int64_t fallen = s.depth + fall_effect(&i);
	int jumped = s.depth + i.op.jump;
	int depth = fallen < -1 || fallen > DEPTH_MAX ? -1 : (int)fallen;

	switch (i.op.kind) {
	case OPCODE_UNKNOWN:
	case OPCODE_EXTENDED: /* at the end */
		f->sane = false;
		return;
	case OPCODE_ENDS:
		return;
	case OPCODE_GOTO:
		reach(f, target, jumped, s.sure);
		return;
	case OPCODE_GOTO_FORWARD:
		reach(f, i.next + target, jumped, s.sure);
		return;
	case OPCODE_BRANCH:
		reach(f, target, jumped, s.sure);
		break;
	case OPCODE_FOR_ITER:
	case OPCODE_SETUP:
		reach(f, i.next + target, jumped, s.sure);
		break;
	case OPCODE_SETUP_FINALLY:
		reach(f, i.next + target, jumped,
		      jumped - EXCEPTION_SLOTS < s.sure ? jumped - EXCEPTION_SLOTS : s.sure);
		break;
	case OPCODE_CALL_FINALLY:
		unsure_finally(f, i.next + target);
		break;
	case OPCODE_BEGIN_FINALLY:
		reach(f, i.next, depth, s.depth < s.sure ? s.depth : s.sure);
		return;
	default:
		break;
	}
	reach(f, i.next, depth, s.sure);
}

/* Whether an instruction may call, as a matter of course. */
static bool may_call(const struct py_opcode *op)
{
	switch (op->kind) {
	case OPCODE_UNKNOWN:
	case OPCODE_EXTENDED:
	case OPCODE_GOTO:
	case OPCODE_GOTO_FORWARD:
	case OPCODE_BEGIN_FINALLY:
	case OPCODE_CALL_FINALLY:
	case OPCODE_GEN_START:
	case OPCODE_MAKE_FUNCTION:
	case OPCODE_BUILD_SLICE:
		return false;
	default:
		return !op->quiet;
	}
}

/* The name by which the callable was pushed that lies in this slot where `unit` is executed. What is behind that in the bytecode leaves the slot alone;
 * branches within arguments may seem to reach it. */
static uint16_t find_name(const struct flow *f, uint32_t unit, int64_t slot)
{
	for (uint32_t at = unit; at-- > 0;) {
		struct instruction i;
		const char *name;
		bool method;

		if (f->at[at].depth < 0)
			continue;
		i = read_instruction(f, at);
		name = f->abi->opnames[f->bytecode[2 * (i.next - 1)]];
		method = name && strcmp(name, "LOAD_METHOD") == 0;
		if (f->at[at].depth + fall_effect(&i) - method != slot + 1 || i.op.kind == OPCODE_BRANCH)
			continue;
		return name && (method || strcmp(name, "LOAD_GLOBAL") == 0 || strcmp(name, "LOAD_ATTR") == 0) && i.arg < UINT16_MAX
		               ? (uint16_t)(i.arg + 1)
		               : 0;
	}
	return 0;
}

static bool site_at(const struct flow *f, uint32_t unit, int slots, struct callsite *ret_site)
{
	struct instruction i;
	struct state s = f->at[unit];
	int64_t slot = -1;
	enum callsite_kind kind = CALLSITE_OTHER;

	if (s.depth < 0)
		return false;
	i = read_instruction(f, unit);
	switch (i.op.kind) {
	case OPCODE_CALL_METHOD:
	case OPCODE_CALL:
	case OPCODE_CALL_EX:
		kind = i.op.kind == OPCODE_CALL_METHOD ? CALLSITE_METHOD : CALLSITE_CALL;
		slot = s.depth + fall_effect(&i) - 1;
		break;
	case OPCODE_FOR_ITER:
	case OPCODE_RESUME:
		kind = CALLSITE_RESUME;
		slot = s.depth - (i.op.kind == OPCODE_RESUME ? 2 : 1);
		break;
	default:
		if (!may_call(&i.op))
			return false;
	}
	*ret_site = (struct callsite){.offset = 2 * unit, .kind = CALLSITE_OTHER};
	if (slot >= 0 && slot < s.depth && s.depth <= slots && s.depth <= s.sure) {
		ret_site->slot = (uint16_t)slot;
		ret_site->end = (uint16_t)s.depth;
		ret_site->kind = (uint8_t)kind;
		if (kind == CALLSITE_CALL || kind == CALLSITE_METHOD)
			ret_site->name_index = find_name(f, unit, slot);
	} else {
		ret_site->unsure = slot >= 0;
	}
	return true;
}

/* Takes the sites out of a flow that came to its end. */
static int collect(const struct flow *f, int slots, struct callsite **ret_sites)
{
	struct callsite *sites, site;
	uint32_t count = 0, k = 0;

	for (uint32_t unit = 0; unit < f->units; unit++)
		count += site_at(f, unit, slots, &site);
	if (count == 0)
		return 0;
	sites = malloc(count * sizeof(*sites));
	if (!sites)
		return -ENOMEM;
	for (uint32_t unit = 0; unit < f->units && k < count; unit++)
		k += site_at(f, unit, slots, &sites[k]);
	*ret_sites = sites;
	return (int)count;
}

int callsites_find_all(const struct pyabi *abi, const uint8_t *bytecode, uint32_t bytes, uint32_t stacksize,
                       struct callsite **ret_sites)
{
	struct flow f = {.abi = abi, .bytecode = bytecode, .units = bytes / 2, .sane = true};
	int count = -ENOMEM;

	*ret_sites = NULL;
	if (!abi->opcodes || f.units == 0 || bytes > BYTECODE_MAX || stacksize > DEPTH_MAX - SLACK)
		return 0;
	f.depth_max = (int)stacksize + SLACK;
	f.at = calloc(f.units, sizeof(*f.at));
	f.todo = malloc(f.units * sizeof(*f.todo));
	f.listed = calloc(f.units, sizeof(*f.listed));
	if (!f.at || !f.todo || !f.listed)
		goto out;
	for (uint32_t i = 0; i < f.units; i++)
		f.at[i] = (struct state){.depth = -1};
	reach(&f, 0, abi->opcodes[bytecode[0]].kind == OPCODE_GEN_START, DEPTH_MAX);
	for (uint64_t visits = 0; f.todo_count > 0 && f.sane; visits++) {
		uint32_t unit = f.todo[--f.todo_count];

		f.listed[unit] = false;
		f.sane = visits < (uint64_t)VISITS_PER_UNIT * f.units;
		follow(&f, unit);
	}
	count = f.sane ? collect(&f, (int)stacksize, ret_sites) : 0;
out:
	free(f.at);
	free(f.todo);
	free(f.listed);
	return count;
}

struct callsite *callsites_at(struct callsite *sites, uint32_t count, int64_t offset)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if ((int64_t)sites[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && (int64_t)sites[low].offset == offset ? &sites[low] : NULL;
}

#define COUNT_MAX (1u << 24) /* then all are halved */
#define COUNT_MIN 16         /* fewer tell nothing */
#define RARE      64         /* one in so many may be misread: for an instant the result lies where the callable was */

void callsite_count(struct callsite *site, uint64_t callee)
{
	if (callee == 0) {
		site->open_count++;
	} else if (callee == site->callee || site->callee_count == 0) {
		site->callee = callee;
		site->callee_count++;
	} else if (++site->other_count > site->callee_count) {
		site->other_count += site->callee_count;
		site->callee = callee;
		site->callee_count = 1;
	}
	if (site->callee_count + site->other_count + site->open_count > COUNT_MAX) {
		site->callee_count /= 2;
		site->other_count /= 2;
		site->open_count /= 2;
	}
}

bool callsite_is_of(const struct callsite *site, uint64_t callee)
{
	return site->callee == callee && site->callee_count >= COUNT_MIN &&
	       site->other_count <= site->callee_count / RARE;
}

bool callsite_is_python(const struct callsite *site)
{
	return site->callee_count >= COUNT_MIN && site->open_count <= (site->callee_count + site->other_count) / RARE;
}

bool callsite_is_open(const struct callsite *site)
{
	return site->callee_count + site->other_count <= site->open_count / RARE;
}
