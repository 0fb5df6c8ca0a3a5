/* SPDX-License-Identifier: Apache-2.0 */
/* Packs with gzip (RFC 1952) what goes to a writer. No time stamp and no name in its head: the same content gives the same bytes. */
#ifndef SAMPLED_EXPORTERS_GZIP_H
#define SAMPLED_EXPORTERS_GZIP_H

#include <stddef.h>

#include "exporters/writer.h"

struct gzip;

/* NULL: no memory, which is noted in the writer. */
struct gzip *gzip_new(struct writer *to);
/* Errors stick in the writer. */
void gzip_add(struct gzip *gzip, const void *data, size_t bytes);
/* Writes what is left, and frees. NULL is fine. */
void gzip_finish(struct gzip *gzip);

#endif
