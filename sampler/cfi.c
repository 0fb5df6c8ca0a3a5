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
       GNU_ARGS_SIZE = 0x2e,
       GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

enum { REMEMBERED_MAX = 32, NOT_KEPT = -1, COLUMNS = CFI_KEPT + 1, RETURN = CFI_KEPT };

enum rule { RULE_SAME, RULE_OFFSET, RULE_UNDEFINED, RULE_OTHER };

struct state {
	uint64_t cfa_register;
	int64_t cfa_off;
	bool cfa_other;   /* by an expression */
	bool stack_other; /* the stack pointer has a rule of its own */
	uint8_t rules[COLUMNS];
	int64_t at[COLUMNS]; /* distances from CFA, in bytes */
};

struct machine {
	const struct unwind_tables *tables;
	const struct unwind_fde *fde;
	struct state now, initial;
	struct state remembered[REMEMBERED_MAX];
	unsigned remembered_count;
	uint64_t location, addr;
	bool bad;
	bool refused; /* there is an expression that libunwind must not be given */
};

#if defined(__x86_64__)
const uint8_t cfi_kept_numbers[CFI_KEPT] = {3, 6, 12, 13, 14, 15};
#elif defined(__aarch64__)
const uint8_t cfi_kept_numbers[CFI_KEPT] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};
#endif

static int column_of(const struct machine *m, uint64_t number)
{
	if (number == m->fde->return_register)
		return RETURN;
	for (int i = 0; i < CFI_KEPT; i++)
		if (cfi_kept_numbers[i] == number)
			return i;
	return NOT_KEPT;
}

static void set_rule(struct machine *m, uint64_t number, enum rule rule, int64_t at)
{
	int column = column_of(m, number);

	if (number == CFI_STACK && rule != RULE_SAME)
		m->now.stack_other = true;
	if (column == NOT_KEPT)
		return;
	m->now.rules[column] = (uint8_t)rule;
	m->now.at[column] = at;
}

static void restore_rule(struct machine *m, uint64_t number)
{
	int column = column_of(m, number);

	if (column == NOT_KEPT)
		return;
	m->now.rules[column] = m->initial.rules[column];
	m->now.at[column] = m->initial.at[column];
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
	m->now.cfa_other = false;
}

static void skip_expression(struct machine *m, struct cursor *at)
{
	uint64_t bytes = cursor_uleb(at);
	struct cursor expression = *at;

	cursor_skip(at, bytes);
	expression.left = at->bad ? 0 : (size_t)bytes;
	m->refused |= !expression_is_plain(expression);
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
		skip_expression(m, at);
		if (stub)
			define_cfa(m, CFI_STACK, stub);
		else
			m->now.cfa_other = true;
		return true;
	default:
		return false;
	}
}

/* The instructions that say where a register is. False: it is none of them. */
static bool run_register(struct machine *m, struct cursor *at, uint8_t code)
{
	uint64_t number;

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
	case VAL_OFFSET:
	case VAL_OFFSET_SF:
		number = cursor_uleb(at);
		cursor_uleb(at);
		set_rule(m, number, RULE_OTHER, 0);
		return true;
	case EXPRESSION:
	case VAL_EXPRESSION:
		number = cursor_uleb(at);
		skip_expression(m, at);
		set_rule(m, number, RULE_OTHER, 0);
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

static struct cfi_row make_row(const struct state *s, bool signal)
{
	struct cfi_row row = {.kind = CFI_PLAIN, .signal = signal};
	bool plain = !s->cfa_other && !s->stack_other && s->cfa_register < 64 && s->cfa_off >= INT32_MIN &&
	             s->cfa_off <= INT32_MAX && s->rules[RETURN] == RULE_OFFSET &&
	             to_words(s->at[RETURN], &row.return_words);

	if (s->rules[RETURN] == RULE_UNDEFINED) {
		row.kind = CFI_ROOT;
		return row;
	}
	for (unsigned i = 0; i < CFI_KEPT; i++) {
		if (s->rules[i] == RULE_UNDEFINED)
			row.lost |= (uint16_t)(1u << i);
		else if (s->rules[i] == RULE_OFFSET && to_words(s->at[i], &row.saved_words[i]))
			row.saved |= (uint16_t)(1u << i);
		else if (s->rules[i] != RULE_SAME)
			plain = false;
	}
	if (plain) {
		row.cfa_register = (uint8_t)s->cfa_register;
		row.cfa_off = (int32_t)s->cfa_off;
	} else {
		row.kind = CFI_LIBRARY;
	}
	return row;
}

int cfi_row(const struct unwind_tables *tables, const struct unwind_fde *fde, uint64_t addr, struct cfi_row *ret_row)
{
	struct machine m = {.tables = tables, .fde = fde, .addr = addr, .location = fde->start};
	struct cursor at = {.data = fde->initial, .left = fde->initial_bytes};

	run(&m, &at);
	if (m.bad)
		return -ENOEXEC;
	m.initial = m.now;
	m.location = fde->start;
	at = (struct cursor){
		.data = fde->instructions, .left = fde->instructions_bytes, .addr = fde->instructions_addr};
	run(&m, &at);
	if (m.bad)
		return -ENOEXEC;
	*ret_row = make_row(&m.now, fde->signal);
	if (ret_row->kind == CFI_LIBRARY && m.refused)
		ret_row->kind = CFI_REFUSED;
	return 0;
}
