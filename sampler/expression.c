/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/expression.h"

#include <string.h>

#include "sampler/cfi.h"

enum { /* DW_OP_* (DWARF 5, 2.5) */
       OP_ADDR = 0x03,
       OP_DEREF = 0x06,
       OP_CONST1U = 0x08,
       OP_CONST1S = 0x09,
       OP_CONST2U = 0x0a,
       OP_CONST2S = 0x0b,
       OP_CONST4U = 0x0c,
       OP_CONST4S = 0x0d,
       OP_CONST8U = 0x0e,
       OP_CONST8S = 0x0f,
       OP_CONSTU = 0x10,
       OP_CONSTS = 0x11,
       OP_AND = 0x1a,
       OP_MINUS = 0x1c,
       OP_MUL = 0x1e,
       OP_NEG = 0x1f,
       OP_NOT = 0x20,
       OP_OR = 0x21,
       OP_PLUS = 0x22,
       OP_PLUS_UCONST = 0x23,
       OP_SHL = 0x24,
       OP_SHR = 0x25,
       OP_XOR = 0x27,
       OP_EQ = 0x29,
       OP_GE = 0x2a,
       OP_GT = 0x2b,
       OP_LE = 0x2c,
       OP_LT = 0x2d,
       OP_NE = 0x2e,
       OP_LIT0 = 0x30,
       OP_LIT31 = 0x4f,
       OP_BREG0 = 0x70,
       OP_BREG31 = 0x8f,
       OP_NOP = 0x96,
       EXPRESSION_BYTES_MAX = 256,
};

static bool operation_is_plain(struct cursor *at)
{
	uint8_t code = cursor_u8(at);

	if (code >= OP_LIT0 && code <= OP_LIT31)
		return true;
	if (code >= OP_BREG0 && code <= OP_BREG31) {
		cursor_sleb(at);
		return true;
	}
	switch (code) {
	case OP_CONST1U:
	case OP_CONST1S:
		cursor_u8(at);
		return true;
	case OP_CONST2U:
	case OP_CONST2S:
		cursor_u16(at);
		return true;
	case OP_CONST4U:
	case OP_CONST4S:
		cursor_u32(at);
		return true;
	case OP_CONST8U:
	case OP_CONST8S:
	case OP_ADDR:
		cursor_u64(at);
		return true;
	case OP_CONSTU:
	case OP_PLUS_UCONST:
		cursor_uleb(at);
		return true;
	case OP_CONSTS:
		cursor_sleb(at);
		return true;
	case OP_DEREF:
	case OP_AND:
	case OP_MINUS:
	case OP_MUL:
	case OP_NEG:
	case OP_NOT:
	case OP_OR:
	case OP_PLUS:
	case OP_SHL:
	case OP_SHR:
	case OP_XOR:
	case OP_EQ:
	case OP_GE:
	case OP_GT:
	case OP_LE:
	case OP_LT:
	case OP_NE:
	case OP_NOP:
		return true;
	default:
		return false;
	}
}

bool expression_is_plain(struct cursor expression)
{
	if (expression.left > EXPRESSION_BYTES_MAX)
		return false;
	while (expression.left > 0)
		if (!operation_is_plain(&expression) || expression.bad)
			return false;
	return true;
}

int64_t expression_stub(struct cursor at, uint64_t addr)
{
	static const uint8_t before[] = {11, OP_BREG0 + 7, 8, OP_BREG0 + 16, 0, OP_LIT0 + 15, OP_AND};
	static const uint8_t after[] = {OP_GE, OP_LIT0 + 3, OP_SHL, OP_PLUS};
	uint8_t turn;

	if (CFI_STACK != 7 || at.left < sizeof(before) + 1 + sizeof(after) ||
	    memcmp(at.data, before, sizeof(before)) != 0 ||
	    memcmp(at.data + sizeof(before) + 1, after, sizeof(after)) != 0)
		return 0;
	turn = (uint8_t)(at.data[sizeof(before)] - OP_LIT0);
	return turn > 15 ? 0 : (addr & 15) >= turn ? 16 : 8;
}
