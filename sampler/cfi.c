/* SPDX-License-Identifier: Apache-2.0 */
/* Runs call frame instructions (DWARF 5, 6.4.2) up to an address. Each takes a byte at least, so their number is bounded by that of the entry's. */
#include "sampler/cfi.h"

#include <errno.h>
#include <stddef.h>

#include "sampler/cursor.h"
#include "sampler/expression.h"

enum { /* DW_CFA_*: the high two bits, or, where they are 0, the rest */
       ADVANCE = 1,
       OFFSET = 2,
       RESTORE = 3,
       NOP = 0x00,
       SET_LOC = 0x01,
       ADVANCE_1 = 0x02,
       ADVANCE_2 = 0x03,
       ADVANCE_4 = 0x04,
       OFFSET_EXTENDED = 0x05,
       RESTORE_EXTENDED = 0x06,
       UNDEFINED = 0x07,
       SAME_VALUE = 0x08,
       REGISTER = 0x09,
       REMEMBER_STATE = 0x0a,
       RESTORE_STATE = 0x0b,
       DEF_CFA = 0x0c,
       DEF_CFA_REGISTER = 0x0d,
       DEF_CFA_OFFSET = 0x0e,
       DEF_CFA_EXPRESSION = 0x0f,
       EXPRESSION = 0x10,
       OFFSET_EXTENDED_SF = 0x11,
       DEF_CFA_SF = 0x12,
       DEF_CFA_OFFSET_SF = 0x13,
       VAL_OFFSET = 0x14,
       VAL_OFFSET_SF = 0x15,
       VAL_EXPRESSION = 0x16,
       AARCH64_NEGATE_RA_STATE = 0x2d,
       GNU_ARGS_SIZE = 0x2e,
       GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

enum { REMEMBERED_MAX = 32 };

enum rule_kind {
	RULE_SAME,             /* unchanged; of the stack pointer: it is CFA */
	RULE_UNDEFINED,        /* it is gone */
	RULE_OFFSET,           /* saved at CFA + off */
	RULE_VALUE_OFFSET,     /* CFA + off itself */
	RULE_REGISTER,         /* what the register `off` holds */
	RULE_EXPRESSION,       /* saved where the expression says */
	RULE_VALUE_EXPRESSION, /* what the expression says */
};

struct rule {
	enum rule_kind kind;
	union {
		int64_t off;
		struct expression expression;
	};
};

struct state {
	uint64_t cfa_register;
	int64_t cfa_off;
	bool by_expression; /* cfa_expression says where CFA is, not the two above */
	struct expression cfa_expression;
	struct rule rules[UNWIND_REGS]; /* by DWARF's numbers */
};

struct machine {
	const struct unwind_tables *tables;
	const struct unwind_fde *fde;
	struct state now, initial;
	struct state remembered[REMEMBERED_MAX];
	unsigned remembered_count;
	uint64_t location, addr;
	bool bad;
};

#if defined(__x86_64__)
const uint8_t cfi_kept_numbers[CFI_KEPT] = {3, 6, 12, 13, 14, 15};
#elif defined(__aarch64__)
const uint8_t cfi_kept_numbers[CFI_KEPT] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29};
#endif

/* Rules of other registers (those of vectors) are of no use to unwinding. */
static void set_rule(struct machine *m, uint64_t number, enum rule_kind kind, int64_t off)
{
	if (number < UNWIND_REGS)
		m->now.rules[number] = (struct rule){.kind = kind, .off = off};
}

static void restore_rule(struct machine *m, uint64_t number)
{
	if (number < UNWIND_REGS)
		m->now.rules[number] = m->initial.rules[number];
}

static int64_t factored(const struct machine *m, int64_t value)
{
	/* The alignment is at most 64 either way; what overflows is beyond every stack all the same. */
	return value > INT32_MAX || value < INT32_MIN ? INT64_MAX / 2 : value * m->fde->data_align;
}

static int64_t factored_u(const struct machine *m, uint64_t value)
{
	return factored(m, value > INT32_MAX ? INT64_MAX : (int64_t)value);
}

static void define_cfa(struct machine *m, uint64_t number, int64_t off)
{
	m->now.cfa_register = number;
	m->now.cfa_off = off;
	m->now.by_expression = false;
}

static struct expression take_expression(struct cursor *at)
{
	uint64_t bytes = cursor_uleb(at);
	struct expression expression = {.bytes = at->data};

	cursor_skip(at, bytes);
	if (!at->bad)
		expression.count = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
	return expression;
}

static void remember(struct machine *m)
{
	if (m->remembered_count == REMEMBERED_MAX)
		m->bad = true;
	else
		m->remembered[m->remembered_count++] = m->now;
}

static void recall(struct machine *m)
{
	if (m->remembered_count == 0)
		m->bad = true;
	else
		m->now = m->remembered[--m->remembered_count];
}

static void advance(struct machine *m, uint64_t units)
{
	m->location += units * m->fde->code_align;
}

/* The instructions that say where CFA is. False: it is none of them. */
static bool run_cfa(struct machine *m, struct cursor *at, uint8_t code)
{
	uint64_t number;
	int64_t stub;

	switch (code) {
	case DEF_CFA:
		number = cursor_uleb(at);
		define_cfa(m, number, (int64_t)(cursor_uleb(at) & INT64_MAX));
		return true;
	case DEF_CFA_SF:
		number = cursor_uleb(at);
		define_cfa(m, number, factored(m, cursor_sleb(at)));
		return true;
	case DEF_CFA_REGISTER:
		define_cfa(m, cursor_uleb(at), m->now.cfa_off);
		return true;
	case DEF_CFA_OFFSET:
		m->now.cfa_off = (int64_t)(cursor_uleb(at) & INT64_MAX);
		return true;
	case DEF_CFA_OFFSET_SF:
		m->now.cfa_off = factored(m, cursor_sleb(at));
		return true;
	case DEF_CFA_EXPRESSION:
		stub = expression_stub(*at, m->addr);
		m->now.cfa_expression = take_expression(at);
		if (stub)
			define_cfa(m, CFI_STACK, stub);
		else
			m->now.by_expression = true;
		return true;
	default:
		return false;
	}
}

/* The instructions that say where a register is. False: it is none of them. */
static bool run_register(struct machine *m, struct cursor *at, uint8_t code)
{
	uint64_t number;
	struct rule rule;

	switch (code) {
	case OFFSET_EXTENDED:
		number = cursor_uleb(at);
		set_rule(m, number, RULE_OFFSET, factored_u(m, cursor_uleb(at)));
		return true;
	case OFFSET_EXTENDED_SF:
		number = cursor_uleb(at);
		set_rule(m, number, RULE_OFFSET, factored(m, cursor_sleb(at)));
		return true;
	case GNU_NEGATIVE_OFFSET_EXTENDED:
		number = cursor_uleb(at);
		set_rule(m, number, RULE_OFFSET, -factored_u(m, cursor_uleb(at)));
		return true;
	case RESTORE_EXTENDED:
		restore_rule(m, cursor_uleb(at));
		return true;
	case UNDEFINED:
		set_rule(m, cursor_uleb(at), RULE_UNDEFINED, 0);
		return true;
	case SAME_VALUE:
		set_rule(m, cursor_uleb(at), RULE_SAME, 0);
		return true;
	case REGISTER:
		number = cursor_uleb(at);
		set_rule(m, number, RULE_REGISTER, (int64_t)(cursor_uleb(at) & INT64_MAX));
		return true;
	case VAL_OFFSET:
		number = cursor_uleb(at);
		set_rule(m, number, RULE_VALUE_OFFSET, factored_u(m, cursor_uleb(at)));
		return true;
	case VAL_OFFSET_SF:
		number = cursor_uleb(at);
		set_rule(m, number, RULE_VALUE_OFFSET, factored(m, cursor_sleb(at)));
		return true;
	case EXPRESSION:
	case VAL_EXPRESSION:
		number = cursor_uleb(at);
		rule.kind = code == EXPRESSION ? RULE_EXPRESSION : RULE_VALUE_EXPRESSION;
		rule.expression = take_expression(at);
		if (number < UNWIND_REGS)
			m->now.rules[number] = rule;
		return true;
	default:
		return false;
	}
}

static void run_other(struct machine *m, struct cursor *at, uint8_t code)
{
	switch (code) {
	case NOP:
		break;
	case SET_LOC:
		m->location = cursor_encoded(at, m->fde->encoding, m->tables->hdr);
		break;
	case ADVANCE_1:
		advance(m, cursor_u8(at));
		break;
	case ADVANCE_2:
		advance(m, cursor_u16(at));
		break;
	case ADVANCE_4:
		advance(m, cursor_u32(at));
		break;
	case REMEMBER_STATE:
		remember(m);
		break;
	case RESTORE_STATE:
		recall(m);
		break;
#if defined(__aarch64__)
	case AARCH64_NEGATE_RA_STATE: /* signed from here on, or no longer: unwind_target() does for both */
		break;
#endif
	case GNU_ARGS_SIZE:
		cursor_uleb(at);
		break;
	default: /* its operands are not known */
		m->bad = true;
	}
}

static void run(struct machine *m, struct cursor *at)
{
	while (at->left > 0 && !at->bad && !m->bad) {
		uint8_t code = cursor_u8(at);
		uint8_t low = code & 0x3f;

		switch (code >> 6) {
		case ADVANCE:
			advance(m, low);
			break;
		case OFFSET:
			set_rule(m, low, RULE_OFFSET, factored_u(m, cursor_uleb(at)));
			break;
		case RESTORE:
			restore_rule(m, low);
			break;
		default:
			if (!run_cfa(m, at, code) && !run_register(m, at, code))
				run_other(m, at, code);
		}
		if (m->location > m->addr)
			return;
	}
	m->bad |= at->bad;
}

static bool to_words(int64_t bytes, int16_t *ret_words)
{
	if (bytes % 8 != 0 || bytes / 8 < INT16_MIN || bytes / 8 > INT16_MAX)
		return false;
	*ret_words = (int16_t)(bytes / 8);
	return true;
}

static struct cfi_row make_row(const struct state *s, const struct unwind_fde *fde)
{
	struct cfi_row row = {.kind = CFI_PLAIN, .signal = fde->signal};
	const struct rule *back = &s->rules[fde->return_register];
	bool plain = !s->by_expression && s->rules[CFI_STACK].kind == RULE_SAME && s->cfa_register < 64 &&
	             s->cfa_off >= INT32_MIN && s->cfa_off <= INT32_MAX && back->kind == RULE_OFFSET &&
	             to_words(back->off, &row.return_words);

	if (back->kind == RULE_UNDEFINED) {
		row.kind = CFI_ROOT;
		return row;
	}
	for (unsigned i = 0; i < CFI_KEPT; i++) {
		const struct rule *rule = &s->rules[cfi_kept_numbers[i]];

		if (rule->kind == RULE_UNDEFINED)
			row.lost |= (uint16_t)(1u << i);
		else if (rule->kind == RULE_OFFSET && to_words(rule->off, &row.saved_words[i]))
			row.saved |= (uint16_t)(1u << i);
		else if (rule->kind != RULE_SAME)
			plain = false;
	}
	if (back->kind == RULE_SAME && fde->return_register == UNWIND_LINK && !s->by_expression && s->cfa_register == CFI_STACK &&
	    s->cfa_off == 0 && !row.saved && !row.lost) {
		row.kind = CFI_LINK;
	} else if (plain) {
		row.cfa_register = (uint8_t)s->cfa_register;
		row.cfa_off = (int32_t)s->cfa_off;
	} else {
		row.kind = CFI_OTHER;
	}
	return row;
}

/* Runs the instructions of fde up to addr. 0 or -ENOEXEC. */
static int run_to(struct machine *m, const struct unwind_tables *tables, const struct unwind_fde *fde, uint64_t addr)
{
	struct cursor at = {.data = fde->initial, .left = fde->initial_bytes};

	*m = (struct machine){.tables = tables, .fde = fde, .addr = addr, .location = fde->start};
	if (fde->return_register >= UNWIND_REGS)
		return -ENOEXEC;
	run(m, &at);
	if (m->bad)
		return -ENOEXEC;
	m->initial = m->now;
	m->location = fde->start;
	at = (struct cursor){
		.data = fde->instructions, .left = fde->instructions_bytes, .addr = fde->instructions_addr};
	run(m, &at);
	return m->bad ? -ENOEXEC : 0;
}

int cfi_row(const struct unwind_tables *tables, const struct unwind_fde *fde, uint64_t addr, struct cfi_row *ret_row)
{
	struct machine m;
	int err = run_to(&m, tables, fde, addr);

	if (!err)
		*ret_row = make_row(&m.now, fde);
	return err;
}

/* Where a register of the caller lies, or what it holds, by a rule. 0, -ENODATA or -ENOEXEC. */
static int apply(const struct rule *rule, uint64_t cfa, uint64_t same, const struct unwind_regs *regs,
                 const struct stack_copy *copy, uint64_t *ret_value)
{
	uint64_t value = 0;
	int err = 0;

	switch (rule->kind) {
	case RULE_SAME:
		value = same;
		break;
	case RULE_UNDEFINED:
		return -ENODATA;
	case RULE_OFFSET:
	case RULE_VALUE_OFFSET:
		value = cfa + (uint64_t)rule->off;
		break;
	case RULE_REGISTER:
		if (!unwind_knows(regs, rule->off < UNWIND_REGS ? (unsigned)rule->off : UNWIND_REGS))
			return -ENODATA;
		value = regs->values[rule->off];
		break;
	case RULE_EXPRESSION:
	case RULE_VALUE_EXPRESSION:
		err = expression_value(rule->expression, &cfa, regs, copy, &value);
		break;
	}
	if (!err && (rule->kind == RULE_OFFSET || rule->kind == RULE_EXPRESSION) && !stack_copied(copy, value, &value))
		err = -ENODATA;
	if (!err)
		*ret_value = value;
	return err;
}

static int find_cfa(const struct state *s, const struct unwind_regs *regs, const struct stack_copy *copy,
                    uint64_t *ret_cfa)
{
	if (s->by_expression)
		return expression_value(s->cfa_expression, NULL, regs, copy, ret_cfa);
	if (!unwind_knows(regs, s->cfa_register < UNWIND_REGS ? (unsigned)s->cfa_register : UNWIND_REGS))
		return -ENODATA;
	*ret_cfa = regs->values[s->cfa_register] + (uint64_t)s->cfa_off;
	return 0;
}

int cfi_step(const struct unwind_tables *tables, const struct unwind_fde *fde, uint64_t addr,
             const struct stack_copy *copy, struct unwind_regs *regs)
{
	struct unwind_regs caller = {0};
	struct machine m;
	uint64_t cfa, value;
	int err = run_to(&m, tables, fde, addr);

	if (!err)
		err = find_cfa(&m.now, regs, copy, &cfa);
	if (err)
		return err;
	for (unsigned i = 0; i < UNWIND_REGS; i++) {
		const struct rule *rule = &m.now.rules[i];

		if (rule->kind == RULE_SAME && i != CFI_STACK && (!unwind_knows(regs, i) || (i == fde->return_register && i != UNWIND_LINK)))
			continue;
		if (apply(rule, cfa, i == CFI_STACK ? cfa : regs->values[i], regs, copy, &value) == 0)
			unwind_set(&caller, i, value);
	}
	if (!unwind_knows(&caller, fde->return_register) || !unwind_knows(&caller, UNWIND_SP))
		return -ENODATA;
	unwind_set(&caller, UNWIND_IP, unwind_target(caller.values[fde->return_register]));
	*regs = caller;
	return 0;
}
