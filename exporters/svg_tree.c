/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/svg_tree.h"

#include <errno.h>
#include <stdlib.h>

/* The child of `parent` with this key; INTERN_FAILED: no memory. */
static uint32_t child_of(struct svg_tree *t, uint32_t parent, uint32_t key)
{
	uint32_t node;

	if (t->count == t->room) {
		uint32_t room = t->room ? 2 * t->room : 1024;
		struct svg_node *larger = room < INTERN_FAILED / 2 ? realloc(t->nodes, room * sizeof(*larger)) : NULL;

		if (!larger)
			return INTERN_FAILED;
		t->nodes = larger;
		t->room = room;
	}
	node = pair_set_add(&t->keys, parent, key);
	if (node == t->count) {
		t->nodes[t->count++] =
			(struct svg_node){.parent = parent, .key = key, .depth = node ? t->nodes[parent].depth + 1 : 0};
	}
	return node;
}

static void add_self(const struct svg_tree *t, struct svg_node *to, const struct node *node)
{
	const struct comparison *c = t->comparison;

	for (int side = c ? BEFORE : AFTER; side <= AFTER; side++) {
		to->weight[side] += node->self[c ? c->weight[side] : profile_weight(t->profile)];
		to->samples[side] += node->self[c ? c->samples[side] : VALUE_SAMPLES];
	}
}

static int add_tree(struct svg_tree *t, uint32_t index)
{
	const struct thread_tree *tree = &t->profile->threads[index];
	uint32_t *at = calloc(tree->node_count, sizeof(*at));
	int err = at ? 0 : -ENOMEM;

	for (uint32_t n = 0; n < tree->node_count && !err; n++) { /* parents come first */
		const struct node *node = &tree->nodes[n];

		if (n)
			at[n] = child_of(t, at[node->parent], node->symbol);
		else
			at[n] = t->profile->thread_count == 1 ? 0 : child_of(t, 0, SVG_THREAD | index);
		if (at[n] == INTERN_FAILED)
			err = -ENOMEM;
		else
			add_self(t, &t->nodes[at[n]], node);
	}
	free(at);
	return err;
}

int svg_tree_make(struct svg_tree *ret_tree, const struct profile *profile, const struct comparison *comparison)
{
	struct svg_tree *t = ret_tree;
	int err;

	*t = (struct svg_tree){.profile = profile, .comparison = comparison};
	err = child_of(t, 0, SVG_ROOT) == INTERN_FAILED ? -ENOMEM : 0;
	for (uint32_t i = 0; i < profile->thread_count && !err; i++)
		err = add_tree(t, i);
	for (uint32_t n = t->count; n > 1 && !err; n--) {
		const struct svg_node *node = &t->nodes[n - 1];
		struct svg_node *above = &t->nodes[node->parent];

		for (int side = 0; side < SIDES; side++) {
			above->weight[side] += node->weight[side];
			above->samples[side] += node->samples[side];
		}
	}
	if (!err) {
		t->order = calloc(t->count, sizeof(*t->order));
		err = t->order ? 0 : -ENOMEM;
	}
	return err;
}

void svg_tree_release(struct svg_tree *t)
{
	pair_set_release(&t->keys);
	free(t->nodes);
	free(t->order);
	t->nodes = NULL;
	t->order = NULL;
}

struct sorting {
	const struct svg_node *nodes;
	enum side side;
};

static int compare(const void *left, const void *right, void *context)
{
	const struct sorting *s = context;
	const struct svg_node *a = &s->nodes[*(const uint32_t *)left], *b = &s->nodes[*(const uint32_t *)right];

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	if (a->weight[s->side] != b->weight[s->side])
		return a->weight[s->side] > b->weight[s->side] ? -1 : 1;
	return (a->key > b->key) - (a->key < b->key);
}

/* The children order[from … to) of one node that is drawn. */
static void place_children(struct svg_tree *t, enum side side, double least, uint32_t from, uint32_t to,
                           struct svg_left_out *out)
{
	const struct svg_node *parent = &t->nodes[t->nodes[t->order[from]].parent];
	double all = (double)t->nodes[0].weight[side], x = parent->x[side];
	struct svg_merged *merged = NULL;

	for (uint32_t i = from; i < to; i++) {
		struct svg_node *node = &t->nodes[t->order[i]];
		double width = (double)node->weight[side] / all;

		if (node->weight[side] == 0)
			break; /* only in the other profile, as are all that follow */
		if (node->depth >= SVG_ROWS_MAX)
			break; /* counted by the caller */
		if (node->depth >= out->rows)
			out->rows = node->depth + 1;
		if (width >= least) {
			node->x[side] = x;
			node->width[side] = width;
			x += width;
			continue;
		}
		if (!merged) {
			merged = &out->merged[out->merged_count++];
			*merged = (struct svg_merged){.parent = node->parent, .x = x};
		}
		merged->frames++;
		merged->weight += node->weight[side];
		merged->samples += node->samples[side];
		merged->width += width;
		out->merged_frames++;
	}
}

int svg_tree_place(struct svg_tree *t, enum side side, double least, struct svg_left_out *ret_left_out)
{
	struct sorting sorting = {.nodes = t->nodes, .side = side};
	uint32_t count = t->count - 1;

	*ret_left_out = (struct svg_left_out){.rows = 1, .merged = calloc(t->count, sizeof(struct svg_merged))};
	if (!ret_left_out->merged)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		t->order[i] = i + 1;
	for (uint32_t n = 0; n < t->count; n++) {
		t->nodes[n].x[side] = t->nodes[n].width[side] = 0;
		ret_left_out->cut_frames += t->nodes[n].depth >= SVG_ROWS_MAX && t->nodes[n].weight[side] > 0;
	}
	t->nodes[0].width[side] = 1;
	if (t->nodes[0].weight[side] == 0)
		return 0;
	qsort_r(t->order, count, sizeof(*t->order), compare, &sorting);
	for (uint32_t i = 0, same; i < count; i += same) {
		uint32_t parent = t->nodes[t->order[i]].parent;

		for (same = 1; i + same < count && t->nodes[t->order[i + same]].parent == parent;)
			same++;
		if (t->nodes[parent].width[side] > 0)
			place_children(t, side, least, i, i + same, ret_left_out);
	}
	return 0;
}
