/* SPDX-License-Identifier: Apache-2.0 */
/* A writer into memory, for what is sent or kept in one piece. */
#ifndef SAMPLED_EXPORTERS_MEMORY_H
#define SAMPLED_EXPORTERS_MEMORY_H

#include "base/buf.h"
#include "exporters/writer.h"

/* Opens it, on a file that is in memory only; freed by memory_finish(). NULL: no memory, or no descriptor. */
struct writer *memory_new(void);
/* Appends what was written to *to, and frees the writer (NULL is fine: -ENOMEM). 0 or -errno: err, where that is not 0, or the writer's. */
int memory_finish(struct writer *from, int err, struct buf *to);

#endif
