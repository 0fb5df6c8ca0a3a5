/* SPDX-License-Identifier: Apache-2.0 */
/* The heat map: our page (exporters/heatmap/, joined by exporters/flamegraph/bundle.sh at build time) around a profile folded by source line.
 *
 * A spot is a file or a line of one, with what samples spent in it: self, where they ended there, and total, where their stack goes through
 * it, once a sample however often it does (recursion). What an instruction (--opcodes) has is its line's, and counted by opcode besides. Edges say which line called which, once a sample, too. Trees are walked in
 * pre-order with a count, for each spot and edge, of how often the stack at hand holds it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "exporters/facts.h"
#include "exporters/formats.h"
#include "exporters/heatmap_sources.h"
#include "exporters/intern.h"
#include "exporters/line_costs.h"
#include "exporters/walk.h"

/* The page, in the assembler file; the data goes between the two parts. */
extern const char heatmap_page[];
extern const uint32_t heatmap_page_bytes;

static const char data_mark[] = "@DATA@";

/* What a place is hot by: samples, their weight, and CPU time, 0 where the kernel did not tell it. */
enum measure { MEASURE_SAMPLES, MEASURE_WEIGHT, MEASURE_CPU, MEASURE_GIL, MEASURES };

struct spot {
	uint64_t self[MEASURES], total[MEASURES];
	uint32_t active;            /* frames of the stack at hand that are here */
	uint32_t name;              /* of a line: its function, a number in names */
	uint32_t process;           /* of a file: one that it was seen in */
	bool is_source;             /* of a file: it may be one of Python's */
};

struct heatmap {
	const struct profile *profile;
	enum value_index weight;
	bool has_cpu, has_gil;
	struct text_set file_names, names;
	struct pair_set lines;                         /* (file, line) */
	struct pair_set edges;                         /* (caller's line, callee's) */
	struct line_costs opcodes;                     /* of a line, by the number of the opcode's name */
	struct buf file_spots, line_spots, edge_spots; /* struct spot each */
	int err;
};

static struct spot *spot_at(const struct buf *spots, uint32_t number)
{
	return (struct spot *)(void *)spots->data + number;
}

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
	return spot_at(spots, number);
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
	spot_at(&h->line_spots, line)->active++;
	spot_at(&h->file_spots, pair_set_get(&h->lines, line).a)->active++;
	add_values(h, spot_at(&h->line_spots, line)->self, node->self);
	add_values(h, spot_at(&h->file_spots, pair_set_get(&h->lines, line).a)->self, node->self);
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
	add_values(h, spot_at(&h->line_spots, line)->self, node->self);
	add_values(h, spot_at(&h->file_spots, file)->self, node->self);
	enter_spot(h, spot_at(&h->line_spots, line), totals);
	enter_spot(h, spot_at(&h->file_spots, file), totals);
	if (node->parent == 0)
		return;
	w->edges[n] = pair_set_add(&h->edges, w->lines[node->parent], line);
	spot = spot_of(h, &h->edge_spots, w->edges[n]);
	if (spot)
		enter_spot(h, spot, totals);
}

static void leave(const struct heatmap *h, const struct walk *w, uint32_t n)
{
	spot_at(&h->line_spots, w->lines[n])->active--;
	spot_at(&h->file_spots, pair_set_get(&h->lines, w->lines[n]).a)->active--;
	if (w->edges[n] != INTERN_FAILED)
		spot_at(&h->edge_spots, w->edges[n])->active--;
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
		struct spot *spot = which ? spot_at(&h->file_spots, pair_set_get(&h->lines, line).a)
		                          : spot_at(&h->line_spots, line);

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

/* --- the data --- */

static void write_facts(const struct profile *profile, struct writer *to)
{
	struct facts facts;

	facts_make(&facts, profile);
	writer_puts(to, ",\n\"facts\":[");
	for (size_t i = 0; i < facts.count; i++) {
		writer_puts(to, i ? ",[" : "[");
		writer_json_string(to, facts.items[i].label);
		writer_putc(to, ',');
		writer_json_string(to, facts.items[i].text);
		writer_printf(to, ",%d]", facts.items[i].weight);
	}
	writer_putc(to, ']');
}

static void write_measures(const uint64_t measures[MEASURES], struct writer *to)
{
	for (int i = 0; i < MEASURES; i++)
		writer_printf(to, ",%" PRIu64, measures[i]);
}

static void write_spot(const struct spot *spot, struct writer *to)
{
	write_measures(spot->self, to);
	write_measures(spot->total, to);
}

static void write_texts(const char *name, const struct text_set *texts, struct writer *to)
{
	writer_printf(to, ",\n\"%s\":[", name);
	for (uint32_t i = 0; i < texts->count && !to->err; i++) {
		writer_puts(to, i ? "," : "");
		writer_json_string(to, text_set_get(texts, i, NULL));
	}
	writer_putc(to, ']');
}

static void write_spots(const struct heatmap *h, struct writer *to)
{
	write_texts("fileNames", &h->file_names, to);
	write_texts("names", &h->names, to);
	/* Each: whether it is Python's, self and total by each measure. */
	writer_puts(to, ",\n\"files\":[");
	for (uint32_t i = 0; i < h->file_names.count; i++) {
		writer_printf(to, "%s%d", i ? "," : "", spot_at(&h->file_spots, i)->is_source);
		write_spot(spot_at(&h->file_spots, i), to);
	}
	/* Each: file, line, function's name, self and total by each measure. */
	writer_puts(to, "],\n\"lines\":[");
	for (uint32_t i = 0; i < h->lines.count; i++) {
		struct pair line = pair_set_get(&h->lines, i);

		writer_printf(to, "%s%" PRIu32 ",%" PRIu32 ",%" PRIu32, i ? "," : "", line.a, line.b,
		              spot_at(&h->line_spots, i)->name);
		write_spot(spot_at(&h->line_spots, i), to);
	}
	/* Each: caller's line, callee's line, each measure. */
	writer_puts(to, "],\n\"edges\":[");
	for (uint32_t i = 0; i < h->edges.count; i++) {
		struct pair edge = pair_set_get(&h->edges, i);
		const struct spot *spot = spot_at(&h->edge_spots, i);

		writer_printf(to, "%s%" PRIu32 ",%" PRIu32, i ? "," : "", edge.a, edge.b);
		write_measures(spot->total, to);
	}
	/* Each: line, name of an opcode, each measure. */
	writer_puts(to, "],\n\"opcodes\":[");
	for (uint32_t i = 0; i < h->opcodes.places.count; i++) {
		const struct line_cost *cost = &h->opcodes.rows[i];

		writer_printf(to, "%s%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, i ? "," : "", cost->of,
		              cost->line, cost->samples, cost->weight, cost->cpu_ns, cost->gil_ns);
	}
	writer_putc(to, ']');
}

static void write_all_sources(struct heatmap *h, const struct source_access *access, struct writer *to)
{
	struct heatmap_file *files = calloc(h->file_names.count + (size_t)1, sizeof(*files));
	uint32_t left_out = 0;
	size_t count = 0;

	if (!files) {
		h->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < h->file_names.count; i++) {
		const struct spot *spot = spot_at(&h->file_spots, i);

		if (spot->is_source)
			files[count++] = (struct heatmap_file){.name = text_set_get(&h->file_names, i, NULL),
			                                       .process = &h->profile->processes[spot->process],
			                                       .total = spot->total[MEASURE_WEIGHT],
			                                       .number = i};
	}
	writer_puts(to, ",\n\"sources\":[");
	if (access)
		left_out = heatmap_write_sources(files, count, access, to);
	writer_printf(to, "],\"sourcesLeftOut\":%" PRIu32, left_out);
	free(files);
}

static void write_data(struct heatmap *h, const struct export_options *options, struct writer *to)
{
	const struct profile *profile = h->profile;

	writer_puts(to, "{\"version\":1,\"title\":");
	writer_json_string(to, options->title                                         ? options->title
	                       : profile->process_count && profile->processes[0].name ? profile->processes[0].name
	                                                                              : "");
	writer_puts(to, ",\"mode\":");
	writer_json_string(to, profile->mode ? profile->mode : "wall");
	writer_printf(to, ",\"startedMs\":%" PRIu64 ",\"processes\":%" PRIu32 ",\"weight\":",
	              profile->wall_start_ns / NS_PER_MS, profile->process_count);
	writer_json_string(to, profile->values[h->weight].name);
	writer_puts(to, ",\"unit\":");
	writer_json_string(to, profile->values[h->weight].unit);
	writer_printf(to, ",\"sums\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", profile_sum(profile, VALUE_SAMPLES),
	              profile_sum(profile, h->weight), h->has_cpu ? profile_sum(profile, VALUE_CPU) : 0,
	              h->has_gil ? profile_sum(profile, VALUE_GIL) : 0);
	write_facts(profile, to);
	write_spots(h, to);
	write_all_sources(h, options->sources, to);
	writer_puts(to, "}");
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
		write_data(&h, options, to);
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
