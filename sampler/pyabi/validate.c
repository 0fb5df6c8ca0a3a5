/* SPDX-License-Identifier: Apache-2.0 */
/* Checks one layout, so that the sampling path can trust it: every field that the layout's features need is there, every
 * field they do not know is ABSENT (a forgotten one would be 0), all lie in bounds, and no two of one structure overlap. */
#include <errno.h>
#include <string.h>

#include "sampler/pyabi/pyabi.h"

/* What a layout has, gathered from its enums. */
enum feature {
	ALL = 1 << 0,
	HEAP = 1 << 1,        /* frames on the heap */
	STACK = 1 << 2,       /* frames on the data stack */
	GIL_VAR = 1 << 3,     /* as enum py_gil */
	GIL_RUNTIME = 1 << 4,
	GIL_INTERP = 1 << 5,
	RUNTIME = 1 << 6,     /* there is a _PyRuntime */
	EXECUTING = 1 << 7,   /* as enum py_call_mark */
	STATE = 1 << 8,
	STACKTOP = 1 << 9,
	INSTR = 1 << 10,
	ENTRY = 1 << 11,      /* on the stack without shims: 3.11 */
	SHIM = 1 << 12,
	BASE = 1 << 13,
};

enum structure { S_RUNTIME, S_INTERP, S_GIL, S_TSTATE, S_CFRAME, S_FRAME, S_CODE, S_GEN, S_FUNC, S_STR, S_BYTES, S_TUPLE, S_TYPE, S_DICT, STRUCTURES };

/* Largest believable size, and the first offset that may be used: objects begin with a head of 16 bytes. */
static const struct bounds {
	int32_t first, end;
} bounds[STRUCTURES] = {
	[S_RUNTIME] = {8, 4 << 20}, [S_INTERP] = {8, 4 << 20}, [S_GIL] = {8, 512},  [S_TSTATE] = {8, PYABI_TSTATE_MAX},
	[S_CFRAME] = {8, 64},       [S_FRAME] = {8, PYABI_FRAME_MAX}, [S_CODE] = {16, PYABI_CODE_MAX}, [S_GEN] = {16, 512},
	[S_FUNC] = {16, 128},
	[S_STR] = {16, 128},        [S_BYTES] = {16, 64},      [S_TUPLE] = {16, 64}, [S_TYPE] = {8, 2048}, [S_DICT] = {16, 128},
};

enum { FRAME_OBJECT_HEAD = 24 }; /* of an object of variable size, as frames on the heap are */

static const struct rule {
	const char *name;
	size_t at;          /* of the int32_t in struct pyabi */
	enum structure in;
	int32_t width;      /* bytes of the field itself, its alignment too */
	unsigned needed;    /* features with any of which it must be there */
	unsigned optional;  /* features with any of which it may be there */
	bool at_start;      /* 0 is a true offset of it in some version */
} rules[] = {
	{"runtime.interpreters", offsetof(struct pyabi, runtime.interpreters), S_RUNTIME, 8, RUNTIME, 0, false},
	{"runtime.finalizing", offsetof(struct pyabi, runtime.finalizing), S_RUNTIME, 8, RUNTIME, 0, false},
	{"runtime.tstate_current", offsetof(struct pyabi, runtime.tstate_current), S_RUNTIME, 8, GIL_RUNTIME, 0, false},
	{"runtime.gil", offsetof(struct pyabi, runtime.gil), S_RUNTIME, 8, GIL_RUNTIME, 0, false},
	{"runtime.collecting", offsetof(struct pyabi, runtime.collecting), S_RUNTIME, 4, 0, GIL_RUNTIME, false},
	{"interp.next", offsetof(struct pyabi, interp.next), S_INTERP, 8, ALL, 0, true},
	{"interp.id", offsetof(struct pyabi, interp.id), S_INTERP, 8, RUNTIME, 0, false},
	{"interp.threads", offsetof(struct pyabi, interp.threads), S_INTERP, 8, ALL, 0, false},
	{"interp.modules", offsetof(struct pyabi, interp.modules), S_INTERP, 8, ALL, 0, false},
	{"interp.gil", offsetof(struct pyabi, interp.gil), S_INTERP, 8, GIL_INTERP, 0, false},
	{"interp.collecting", offsetof(struct pyabi, interp.collecting), S_INTERP, 4, GIL_INTERP, GIL_RUNTIME, false},
	{"interp.gc_frame", offsetof(struct pyabi, interp.gc_frame), S_INTERP, 8, BASE, 0, false},
	{"interp.code_generation", offsetof(struct pyabi, interp.code_generation), S_INTERP, 8, INSTR, 0, false},
	{"gil_state.last_holder", offsetof(struct pyabi, gil_state.last_holder), S_GIL, 8, RUNTIME, 0, false},
	{"gil_state.locked", offsetof(struct pyabi, gil_state.locked), S_GIL, 4, RUNTIME, 0, false},
	{"tstate.next", offsetof(struct pyabi, tstate.next), S_TSTATE, 8, ALL, 0, false},
	{"tstate.interp", offsetof(struct pyabi, tstate.interp), S_TSTATE, 8, ALL, 0, false},
	{"tstate.frame", offsetof(struct pyabi, tstate.frame), S_TSTATE, 8, HEAP, STACK, false},
	{"tstate.cframe", offsetof(struct pyabi, tstate.cframe), S_TSTATE, 8, 0, STACK, false},
	{"tstate.cframe_frame", offsetof(struct pyabi, tstate.cframe_frame), S_CFRAME, 8, 0, STACK, true},
	{"tstate.base_frame", offsetof(struct pyabi, tstate.base_frame), S_TSTATE, 8, BASE, 0, false},
	{"tstate.thread_id", offsetof(struct pyabi, tstate.thread_id), S_TSTATE, 8, ALL, 0, false},
	{"tstate.native_thread_id", offsetof(struct pyabi, tstate.native_thread_id), S_TSTATE, 8, STACK, 0, false},
	{"tstate.status", offsetof(struct pyabi, tstate.status), S_TSTATE, 4, GIL_INTERP, 0, false},
	{"tstate.holds_gil", offsetof(struct pyabi, tstate.holds_gil), S_TSTATE, 4, INSTR, 0, false},
	{"tstate.gil_requested", offsetof(struct pyabi, tstate.gil_requested), S_TSTATE, 4, BASE, 0, false},
	{"tstate.chunk", offsetof(struct pyabi, tstate.chunk), S_TSTATE, 24, STACK, 0, false},
	{"tstate.exc_info", offsetof(struct pyabi, tstate.exc_info), S_TSTATE, 8, ALL, 0, false},
	{"tstate.raised", offsetof(struct pyabi, tstate.raised), S_TSTATE, 8, ALL, 0, false},
	{"frame.previous", offsetof(struct pyabi, frame.previous), S_FRAME, 8, ALL, 0, false},
	{"frame.code", offsetof(struct pyabi, frame.code), S_FRAME, 8, ALL, 0, true},
	{"frame.instr", offsetof(struct pyabi, frame.instr), S_FRAME, 4, ALL, 0, false},
	{"frame.stacktop", offsetof(struct pyabi, frame.stacktop), S_FRAME, 4, EXECUTING | STATE | STACKTOP, 0, false},
	{"frame.stackpointer", offsetof(struct pyabi, frame.stackpointer), S_FRAME, 8, INSTR, 0, false},
	{"frame.executing", offsetof(struct pyabi, frame.executing), S_FRAME, 1, EXECUTING | STATE, 0, false},
	{"frame.is_entry", offsetof(struct pyabi, frame.is_entry), S_FRAME, 1, ENTRY, 0, false},
	{"frame.owner", offsetof(struct pyabi, frame.owner), S_FRAME, 1, STACK, 0, false},
	{"frame.gen", offsetof(struct pyabi, frame.gen), S_FRAME, 8, HEAP, 0, false},
	{"frame.valuestack", offsetof(struct pyabi, frame.valuestack), S_FRAME, 8, HEAP, 0, false},
	{"frame.return_offset", offsetof(struct pyabi, frame.return_offset), S_FRAME, 2, SHIM | BASE, 0, false},
	{"frame.func", offsetof(struct pyabi, frame.func), S_FRAME, 8, STACK, 0, true},
	{"code.name", offsetof(struct pyabi, code.name), S_CODE, 8, ALL, 0, false},
	{"code.filename", offsetof(struct pyabi, code.filename), S_CODE, 8, ALL, 0, false},
	{"code.qualname", offsetof(struct pyabi, code.qualname), S_CODE, 8, STACK, 0, false},
	{"code.firstlineno", offsetof(struct pyabi, code.firstlineno), S_CODE, 4, ALL, 0, false},
	{"code.linetable", offsetof(struct pyabi, code.linetable), S_CODE, 8, ALL, 0, false},
	{"code.bytecode", offsetof(struct pyabi, code.bytecode), S_CODE, 8, ALL, 0, false},
	{"code.framesize", offsetof(struct pyabi, code.framesize), S_CODE, 4, SHIM | BASE, 0, false},
	{"code.nlocalsplus", offsetof(struct pyabi, code.nlocalsplus), S_CODE, 4, STACK, 0, false},
	{"code.stacksize", offsetof(struct pyabi, code.stacksize), S_CODE, 4, ALL, 0, false},
	{"code.flags", offsetof(struct pyabi, code.flags), S_CODE, 4, HEAP | ENTRY, 0, false},
	{"code.version", offsetof(struct pyabi, code.version), S_CODE, 4, SHIM | BASE, 0, false},
	{"code.firsttraceable", offsetof(struct pyabi, code.firsttraceable), S_CODE, 4, STACK, 0, false},
	{"code.consts", offsetof(struct pyabi, code.consts), S_CODE, 8, STACK, 0, false},
	{"code.names", offsetof(struct pyabi, code.names), S_CODE, 8, ALL, 0, false},
	{"gen.frame", offsetof(struct pyabi, gen.frame), S_GEN, 8, HEAP, 0, false},
	{"gen.iframe", offsetof(struct pyabi, gen.iframe), S_GEN, 8, STACK, 0, false},
	{"gen.state", offsetof(struct pyabi, gen.state), S_GEN, 1, STACK | EXECUTING, 0, false},
	{"func.code", offsetof(struct pyabi, func.code), S_FUNC, 8, HEAP, 0, false},
	{"str.length", offsetof(struct pyabi, str.length), S_STR, 8, ALL, 0, false},
	{"str.state", offsetof(struct pyabi, str.state), S_STR, 4, ALL, 0, false},
	{"str.ascii_text", offsetof(struct pyabi, str.ascii_text), S_STR, 8, ALL, 0, false},
	{"str.text", offsetof(struct pyabi, str.text), S_STR, 8, ALL, 0, false},
	{"bytes.size", offsetof(struct pyabi, bytes.size), S_BYTES, 8, ALL, 0, false},
	{"bytes.data", offsetof(struct pyabi, bytes.data), S_BYTES, 1, ALL, 0, false},
	{"tuple.size", offsetof(struct pyabi, tuple.size), S_TUPLE, 8, ALL, 0, false},
	{"tuple.items", offsetof(struct pyabi, tuple.items), S_TUPLE, 8, ALL, 0, false},
	{"type.type", offsetof(struct pyabi, type.type), S_TYPE, 8, ALL, 0, false},
	{"type.name", offsetof(struct pyabi, type.name), S_TYPE, 8, ALL, 0, false},
	{"type.basicsize", offsetof(struct pyabi, type.basicsize), S_TYPE, 8, ALL, 0, false},
	{"type.flags", offsetof(struct pyabi, type.flags), S_TYPE, 8, ALL, 0, false},
	{"type.dictoffset", offsetof(struct pyabi, type.dictoffset), S_TYPE, 8, ALL, 0, false},
	{"type.cached_keys", offsetof(struct pyabi, type.cached_keys), S_TYPE, 8, ALL, 0, false},
	{"dict.keys", offsetof(struct pyabi, dict.keys), S_DICT, 8, ALL, 0, false},
	{"dict.values", offsetof(struct pyabi, dict.values), S_DICT, 8, ALL, 0, false},
};

enum { RULES = sizeof(rules) / sizeof(rules[0]) };

static unsigned features_of(const struct pyabi *abi)
{
	unsigned f = ALL;

	f |= abi->frames == FRAMES_HEAP ? HEAP : STACK;
	f |= abi->gil == GIL_CURRENT_VAR ? GIL_VAR : abi->gil == GIL_RUNTIME_CURRENT ? GIL_RUNTIME : GIL_INTERP;
	f |= abi->gil == GIL_CURRENT_VAR ? 0 : RUNTIME;
	switch (abi->call_mark) {
	case CALL_MARK_EXECUTING: f |= EXECUTING; break;
	case CALL_MARK_STATE:     f |= STATE; break;
	case CALL_MARK_STACKTOP:  f |= STACKTOP; break;
	case CALL_MARK_INSTR:     f |= INSTR; break;
	}
	if (abi->end == END_NULL && abi->frames == FRAMES_STACK)
		f |= ENTRY;
	f |= abi->end == END_SHIM ? SHIM : abi->end == END_BASE ? BASE : 0;
	return f;
}

static int32_t value_of(const struct pyabi *abi, const struct rule *rule)
{
	int32_t value;

	memcpy(&value, (const char *)abi + rule->at, sizeof(value));
	return value;
}

static int refuse(struct fault *fault, const struct pyabi *abi, const char *what, const char *field)
{
	return fault_set(fault, -EPROTO, "please report it with the output of `sampled doctor`",
	                 "the layout of Python %s %s %s", abi->name ? abi->name : "?", what, field);
}

/* How many bytes of the structure a read of its head takes in; INT32_MAX where fields are read one by one. */
static int32_t head_bytes(const struct pyabi *abi, enum structure in)
{
	switch (in) {
	case S_TSTATE: return abi->tstate.bytes;
	case S_FRAME:  return abi->frame.bytes;
	case S_CODE:   return abi->code.bytes;
	case S_GIL:    return abi->gil_state.bytes;
	default:       return INT32_MAX;
	}
}

static int check_field(const struct pyabi *abi, const struct rule *rule, unsigned features, struct fault *fault)
{
	int32_t value = value_of(abi, rule);
	int32_t first = rule->at_start ? 0 : bounds[rule->in].first;
	int32_t end = bounds[rule->in].end;
	int32_t align = rule->width > 8 ? 8 : rule->width;

	if (rule->in == S_FRAME && (features & HEAP))
		first = FRAME_OBJECT_HEAD;
	if (value == ABSENT)
		return features & rule->needed ? refuse(fault, abi, "lacks", rule->name) : 0;
	if (!(features & (rule->needed | rule->optional)))
		return refuse(fault, abi, "should not have", rule->name);
	if (value < first || value > end - rule->width || value % align)
		return refuse(fault, abi, "has a nonsensical offset for", rule->name);
	/* Where bytecode begins is the end of a code object's head, not a field in it. */
	if (rule->at == offsetof(struct pyabi, code.bytecode) && !abi->code.bytecode_is_pointer)
		return value < abi->code.bytes ? refuse(fault, abi, "has a head that runs into", rule->name) : 0;
	if (value > head_bytes(abi, rule->in) - rule->width)
		return refuse(fault, abi, "has a head too short for", rule->name);
	return 0;
}

static int check_overlaps(const struct pyabi *abi, struct fault *fault)
{
	for (size_t i = 0; i < RULES; i++) {
		int32_t a = value_of(abi, &rules[i]);

		for (size_t k = 0; k < i && a != ABSENT; k++) {
			int32_t b = value_of(abi, &rules[k]);

			if (b == ABSENT || rules[k].in != rules[i].in)
				continue;
			if (a < b + rules[k].width && b < a + rules[i].width)
				return refuse(fault, abi, "has another field where it has", rules[i].name);
		}
	}
	return 0;
}

/* Which kinds of frame owner a layout has. */
static int check_owners(const struct pyabi *abi, unsigned features, struct fault *fault)
{
	const int8_t kinds[] = {abi->owner.thread, abi->owner.generator, abi->owner.frame_object, abi->owner.shim, abi->owner.shim2};
	const bool needed[] = {features & STACK, features & STACK, features & STACK, features & (SHIM | BASE), false};

	for (size_t i = 0; i < sizeof(kinds); i++) {
		if (needed[i] && kinds[i] < 0)
			return refuse(fault, abi, "lacks", "an owner of frames");
		if (kinds[i] >= 0 && !needed[i] && (i < 4 || !(features & SHIM)))
			return refuse(fault, abi, "should not have", "an owner of frames");
		for (size_t k = 0; k < i; k++)
			if (kinds[i] >= 0 && kinds[i] == kinds[k])
				return refuse(fault, abi, "confuses", "owners of frames");
	}
	return 0;
}

int pyabi_validate(const struct pyabi *abi, struct fault *fault)
{
	static const enum structure heads[] = {S_TSTATE, S_FRAME, S_CODE, S_GIL};
	unsigned features = features_of(abi);
	int err = 0;

	if (!abi->name || abi->major != 3 || abi->minor == 0 || abi->patch_last < abi->patch_first)
		return refuse(fault, abi, "lacks", "its version");
	for (size_t i = 0; i < RULES && err == 0; i++)
		err = check_field(abi, &rules[i], features, fault);
	if (err == 0)
		err = check_overlaps(abi, fault);
	if (err == 0)
		err = check_owners(abi, features, fault);
	if (err)
		return err;
	/* Either the thread state points to the frame, or to a struct that does. */
	if ((abi->tstate.frame == ABSENT) != (abi->tstate.cframe != ABSENT) ||
	    (abi->tstate.cframe == ABSENT) != (abi->tstate.cframe_frame == ABSENT))
		return refuse(fault, abi, "lacks", "the current frame");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		if (head_bytes(abi, heads[i]) <= 0 || head_bytes(abi, heads[i]) > bounds[heads[i]].end)
			return refuse(fault, abi, "lacks", "a believable size of a structure");
	/* From 3.7 on somebody has the flag of the collector, but one of the two only. */
	if ((features & RUNTIME) && (abi->runtime.collecting == ABSENT) == (abi->interp.collecting == ABSENT))
		return refuse(fault, abi, "lacks", "the collector's flag");
	return 0;
}
