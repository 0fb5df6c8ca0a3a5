/* SPDX-License-Identifier: Apache-2.0 */
/* The writers of the registry in format.c, one a format. Each returns 0 or the writer's error. */
#ifndef SAMPLED_EXPORTERS_FORMATS_H
#define SAMPLED_EXPORTERS_FORMATS_H

#include "exporters/format.h"

int flamegraph_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int collapsed_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int text_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int speedscope_write(const struct profile *profile, const struct export_options *options, struct writer *to);
bool speedscope_detect(const unsigned char *head, size_t bytes);
int speedscope_read(struct input *from, struct builder *to, struct fault *fault);
int chrome_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int firefox_write(const struct profile *profile, const struct export_options *options, struct writer *to);

#endif
