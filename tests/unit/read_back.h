/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in memory read in the format that they look like, for tests. */
#ifndef SAMPLED_TESTS_UNIT_READ_BACK_H
#define SAMPLED_TESTS_UNIT_READ_BACK_H

#include "exporters/format.h"

/* Freed with profile_free(). format: what they must look like. 0 or -errno with *fault filled, as struct format's read. A window: from, to. */
int read_back(struct profile **ret_profile, const char *format, const void *data, size_t bytes,
              const struct builder_options *options, struct fault *fault);
/* Of a text that must be good. */
struct profile *read_text(const char *format, const char *text);
/* A note's number; -1: there is none. */
double note_of(const struct profile *profile, const char *key);
/* Reads every truncation of the bytes, and every byte of them set to a few values: what comes of it does not matter, only that it ends. */
void read_damaged(const char *format, const char *data, size_t bytes);

#endif
