/* SPDX-License-Identifier: Apache-2.0 */
/* The way out of a function that has no unwind tables, by its own code: where nothing but the end of the function follows, that code says what it takes
 * off the stack. CPython's perf trampolines, which lie in every stack where they are on, and hand-written assembly are left so. */
#ifndef SAMPLED_SAMPLER_EPILOGUE_H
#define SAMPLED_SAMPLER_EPILOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/cfi.h"

/* code: what runs next. False: it does something else than leaving. */
bool epilogue_row(const uint8_t *code, size_t bytes, struct cfi_row *ret_row);
/* Whether the bytes before `end` may be a call that returns there: 7 bytes at most. */
bool epilogue_is_call(const uint8_t *end, size_t before);

#endif
