/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/tree.h"

#include <errno.h>
#include <stdlib.h>

/* What a node costs: itself and its entry in the table of children. */
enum { NODE_COST_BYTES = sizeof(struct node) + LOOKUP_ENTRY_BYTES, FIRST_NODES = 8 };

int tree_init(struct tree *tree, struct budget *budget)
{
	struct node *nodes = calloc(FIRST_NODES, sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	budget_charge(budget, FIRST_NODES * NODE_COST_BYTES);
	*tree = (struct tree){.nodes = nodes, .count = 1, .room = FIRST_NODES};
	return 0;
}

void tree_release(struct tree *tree, struct symbols *symbols)
{
	for (uint32_t i = 1; i < tree->count; i++)
		symbols_unref(symbols, tree->nodes[i].symbol);
	budget_give(symbols->budget, (uint64_t)tree->room * NODE_COST_BYTES);
	free(tree->nodes);
	lookup_release(&tree->children);
	*tree = (struct tree){0};
}

/* Half as large again: a large array grows in place (mremap), so what counts is how little of it lies unused. */
static int grow(struct tree *tree, struct budget *budget)
{
	uint32_t more = tree->room / 2;
	struct node *nodes;

	if (tree->room > NODE_NONE / 2 || !budget_take(budget, (uint64_t)more * NODE_COST_BYTES))
		return -ENOMEM;
	nodes = realloc(tree->nodes, ((size_t)tree->room + more) * sizeof(*nodes));
	if (!nodes) {
		budget_give(budget, (uint64_t)more * NODE_COST_BYTES);
		return -ENOMEM;
	}
	tree->nodes = nodes;
	tree->room += more;
	return 0;
}

uint32_t tree_child(struct tree *tree, struct symbols *symbols, uint32_t parent, uint32_t symbol, uint32_t line)
{
	uint32_t hash = tree_child_hash(parent, symbol, line);
	uint32_t at = hash;
	uint32_t child;

	while ((child = lookup_next(&tree->children, hash, &at)) != LOOKUP_NONE) {
		const struct node *node = &tree->nodes[child];

		if (node->parent == parent && node->symbol == symbol && node->line == line)
			return child;
	}
	if (symbol == SYMBOL_LOST || (tree->count == tree->room && grow(tree, symbols->budget) != 0))
		return NODE_NONE;
	child = tree->count;
	if (lookup_add(&tree->children, hash, child) != 0)
		return NODE_NONE;
	tree->nodes[child] = (struct node){
		.parent = parent,
		.sibling = tree->nodes[parent].child,
		.symbol = symbol,
		.line = line,
	};
	tree->nodes[parent].child = child;
	symbols_ref(symbols, symbol);
	tree->count++;
	return child;
}

uint64_t tree_merge(struct tree *tree, struct symbols *symbols, const struct tree *from)
{
	uint32_t *target = malloc(from->count * sizeof(*target)); /* where each node of `from` went */
	uint64_t lost = 0;

	for (uint32_t i = 0; i < from->count; i++) {
		const struct node *node = &from->nodes[i];
		uint32_t to = target ? 0 : NODE_NONE;

		if (i > 0 && target) {
			to = target[node->parent];
			if (to != NODE_NONE)
				to = tree_child(tree, symbols, to, node->symbol, node->line);
		}
		if (target)
			target[i] = to;
		if (to == NODE_NONE) {
			lost += node->self[VALUE_SAMPLES];
			continue;
		}
		for (int v = 0; v < VALUE_COUNT; v++)
			tree->nodes[to].self[v] += node->self[v];
	}
	free(target);
	return lost;
}
