/* SPDX-License-Identifier: Apache-2.0 */
/* Where things lie inside one minor version of CPython: data, not code.
 *
 * Up to 3.12 the values come from tables, one file a minor version; 3.13 and later publish most of theirs at
 * _PyRuntime (struct _Py_DebugOffsets, Include/internal/pycore_debug_offsets.h). Behaviour that differs between versions
 * is chosen by the enums below; nothing outside this folder compares versions.
 *
 * Offsets are in bytes; ABSENT where a version has no such field. */
#ifndef SAMPLED_SAMPLER_PYABI_PYABI_H
#define SAMPLED_SAMPLER_PYABI_PYABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

enum { ABSENT = -1 };

enum {
	CALLING_UNITS = 15, /* mask */
	CALLING_QUIET = 16,
	CALLING_PUSHES = 32,
	CALLING_SELDOM = 64,
	CALLING_RESUMES = 128,
	CALLING_QUIET_SUBSCRIPT = 253,
	CALLING_SUBSCRIPT = 254,
	CALLING_HIDDEN = 255
};
/* The argument with which BINARY_OP subscribes (3.14+, Include/opcode.h). */
enum { NB_SUBSCR = 26 };

/* Most that is read of these structures' heads: pyabi_validate() refuses more, so that buffers of this size hold them. */
enum { PYABI_TSTATE_MAX = 1024, PYABI_FRAME_MAX = 256, PYABI_CODE_MAX = 512 };

enum py_frames {
	FRAMES_HEAP, /* PyFrameObject on the heap, one a call: to 3.10 */
	FRAMES_STACK /* _PyInterpreterFrame on the thread's data stack, generators' in their objects: 3.11+ */
};

/* How a frame says that it is suspended in a call it made of a Python function. */
enum py_call_mark {
	CALL_MARK_EXECUTING, /* f_executing: 3.6 to 3.9 */
	CALL_MARK_STATE,     /* f_state and f_stackdepth: 3.10 */
	CALL_MARK_STACKTOP,  /* stacktop at or above the locals: 3.11 to 3.13 */
	CALL_MARK_INSTR      /* no mark: a dead callee's code is cleared: 3.14+ */
};

enum py_lines {
	LINES_LNOTAB, /* co_lnotab: to 3.9 */
	LINES_310,    /* co_linetable of 3.10 */
	LINES_311     /* location table: 3.11+ */
};

/* What frame.instr holds. */
enum py_instr {
	INSTR_LASTI_BYTES, /* i32, byte offset: to 3.9 */
	INSTR_LASTI_UNITS, /* i32, units of 2 bytes: 3.10 */
	INSTR_POINTER      /* address in the bytecode: 3.11+ */
};

enum py_gil {
	GIL_CURRENT_VAR,     /* a global holds the holder's thread state, 0 when free: 3.6 */
	GIL_RUNTIME_CURRENT, /* _PyRuntime.gilstate.tstate_current, 0 when free: 3.7 to 3.11 */
	GIL_INTERPRETER      /* interpreter.ceval.gil: last_holder, locked: 3.12+ */
};

enum py_end {
	END_NULL, /* the outermost frame's previous is 0: to 3.11 */
	END_SHIM, /* the outermost Python frame lies on an entry shim whose previous is 0: 3.12 to 3.14 */
	END_BASE  /* the chain ends at the thread state's base_frame: 3.15 */
};

enum py_str {
	STR_TO_311, /* compact text at 48 (ASCII) or 72 */
	STR_312     /* at 40 or 56 */
};

enum py_attrs { /* where an instance keeps its attributes */
	ATTRS_DICTOFFSET, /* dict at tp_dictoffset: to 3.10 */
	ATTRS_311,        /* values pointer at -32, or dict at -24 */
	ATTRS_312,        /* word at -24: odd: values at word + 1, else dict */
	ATTRS_INLINE      /* type flag 4 and byte basicsize + 3: values at basicsize + 8, else dict at -24: 3.13+ */
};

enum py_dict_keys {
	KEYS_SIZE,    /* size at 8, nentries 32, indices at 40, entries of 24: to 3.10 */
	KEYS_LOG2     /* log2 of index bytes at 9, kind at 10, nentries 24, indices at 32: 3.11+ */
};

/* What tstate.exc_info holds, and where in that the value of the handled exception and the pointer to the outer item are. */
enum py_exceptions {
	EXCEPTIONS_VALUE,  /* the value itself: 3.6 */
	EXCEPTIONS_TRIPLE, /* pointer to an item: value at 8, outer item at 24: 3.7 to 3.10 */
	EXCEPTIONS_ITEM    /* value at 0, outer item at 8: 3.11+ */
};

struct pyabi {
	const char *name; /* "3.11" */
	uint8_t major, minor;
	uint8_t patch_first, patch_last; /* releases the table was checked on or follows from; others: validate, then go on */
	bool free_threaded;
	enum py_frames frames;
	enum py_call_mark call_mark;
	enum py_lines lines;
	enum py_instr instr;
	enum py_gil gil;
	enum py_end end;
	enum py_str str_layout;
	enum py_attrs attrs;
	enum py_dict_keys dict_keys;
	enum py_exceptions exceptions;

	/* Opcodes of instructions that leave a frame (return, yield, make a generator), 0-terminated: a frame that stands at
	 * one is not in a call, whatever its stack pointer says. Source: Lib/opcode.py. 3.11+; since 3.14 only those that return. */
	uint8_t leaving_opcodes[8];
	/* For each opcode, specialised and instrumented ones too: 0, or, where such an instruction can push a frame without leaving the
	 * interpreter's loop, 1 + the units behind it at which its frame stands meanwhile (CALLING_UNITS); plus CALLING_RESUMES if that can be
	 * a generator's only, CALLING_SELDOM if it mostly calls nothing (an attribute can be a property), CALLING_PUSHES or
	 * CALLING_QUIET if this specialisation pushes one (a call: that of the function whose version stands behind it), or none. A superset, by
	 * families of specialisation, since these change while a program runs.
	 * CALLING_SUBSCRIPT: CALLING_SELDOM + 1, if its argument is NB_SUBSCR. CALLING_HIDDEN: it stands in the place of another one, for
	 * debuggers, and that one is not seen. 3.11+; made by tests/tools/make_calling.py. */
	uint8_t calling[256];
	uint8_t send_opcode; /* SEND, where C resumes what is awaited (3.11); else 0 */
	/* For each opcode, specialised and instrumented ones too, the units of inline cache behind it. What CALLING_HIDDEN stands for is not told. 3.11+;
	 * made by tests/tools/make_calling.py. */
	uint8_t caches[256];
	/* Opcodes of instructions that run no Python code at all while the frame stands at them, not even a finalizer or what watches the
	 * program: they move references and jump. 0-terminated; not all there are. 3.11+; made by tests/tools/make_calling.py. */
	uint8_t plain_opcodes[16];
	/* PUSH_NULL goes with a callable that is pushed by itself, right before it (null_behind: 3.13+) or behind it; and the opcodes by which that one
	 * is a global, an attribute, or none at all. 0-terminated. 3.11+; made by tests/tools/make_calling.py. */
	uint8_t push_null;
	bool null_behind;
	uint8_t fixed_opcodes[48];
	bool attr_calls; /* the lowest bit of LOAD_ATTR's argument says whether a method is looked up to be called: 3.12+; 3.11 has LOAD_METHOD */

	const char *const *opnames; /* 256, by opcode, specialised and instrumented ones too; NULL: none */

	/* from _PyRuntime (3.6: absent, globals instead) */
	struct {
		int32_t interpreters; /* pointer to the newest interpreter */
		int32_t finalizing; /* pointer to the thread state that ends the program; 0 until then */
		int32_t tstate_current;
		int32_t gil;        /* struct _gil_runtime_state itself, to 3.11 */
		int32_t collecting; /* 3.7 and 3.8 */
	} runtime;
	struct {
		int32_t next, id, threads, modules;
		int32_t gil;        /* pointer to the GIL in use: 3.12+ */
		int32_t collecting; /* i32; 3.9+ */
		int32_t gc_frame;   /* 3.15 */
		int32_t code_generation; /* u64, rises with each code object freed: 3.14+ */
	} interp;
	struct {
		int32_t last_holder, locked; /* from the GIL's own address; locked is i32 */
		int32_t bytes;               /* extent in which a waiter's futex lies */
	} gil_state;
	struct {
		int32_t bytes; /* how much of a thread state a sample must read */
		int32_t next, interp;
		int32_t frame;  /* the current frame; ABSENT where it is behind cframe */
		int32_t cframe; /* pointer to a struct whose `cframe_frame` is the current frame: 3.11, 3.12 */
		int32_t cframe_frame;
		int32_t base_frame; /* 3.15 */
		int32_t thread_id, native_thread_id;
		int32_t status; /* 3.12+ bit 4: active */
		int32_t holds_gil, gil_requested;
		int32_t chunk;  /* newest data stack chunk; + 8: top, + 16: limit */
		int32_t exc_info; /* enum py_exceptions says of what */
		int32_t raised;
	} tstate;
	struct {
		int32_t bytes; /* of the fixed head, to localsplus */
		int32_t previous, code, instr;
		int32_t stacktop;     /* i32, 3.11 to 3.13; to 3.9 pointer f_stacktop; 3.10 i32 f_stackdepth */
		int32_t stackpointer; /* 3.14+ */
		int32_t executing;    /* u8: f_executing, 3.10 f_state (i8) */
		int32_t is_entry;     /* 3.11 */
		int32_t owner;        /* u8, 3.11+ */
		int32_t gen;          /* f_gen, to 3.10 */
		int32_t valuestack;   /* f_valuestack, to 3.10: where the value stack begins, in the same object */
		int32_t return_offset; /* u16, 3.12+ */
		int32_t func; /* f_func, since 3.12 f_funcobj: 3.11+ */
	} frame;
	struct { /* values of frame.owner; ABSENT where there is none of the kind */
		int8_t thread, generator, frame_object, shim, shim2;
	} owner;
	struct {
		int32_t bytes; /* of the head that holds all fields below */
		int32_t name, filename, qualname, firstlineno, linetable;
		int32_t bytecode;         /* of the first instruction (3.11+), or of the pointer to it as bytes object */
		bool bytecode_is_pointer; /* to 3.10 */
		int32_t framesize;        /* i32, slots of 8 bytes: 3.12+ */
		int32_t nlocalsplus, stacksize; /* i32 */
		int32_t flags;            /* i32 co_flags: to 3.11 */
		int32_t version;          /* u32 co_version: 3.12+ */
		int32_t firsttraceable;   /* i32 _co_firsttraceable: 3.11+ */
		int32_t consts;           /* co_consts: 3.11+ */
		int32_t names;            /* co_names */
	} code;
	struct {
		int32_t frame;  /* pointer gi_frame: to 3.10 */
		int32_t iframe; /* the frame itself: 3.11+ */
		int32_t state;
	} gen;
	struct {
		int32_t code; /* func_code; to 3.10 */
	} func;
	struct {
		int32_t length, state, ascii_text, text;
	} str;
	struct {
		int32_t size, data;
	} bytes;
	struct {
		int32_t size, items;
	} tuple;
	struct {
		int32_t type;                                    /* of any object */
		int32_t name, basicsize, flags, dictoffset, cached_keys; /* of a type object */
	} type;
	struct {
		int32_t keys, values;
	} dict;
};

/* How much of an item that notes a handled exception a sample reads. */
static inline uint32_t pyabi_item_bytes(const struct pyabi *abi)
{
	return abi->exceptions == EXCEPTIONS_TRIPLE ? 32 : 16;
}

/* The table of a minor version up to 3.12, or NULL. Static. */
const struct pyabi *pyabi_table(unsigned major, unsigned minor);

/* Fills *ret_abi from the words published at _PyRuntime by 3.13+: `words` 8-byte words of which `count` could be read,
 * beginning with the cookie "xdebugpy". Values that are not published come from our own tables. 0, -ENOTSUP (an unknown
 * version or flavour; *fault says which), or -EPROTO (values fail validation). */
int pyabi_from_debug_offsets(struct pyabi *ret_abi, const uint64_t *words, size_t count, struct fault *fault);

/* Checks that every offset lies in its structure's bounds and that fields needed by the chosen features are there. */
int pyabi_validate(const struct pyabi *abi, struct fault *fault);

/* "3.8 to 3.15", for messages. */
const char *pyabi_supported(void);

#endif
