/* SPDX-License-Identifier: Apache-2.0 */
/* What a frame on the heap (CPython to 3.10) says of its own call: while it stands at one, its value stack still holds
 * what it calls. A frame and its value stack are one short copy, so that its caller, its place and its callee are of one
 * instant, however much later the callee's own frame was copied. The sampler thread's alone. */
#ifndef SAMPLED_SAMPLER_CALLEE_H
#define SAMPLED_SAMPLER_CALLEE_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/walk.h"

struct callees; /* what is remembered of one target: function objects, and how far frames reach */

int callees_new(struct callees **ret_callees);
void callees_free(struct callees *callees);

/* Reads frames of `stack` twice, those around frame `wanted` (forwards, then backwards; a few others that were seen lately between
 * them; all, where the thread stands still), and learns what they show: what each frame that is alike in both copies calls; the calls among those from the outermost
 * on that are alike and call one another; and what the innermost of these calls. The plan in w is used, and w->grew set where the next read will have
 * more. 1: something has become known; 0; or a -errno. */
int callee_learn(struct callees *callees, struct walker *w, struct thread *t, const struct pystack *stack,
                 uint32_t wanted, struct edges *edges);

#endif
