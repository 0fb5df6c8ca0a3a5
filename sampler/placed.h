/* SPDX-License-Identifier: Apache-2.0 */
/* Where the frame of a generator or a coroutine stood. It is copied a little after what it called or awaits, and has often gone on by
 * then; but that one's link still leads to it. Where its function calls or awaits the other's from one place only, it stood there. */
#ifndef SAMPLED_SAMPLER_PLACED_H
#define SAMPLED_SAMPLER_PLACED_H

#include "sampler/links.h"

/* In the call of a function on the data stack, which was copied before. *offset: where its copy stands; then, where it stood. False: unknown. */
bool placed_by_callee(struct walker *w, const struct code *code, const struct code *callee, int64_t *offset);
/* Awaiting the coroutine among the links that linked to `frame` while it ran. False: none did, the copy awaits it, or unknown. */
bool placed_by_awaited(const struct walker *w, const struct links *links, raddr_t frame, const struct code *code,
                       int64_t *offset);

#endif
