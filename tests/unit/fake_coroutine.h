/* SPDX-License-Identifier: Apache-2.0 */
/* Frames laid out in the test's own memory: a data stack with one function, handle(), and a coroutine, task(), that C resumes on top of it. */
#ifndef SAMPLED_TESTS_UNIT_FAKE_COROUTINE_H
#define SAMPLED_TESTS_UNIT_FAKE_COROUTINE_H

#include "sampler/target.h"
#include "sampler/walk.h"

extern struct fake_coroutine {
	const struct pyabi *abi;
	raddr_t code_type, handle_code, task_code;
	raddr_t chunk, handle, task, shim; /* frames; shim 0: the version has none */
	struct target *target;
	struct thread *t;
	struct walker w;
} fake;

/* For 3.MINOR; task() runs. */
void fake_coroutine_begin(unsigned minor);
/* The same for 3.11. */
void fake_coroutine_begin_11(void);
void fake_coroutine_end(void);
/* A function, and a frame of it, standing at this offset: FAKE_AT_…, with this stack pointer: FAKE_RUNS, FAKE_SUSPENDED. */
raddr_t fake_function(const char *name);
void fake_frame(raddr_t frame, raddr_t code, int64_t offset, int32_t stacktop, raddr_t previous);
void fake_owner(raddr_t frame, int32_t owner);
void fake_resume(void);
void fake_yield(void);

enum { FAKE_LOCALS = 2, FAKE_STACK_SLOTS = 3, FAKE_RUNS = -1, FAKE_SUSPENDED = FAKE_LOCALS + 1 };
/* Bytes from the first instruction of each function here: RESUME, LOAD_FAST, CALL_FUNCTION_EX. */
enum { FAKE_AT_LOAD = 2, FAKE_AT_CALL_EX = 4, FAKE_AT_RETURN = 6 };

#endif
