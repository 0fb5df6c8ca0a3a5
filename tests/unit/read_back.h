/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in memory read in a format, for tests. */
#ifndef SAMPLED_TESTS_UNIT_READ_BACK_H
#define SAMPLED_TESTS_UNIT_READ_BACK_H

#include "exporters/format.h"

/* Freed with profile_free(). format: what they are read as, whatever they look like. options NULL: the stacks alone. 0 or -errno with *fault
 * filled, as struct format's read, and no profile. */
int read_as(struct profile **ret_profile, const char *format, const void *data, size_t bytes,
            const struct builder_options *options, struct fault *fault);
/* The same, and they must look like this format. */
int read_back(struct profile **ret_profile, const char *format, const void *data, size_t bytes,
              const struct builder_options *options, struct fault *fault);
/* Of a text that must be good. */
struct profile *read_text(const char *format, const char *text);
/* A note's number; -1: there is none. */
double note_of(const struct profile *profile, const char *key);
/* Reads every truncation of the bytes, and every byte of them set to a few values: what comes of it does not matter, only that it ends. */
void read_damaged(const char *format, const char *data, size_t bytes);

#endif
