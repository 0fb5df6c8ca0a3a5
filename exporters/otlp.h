/* SPDX-License-Identifier: Apache-2.0 */
/* An OTLP file in the making: what its writer, its attributes and its stacks share. */
#ifndef SAMPLED_EXPORTERS_OTLP_H
#define SAMPLED_EXPORTERS_OTLP_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/profile.h"
#include "base/buf.h"
#include "exporters/facts.h"
#include "exporters/intern.h"
#include "exporters/label.h"
#include "exporters/stacktables.h"
#include "exporters/writer.h"

struct otlp {
	const struct profile *profile;
	struct labels labels; /* of the resources */
	struct stack_tables tables;
	struct value_column columns[VALUE_COUNT]; /* the weight first */
	unsigned column_count;
	uint32_t wall, nanoseconds; /* strings */
	struct facts facts;
	struct pair_set stacks;        /* trie of (parent, location); 0 is the root, which is no stack */
	uint32_t *stack_numbers;       /* by trie node: in the stack table, 0: no sample has it */
	uint32_t **node_stacks;        /* by thread, by node: the trie's, and then the stack table's number */
	struct text_set attributes;    /* encoded KeyValueAndUnit, but for the zero value */
	uint32_t *build_ids;           /* by mapping of the tables: the attribute's number; 0: it has none */
	struct buf *thread_attributes; /* by thread: uint32_t, packed */
	struct buf scope, message, part, inner, text;
	struct writer *to; /* NULL: only counting */
	uint64_t bytes;    /* counted */
	int err;
};

/* All of these: an error goes into otlp->err, or into the buffers' own. */

/* The attributes of a thread into the dictionary, their numbers into thread_attributes. */
void otlp_name_thread(struct otlp *otlp, uint32_t thread);
/* The process as the fields of a resource, appended. */
void otlp_make_resource(struct otlp *otlp, uint32_t process, struct buf *to);
/* Into otlp->scope: where everything stands that has no place of its own, the facts and losses of sampling, in numbers and words. */
void otlp_make_scope(struct otlp *otlp);

/* An attribute of the dictionary with a text: its number there. */
uint32_t otlp_text_attribute(struct otlp *otlp, const char *key, const char *text);

/* Finds the stacks that samples have and numbers them; names the threads on the way. */
void otlp_find_stacks(struct otlp *otlp);

#endif
