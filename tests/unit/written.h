/* SPDX-License-Identifier: Apache-2.0 */
/* A profile written in a format, as text in memory, for tests. */
#ifndef SAMPLED_TESTS_UNIT_WRITTEN_H
#define SAMPLED_TESTS_UNIT_WRITTEN_H

#include "exporters/format.h"

/* The caller frees it. NUL-terminated; aborts when writing fails. */
char *written(const struct profile *profile, const char *format, const struct export_options *options);
char *written_bytes(const struct profile *profile, const char *format, const struct export_options *options, size_t *ret_bytes);
/* How often `what` stands in the text. */
unsigned count_of(const char *text, const char *what);

#endif
