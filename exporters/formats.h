/* SPDX-License-Identifier: Apache-2.0 */
/* What the registry in format.c is made of, a few functions a format; struct format says what they do. */
#ifndef SAMPLED_EXPORTERS_FORMATS_H
#define SAMPLED_EXPORTERS_FORMATS_H

#include "exporters/format.h"

int flamegraph_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int collapsed_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int pprof_write(const struct profile *profile, const struct export_options *options, struct writer *to);
bool pprof_detect(const unsigned char *head, size_t bytes);
int pprof_read(struct input *from, struct builder *to, struct fault *fault);
int otlp_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int text_write(const struct profile *profile, const struct export_options *options, struct writer *to);

#endif
