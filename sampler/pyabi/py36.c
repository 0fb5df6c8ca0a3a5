/* SPDX-License-Identifier: Apache-2.0 */
/* CPython 3.6. What later moved into _PyRuntime are variables of their own here: interp_head,
 * _PyThreadState_Current, collecting, and the GIL's mutex, condition and flags.
 *
 * Source: Include/ and Include/internal/ of the release; checked against the debugging information of 3.6.15. */
#include "sampler/pyabi/opcodes.h"
#include "sampler/pyabi/tables.h"

static const struct py_opcode opcodes[256] = {
	OPCODES_ALL,
	OPCODES_TO_38,
	OPCODES_TO_37,
	[127] = FIXED(-1), /* STORE_ANNOTATION */
};

const struct pyabi pyabi_3_6 = {
	.name = "3.6",
	.major = 3,
	.minor = 6,
	.patch_first = 0,
	.patch_last = 15,
	.free_threaded = false,
	.frames = FRAMES_HEAP,
	.call_mark = CALL_MARK_EXECUTING,
	.lines = LINES_LNOTAB,
	.instr = INSTR_LASTI_BYTES,
	.gil = GIL_CURRENT_VAR,
	.end = END_NULL,
	.str_layout = STR_TO_311,
	.attrs = ATTRS_DICTOFFSET,
	.dict_keys = KEYS_SIZE,
	.exceptions = EXCEPTIONS_VALUE,
	.opcodes = opcodes,
	.opnames = pyabi_opnames_3_6,
	.runtime = {
		.interpreters = ABSENT,
		.tstate_current = ABSENT,
		.gil = ABSENT,
		.collecting = ABSENT,
	},
	.interp = {
		.next = 0,
		.id = ABSENT,
		.threads = 8,
		.modules = 16,
		.gil = ABSENT,
		.collecting = ABSENT,
		.gc_frame = ABSENT,
		.code_generation = ABSENT,
	},
	.gil_state = {
		.last_holder = ABSENT,
		.locked = ABSENT,
		.bytes = 48, /* of the condition variable gil_cond */
	},
	.tstate = {
		.bytes = 160,
		.next = 8,
		.interp = 16,
		.frame = 24,
		.cframe = ABSENT,
		.cframe_frame = ABSENT,
		.base_frame = ABSENT,
		.thread_id = 152,
		.native_thread_id = ABSENT,
		.status = ABSENT,
		.holds_gil = ABSENT,
		.gil_requested = ABSENT,
		.chunk = ABSENT,
		.exc_info = 112,
		.raised = 80,
	},
	.frame = {
		.bytes = 136,
		.previous = 24,
		.code = 32,
		.instr = 120,
		.stacktop = 72,
		.stackpointer = ABSENT,
		.executing = 132,
		.is_entry = ABSENT,
		.owner = ABSENT,
		.gen = 112,
		.valuestack = 64,
		.return_offset = ABSENT,
	},
	.owner = {
		.thread = ABSENT,
		.generator = ABSENT,
		.frame_object = ABSENT,
		.shim = ABSENT,
		.shim2 = ABSENT,
	},
	.code = {
		.bytes = 120,
		.name = 104,
		.filename = 96,
		.qualname = ABSENT,
		.firstlineno = 36,
		.linetable = 112,
		.bytecode = 40,
		.bytecode_is_pointer = true,
		.framesize = ABSENT,
		.nlocalsplus = ABSENT,
		.stacksize = 28,
		.version = ABSENT,
		.firsttraceable = ABSENT,
	},
	.gen = {
		.frame = 16,
		.iframe = ABSENT,
		.state = 24,
	},
	.func = {
		.code = 16,
	},
	.str = {
		.length = 16,
		.state = 32,
		.ascii_text = 48,
		.text = 72,
	},
	.bytes = {
		.size = 16,
		.data = 32,
	},
	.type = {
		.type = 8,
		.name = 24,
		.basicsize = 32,
		.flags = 168,
		.dictoffset = 288,
		.cached_keys = 856,
	},
	.dict = {
		.keys = 32,
		.values = 40,
	},
};
