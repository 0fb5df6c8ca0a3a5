/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/functions.h"

#include <errno.h>
#include <stdlib.h>

#include "exporters/walk.h"

/* Adds one thread. open[symbol]: how many frames of it are on the path from the root to here. */
static int add_tree(struct function *functions, uint32_t *open, const struct thread_tree *tree)
{
	uint64_t *totals = profile_totals(tree);
	uint32_t at = 0, next, left;

	if (!totals)
		return -ENOMEM;
	while ((next = walk_next(tree, at, &left)) != 0) {
		const struct node *node = &tree->nodes[next];
		struct function *function = &functions[node->symbol];

		for (; left > 0; left--) {
			open[tree->nodes[at].symbol]--;
			at = tree->nodes[at].parent;
		}
		for (size_t v = 0; v < VALUE_COUNT; v++) {
			function->self[v] += node->self[v];
			if (open[node->symbol] == 0)
				function->total[v] += totals[(size_t)next * VALUE_COUNT + v];
		}
		open[node->symbol]++;
		at = next;
	}
	for (; at; at = tree->nodes[at].parent)
		open[tree->nodes[at].symbol]--;
	free(totals);
	return 0;
}

static int compare(const void *left, const void *right, void *context)
{
	const struct function *a = left, *b = right;
	const struct ranking *ranking = context;
	uint64_t a_self = ranking_amount(ranking, a->self), b_self = ranking_amount(ranking, b->self);
	uint64_t a_total = ranking_amount(ranking, a->total), b_total = ranking_amount(ranking, b->total);

	if (a_self != b_self)
		return a_self < b_self ? 1 : -1;
	if (a_total != b_total)
		return a_total < b_total ? 1 : -1;
	return (a->symbol > b->symbol) - (a->symbol < b->symbol);
}

int functions_make(struct function **ret_functions, uint32_t *ret_count, const struct profile *profile,
                   enum value_index by)
{
	return functions_rank(ret_functions, ret_count, profile, &(struct ranking){.by = by});
}

int functions_rank(struct function **ret_functions, uint32_t *ret_count, const struct profile *profile,
                   const struct ranking *ranking)
{
	struct function *functions = calloc(profile->symbol_count + (size_t)1, sizeof(*functions));
	uint32_t *open = calloc(profile->symbol_count + (size_t)1, sizeof(*open)), count = 0;
	int err = functions && open ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < profile->thread_count && !err; i++)
		err = add_tree(functions, open, &profile->threads[i]);
	free(open);
	if (err) {
		free(functions);
		return err;
	}
	for (uint32_t i = 0; i < profile->symbol_count; i++) {
		functions[i].symbol = i;
		if (functions[i].total[VALUE_SAMPLES] > 0 || functions[i].total[ranking->by] > 0)
			functions[count++] = functions[i];
	}
	qsort_r(functions, count, sizeof(*functions), compare, (void *)ranking);
	*ret_functions = functions;
	*ret_count = count;
	return 0;
}
