/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of one frame. */
#ifndef SAMPLED_SAMPLER_VALUES_LOCALS_H
#define SAMPLED_SAMPLER_VALUES_LOCALS_H

#include "sampler/values/value.h"
#include "sampler/values/values.h"

enum { LOCALS_MAX = 1000 }; /* of a frame */

/* Appends the variables of the frame at `frame`, which runs `code`, to *to; each is read `passes` times and believed where all are alike. to->gone: it does
 * not run that code. `reader` says from where and how; its `to` is not used. The reads that it took. */
uint64_t locals_read(const struct value_reader *reader, raddr_t frame, raddr_t code, unsigned passes, struct frame_locals *to);

#endif
