/* SPDX-License-Identifier: Apache-2.0 */
/* The sources in a heat map's page. */
#ifndef SAMPLED_EXPORTERS_HEATMAP_SOURCES_H
#define SAMPLED_EXPORTERS_HEATMAP_SOURCES_H

#include <stddef.h>
#include <stdint.h>

#include "exporters/formats.h"

/* A file whose source may be shown. Nothing is owned. */
struct heatmap_file {
	const char *name;
	const struct process *process; /* one that it was seen in */
	uint64_t total;                /* what it is ranked by */
	uint32_t number;               /* of the file, in the page */
};

/* Writes the elements of a JSON array, each the number of a file and its lines, those with the most time first; sorts the files. Returns how
 * many were left out because of a bound. */
uint32_t heatmap_write_sources(struct heatmap_file *files, size_t count, const struct source_access *access,
                               struct writer *to);

#endif
