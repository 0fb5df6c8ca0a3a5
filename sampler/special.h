/* SPDX-License-Identifier: Apache-2.0 */
/* What special frames tell of a whole stack besides its Python frames: where C called Python, which instruction the innermost frame stands
 * at, which frame started the garbage collector. Noted on the frames as the sample is taken, shown by shown.h. */
#ifndef SAMPLED_SAMPLER_SPECIAL_H
#define SAMPLED_SAMPLER_SPECIAL_H

#include "sampler/target.h"

/* Notes on the frames of t->seen, a whole stack of this status, what the options ask for. Reads the target for an opcode only. */
void special_note(struct target *target, struct thread *t, const struct walker *w, uint16_t status);

/* Whether the collector can have been started by this frame and still run in the stack t->seen: it calls Python from C alone. Where the
 * interpreter's loop runs what lies above, it began after the frames were copied, or had ended. */
bool special_can_collect(const struct target *target, const struct thread *t, raddr_t starter);

#endif
