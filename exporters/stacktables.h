/* SPDX-License-Identifier: Apache-2.0 */
/* What pprof and OTLP files are made of alike: tables of strings, functions and locations that stacks refer to by number, and columns of values.
 * Tables fill as they are asked, in the order of first use, so that nothing is in them which no stack names. */
#ifndef SAMPLED_EXPORTERS_STACKTABLES_H
#define SAMPLED_EXPORTERS_STACKTABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/profile.h"
#include "base/buf.h"
#include "exporters/facts.h"
#include "exporters/intern.h"

struct stack_tables {
	const struct profile *profile;
	struct text_set strings;   /* valid UTF-8; 0 is "" */
	struct pair_set names;     /* (name, file), strings */
	struct pair_set lines;     /* (number of names, first line) */
	struct pair_set functions; /* (number of lines, mapping) */
	struct pair_set locations; /* (function, line), or (STACK_PLACE | mapping, place) */
	struct text_set build_ids;
	struct pair_set
		modules; /* (path, a string; build id, by number); 0: of Python's frames, and of all that say nothing of it */
	struct buf mappings;        /* struct stack_mapping of each module */
	uint32_t *symbol_functions; /* by symbol: function + 1; 0: not asked for yet */
	struct buf scratch;
	int err; /* sticky: -ENOMEM */
};

/* In a location's first number: it is a place in a mapping, and no function is known for it. */
#define STACK_PLACE (UINT32_C(1) << 31)

/* What native code is mapped from. Addresses are offsets in the file, as if it were mapped where it stands in the file. */
struct stack_mapping {
	uint32_t file;            /* a string */
	uint32_t build_id;        /* of build_ids */
	uint64_t from, to;        /* all places lie between these; 0, 0: none are known */
	bool has_functions;       /* of all places in it */
	bool has_files, has_some; /* some function in it has a source file; there is some function */
};

struct stack_function {
	uint32_t name, file; /* strings */
	uint32_t first_line;
	uint32_t mapping;
};

void stack_tables_init(struct stack_tables *tables, const struct profile *profile);
void stack_tables_release(struct stack_tables *tables);

/* Numbers of these contents, from 0; 0 after an error. */
uint32_t stack_tables_string(struct stack_tables *tables, const char *text);
uint32_t stack_tables_location(struct stack_tables *tables, uint32_t symbol, uint32_t line);
/* Of a location, from 0: its mapping. */
uint32_t stack_tables_mapping_of(const struct stack_tables *tables, struct pair location);
struct stack_mapping stack_tables_mapping(const struct stack_tables *tables, uint32_t mapping);
/* What a number stands for. A location is a pair of function and line. */
struct stack_function stack_tables_function(const struct stack_tables *tables, uint32_t function);

/* One of a sample's values. */
struct value_column {
	enum value_index from;
	uint32_t name, unit; /* strings */
};

/* Of our own profiles samples, wall, cpu and gil; of an imported one whatever it has. How many. */
unsigned stack_tables_columns(struct stack_tables *tables, struct value_column ret_columns[VALUE_COUNT]);
/* Whether a node has any of these values, other than 0. */
bool node_has_values(const struct node *node, const struct value_column *columns, unsigned count);
/* A value as the formats' int64. */
int64_t column_value(const struct node *node, const struct value_column *column);

/* The time between two samples of a thread, as asked or else as reached; 1 where nobody knows. */
int64_t sampling_period_ns(const struct profile *profile, const struct facts *facts);

#endif
