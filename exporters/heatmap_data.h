/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a heat map's page: the spots that heatmap.c filled. */
#ifndef SAMPLED_EXPORTERS_HEATMAP_DATA_H
#define SAMPLED_EXPORTERS_HEATMAP_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "exporters/formats.h"
#include "exporters/intern.h"
#include "exporters/line_costs.h"

/* What a place is hot by: samples, their weight, and CPU time, 0 where the kernel did not tell it. */
enum measure { MEASURE_SAMPLES, MEASURE_WEIGHT, MEASURE_CPU, MEASURE_GIL, MEASURES };

struct spot {
	uint64_t self[MEASURES], total[MEASURES];
	uint32_t active;            /* frames of the stack at hand that are here */
	uint32_t name;              /* of a line: its function, a number in names */
	uint32_t process;           /* of a file: one that it was seen in */
	bool is_source;             /* of a file: it may be one of Python's */
};

struct heatmap {
	const struct profile *profile;
	enum value_index weight;
	bool has_cpu, has_gil;
	struct text_set file_names, names;
	struct pair_set lines;                         /* (file, line) */
	struct pair_set edges;                         /* (caller's line, callee's) */
	struct line_costs opcodes;                     /* of a line, by the number of the opcode's name */
	struct buf file_spots, line_spots, edge_spots; /* struct spot each */
	int err;
};

static inline struct spot *heatmap_spot(const struct buf *spots, uint32_t number)
{
	return (struct spot *)(void *)spots->data + number;
}

/* All of it, as one JSON object; no memory: h->err. */
void heatmap_write_data(struct heatmap *h, const struct export_options *options, struct writer *to);

#endif
