/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of an OTLP file: those that samples have, of all threads together, each once. */
#include "exporters/otlp.h"

#include <errno.h>
#include <stdlib.h>

/* Marks in `stacks` the nodes that a sample stands in or below. False: there is no sample at all. */
static bool mark_needed(const struct otlp *o, const struct thread_tree *tree, uint32_t *stacks)
{
	for (uint32_t n = tree->node_count - 1; n > 0; n--) {
		if (!stacks[n])
			stacks[n] = node_has_values(&tree->nodes[n], o->columns, o->column_count);
		if (stacks[n])
			stacks[tree->nodes[n].parent] = 1;
	}
	return stacks[0] || node_has_values(&tree->nodes[0], o->columns, o->column_count);
}

static void find_thread_stacks(struct otlp *o, uint32_t thread)
{
	const struct thread_tree *tree = &o->profile->threads[thread];
	uint32_t *stacks = calloc(tree->node_count, sizeof(*stacks));

	o->node_stacks[thread] = stacks;
	if (!stacks) {
		o->err = -ENOMEM;
		return;
	}
	if (!mark_needed(o, tree, stacks))
		return;
	otlp_name_thread(o, thread);
	stacks[0] = 0; /* the trie's root */
	for (uint32_t n = 1; n < tree->node_count && !o->err; n++) {
		const struct node *node = &tree->nodes[n];

		if (!stacks[n])
			continue;
		stacks[n] = pair_set_add(&o->stacks, stacks[node->parent],
		                         stack_tables_location(&o->tables, node->symbol, node->line));
		if (stacks[n] == INTERN_FAILED)
			o->err = -ENOMEM;
	}
}

/* Stacks that a sample has are numbered, from 1; the others are only on the way to these. */
static void number_stacks(struct otlp *o)
{
	uint32_t count = 0;

	o->stack_numbers = calloc(o->stacks.count, sizeof(*o->stack_numbers));
	if (!o->stack_numbers) {
		o->err = -ENOMEM;
		return;
	}
	for (uint32_t t = 0; t < o->profile->thread_count; t++)
		for (uint32_t n = 1; n < o->profile->threads[t].node_count; n++)
			if (node_has_values(&o->profile->threads[t].nodes[n], o->columns, o->column_count))
				o->stack_numbers[o->node_stacks[t][n]] = 1;
	for (uint32_t i = 1; i < o->stacks.count; i++)
		if (o->stack_numbers[i])
			o->stack_numbers[i] = ++count;
	for (uint32_t t = 0; t < o->profile->thread_count; t++)
		for (uint32_t n = 1; n < o->profile->threads[t].node_count; n++)
			o->node_stacks[t][n] = o->stack_numbers[o->node_stacks[t][n]];
}

void otlp_find_stacks(struct otlp *o)
{
	for (uint32_t t = 0; t < o->profile->thread_count && !o->err; t++)
		find_thread_stacks(o, t);
	if (!o->err)
		number_stacks(o);
}
