/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a Firefox Profiler's file, whether it has them as columns or, as Firefox itself, as rows with a schema. Part of gecko_read.c. */
#ifndef SAMPLED_EXPORTERS_GECKO_TABLES_H
#define SAMPLED_EXPORTERS_GECKO_TABLES_H

#include <stdint.h>

#include "exporters/json_read.h"

/* A table as one thread has it. */
struct gecko_table {
	const struct json_tree *tree;
	const struct json_value *columns; /* NULL: rows */
	const struct json_value *schema, *rows;
	uint64_t length;
};

/* A column that is looked at again and again; good for as long as its table. */
struct gecko_column {
	const struct gecko_table *table;
	const struct json_value *values; /* NULL: rows, at this place in each */
	uint64_t place;
};

/* The thread's own table, or, where it has none, the one that is shared by all (NULL: none is). */
struct gecko_table gecko_table(const struct json_tree *tree, const struct json_value *shared, const struct json_value *thread,
                               const char *name);
struct gecko_column gecko_column(const struct gecko_table *table, const char *name);
/* row: of a table of rows, the one with this index. NULL: there is no such value. */
const struct json_value *gecko_cell(const struct gecko_column *column, const struct json_value *row, uint64_t index);

#endif
