/* SPDX-License-Identifier: Apache-2.0 */
/* The writers and readers of the registry in format.c, one or two a format; struct format says what they do. */
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
int pprof_write(const struct profile *profile, const struct export_options *options, struct writer *to);
bool pprof_detect(const unsigned char *head, size_t bytes);
int pprof_read(struct input *from, struct builder *to, struct fault *fault);
int otlp_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int svg_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int recording_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int text_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int speedscope_write(const struct profile *profile, const struct export_options *options, struct writer *to);
bool speedscope_detect(const unsigned char *head, size_t bytes);
int speedscope_read(struct input *from, struct builder *to, struct fault *fault);
int chrome_write(const struct profile *profile, const struct export_options *options, struct writer *to);
int firefox_write(const struct profile *profile, const struct export_options *options, struct writer *to);

int pstats_write(const struct callgraph *graph, const struct export_options *options, struct writer *to);
bool pstats_detect(const unsigned char *head, size_t bytes);
int pstats_read(struct input *from, struct callgraph *to, struct fault *fault);
bool callgrind_detect(const unsigned char *head, size_t bytes);
int callgrind_read(struct input *from, struct callgraph *to, struct fault *fault);
int callgrind_write(const struct callgraph *graph, const struct export_options *options, struct writer *to);
int dot_write(const struct callgraph *graph, const struct export_options *options, struct writer *to);
bool tachyon_detect(const unsigned char *head, size_t bytes);
int tachyon_read(struct input *from, struct builder *to, struct fault *fault);
bool gecko_detect(const unsigned char *head, size_t bytes);
int gecko_read(struct input *from, struct builder *to, struct fault *fault);
bool mojo_detect(const unsigned char *head, size_t bytes);
int mojo_read(struct input *from, struct builder *to, struct fault *fault);
bool pyinstrument_detect(const unsigned char *head, size_t bytes);
int pyinstrument_read(struct input *from, struct builder *to, struct fault *fault);
bool tachyon_totals_detect(const unsigned char *head, size_t bytes);
int tachyon_totals_read(struct input *from, struct callgraph *to, struct fault *fault);
bool trace_detect(const unsigned char *head, size_t bytes);
int trace_read(struct input *from, struct builder *to, struct fault *fault);
bool ascend_detect(const unsigned char *head, size_t bytes);
int ascend_read(struct input *from, struct builder *to, struct fault *fault);

#endif
