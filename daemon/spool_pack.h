/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as an item's bytes: pprof, packed with gzip, with no more samples and bytes than servers take. */
#ifndef SAMPLED_DAEMON_SPOOL_PACK_H
#define SAMPLED_DAEMON_SPOOL_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/profile.h"
#include "base/buf.h"
#include "base/fault.h"

/* Appends it. Where it is too large, ever larger nodes go into "(other)" below their callers, until it fits, and then threads become one: sums
 * stay what they were, and *ret_pruned is set. Samples without a frame, which stores would leave out, get one. 0 or -errno with *fault filled; -EFBIG: it cannot be made to fit. */
int spool_pack(const struct profile *profile, struct buf *to, bool *ret_pruned, struct fault *fault);

#endif
