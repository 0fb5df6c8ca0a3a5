/* SPDX-License-Identifier: Apache-2.0 */
/* The writers and readers of the registry in format.c, one or two a format; struct format says what they do. */
#ifndef SAMPLED_EXPORTERS_FORMATS_H
#define SAMPLED_EXPORTERS_FORMATS_H

#include "exporters/format.h"

int flamegraph_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int collapsed_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int text_write(const struct profile *profile, const struct export_options *options, struct writer *to);

bool tachyon_detect(const unsigned char *head, size_t bytes);
int tachyon_read(struct input *from, struct builder *to, struct fault *fault);
bool ascend_detect(const unsigned char *head, size_t bytes);
int ascend_read(struct input *from, struct builder *to, struct fault *fault);

#endif
