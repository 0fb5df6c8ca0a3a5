/* SPDX-License-Identifier: Apache-2.0 */
/* The writers and readers of the registry in format.c; what they return is said in format.h. */
#ifndef SAMPLED_EXPORTERS_FORMATS_H
#define SAMPLED_EXPORTERS_FORMATS_H

#include "exporters/format.h"

int flamegraph_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int collapsed_write(const struct profile *profile, const struct export_options *options, struct writer *to);
bool collapsed_detect(const unsigned char *head, size_t bytes);
int collapsed_read(struct input *from, struct builder *to, struct fault *fault);
int dask_write(const struct profile *profile, const struct export_options *options, struct writer *to);
bool dask_detect(const unsigned char *head, size_t bytes);
int dask_read(struct input *from, struct builder *to, struct fault *fault);
int heatmap_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int jsonl_write(const struct profile *profile, const struct export_options *options, struct writer *to);
bool perfscript_detect(const unsigned char *head, size_t bytes);
int perfscript_read(struct input *from, struct builder *to, struct fault *fault);
int text_write(const struct profile *profile, const struct export_options *options, struct writer *to);

#endif
