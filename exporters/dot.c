/* SPDX-License-Identifier: Apache-2.0 */
/* The call graph in Graphviz' language: a node a function, an edge a call, both with their share of the whole. What has a small share is left
 * out, since neither a reader nor dot copes with thousands of nodes; the graph's label says how much that is, and what was lost in sampling. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "exporters/facts.h"
#include "exporters/formats.h"

#define NODE_MIN 0.005 /* of the whole */
#define EDGE_MIN 0.001

/* So many are laid out in a few seconds, with nslimit; the largest stay. */
enum { NODES_MAX = 300, EDGES_MAX = 900, NAME_MAX_CHARS = 4096 };

struct dot {
	const struct callgraph *graph;
	struct writer *to;
	bool *shown;             /* of each function */
	uint32_t *nodes, *edges; /* shown ones, the largest first */
	uint32_t node_count, edge_count;
	uint32_t nodes_small, nodes_more; /* left out: under the bound; beyond the count */
	uint32_t edges_small, edges_more; /* of the edges between shown nodes */
	double left_out_s;                /* self times of nodes that are left out */
};

static double share_of(const struct dot *d, double seconds)
{
	return d->graph->sampled_s > 0 && seconds > 0 ? fmin(seconds / d->graph->sampled_s, 1) : 0;
}

/* The name of a node in a quoted string: what means something to dot there, or in XML, is escaped. */
static void put_quoted(struct dot *d, uint32_t number, bool last_part)
{
	size_t bytes, chars = 0;
	const char *text = text_set_get(&d->graph->texts, number, &bytes);
	const char *slash = last_part ? memrchr(text, '/', bytes) : NULL;

	if (slash) {
		bytes -= (size_t)(slash - text) + 1;
		text = slash + 1;
	}
	while (bytes > 0) {
		uint32_t c;
		size_t length = utf8_next(text, bytes, &c);

		if (chars++ == NAME_MAX_CHARS) {
			writer_puts(d->to, "\u2026");
			return;
		}
		if (c == '"' || c == '\\')
			writer_printf(d->to, "\\%c", (char)c);
		else if (c == '&') /* dot knows HTML's entities */
			writer_puts(d->to, "&amp;");
		else if (utf8_is_unsafe(c))
			writer_putc(d->to, ' ');
		else if (c == 0xfffd || c == 0xfffe || c == 0xffff) /* the latter two are not allowed in XML */
			writer_puts(d->to, "\ufffd");
		else
			writer_add(d->to, text, length);
		text += length;
		bytes -= length;
	}
}

static void put_time(struct dot *d, double value)
{
	char text[32];

	if (d->graph->is_time && value < 1e9) {
		facts_time_text(text, sizeof(text), value > 0 ? (uint64_t)llround(value * (double)NS_PER_S) : 0);
		writer_puts(d->to, text);
	} else if (value >= 0 && value < 1e15 && value == floor(value)) {
		facts_count_text(text, sizeof(text), (uint64_t)value);
		writer_printf(d->to, "%s %s", text, d->graph->unit);
	} else {
		writer_printf(d->to, "%.6g %s", value, d->graph->unit);
	}
}

static void put_percent(struct dot *d, double share)
{
	writer_printf(d->to, share < 0.01 ? "%.2f %%" : "%.1f %%", 100 * share);
}

/* From the colour of paper over orange to red: each step is darker than the one before, so it shows in print without colour, and black text can
 * be read on the darkest. Small shares are far more frequent than large ones, hence the root. */
static void put_color(struct dot *d, double share)
{
	static const unsigned char ramp[3][3] = {{0xff, 0xfa, 0xf0}, {0xfd, 0xbf, 0x8a}, {0xee, 0x6a, 0x50}};
	double at = 2 * sqrt(share), part = at - floor(at);
	size_t step = (size_t)at;

	if (step >= 2) {
		step = 1;
		part = 1;
	}
	writer_putc(d->to, '#');
	for (size_t i = 0; i < 3; i++) {
		double value = ramp[step][i] + part * (ramp[step + 1][i] - ramp[step][i]);

		writer_printf(d->to, "%02x", (unsigned)lround(value));
	}
}

static void put_place(struct dot *d, const struct callgraph_function *f, bool last_part)
{
	put_quoted(d, f->file, last_part);
	if (f->line > 0)
		writer_printf(d->to, ":%" PRIu32, f->line);
}

static void put_node(struct dot *d, uint32_t index)
{
	const struct callgraph_function *f = &d->graph->functions[index];
	double total = share_of(d, f->sums.total_s), self = share_of(d, f->sums.self_s);
	size_t file_bytes;

	text_set_get(&d->graph->texts, f->file, &file_bytes);
	writer_printf(d->to, "\tn%" PRIu32 " [label=\"", index);
	put_quoted(d, f->name, false);
	writer_puts(d->to, "\\n");
	if (file_bytes > 0) {
		put_place(d, f, true);
		writer_puts(d->to, "\\n");
	}
	put_percent(d, total);
	writer_puts(d->to, " (");
	put_time(d, f->sums.total_s);
	writer_puts(d->to, ")\\nself ");
	put_percent(d, self);
	writer_puts(d->to, " (");
	put_time(d, f->sums.self_s);
	writer_puts(d->to, ")\", tooltip=\"");
	put_quoted(d, f->name, false);
	if (file_bytes > 0) {
		writer_puts(d->to, " (");
		put_place(d, f, false);
		writer_putc(d->to, ')');
	}
	writer_printf(d->to, "\", fontsize=%u, fillcolor=\"", 10 + (unsigned)lround(14 * sqrt(self)));
	put_color(d, total);
	writer_puts(d->to, "\"];\n");
}

static void put_edge(struct dot *d, uint32_t index)
{
	const struct callgraph_edge *edge = &d->graph->edges[index];
	double share = share_of(d, edge->sums.total_s);

	writer_printf(d->to, "\tn%" PRIu32 " -> n%" PRIu32 " [label=\"", edge->caller, edge->callee);
	put_percent(d, share);
	writer_puts(d->to, "\\n");
	put_time(d, edge->sums.total_s);
	writer_printf(d->to, "\", penwidth=%.2f];\n", 0.5 + 4 * share);
}

static int compare_nodes(const void *left, const void *right, void *context)
{
	const struct dot *d = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	double x = d->graph->functions[a].sums.total_s, y = d->graph->functions[b].sums.total_s;

	return x != y ? (x < y ? 1 : -1) : (a > b) - (a < b);
}

static int compare_edges(const void *left, const void *right, void *context)
{
	const struct dot *d = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	double x = d->graph->edges[a].sums.total_s, y = d->graph->edges[b].sums.total_s;

	return x != y ? (x < y ? 1 : -1) : (a > b) - (a < b);
}

static void choose_nodes(struct dot *d)
{
	const struct callgraph *graph = d->graph;
	uint32_t count = 0;

	for (uint32_t i = 0; i < graph->function_count; i++) {
		if (!graph->functions[i].has_sums)
			continue;
		if (graph->sampled_s > 0 && share_of(d, graph->functions[i].sums.total_s) < NODE_MIN) {
			d->nodes_small++;
			d->left_out_s += graph->functions[i].sums.self_s;
		} else {
			d->nodes[count++] = i;
		}
	}
	qsort_r(d->nodes, count, sizeof(*d->nodes), compare_nodes, d);
	d->node_count = count < NODES_MAX ? count : NODES_MAX;
	d->nodes_more = count - d->node_count;
	for (uint32_t i = 0; i < count; i++) {
		d->shown[d->nodes[i]] = i < d->node_count;
		if (i >= d->node_count)
			d->left_out_s += graph->functions[d->nodes[i]].sums.self_s;
	}
}

static void choose_edges(struct dot *d)
{
	const struct callgraph *graph = d->graph;
	uint32_t count = 0;

	for (uint32_t i = 0; i < graph->edge_count; i++) {
		if (!d->shown[graph->edges[i].caller] || !d->shown[graph->edges[i].callee])
			continue;
		if (graph->sampled_s > 0 && share_of(d, graph->edges[i].sums.total_s) < EDGE_MIN)
			d->edges_small++;
		else
			d->edges[count++] = i;
	}
	qsort_r(d->edges, count, sizeof(*d->edges), compare_edges, d);
	d->edge_count = count < EDGES_MAX ? count : EDGES_MAX;
	d->edges_more = count - d->edge_count;
}

/* How many of these are not in the graph: those with less than the share `least`, and those behind the `most` largest. */
static void put_count_left_out(struct dot *d, const char *what, uint32_t small, double least, uint32_t more, int most)
{
	char count[32];

	facts_count_text(count, sizeof(count), small);
	writer_printf(d->to, "left out: %s %s under %g %%", count, what, 100 * least);
	facts_count_text(count, sizeof(count), more);
	if (more)
		writer_printf(d->to, " and %s beyond the %d largest", count, most);
}

static void put_left_out(struct dot *d)
{
	if (d->nodes_small || d->nodes_more) {
		put_count_left_out(d, "functions", d->nodes_small, NODE_MIN, d->nodes_more, NODES_MAX);
		writer_puts(d->to, ", with their calls; self time of these: ");
		put_percent(d, share_of(d, d->left_out_s));
		writer_puts(d->to, "\\l");
	}
	if (d->edges_small || d->edges_more) {
		put_count_left_out(d, "calls between the others", d->edges_small, EDGE_MIN, d->edges_more, EDGES_MAX);
		writer_puts(d->to, "\\l");
	}
}

/* Facts are safe to print already. */
static void put_facts(struct dot *d)
{
	const struct buf *facts = &d->graph->facts;

	for (size_t i = 0; i < facts->bytes; i++) {
		char c = facts->data[i];

		if (c == '\n')
			writer_puts(d->to, "\\l");
		else if (c == '"' || c == '\\')
			writer_printf(d->to, "\\%c", c);
		else if (c == '&')
			writer_puts(d->to, "&amp;");
		else
			writer_putc(d->to, c);
	}
}

static void put_graph(struct dot *d)
{
	writer_puts(d->to,
	            "digraph \"sampled\" {\n"
	            "\tcharset=\"UTF-8\";\n"
	            "\tgraph [fontname=\"Helvetica\", fontsize=11, labelloc=b, labeljust=l, ranksep=0.4, nodesep=0.2,\n"
	            "\t\tnslimit=2, nslimit1=2];\n" /* dense graphs take seconds, not minutes */
	            "\tnode [shape=box, style=filled, fontname=\"Helvetica\", color=\"#606060\"];\n"
	            "\tedge [fontname=\"Helvetica\", fontsize=9, color=\"#404040\"];\n"
	            "\tlabel=\"call graph of ");
	put_time(d, d->graph->sampled_s);
	writer_puts(d->to, d->graph->from_samples ? ", sampled\\l" : "\\l");
	put_left_out(d);
	put_facts(d);
	writer_puts(d->to, "\";\n");
	for (uint32_t i = 0; i < d->node_count && !d->to->err; i++)
		put_node(d, d->nodes[i]);
	for (uint32_t i = 0; i < d->edge_count && !d->to->err; i++)
		put_edge(d, d->edges[i]);
	writer_puts(d->to, "}\n");
}

int dot_write(const struct callgraph *graph, const struct export_options *options, struct writer *to)
{
	struct dot d = {.graph = graph, .to = to};

	(void)options;
	d.shown = calloc(graph->function_count + (size_t)1, sizeof(*d.shown));
	d.nodes = calloc(graph->function_count + (size_t)1, sizeof(*d.nodes));
	d.edges = calloc(graph->edge_count + (size_t)1, sizeof(*d.edges));
	if (d.shown && d.nodes && d.edges) {
		choose_nodes(&d);
		choose_edges(&d);
		put_graph(&d);
	} else if (!to->err) {
		to->err = -ENOMEM;
	}
	free(d.shown);
	free(d.nodes);
	free(d.edges);
	return to->err;
}
