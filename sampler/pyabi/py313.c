/* SPDX-License-Identifier: Apache-2.0 */
/* CPython 3.13: what it does not publish at _PyRuntime; ABSENT is filled in from there.
 * Frames found directly in the thread state; instr_ptr of an inlined caller is the call itself.
 *
 * Source: the internal headers of the release; checked with their offsetof and on live processes of 3.13.0. */
#include "sampler/pyabi/tables.h"

const struct pyabi pyabi_3_13 = {
	.name = "3.13",
	.major = 3,
	.minor = 13,
	.patch_first = 0,
	.patch_last = 14,
	.free_threaded = false,
	.frames = FRAMES_STACK,
	.call_mark = CALL_MARK_STACKTOP,
	.lines = LINES_311,
	.instr = INSTR_POINTER,
	.gil = GIL_INTERPRETER,
	.end = END_SHIM,
	.str_layout = STR_312,
	.attrs = ATTRS_INLINE,
	.dict_keys = KEYS_LOG2,
	.runtime = {
		.interpreters = ABSENT,
		.tstate_current = ABSENT,
		.gil = ABSENT,
		.collecting = ABSENT,
	},
	.interp = {
		.next = ABSENT,
		.id = ABSENT,
		.threads = ABSENT,
		.modules = ABSENT,
		.gil = ABSENT,
		.collecting = ABSENT,
		.gc_frame = ABSENT,
		.code_generation = ABSENT,
	},
	.gil_state = {
		.last_holder = ABSENT,
		.locked = ABSENT,
		.bytes = 208,
	},
	.tstate = {
		.bytes = 0, /* computed */
		.next = ABSENT,
		.interp = ABSENT,
		.frame = ABSENT,
		.cframe = ABSENT,
		.cframe_frame = ABSENT,
		.base_frame = ABSENT,
		.thread_id = ABSENT,
		.native_thread_id = ABSENT,
		.status = ABSENT,
		.holds_gil = ABSENT,
		.gil_requested = ABSENT,
		.chunk = ABSENT,
		.exc_info = 120,
		.raised = 112,
	},
	.frame = {
		.bytes = 0, /* computed */
		.previous = ABSENT,
		.code = ABSENT,
		.instr = ABSENT,
		.stacktop = 64,
		.stackpointer = ABSENT,
		.executing = ABSENT,
		.is_entry = ABSENT,
		.owner = ABSENT,
		.gen = ABSENT,
		.valuestack = ABSENT,
		.return_offset = 68,
	},
	.owner = {
		.thread = 0,
		.generator = 1,
		.frame_object = 2,
		.shim = 3,
		.shim2 = ABSENT,
	},
	.code = {
		.bytes = 0, /* computed */
		.name = ABSENT,
		.filename = ABSENT,
		.qualname = ABSENT,
		.firstlineno = ABSENT,
		.linetable = ABSENT,
		.bytecode = ABSENT,
		.bytecode_is_pointer = false,
		.framesize = 76,
		.nlocalsplus = 72,
		.stacksize = 64,
		.version = 92,
		.firsttraceable = 184,
	},
	.gen = {
		.frame = ABSENT,
		.iframe = 72,
		.state = 67,
	},
	.leaving_opcodes = {36, 103, 35, 118, 239, 240, 241},
	.calling = {
		[5] = 1, [53 ... 54] = 1, [57] = 1, [72] = 1, [82] = 1, [104] = 1, [157 ... 181] = 1, [187 ... 202] = 1, [208] = 1,
		[243 ... 246] = 1,
		[247] = CALLING_HIDDEN, [254] = CALLING_HIDDEN,
	},
	.func = {
		.code = ABSENT,
	},
	.str = {
		.length = ABSENT,
		.state = ABSENT,
		.ascii_text = ABSENT,
		.text = 56,
	},
	.bytes = {
		.size = ABSENT,
		.data = ABSENT,
	},
	.type = {
		.type = ABSENT,
		.name = ABSENT,
		.basicsize = 32,
		.flags = ABSENT,
		.dictoffset = 288,
		.cached_keys = 880,
	},
	.dict = {
		.keys = ABSENT,
		.values = ABSENT,
	},
};
