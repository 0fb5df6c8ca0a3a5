/* SPDX-License-Identifier: Apache-2.0 */
/* CPython 3.14: what it does not publish at _PyRuntime; ABSENT is filled in from there.
 * References in frames are tagged; nothing marks a frame that called.
 *
 * Source: the internal headers of the release; checked with their offsetof and on live processes of 3.14.8. */
#include "sampler/pyabi/tables.h"

const struct pyabi pyabi_3_14 = {
	.name = "3.14",
	.major = 3,
	.minor = 14,
	.patch_first = 0,
	.patch_last = 8,
	.free_threaded = false,
	.frames = FRAMES_STACK,
	.call_mark = CALL_MARK_INSTR,
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
		.holds_gil = 36,
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
		.stacktop = ABSENT,
		.stackpointer = ABSENT,
		.executing = ABSENT,
		.is_entry = ABSENT,
		.owner = ABSENT,
		.gen = ABSENT,
		.valuestack = ABSENT,
		.return_offset = 72,
	},
	.owner = {
		.thread = 0,
		.generator = 1,
		.frame_object = 2,
		.shim = 3,
		.shim2 = 4,
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
		.firsttraceable = 192,
	},
	.gen = {
		.frame = ABSENT,
		.iframe = ABSENT,
		.state = ABSENT,
	},
	.calling = {
		[3 ... 4] = 1, [44] = 1, [52] = 1, [55] = 1, [70] = 1, [80] = 1, [106] = 1, [129 ... 165] = 1, [171 ... 174] = 1,
		[177 ... 189] = 1, [197] = 1, [237] = 1, [250 ... 252] = 1,
		[238] = CALLING_HIDDEN, [254] = CALLING_HIDDEN,
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
