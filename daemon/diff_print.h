/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `sampled diff`, and the same as JSON. */
#ifndef SAMPLED_DAEMON_DIFF_PRINT_H
#define SAMPLED_DAEMON_DIFF_PRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "exporters/difference.h"
#include "exporters/writer.h"

struct diff_view {
	const struct difference *difference; /* sorted by key */
	const struct difference *waiting;    /* so too; NULL: the other one leaves none out */
	enum difference_key key;
	uint32_t limit; /* rows of each part of the table; 0: all */
	bool color;
	unsigned columns; /* of a line; the table loses columns where it is too wide. 0: 120, with all of them */
	const char *titles[SIDES];
	const struct facts *facts[SIDES]; /* NULL: a call graph, which has none */
};

/* Errors stick in the writer. */
void diff_print_table(const struct diff_view *view, struct writer *to);
void diff_print_json(const struct diff_view *view, struct writer *to);

#endif
