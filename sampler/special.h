/* SPDX-License-Identifier: Apache-2.0 */
/* What special frames tell of a whole stack besides its Python frames: where C called Python, which instruction the innermost frame stands
 * at, which frame started the garbage collector. Noted on the frames as the sample is taken, shown by shown.h. */
#ifndef SAMPLED_SAMPLER_SPECIAL_H
#define SAMPLED_SAMPLER_SPECIAL_H

#include "sampler/target.h"

/* Notes on the frames of t->seen, a whole stack of this status, what the options ask for. Reads the target for an opcode only. */
void special_note(struct target *target, struct thread *t, const struct walker *w, uint16_t status);

#endif
