/* SPDX-License-Identifier: Apache-2.0 */
/* The heat map: our page (exporters/heatmap/, joined by exporters/flamegraph/bundle.sh at build time) around a profile folded by source line.
 *
 * A spot is a file or a line of one, with what samples spent in it: self, where they ended there, and total, where their stack goes through
 * it, once a sample however often it does (recursion). What an instruction (--opcodes) has is its line's, and counted by opcode besides. Edges say which line called which, once a sample, too. Trees are walked in
 * pre-order with a count, for each spot and edge, of how often the stack at hand holds it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/formats.h"
#include "exporters/heatmap_data.h"
#include "exporters/walk.h"

/* The page, in the assembler file; the data goes between the two parts. */
extern const char heatmap_page[];
extern const uint32_t heatmap_page_bytes;

static const char data_mark[] = "@DATA@";

/* The spot of a number that a set gave, made when it is new. */
static struct spot *spot_of(struct heatmap *h, struct buf *spots, uint32_t number)
{
	static const struct spot none;

	if (number != INTERN_FAILED && number == spots->bytes / sizeof(none))
		buf_add(spots, &none, sizeof(none));
	if (number == INTERN_FAILED || spots->err) {
		h->err = -ENOMEM;
		return NULL;
	}
	return heatmap_spot(spots, number);
}

static uint32_t file_of(struct heatmap *h, const char *name, uint32_t process, bool is_source)
{
	uint32_t number = text_set_add(&h->file_names, name, strlen(name));
	struct spot *spot = spot_of(h, &h->file_spots, number);

	if (!spot)
		return INTERN_FAILED;
	if (is_source && !spot->is_source) {
		spot->is_source = true;
		spot->process = process;
	}
	return number;
}

/* A frame's line; what has no file has a place of its own, by its name. */
static uint32_t line_of(struct heatmap *h, const struct thread_tree *tree, const struct node *node)
{
	const struct symbol *symbol = node ? &h->profile->symbols[node->symbol] : NULL;
	const char *name = symbol ? symbol->name : "(no frame)";
	uint32_t file, number, name_number, before = h->lines.count;
	struct spot *spot;

	file = symbol && symbol->file[0] ? file_of(h, symbol->file, tree->process, symbol->kind == FRAME_PYTHON)
	                                 : file_of(h, name, tree->process, false);
	if (file == INTERN_FAILED)
		return INTERN_FAILED;
	number = pair_set_add(&h->lines, file, node ? node->line : 0);
	spot = spot_of(h, &h->line_spots, number);
	if (spot && h->lines.count > before) {
		name_number = text_set_add(&h->names, name, strlen(name));
		if (name_number == INTERN_FAILED)
			h->err = -ENOMEM;
		spot->name = name_number;
	}
	return spot ? number : INTERN_FAILED;
}

static void add_values(const struct heatmap *h, uint64_t to[MEASURES], const uint64_t *values)
{
	to[MEASURE_SAMPLES] += values[VALUE_SAMPLES];
	to[MEASURE_WEIGHT] += values[h->weight];
	if (h->has_cpu)
		to[MEASURE_CPU] += values[VALUE_CPU];
	if (h->has_gil)
		to[MEASURE_GIL] += values[VALUE_GIL];
}

/* A tree being walked. */
struct walk {
	const struct thread_tree *tree;
	const uint64_t *totals;
	uint32_t *lines, *edges; /* of each node; the root's edge, and those of the outermost frames, are none */
};

/* Whether a node is the instruction that its caller stood at: <LOAD_ATTR> and such, a leaf but for what that called (<GC>). */
static bool is_opcode(const struct heatmap *h, const struct thread_tree *tree, const struct node *node)
{
	const struct symbol *symbol = &h->profile->symbols[node->symbol];
	const struct symbol *caller = &h->profile->symbols[tree->nodes[node->parent].symbol];
	const char *name = symbol->name;
	size_t bytes = strlen(name);

	if (symbol->kind != FRAME_SPECIAL || node->parent == 0 || caller->kind != FRAME_PYTHON || bytes < 4 ||
	    name[0] != '<' || name[bytes - 1] != '>')
		return false;
	if (strncmp(name, "<opcode ", 8) == 0)
		return true;
	return strcmp(name, "<GC>") != 0 && strspn(name + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == bytes - 2;
}

/* Counts it with the line that it is an instruction of, which the samples end in then. */
static void add_opcode(struct heatmap *h, const struct walk *w, uint32_t n)
{
	const struct node *node = &w->tree->nodes[n];
	const uint64_t *totals = w->totals + (size_t)n * VALUE_COUNT;
	const char *name = h->profile->symbols[node->symbol].name;
	uint32_t line = w->lines[node->parent];
	struct line_cost cost = {.of = line,
	                         .line = text_set_add(&h->names, name, strlen(name)),
	                         .samples = totals[VALUE_SAMPLES],
	                         .weight = totals[h->weight],
	                         .cpu_ns = h->has_cpu ? totals[VALUE_CPU] : 0,
	                         .gil_ns = h->has_gil ? totals[VALUE_GIL] : 0};

	if (cost.line == INTERN_FAILED || line_costs_add(&h->opcodes, &cost) != 0) {
		h->err = -ENOMEM;
		return;
	}
	w->lines[n] = line;
	w->edges[n] = INTERN_FAILED;
	heatmap_spot(&h->line_spots, line)->active++;
	heatmap_spot(&h->file_spots, pair_set_get(&h->lines, line).a)->active++;
	add_values(h, heatmap_spot(&h->line_spots, line)->self, node->self);
	add_values(h, heatmap_spot(&h->file_spots, pair_set_get(&h->lines, line).a)->self, node->self);
}

static void enter_spot(const struct heatmap *h, struct spot *spot, const uint64_t *totals)
{
	if (spot->active++)
		return;
	add_values(h, spot->total, totals);
}

static void enter(struct heatmap *h, const struct walk *w, uint32_t n)
{
	const struct node *node = &w->tree->nodes[n];
	const uint64_t *totals = w->totals + (size_t)n * VALUE_COUNT;
	uint32_t line, file;
	struct spot *spot;

	if (is_opcode(h, w->tree, node)) {
		add_opcode(h, w, n);
		return;
	}
	line = line_of(h, w->tree, node);
	if (line == INTERN_FAILED)
		return;
	file = pair_set_get(&h->lines, line).a;
	w->lines[n] = line;
	w->edges[n] = INTERN_FAILED;
	add_values(h, heatmap_spot(&h->line_spots, line)->self, node->self);
	add_values(h, heatmap_spot(&h->file_spots, file)->self, node->self);
	enter_spot(h, heatmap_spot(&h->line_spots, line), totals);
	enter_spot(h, heatmap_spot(&h->file_spots, file), totals);
	if (node->parent == 0)
		return;
	w->edges[n] = pair_set_add(&h->edges, w->lines[node->parent], line);
	spot = spot_of(h, &h->edge_spots, w->edges[n]);
	if (spot)
		enter_spot(h, spot, totals);
}

static void leave(const struct heatmap *h, const struct walk *w, uint32_t n)
{
	heatmap_spot(&h->line_spots, w->lines[n])->active--;
	heatmap_spot(&h->file_spots, pair_set_get(&h->lines, w->lines[n]).a)->active--;
	if (w->edges[n] != INTERN_FAILED)
		heatmap_spot(&h->edge_spots, w->edges[n])->active--;
}

/* Samples without a frame. */
static void add_root(struct heatmap *h, const struct thread_tree *tree)
{
	const struct node *root = &tree->nodes[0];
	uint32_t line;

	if (root->self[VALUE_SAMPLES] == 0 && root->self[h->weight] == 0 && !(h->has_cpu && root->self[VALUE_CPU]))
		return;
	line = line_of(h, tree, NULL);
	if (line == INTERN_FAILED)
		return;
	for (int which = 0; which < 2; which++) {
		struct spot *spot = which ? heatmap_spot(&h->file_spots, pair_set_get(&h->lines, line).a)
		                          : heatmap_spot(&h->line_spots, line);

		add_values(h, spot->self, root->self);
		enter_spot(h, spot, root->self);
		spot->active--;
	}
}

static void add_tree(struct heatmap *h, const struct thread_tree *tree)
{
	uint64_t *totals = profile_totals(tree);
	struct walk w = {.tree = tree,
	                 .totals = totals,
	                 .lines = calloc(tree->node_count, sizeof(*w.lines)),
	                 .edges = calloc(tree->node_count, sizeof(*w.edges))};

	if (!totals || !w.lines || !w.edges)
		h->err = -ENOMEM;
	else
		add_root(h, tree);
	for (uint32_t at = 0, next; !h->err; at = next) {
		next = walk_next(tree, at, NULL);
		for (; at && (next == 0 || at != tree->nodes[next].parent); at = tree->nodes[at].parent)
			leave(h, &w, at);
		if (next == 0)
			break;
		enter(h, &w, next);
	}
	free(totals);
	free(w.lines);
	free(w.edges);
}

int heatmap_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	const char *mark = memmem(heatmap_page, heatmap_page_bytes, data_mark, sizeof(data_mark) - 1);
	struct heatmap h = {.profile = profile,
	                    .weight = profile_weight(profile),
	                    .has_cpu = profile_has(profile, VALUE_CPU),
	                    .has_gil = profile_has(profile, VALUE_GIL)};

	if (!mark)
		return writer_fail(to, -EINVAL);
	for (uint32_t i = 0; i < profile->thread_count && !h.err; i++)
		add_tree(&h, &profile->threads[i]);
	if (!h.err) {
		size_t before = (size_t)(mark - heatmap_page), behind = before + sizeof(data_mark) - 1;

		writer_add(to, heatmap_page, before);
		heatmap_write_data(&h, options, to);
		writer_add(to, heatmap_page + behind, heatmap_page_bytes - behind);
	}
	if (h.err)
		writer_fail(to, h.err);
	text_set_release(&h.file_names);
	text_set_release(&h.names);
	pair_set_release(&h.lines);
	pair_set_release(&h.edges);
	line_costs_release(&h.opcodes);
	buf_release(&h.file_spots);
	buf_release(&h.line_spots);
	buf_release(&h.edge_spots);
	return to->err;
}
