/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/history_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "aggregator/tree.h"

enum { FIRST_NODES = 8 };

int call_tree_init(struct call_tree *tree, struct budget *budget)
{
	struct call_node *nodes = calloc(FIRST_NODES, sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	*tree = (struct call_tree){.nodes = nodes, .count = 1, .room = FIRST_NODES};
	budget_charge(budget, call_tree_bytes(tree));
	return 0;
}

static void unref(struct symbols *symbols, const struct call_node *node)
{
	if (node->parent)
		symbols_unref(symbols, node->symbol);
}

void call_tree_release(struct call_tree *tree, struct symbols *symbols)
{
	for (uint32_t i = 1; i < tree->count; i++)
		unref(symbols, &tree->nodes[i]);
	budget_give(symbols->budget, call_tree_bytes(tree));
	free(tree->nodes);
	lookup_release(&tree->children);
	*tree = (struct call_tree){0};
}

static int grow(struct call_tree *tree, struct budget *budget)
{
	uint32_t more = tree->room / 4 + 4;
	struct call_node *nodes;

	if (tree->room > CALL_NONE / 2 || !budget_take(budget, (uint64_t)more * CALL_NODE_BYTES))
		return -ENOMEM;
	nodes = realloc(tree->nodes, ((size_t)tree->room + more) * sizeof(*nodes));
	if (!nodes) {
		budget_give(budget, (uint64_t)more * CALL_NODE_BYTES);
		return -ENOMEM;
	}
	tree->nodes = nodes;
	tree->room += more;
	return 0;
}

uint32_t call_tree_child(struct call_tree *tree, struct symbols *symbols, uint32_t parent, uint32_t symbol,
                         uint32_t line)
{
	uint32_t hash = tree_child_hash(parent, symbol, line), at = hash, child;

	while ((child = lookup_next(&tree->children, hash, &at)) != LOOKUP_NONE) {
		const struct call_node *node = &tree->nodes[child];

		if (node->parent == parent && node->symbol == symbol && node->line == line)
			return child;
	}
	if (symbol == SYMBOL_LOST || (tree->count == tree->room && grow(tree, symbols->budget) != 0))
		return CALL_NONE;
	child = tree->count;
	if (lookup_add(&tree->children, hash, child) != 0)
		return CALL_NONE;
	tree->nodes[child] = (struct call_node){.parent = parent, .symbol = symbol, .line = line};
	if (parent)
		symbols_ref(symbols, symbol);
	tree->count++;
	return child;
}

/* Moves the marked nodes to the front of new arrays and gives them their numbers. */
static int move(const struct call_tree *from, struct call_tree *to, uint32_t *marks)
{
	for (uint32_t i = 0; i < from->count; i++) {
		struct call_node node = from->nodes[i];

		if (!marks[i] && i > 0)
			continue;
		node.parent = i > 0 ? marks[node.parent] : 0;
		if (i > 0 && lookup_add(&to->children, tree_child_hash(node.parent, node.symbol, node.line), to->count))
			return -ENOMEM;
		to->nodes[to->count] = node;
		marks[i] = to->count++;
	}
	return 0;
}

int call_tree_compact(struct call_tree *tree, struct symbols *symbols, uint32_t *marks)
{
	struct call_tree to = {0};
	uint32_t kept = 1;

	for (uint32_t i = tree->count; i-- > 1;) {
		if (!marks[i])
			continue;
		marks[i] = CALL_NONE; /* its own number comes below, and may be 0 nowhere but at the root */
		marks[tree->nodes[i].parent] = CALL_NONE;
		kept++;
	}
	to.room = kept + 4;
	to.nodes = calloc(to.room, sizeof(*to.nodes));
	if (!to.nodes || move(tree, &to, marks)) {
		free(to.nodes);
		lookup_release(&to.children);
		return -ENOMEM;
	}
	for (uint32_t i = 1; i < tree->count; i++)
		if (!marks[i])
			unref(symbols, &tree->nodes[i]);
	budget_give(symbols->budget, call_tree_bytes(tree));
	free(tree->nodes);
	lookup_release(&tree->children);
	*tree = to;
	budget_charge(symbols->budget, call_tree_bytes(tree));
	return 0;
}
