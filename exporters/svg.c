/* SPDX-License-Identifier: Apache-2.0 */
/* A flame graph as a picture that stands alone: an icicle, root at the top, as the page shows it at first. No script and nothing from
 * elsewhere; a frame's numbers are in its title, which browsers show under the pointer. Colours are of files, native
 * code has one of its own; in a differential one (options->comparison) of what changed, and there are two, one by the widths of after and one by those of before.
 *
 * What is narrower than a thousandth of the whole is merged into "(other)" beside its siblings; rows are bounded. Both are said. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "exporters/facts.h"
#include "exporters/formats.h"
#include "exporters/svg_style.h"
#include "exporters/svg_tree.h"

enum {
	WIDTH_PX = 1200,
	MARGIN_PX = 10,
	ROW_PX = 18,
	LINE_PX = 16,
	FACT_COLUMNS = 3,
};

static const double least_share = 0.001;
static const double column_px = 6.7; /* of the fixed-width font at 11 px, a little over */

struct picture {
	const struct profile *profile;
	const struct comparison *comparison;
	struct svg_tree tree;
	struct svg_left_out left_out[SIDES];
	struct facts facts; /* of the one profile */
	struct buf text;
	double y; /* where the next thing goes */
	int err;
};

/* --- text --- */

/* A line of text at (x, y), cut to a width. */
static void write_text(struct picture *p, struct writer *to, double x, double y, double room_px, const char *class,
                       const char *text)
{
	p->text.bytes = 0;
	utf8_fit(&p->text, text, room_px > 0 ? (unsigned)(room_px / column_px) : 0, false);
	writer_printf(to, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
	svg_write_xml(to, buf_text(&p->text));
	writer_puts(to, "</text>\n");
	if (p->text.err)
		p->err = p->text.err;
}

static void amount_text(char *to, size_t room, const struct value_type *type, uint64_t value)
{
	char count[32];

	if (strcmp(type->unit, "nanoseconds") == 0) {
		facts_time_text(to, room, value);
		return;
	}
	facts_count_text(count, sizeof(count), value);
	snprintf(to, room, "%s %.40s", count, strcmp(type->unit, "count") == 0 ? type->name : type->unit);
}

/* ", 1,234 samples, 1.23 s, 12.3 %" */
static void write_amounts(const struct picture *p, struct writer *to, enum side side, uint64_t samples, uint64_t weight)
{
	enum value_index by = p->comparison ? p->comparison->weight[side] : profile_weight(p->profile);
	char text[96];

	facts_count_text(text, sizeof(text), samples);
	writer_printf(to, ", %s sample%s", text, samples == 1 ? "" : "s");
	if (by != (p->comparison ? p->comparison->samples[side] : VALUE_SAMPLES)) {
		amount_text(text, sizeof(text), &p->profile->values[by], weight);
		writer_puts(to, ", ");
		svg_write_xml(to, text);
	}
	facts_percent_text(text, sizeof(text), weight, p->tree.nodes[0].weight[side]);
	writer_puts(to, ", ");
	svg_write_xml(to, text); /* "<0.01 %" */
}

static struct change change_of(const struct picture *p, const struct svg_node *node)
{
	const struct svg_node *root = &p->tree.nodes[0];
	struct change change = difference_test(node->samples, root->samples);
	double points = facts_percent(node->weight[AFTER], root->weight[AFTER]) -
	                facts_percent(node->weight[BEFORE], root->weight[BEFORE]);

	change.is_certain &= (points > 0) == (change.points > 0);
	change.points = points;
	return change;
}

/* "name (file:line), 1,234 samples, 1.23 s, 12.3 %" */
static void write_title(const struct picture *p, struct writer *to, enum side side, const struct svg_node *node,
                        const char *name)
{
	const struct symbol *symbol = node->key < SVG_THREAD ? &p->profile->symbols[node->key] : NULL;

	writer_puts(to, "<title>");
	svg_write_xml(to, name);
	if (symbol && symbol->file[0]) {
		writer_puts(to, " (");
		svg_write_xml(to, symbol->file);
		if (symbol->first_line)
			writer_printf(to, ":%" PRIu32, symbol->first_line);
		writer_putc(to, ')');
	}
	if (p->comparison) {
		struct change change = change_of(p, node);

		writer_puts(to, "&#10;before");
		write_amounts(p, to, BEFORE, node->samples[BEFORE], node->weight[BEFORE]);
		writer_puts(to, "&#10;after");
		write_amounts(p, to, AFTER, node->samples[AFTER], node->weight[AFTER]);
		writer_printf(to, "&#10;change %+.2f points, 95 %% interval \u00b1 %.2f%s", change.points,
		              change.within, change.is_certain ? "" : ", within the noise");
	} else {
		write_amounts(p, to, side, node->samples[side], node->weight[side]);
	}
	writer_puts(to, "</title>");
}

static void class_of(const struct picture *p, const struct svg_node *node, char *to, size_t room)
{
	const struct symbol *symbol = node->key < SVG_THREAD ? &p->profile->symbols[node->key] : NULL;

	if (node->depth > 0 && p->comparison) {
		struct change change = change_of(p, node);
		double before = facts_percent(node->weight[BEFORE], p->tree.nodes[0].weight[BEFORE]);
		double after = facts_percent(node->weight[AFTER], p->tree.nodes[0].weight[AFTER]);

		svg_change_class(to, room, &change, fmax(before, after));
	} else {
		svg_symbol_class(to, room, symbol);
	}
}

/* --- frames --- */

static void thread_label(struct picture *p, uint32_t index)
{
	const struct thread_tree *tree = &p->profile->threads[index];
	bool has_name = tree->name && tree->name[0];

	if (p->profile->process_count > 1)
		buf_printf(&p->text, "%" PRId32 " / ", p->profile->processes[tree->process].pid);
	if (tree->interpreter)
		buf_printf(&p->text, "interpreter %" PRId64 " / ", tree->interpreter);
	if (has_name)
		buf_puts(&p->text, tree->name);
	if (p->comparison)
		buf_puts(&p->text, has_name ? "" : "threads without a name");
	else if (tree->tid)
		buf_printf(&p->text, has_name ? " (%" PRIu64 ")" : "thread %" PRIu64, tree->tid);
	else
		buf_puts(&p->text, has_name ? "" : "thread ?");
}

/* A node's name: the symbol's, or a text that the caller frees. NULL without memory. */
static char *name_of(struct picture *p, const struct svg_node *node)
{
	char *name;

	if (node->key < SVG_THREAD)
		return strdup(p->profile->symbols[node->key].name);
	p->text.bytes = 0;
	if (node->key != SVG_ROOT)
		thread_label(p, node->key & ~(uint32_t)SVG_THREAD);
	else if (p->profile->thread_count == 1)
		thread_label(p, 0);
	else
		buf_puts(&p->text, "all");
	name = p->text.err ? NULL : strdup(buf_text(&p->text));
	return name;
}

static void write_box(struct picture *p, struct writer *to, const char *class, double x, double width, double y,
                      const char *label)
{
	double x_px = MARGIN_PX + x * (WIDTH_PX - 2 * MARGIN_PX), width_px = width * (WIDTH_PX - 2 * MARGIN_PX);

	/* A gap of half a pixel between neighbours, where there is room for one. */
	writer_printf(to, "<rect class=\"%s\" x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" rx=\"1\"/>", class,
	              x_px, y, fmax(width_px > 2 ? width_px - 0.5 : width_px, 0.1), ROW_PX - 1);
	if (width_px > 4 * column_px)
		write_text(p, to, x_px + 3, y + 13, width_px - 6, "f", label);
}

static void write_node(struct picture *p, struct writer *to, enum side side, const struct svg_node *node, double top)
{
	char class[16], *name = name_of(p, node);

	if (!name) {
		p->err = -ENOMEM;
		return;
	}
	class_of(p, node, class, sizeof(class));
	writer_puts(to, "<g>");
	write_title(p, to, side, node, name);
	write_box(p, to, class, node->x[side], node->width[side], top + node->depth * (double)ROW_PX, name);
	writer_puts(to, "</g>\n");
	free(name);
}

static void write_merged(struct picture *p, struct writer *to, enum side side, const struct svg_merged *merged,
                         double top)
{
	char count[32];

	facts_count_text(count, sizeof(count), merged->frames);
	writer_printf(to, "<g><title>(other): %s narrow frame%s", count, merged->frames == 1 ? "" : "s");
	write_amounts(p, to, side, merged->samples, merged->weight);
	writer_puts(to, "</title>");
	write_box(p, to, "o", merged->x, merged->width,
	          top + (p->tree.nodes[merged->parent].depth + 1) * (double)ROW_PX, "(other)");
	writer_puts(to, "</g>\n");
}

/* What is not drawn, in words. */
static void write_left_out(struct picture *p, struct writer *to, enum side side)
{
	const struct svg_left_out *out = &p->left_out[side];
	char merged[32], cut[32], text[256];

	facts_count_text(merged, sizeof(merged), out->merged_frames);
	facts_count_text(cut, sizeof(cut), out->cut_frames);
	if (out->merged_frames || out->cut_frames) {
		snprintf(text, sizeof(text), "%s narrow frame%s merged into (other); %s deeper than %d rows left out",
		         merged, out->merged_frames == 1 ? "" : "s", cut, SVG_ROWS_MAX);
		write_text(p, to, MARGIN_PX, p->y + 11, WIDTH_PX - 2 * MARGIN_PX, "dim", text);
	}
	p->y += LINE_PX;
}

/* What native code's colour means, at the right of the line below the frames, where there is some. */
static void write_legend(struct picture *p, struct writer *to)
{
	double x = WIDTH_PX - MARGIN_PX - 215;
	bool any = false;

	for (uint32_t n = 0; n < p->tree.count && !any; n++)
		any = p->tree.nodes[n].width[AFTER] > 0 && p->tree.nodes[n].key < SVG_THREAD &&
		      p->profile->symbols[p->tree.nodes[n].key].kind == FRAME_NATIVE;
	if (!any)
		return;
	writer_printf(to, "<rect class=\"v\" x=\"%.1f\" y=\"%.0f\" width=\"12\" height=\"10\"/>\n", x, p->y + 3);
	write_text(p, to, x + 18, p->y + 11, 215 - 18, "dim", "C, C++ and other native code");
}

static void write_panel(struct picture *p, struct writer *to, enum side side)
{
	const struct svg_left_out *out = &p->left_out[side];

	if (p->comparison) {
		writer_printf(to, "<g id=\"%s\">\n", side == AFTER ? "after" : "before");
		write_text(p, to, MARGIN_PX, p->y + 11, 115, "dim", side == AFTER ? "Widths: after" : "Widths: before");
		write_text(p, to, MARGIN_PX + 120, p->y + 11, WIDTH_PX - 150, "dim", p->comparison->titles[side]);
		p->y += LINE_PX;
	}
	for (uint32_t n = 0; n < p->tree.count && p->tree.nodes[0].weight[side] && !p->err && !to->err; n++)
		if (p->tree.nodes[n].width[side] > 0)
			write_node(p, to, side, &p->tree.nodes[n], p->y);
	for (uint32_t i = 0; i < out->merged_count && !p->err && !to->err; i++)
		write_merged(p, to, side, &out->merged[i], p->y);
	if (p->tree.nodes[0].weight[side] == 0)
		write_text(p, to, MARGIN_PX, p->y + 13, 400, "dim", "No samples.");
	p->y += out->rows * (double)ROW_PX;
	if (!p->comparison)
		write_legend(p, to);
	write_left_out(p, to, side);
	if (p->comparison)
		writer_puts(to, "</g>\n");
}

/* --- around them --- */

static void write_facts(struct picture *p, struct writer *to, const struct facts *facts, const char *heading)
{
	double column = (WIDTH_PX - 2 * MARGIN_PX) / (double)FACT_COLUMNS;
	char text[256];

	write_text(p, to, MARGIN_PX, p->y + 11, 400, "dim", heading);
	p->y += LINE_PX;
	for (size_t i = 0; i < facts->count; i++) {
		const struct fact *fact = &facts->items[i];

		snprintf(text, sizeof(text), "%s: %s", fact->label, fact->text);
		write_text(p, to, MARGIN_PX + (double)(i % FACT_COLUMNS) * column, p->y + 11, column - 10,
		           fact->weight == FACT_LOSS ? "loss" : "dim", text);
		if (i % FACT_COLUMNS == FACT_COLUMNS - 1 || i + 1 == facts->count)
			p->y += LINE_PX;
	}
}

static double facts_px(const struct facts *facts)
{
	size_t rows = (facts->count + FACT_COLUMNS - 1) / FACT_COLUMNS + 1;

	return (double)rows * LINE_PX;
}

/* What all that is written will need. */
static double height_px(const struct picture *p)
{
	const struct comparison *c = p->comparison;
	double height = 2 * MARGIN_PX + 2 * LINE_PX + p->left_out[AFTER].rows * (double)ROW_PX + LINE_PX;

	if (!c)
		return height + facts_px(&p->facts);
	return height + 3 * LINE_PX + p->left_out[BEFORE].rows * (double)ROW_PX + facts_px(c->facts[BEFORE]) +
	       facts_px(c->facts[AFTER]);
}

static const char *title_of(const struct picture *p, const struct export_options *options)
{
	if (options->title)
		return options->title;
	if (p->comparison)
		return "What changed: red grew, blue shrank, grey is within the noise";
	if (p->profile->process_count && p->profile->processes[0].name && p->profile->processes[0].name[0])
		return p->profile->processes[0].name;
	return "Flame graph";
}

static void write_head(struct picture *p, struct writer *to, const char *title)
{
	bool is_import = p->profile->imported && p->facts.sum.attempts == 0;
	double height = height_px(p);
	char text[256], version[32], count[32];

	writer_printf(
		to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" "
		"width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\">\n<title>",
		WIDTH_PX, height, WIDTH_PX, height);
	svg_write_xml(to, title);
	writer_puts(to, " \u2013 sampled</title>\n");
	svg_write_style(to);
	writer_puts(to, "<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n");
	p->y = MARGIN_PX;
	write_text(p, to, MARGIN_PX, p->y + 12, (WIDTH_PX - 2 * MARGIN_PX) / 1.3, "head", title);
	p->y += LINE_PX;
	if (!p->comparison) {
		const struct process *process = p->profile->process_count ? &p->profile->processes[0] : NULL;

		facts_count_text(count, sizeof(count), p->facts.in_profile);
		facts_version_text(version, sizeof(version), process ? process->version : 0);
		snprintf(text, sizeof(text), "%s samples, %s%s, %" PRIu32 " process%s, %" PRIu32 " thread%s, Python %s",
		         count, is_import ? "imported" : "mode ",
		         is_import          ? ""
		         : p->profile->mode ? p->profile->mode
		                            : "wall",
		         p->profile->process_count, p->profile->process_count == 1 ? "" : "es",
		         p->profile->thread_count, p->profile->thread_count == 1 ? "" : "s",
		         process && process->version ? version : "unknown");
		write_text(p, to, MARGIN_PX, p->y + 11, WIDTH_PX - 2 * MARGIN_PX, "dim", text);
	}
	p->y += LINE_PX;
}

static void write_all(struct picture *p, const struct export_options *options, struct writer *to)
{
	write_head(p, to, title_of(p, options));
	write_panel(p, to, AFTER);
	if (p->comparison) {
		write_panel(p, to, BEFORE);
		write_facts(p, to, p->comparison->facts[BEFORE], "Sampling, before");
		write_facts(p, to, p->comparison->facts[AFTER], "Sampling, after");
	} else {
		write_facts(p, to, &p->facts, "Sampling");
	}
	writer_puts(to, "</svg>\n");
}

int svg_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	struct picture p = {.profile = profile, .comparison = options->comparison};

	facts_make(&p.facts, profile);
	p.err = svg_tree_make(&p.tree, profile, options->comparison);
	if (!p.err && p.comparison)
		p.err = svg_tree_place(&p.tree, BEFORE, least_share, &p.left_out[BEFORE]);
	if (!p.err)
		p.err = svg_tree_place(&p.tree, AFTER, least_share, &p.left_out[AFTER]);
	if (!p.err)
		write_all(&p, options, to);
	writer_fail(to, p.err);
	free(p.left_out[BEFORE].merged);
	free(p.left_out[AFTER].merged);
	svg_tree_release(&p.tree);
	buf_release(&p.text);
	return to->err;
}
