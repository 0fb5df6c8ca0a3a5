/* SPDX-License-Identifier: Apache-2.0 */
/* Frame by frame. What an address' rules are is worked out once and kept; nearly all are plain (cfi.h), and applying one is a few loads from the copy.
 * Where there are no rules at all the code itself is asked, and then the frame pointer.
 *
 * Nothing is believed that makes a stack pointer fall (but where a signal came in, whose handler may have a stack of its own), or that leads to
 * where no code is. So an unwinding ends, whatever the stack and the tables hold, after as many frames as there is room for. */
#include "sampler/unwind.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "base/hash.h"
#include "sampler/cfi.h"
#include "sampler/epilogue.h"

enum {
	PLACES = 4096,             /* a power of two */
	WAYS = 4,                  /* places that an address may have */
	LEARN_BYTES_MAX = 1 << 20, /* of instructions worked out in one unwinding: a millisecond or two */
	CODE_BYTES = 48,
};

struct place { /* what is known of one address */
	raddr_t addr;
	uint64_t reading;      /* of code without a file: modules_readings() when it was learnt */
	struct module *module; /* NULL: nothing is known */
	struct cfi_row row;
	bool exact; /* the instruction at addr is yet to run; else it is a call that has not returned */
	bool eval, eval_inner;
};

struct unwinder {
	struct modules *modules;
	uint64_t generation;
	unsigned next_way; /* of a set that is full, which goes */
	struct unwind_counts counts;
	struct place places[PLACES];
};

struct walk { /* one unwinding */
	struct unwinder *unwinder;
	struct stack_copy copy;
	struct unwind_regs regs;
	uint32_t learn_bytes; /* that are left */
	bool elsewhere;       /* a signal came in on another stack than the one that is copied */
};

int unwinder_new(struct unwinder **ret_unwinder, struct modules *modules)
{
	struct unwinder *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->modules = modules;
	*ret_unwinder = u;
	return 0;
}

void unwinder_free(struct unwinder *u)
{
	free(u);
}

struct unwind_counts unwinder_counts(const struct unwinder *u)
{
	return u->counts;
}

/* Where addr is known, or the one that makes room for it. */
static struct place *place_of(struct unwinder *u, raddr_t addr, bool exact, bool *ret_known)
{
	struct place *ways = &u->places[hash_u64(addr) & (PLACES - WAYS)];

	for (unsigned i = 0; i < WAYS; i++) {
		if (!ways[i].module || ways[i].addr != addr || ways[i].exact != exact)
			continue;
		*ret_known = !ways[i].reading || ways[i].reading == modules_readings(u->modules);
		return &ways[i];
	}
	*ret_known = false;
	return &ways[u->next_way++ % WAYS];
}

/* By the code at `at`, which is what runs next. */
static void learn_from_code(struct unwinder *u, raddr_t at, struct cfi_row *row)
{
	uint8_t code[CODE_BYTES];
	ssize_t bytes = modules_code(u->modules, at, code, sizeof(code));

	if (bytes > 0)
		epilogue_row(code, (size_t)bytes, row);
}

#if defined(__aarch64__)
/* Where the handler of a signal returns to, in the vdso: mov x8, __NR_rt_sigreturn; svc 0. Its unwind tables do not say what it is. */
static bool returns_from_signal(struct unwinder *u, const struct module *module, raddr_t at)
{
	static const uint32_t code[] = {0xd2801168, 0xd4000001};
	uint32_t found[2];

	return strcmp(modules_path(module), "[vdso]") == 0 &&
	       ((modules_code(u->modules, at, (uint8_t *)found, sizeof(found)) == sizeof(found) && memcmp(found, code, sizeof(found)) == 0) ||
	        (modules_code(u->modules, at - 4, (uint8_t *)found, sizeof(found)) == sizeof(found) && memcmp(found, code, sizeof(found)) == 0));
}
#endif

/* Whether the instructions of fde may be run in this unwinding, too. */
static bool may_learn(struct walk *w, const struct unwind_fde *fde)
{
	uint64_t bytes = (uint64_t)fde->initial_bytes + fde->instructions_bytes;

	if (bytes > w->learn_bytes)
		return false;
	w->learn_bytes -= (uint32_t)bytes;
	return true;
}

/* The rules at addr. False: that would be too much for one unwinding. */
static bool learn(struct walk *w, struct place *place, raddr_t addr, bool exact)
{
	struct unwinder *u = w->unwinder;
	struct module *module = place->module;
	const struct unwind_tables *tables = modules_tables(u->modules, module);
	struct unwind_fde fde;
	int err = tables ? unwind_tables_find(tables, addr - module->bias, &fde) : -ENOENT;

	u->counts.learnt++;
#if defined(__aarch64__)
	if (returns_from_signal(u, module, exact ? addr : addr + 1)) {
		place->row = (struct cfi_row){.kind = CFI_OTHER, .signal = true};
		return true;
	}
#endif
	if (err == 0) {
		if (!may_learn(w, &fde))
			return false;
		if (cfi_row(tables, &fde, addr - module->bias, &place->row))
			place->row.kind = CFI_REFUSED;
	} else if (err != -ENOENT) {
		place->row.kind = CFI_REFUSED;
	} else if (modules_is_start(module, addr)) {
		place->row.kind = CFI_ROOT;
	} else {
		learn_from_code(u, exact ? addr : addr + 1, &place->row);
	}
	return true;
}

/* What is known of addr; NULL: no code is there, or *ret_end says why else. */
static struct place *visit(struct walk *w, raddr_t addr, bool exact, enum unwind_end *ret_end)
{
	struct unwinder *u = w->unwinder;
	bool known;
	struct place *place = place_of(u, addr, exact, &known);
	struct place fresh = {.addr = addr, .exact = exact};

	if (known)
		return place;
	fresh.module = modules_find(u->modules, addr);
	if (!fresh.module) {
		*ret_end = UNWIND_BAD;
		return NULL;
	}
	if (fresh.module->flags & MAPPING_MEMORY)
		fresh.reading = modules_readings(u->modules);
	fresh.eval = modules_is_eval(u->modules, addr);
	fresh.eval_inner = modules_is_eval_inner(u->modules, addr);
	if (!learn(w, &fresh, addr, exact)) {
		*ret_end = UNWIND_CUT;
		return NULL;
	}
	*place = fresh;
	return place;
}

static bool in_copy(const struct stack_copy *copy, raddr_t addr)
{
	return addr >= copy->from && addr - copy->from <= copy->count;
}

static void forget(struct unwind_regs *regs, unsigned number)
{
	regs->known &= ~(UINT64_C(1) << number);
}

/* Of a register that a callee may change nothing is known in its caller. */
static void keep_kept(struct unwind_regs *regs)
{
	regs->known &= UINT64_C(1) << UNWIND_SP | UINT64_C(1) << UNWIND_IP | CFI_KEPT_MASK;
}

/* The end that a stack pointer beyond the copy, or below it, is. */
static enum unwind_end missing(const struct walk *w, raddr_t addr)
{
	return w->elsewhere || addr >= w->copy.from ? UNWIND_CUT : UNWIND_BAD;
}

/* Each returns 0 when there is a caller, whose registers are w->regs then; or 1, and *ret_end says why there is none. */
static int step_plain(struct walk *w, const struct cfi_row *row, enum unwind_end *ret_end)
{
	struct unwind_regs *regs = &w->regs;
	uint64_t value;
	raddr_t cfa;

	if (!unwind_knows(regs, row->cfa_register)) {
		*ret_end = UNWIND_CUT;
		return 1;
	}
	cfa = regs->values[row->cfa_register] + (uint64_t)(int64_t)row->cfa_off;
	if (cfa % 8 != 0 || cfa < regs->values[UNWIND_SP] + 8) {
		*ret_end = UNWIND_BAD;
		return 1;
	}
	if (!stack_copied(&w->copy, cfa + (uint64_t)((int64_t)row->return_words * 8), &value)) {
		*ret_end = missing(w, cfa);
		return 1;
	}
	keep_kept(regs);
	unwind_set(regs, UNWIND_IP, unwind_target(value));
	for (unsigned left = row->saved; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);

		if (stack_copied(&w->copy, cfa + (uint64_t)((int64_t)row->saved_words[i] * 8), &value))
			unwind_set(regs, cfi_kept_numbers[i], value);
		else
			forget(regs, cfi_kept_numbers[i]);
	}
	for (unsigned left = row->lost; left; left &= left - 1)
		forget(regs, cfi_kept_numbers[__builtin_ctz(left)]);
	unwind_set(regs, UNWIND_SP, cfa);
	return 0;
}

static int step_by_link(struct walk *w, enum unwind_end *ret_end)
{
	if (UNWIND_LINK == UNWIND_REGS || !unwind_knows(&w->regs, UNWIND_LINK)) {
		*ret_end = UNWIND_CUT;
		return 1;
	}
	unwind_set(&w->regs, UNWIND_IP, unwind_target(w->regs.values[UNWIND_LINK % UNWIND_REGS]));
	keep_kept(&w->regs); /* which does not keep the link: it is of one call only */
	return 0;
}

static int step_by_rules(struct walk *w, const struct place *place, enum unwind_end *ret_end)
{
	struct unwinder *u = w->unwinder;
	const struct unwind_tables *tables = modules_tables(u->modules, place->module);
	uint64_t addr = place->addr - place->module->bias;
	raddr_t sp = w->regs.values[UNWIND_SP];
	struct unwind_fde fde;

	*ret_end = UNWIND_CUT;
	if (!tables || unwind_tables_find(tables, addr, &fde) || !may_learn(w, &fde))
		return 1;
	u->counts.by_rules++;
	if (cfi_step(tables, &fde, addr, &w->copy, &w->regs))
		return 1;
	if (fde.signal)
		w->elsewhere |= !in_copy(&w->copy, w->regs.values[UNWIND_SP]);
	else
		keep_kept(&w->regs);
	if (w->regs.values[UNWIND_SP] % 8 != 0 || (!fde.signal && w->regs.values[UNWIND_SP] < sp + UNWIND_CALL_BYTES)) {
		*ret_end = UNWIND_BAD;
		return 1;
	}
	return 0;
}

#if defined(__aarch64__)
/* Where a signal came in, by what the kernel put on the stack for the handler (struct rt_sigframe): the vdso's rules lead to the caller of the
 * function that was interrupted. */
static int step_signal(struct walk *w, enum unwind_end *ret_end)
{
	struct unwind_regs regs = {0};
	raddr_t at = w->regs.values[UNWIND_SP] + sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext.regs);
	uint64_t value;

	*ret_end = UNWIND_CUT;
	for (unsigned i = 0; i < UNWIND_REGS; i++, at += sizeof(value)) { /* x0 to x30, sp and pc lie in DWARF's order */
		if (!stack_copied(&w->copy, at, &value))
			return 1;
		unwind_set(&regs, i, value);
	}
	w->regs = regs;
	w->elsewhere |= !in_copy(&w->copy, regs.values[UNWIND_SP]);
	w->unwinder->counts.by_rules++;
	return 0;
}
#endif

static bool behind_call(struct unwinder *u, raddr_t addr)
{
	uint8_t code[7];

	return modules_find(u->modules, addr - 1) &&
	       modules_code(u->modules, addr - sizeof(code), code, sizeof(code)) == (ssize_t)sizeof(code) &&
	       epilogue_is_call(code + sizeof(code), sizeof(code));
}

/* No tables. Of the innermost function nothing shows that the frame pointer is its own and not its caller's, so that one would be missed. */
static int step_by_pointer(struct walk *w, const struct place *place, enum unwind_end *ret_end)
{
	struct unwind_regs *regs = &w->regs;
	uint64_t fp = regs->values[UNWIND_FP], outer, back, target;

	*ret_end = UNWIND_CUT;
	if (!unwind_knows(regs, UNWIND_FP))
		return 1;
	if (fp == 0 && place->module->flags & MAPPING_SYSTEM) {
		*ret_end = UNWIND_ROOT; /* musl's first functions have no tables, but clear it */
		return 1;
	}
	if (place->exact || fp % 8 != 0 || fp < regs->values[UNWIND_SP] || !stack_copied(&w->copy, fp, &outer) ||
	    !stack_copied(&w->copy, fp + 8, &back) || (outer != 0 && outer <= fp))
		return 1;
	target = unwind_target(back);
	if (!behind_call(w->unwinder, target))
		return 1;
	regs->known = 0;
	unwind_set(regs, UNWIND_FP, outer);
	unwind_set(regs, UNWIND_SP, fp + 16);
	if (UNWIND_CALL_BYTES == 0)
		forget(regs, UNWIND_SP); /* aarch64: the pair of pointers lies at the lower end of its frame, which ends somewhere above */
	unwind_set(regs, UNWIND_IP, target);
	w->unwinder->counts.by_pointer++;
	return 0;
}

static int step(struct walk *w, const struct place *place, enum unwind_end *ret_end)
{
#if defined(__aarch64__)
	if (place->row.signal)
		return step_signal(w, ret_end);
#endif
	switch ((enum cfi_kind)place->row.kind) {
	case CFI_PLAIN:
		return step_plain(w, &place->row, ret_end);
	case CFI_LINK:
		return step_by_link(w, ret_end);
	case CFI_OTHER:
		return step_by_rules(w, place, ret_end);
	case CFI_NONE:
		return step_by_pointer(w, place, ret_end);
	case CFI_REFUSED:
		*ret_end = UNWIND_CUT;
		return 1;
	case CFI_ROOT:
		break;
	}
	*ret_end = UNWIND_ROOT;
	return 1;
}

static enum unwind_end walk_up(struct walk *w, struct unwound *unwound)
{
	raddr_t addr = w->regs.values[UNWIND_IP];
	bool exact = true;
	enum unwind_end end = UNWIND_BAD;

	for (;;) {
		struct place *place;

		if (unwound->depth == unwound->room)
			return UNWIND_DEEP;
		place = visit(w, addr, exact, &end);
		if (!place)
			return end;
		unwound->frames[unwound->depth++] = (struct unwind_frame){
			.pc = addr, .sp = w->regs.values[UNWIND_SP], .module = place->module, .eval = place->eval, .eval_inner = place->eval_inner};
		exact = place->row.signal;
		if (step(w, place, &end))
			return end;
		addr = w->regs.values[UNWIND_IP];
		if (addr == 0)
			return UNWIND_ROOT;
		if (!exact)
			addr--;
	}
}

static void flush_old(struct unwinder *u)
{
	modules_check(u->modules);
	if (u->generation == modules_generation(u->modules))
		return;
	memset(u->places, 0, sizeof(u->places));
	u->generation = modules_generation(u->modules);
}

int unwind(struct unwinder *u, const struct unwind_regs *regs, const uint8_t *stack, raddr_t stack_from,
           uint32_t stack_bytes, struct unwound *unwound)
{
	struct walk w = {
		.unwinder = u,
		.copy = {.bytes = stack, .from = stack_from, .count = stack_bytes},
		.regs = *regs,
		.learn_bytes = LEARN_BYTES_MAX,
	};

	if (!unwind_knows(regs, UNWIND_IP) || !unwind_knows(regs, UNWIND_SP))
		return -EINVAL;
	flush_old(u);
	unwound->depth = 0;
	unwound->end = walk_up(&w, unwound);
	unwound->used_bytes = w.regs.values[UNWIND_SP] - stack_from;
	u->counts.frames += unwound->depth;
	/* Half of the maps may be older than the other half of this stack. */
	if (unwound->end == UNWIND_BAD)
		modules_doubt(u->modules);
	return 0;
}
