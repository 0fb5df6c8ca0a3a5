/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the Firefox Profiler's format share. */
#ifndef SAMPLED_EXPORTERS_FIREFOX_H
#define SAMPLED_EXPORTERS_FIREFOX_H

#include <stdint.h>

#include "aggregator/profile.h"
#include "exporters/intern.h"
#include "exporters/writer.h"

/* Of meta.categories: where the samples and markers belong. */
enum firefox_category {
	FIREFOX_OTHER,
	FIREFOX_PYTHON,
	FIREFOX_NATIVE,
	FIREFOX_GIL,
	FIREFOX_CPU,
	FIREFOX_GC,
	FIREFOX_EXCEPTION,
	FIREFOX_CATEGORIES
};

/* The member libs: (path, build id) of each, numbers of strings. */
void firefox_write_libs(const struct pair_set *modules, const struct text_set *strings, struct writer *to);
/* The value of meta.markerSchema. */
void firefox_write_marker_schema(struct writer *to);
/* Puts the markers' names among the strings. 0 or -ENOMEM. */
int firefox_add_marker_names(struct text_set *strings);
/* The value of a thread's markers: how long it held the GIL, waited for it, and so on, as far as the profile tells. */
void firefox_write_markers(const struct profile *profile, const struct thread_tree *thread, uint64_t base_ns,
                           struct text_set *strings, struct writer *to);

/* How many samples must share a row at most, so that there are not too many rows. */
uint32_t firefox_row_samples(const struct profile *profile);
/* The value of a thread's samples. */
void firefox_write_samples(const struct profile *profile, const struct thread_tree *thread, uint64_t base_ns,
                           uint32_t row_samples, struct writer *to);

#endif
