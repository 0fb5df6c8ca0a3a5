/* SPDX-License-Identifier: Apache-2.0 */
/* Known calls where frames lie on the heap: CPython to 3.10. */
#ifndef SAMPLED_SAMPLER_HEAPCALLS_H
#define SAMPLED_SAMPLER_HEAPCALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/walk.h"

/* Whether all calls of a stack, from that of frame `from` on, are known; if not, *ret_unknown (may be NULL) is the frame of the first
 * that is not. Whether all its callers stand where some call was once seen. */
bool heap_knows_calls(const struct walker *w, const struct pystack *stack, uint32_t from, struct edges *edges,
                      uint32_t *ret_unknown);
bool heap_knows_sites(const struct walker *w, const struct pystack *stack, struct edges *edges);
/* The key of a call that one frame told of itself: what it stands at, what it calls, and what called it (NULL: nothing). */
uint64_t heap_local_call(const struct code *before, const struct code *caller, int64_t offset,
                         const struct code *callee);
/* A copy of one frame told it to be calling this function (NULL: another kind of thing) at `offset`, called by `before`: learnt by its share. */
void heap_sight_told(uint64_t now_ns, const struct code *before, const struct code *caller, int64_t offset, struct code *callee, struct edges *edges);
/* The key of the fact that a function calls another one by itself, anywhere. */
uint64_t heap_calls_itself(const struct code *caller, const struct code *callee);
/* Whether a call of the stack cannot be: its caller stands where it calls another function, and only that one, or where it calls
 * nothing. Then the copy is torn. */
bool heap_refutes(const struct walker *w, const struct pystack *stack, struct edges *edges);
/* Those of frame `from` and above it were seen alike once more. True: one has become known. */
bool heap_sight_calls(const struct walker *w, const struct pystack *stack, uint32_t from, struct edges *edges);
/* They were seen while the thread stood. */
void heap_learn_calls(const struct walker *w, const struct pystack *stack, struct edges *edges);

#endif
