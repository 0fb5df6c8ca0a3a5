/* SPDX-License-Identifier: Apache-2.0 */
/* Where the interpreter's eval loop lies in its file: _PyEval_EvalFrameDefault() (3.6 to 3.15), in all pieces that the compiler and the linker made of
 * it (.cold, .part.N, .lto_priv.N, .constprop.N, .localalias), and the handlers _TAIL_CALL_* of an interpreter that was compiled with tail calls. */
#ifndef SAMPLED_SAMPLER_EVALLOOP_H
#define SAMPLED_SAMPLER_EVALLOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/elfhead.h"
#include "sampler/unwind_tables.h"

struct evalloop;

/* Of the ELF file behind fd. tables NULL: it has none. 0, -ENOENT: it has no such function, or another -errno. */
int evalloop_find(struct evalloop **ret_loop, int fd, const struct elfhead *head, const struct unwind_tables *tables);
void evalloop_free(struct evalloop *loop);

/* Addresses are those the file speaks of. */
bool evalloop_has(const struct evalloop *loop, uint64_t addr);
bool evalloop_has_inner(const struct evalloop *loop, uint64_t addr);

#endif
