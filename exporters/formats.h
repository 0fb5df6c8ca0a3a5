/* SPDX-License-Identifier: Apache-2.0 */
/* The writers of the registry in format.c, one a format. Each returns 0 or the writer's error. */
#ifndef SAMPLED_EXPORTERS_FORMATS_H
#define SAMPLED_EXPORTERS_FORMATS_H

#include "exporters/format.h"

int flamegraph_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int collapsed_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int pprof_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int otlp_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int text_write(const struct profile *profile, const struct export_options *options, struct writer *to);

#endif
