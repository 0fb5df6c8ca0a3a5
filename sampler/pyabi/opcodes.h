/* SPDX-License-Identifier: Apache-2.0 */
/* What the instructions of CPython 3.6 to 3.10 do to the value stack and where they lead: the entries that all of these
 * versions share; each version's file adds its own.
 *
 * Source: Lib/opcode.py (numbers) and Python/ceval.c (effects). They are those of dis.stack_effect(), but in 3.6, whose
 * estimates for leaving a block are too low; tests/unit/test_callsites.c compares them with what the interpreters say. */
#ifndef SAMPLED_SAMPLER_PYABI_OPCODES_H
#define SAMPLED_SAMPLER_PYABI_OPCODES_H

#include "sampler/pyabi/pyabi.h"

#define FIXED(effect) {.kind = OPCODE_PLAIN, .fall = (effect)}
#define PER_ARG(effect, by) {.kind = OPCODE_PLAIN, .fall = (effect), .each = (by)}
/* They call nothing, but that an object may die: its finalizer runs then. */
#define QUIET(effect) {.kind = OPCODE_PLAIN, .fall = (effect), .quiet = true}
#define QUIET_PER_ARG(effect, by) {.kind = OPCODE_PLAIN, .fall = (effect), .each = (by), .quiet = true}
#define TO(how, on_fall, on_jump) {.kind = (how), .fall = (on_fall), .jump = (on_jump)}
#define ENDS {.kind = OPCODE_ENDS}

/* clang-format off */
#define OPCODES_ALL \
	/* POP_TOP, ROT_TWO, ROT_THREE, DUP_TOP, DUP_TOP_TWO, NOP, unary operators */ \
	[1] = QUIET(-1), [2] = QUIET(0), [3] = QUIET(0), [4] = QUIET(1), [5] = QUIET(2), [9] = QUIET(0), \
	[10] = FIXED(0), [11] = FIXED(0), [12] = FIXED(0), [15] = FIXED(0), \
	/* binary operators */ \
	[16] = FIXED(-1), [17] = FIXED(-1), [19] = FIXED(-1), [20] = FIXED(-1), [22] = FIXED(-1), [23] = FIXED(-1), \
	[24] = FIXED(-1), [25] = FIXED(-1), [26] = FIXED(-1), [27] = FIXED(-1), [28] = FIXED(-1), [29] = FIXED(-1), \
	[55] = FIXED(-1), [56] = FIXED(-1), [57] = FIXED(-1), [59] = FIXED(-1), [62] = FIXED(-1), [63] = FIXED(-1), \
	[64] = FIXED(-1), [65] = FIXED(-1), [66] = FIXED(-1), [67] = FIXED(-1), [75] = FIXED(-1), [76] = FIXED(-1), \
	[77] = FIXED(-1), [78] = FIXED(-1), [79] = FIXED(-1), \
	/* GET_AITER, GET_ANEXT, BEFORE_ASYNC_WITH, STORE_SUBSCR, DELETE_SUBSCR, GET_ITER, GET_YIELD_FROM_ITER */ \
	[50] = FIXED(0), [51] = FIXED(1), [52] = FIXED(1), [60] = FIXED(-3), [61] = FIXED(-2), [68] = FIXED(0), [69] = FIXED(0), \
	/* PRINT_EXPR, LOAD_BUILD_CLASS, YIELD_FROM, GET_AWAITABLE */ \
	[70] = FIXED(-1), [71] = QUIET(1), [72] = {.kind = OPCODE_RESUME, .fall = -1}, [73] = FIXED(0), \
	/* RETURN_VALUE, IMPORT_STAR, SETUP_ANNOTATIONS, YIELD_VALUE, POP_BLOCK, POP_EXCEPT */ \
	[83] = ENDS, [84] = FIXED(-1), [85] = FIXED(0), [86] = QUIET(0), [87] = QUIET(0), [89] = QUIET(-3), \
	/* STORE_NAME, DELETE_NAME, UNPACK_SEQUENCE, FOR_ITER, UNPACK_EX, STORE_ATTR, DELETE_ATTR, STORE_GLOBAL, DELETE_GLOBAL */ \
	[90] = FIXED(-1), [91] = FIXED(0), [92] = PER_ARG(-1, 1), [93] = TO(OPCODE_FOR_ITER, 1, -1), [94] = {.kind = OPCODE_UNPACK_EX}, \
	[95] = FIXED(-2), [96] = FIXED(-1), [97] = QUIET(-1), [98] = QUIET(0), \
	/* LOAD_CONST, LOAD_NAME, BUILD_TUPLE, BUILD_LIST, BUILD_SET, BUILD_MAP, LOAD_ATTR, COMPARE_OP, IMPORT_NAME, IMPORT_FROM */ \
	[100] = QUIET(1), [101] = FIXED(1), [102] = QUIET_PER_ARG(1, -1), [103] = QUIET_PER_ARG(1, -1), [104] = PER_ARG(1, -1), \
	[105] = PER_ARG(1, -2), [106] = FIXED(0), [107] = FIXED(-1), [108] = FIXED(-1), [109] = FIXED(1), \
	/* JUMP_FORWARD, JUMP_IF_FALSE_OR_POP, JUMP_IF_TRUE_OR_POP, JUMP_ABSOLUTE, POP_JUMP_IF_FALSE, POP_JUMP_IF_TRUE */ \
	[110] = TO(OPCODE_GOTO_FORWARD, 0, 0), [111] = TO(OPCODE_BRANCH, -1, 0), [112] = TO(OPCODE_BRANCH, -1, 0), \
	[113] = TO(OPCODE_GOTO, 0, 0), [114] = TO(OPCODE_BRANCH, -1, -1), [115] = TO(OPCODE_BRANCH, -1, -1), \
	/* LOAD_GLOBAL, LOAD_FAST, STORE_FAST, DELETE_FAST, RAISE_VARARGS */ \
	[116] = QUIET(1), [124] = QUIET(1), [125] = QUIET(-1), [126] = QUIET(0), [130] = ENDS, \
	/* CALL_FUNCTION, MAKE_FUNCTION, BUILD_SLICE */ \
	[131] = {.kind = OPCODE_CALL, .fall = 0, .each = -1}, [132] = {.kind = OPCODE_MAKE_FUNCTION}, [133] = {.kind = OPCODE_BUILD_SLICE}, \
	/* LOAD_CLOSURE, LOAD_DEREF, STORE_DEREF, DELETE_DEREF, CALL_FUNCTION_KW, CALL_FUNCTION_EX */ \
	[135] = QUIET(1), [136] = QUIET(1), [137] = QUIET(-1), [138] = QUIET(0), \
	[141] = {.kind = OPCODE_CALL, .fall = -1, .each = -1}, [142] = {.kind = OPCODE_CALL_EX}, \
	/* EXTENDED_ARG, LIST_APPEND, SET_ADD, MAP_ADD, LOAD_CLASSDEREF, SETUP_ASYNC_WITH */ \
	[144] = {.kind = OPCODE_EXTENDED}, [145] = QUIET(-1), [146] = FIXED(-1), [147] = FIXED(-2), [148] = FIXED(1), \
	/* FORMAT_VALUE, BUILD_CONST_KEY_MAP, BUILD_STRING */ \
	[155] = {.kind = OPCODE_FORMAT_VALUE}, [156] = PER_ARG(0, -1), [157] = QUIET_PER_ARG(1, -1)

/* LOAD_METHOD, CALL_METHOD: 3.7+ */
#define OPCODES_METHOD \
	[160] = FIXED(1), [161] = {.kind = OPCODE_CALL_METHOD, .fall = -1, .each = -1}

/* To 3.8 a `finally` is entered with one value on the stack or with six, and dis counts six.
 * WITH_CLEANUP_START, WITH_CLEANUP_FINISH, END_FINALLY, BUILD_LIST_UNPACK, BUILD_MAP_UNPACK, the same with call, BUILD_TUPLE_UNPACK,
 * BUILD_SET_UNPACK, BUILD_TUPLE_UNPACK_WITH_CALL */
#define OPCODES_TO_38 \
	[81] = FIXED(2), [82] = FIXED(-3), [88] = QUIET(-6), \
	[149] = PER_ARG(1, -1), [150] = PER_ARG(1, -1), [151] = PER_ARG(1, -1), [152] = PER_ARG(1, -1), [153] = PER_ARG(1, -1), \
	[158] = PER_ARG(1, -1)

/* BREAK_LOOP, CONTINUE_LOOP, SETUP_LOOP, SETUP_EXCEPT, SETUP_FINALLY, SETUP_WITH, SETUP_ASYNC_WITH */
#define OPCODES_TO_37 \
	[80] = ENDS, [119] = ENDS, [120] = TO(OPCODE_SETUP, 0, 0), [121] = TO(OPCODE_SETUP, 0, 6), \
	[122] = TO(OPCODE_SETUP_FINALLY, 0, 6), [143] = TO(OPCODE_SETUP_FINALLY, 1, 6), [154] = TO(OPCODE_SETUP_FINALLY, 0, 5)

/* ROT_FOUR, END_ASYNC_FOR, SETUP_FINALLY, SETUP_WITH, SETUP_ASYNC_WITH */
#define OPCODES_FROM_38 \
	[6] = QUIET(0), [54] = FIXED(-7), [122] = TO(OPCODE_SETUP, 0, 6), [143] = TO(OPCODE_SETUP, 1, 6), [154] = TO(OPCODE_SETUP, 0, 5)

/* WITH_EXCEPT_START, LOAD_ASSERTION_ERROR, LIST_TO_TUPLE, IS_OP, CONTAINS_OP, JUMP_IF_NOT_EXC_MATCH, LIST_EXTEND, SET_UPDATE,
 * DICT_MERGE, DICT_UPDATE */
#define OPCODES_FROM_39 \
	[49] = FIXED(1), [74] = QUIET(1), [82] = QUIET(0), [117] = QUIET(-1), [118] = FIXED(-1), [121] = TO(OPCODE_BRANCH, -2, -2), \
	[162] = FIXED(-1), [163] = QUIET(-1), [164] = FIXED(-1), [165] = FIXED(-1)
/* clang-format on */

#endif
