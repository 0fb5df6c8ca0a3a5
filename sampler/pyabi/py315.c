/* SPDX-License-Identifier: Apache-2.0 */
/* CPython 3.15: what it does not publish at _PyRuntime; ABSENT is filled in from there.
 * Every chain of frames ends at the thread state's base_frame.
 *
 * Source: the internal headers of the release; checked with their offsetof and on live processes of 3.15.0. */
#include "sampler/pyabi/tables.h"

const struct pyabi pyabi_3_15 = {
	.name = "3.15",
	.major = 3,
	.minor = 15,
	.patch_first = 0,
	.patch_last = 0,
	.free_threaded = false,
	.frames = FRAMES_STACK,
	.call_mark = CALL_MARK_INSTR,
	.lines = LINES_311,
	.instr = INSTR_POINTER,
	.gil = GIL_INTERPRETER,
	.end = END_BASE,
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
		.exc_info = 144,
		.raised = ABSENT,
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
		.firsttraceable = 192,
	},
	.gen = {
		.frame = ABSENT,
		.iframe = ABSENT,
		.state = ABSENT,
	},
	.calling = {
		[3 ... 4] = 1, [42] = 1, [50] = 1, [53] = 1, [68] = 1, [79] = 1, [105] = 1, [129 ... 168] = 1, [174 ... 178] = 1,
		[183 ... 195] = 1, [202 ... 204] = 1, [236] = 1, [249 ... 251] = 1,
		[237] = CALLING_HIDDEN, [253] = CALLING_HIDDEN,
	},
	.func = {
		.code = ABSENT,
	},
	.str = {
		.length = ABSENT,
		.state = ABSENT,
		.ascii_text = ABSENT,
		.text = ABSENT,
	},
	.bytes = {
		.size = ABSENT,
		.data = ABSENT,
	},
	.type = {
		.type = ABSENT,
		.name = ABSENT,
		.basicsize = ABSENT,
		.flags = ABSENT,
		.dictoffset = ABSENT,
		.cached_keys = ABSENT,
	},
	.dict = {
		.keys = ABSENT,
		.values = ABSENT,
	},
};
