/* SPDX-License-Identifier: Apache-2.0 */
/* What a function, or a call of one by another, costs on each of its lines: sums by (number of what it is, line). */
#ifndef SAMPLED_EXPORTERS_LINE_COSTS_H
#define SAMPLED_EXPORTERS_LINE_COSTS_H

#include <stdint.h>

#include "exporters/intern.h"

struct line_cost {
	uint32_t of, line;
	uint64_t calls, samples;
	uint64_t weight; /* in the unit of the profile's weight */
	uint64_t cpu_ns; /* on a CPU, as the kernel counted */
	uint64_t gil_ns; /* holding the GIL */
};

struct line_costs {             /* all zero: empty */
	struct pair_set places; /* (of, line) → index of row */
	struct line_cost *rows; /* owned; in the order in which they were first met */
	uint32_t row_room;
};

/* Adds to the row of this place. 0 or -ENOMEM. */
int line_costs_add(struct line_costs *costs, const struct line_cost *cost);
/* places.count rows by what they are of, then by line; the caller frees them. NULL: no memory. */
struct line_cost *line_costs_sorted(const struct line_costs *costs);
/* Of `count` rows so sorted those of this one, *ret_count many, 0 too. */
const struct line_cost *line_costs_of(const struct line_cost *sorted, uint32_t count, uint32_t of, uint32_t *ret_count);
void line_costs_release(struct line_costs *costs);

#endif
