/* SPDX-License-Identifier: Apache-2.0 */
/* The text report's table of functions and its heaviest path. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "exporters/functions.h"
#include "exporters/text_report.h"

enum {
	FUNCTIONS_MAX = 40, /* rows of the table of functions */
	PATH_MAX_ROWS = 60, /* of the heaviest path; the middle of a longer one is left out and said */
	IDLE_NAMES_MAX = 4,
};

/* How the profile is ranked, in the words of both parts. */
enum by_what { BY_WEIGHT, BY_RUNNING, BY_CPU, BY_COUNT };

static const char *const functions_notes[BY_COUNT] = {
	[BY_WEIGHT] = "(self: in the function itself; total: with its calls; shares of all time)",
	[BY_RUNNING] = "by time that is not idle (self: in the function itself; total: with its calls; shares of all time)",
	[BY_CPU] = "by CPU time (self: in the function itself; total: with its calls; shares of all time)"};
static const char *const path_notes[BY_COUNT] = {
	[BY_WEIGHT] = "(from the outermost call always on to the heaviest)",
	[BY_RUNNING] = "by time that is not idle (from the outermost call always on to the heaviest)",
	[BY_CPU] = "by CPU time (from the outermost call always on to the heaviest)"};

static enum by_what by_what(const struct report *r)
{
	return r->ranking.by == VALUE_CPU ? BY_CPU : r->ranking.less_idle ? BY_RUNNING : BY_WEIGHT;
}

/* "name (file:line)" in the columns that are left: the name comes first; of the file its end is what tells it from others. */
static void add_place(struct report *r, const struct symbol *symbol, uint32_t line)
{
	unsigned columns = report_columns_left(r), used, tail;
	char number[16];

	if (symbol->file[0] == '\0') {
		utf8_fit(&r->line, symbol->name, columns, false);
		return;
	}
	used = utf8_fit(&r->line, symbol->name, columns > 30 ? columns * 3 / 5 : columns, false);
	tail = (unsigned)(line ? snprintf(number, sizeof(number), ":%" PRIu32 ")", line)
	                       : snprintf(number, sizeof(number), ")"));
	if (columns < used + tail + 6)
		return;
	buf_puts(&r->line, " (");
	utf8_fit(&r->line, ranking_short_file(symbol->file), columns - used - tail - 2, true);
	buf_puts(&r->line, number);
}

/* Where threads sleep: it ranks last, and is told in one line. */
static void add_idle(struct report *r)
{
	struct function *functions;
	uint64_t idle;
	uint32_t count;

	if (!report_has_share(r, VALUE_IDLE) || by_what(r) == BY_WEIGHT)
		return;
	idle = profile_sum(r->profile, VALUE_IDLE);
	r->err = idle ? functions_make(&functions, &count, r->profile, VALUE_IDLE) : 0;
	if (r->err || !idle)
		return;
	buf_printf(&r->line, "  idle: %.1f %%", facts_percent(idle, r->whole));
	for (uint32_t i = 0; i < count && i < IDLE_NAMES_MAX && functions[i].self[VALUE_IDLE] > idle / 20; i++) {
		buf_puts(&r->line, i ? ", " : " (");
		utf8_fit(&r->line, r->profile->symbols[functions[i].symbol].name, report_columns_left(r) / 2, false);
	}
	buf_puts(&r->line, functions[0].self[VALUE_IDLE] > idle / 20 ? ")" : "");
	report_end_line(r);
	free(functions);
}

static void add_amount(struct report *r, uint64_t value)
{
	if (!r->is_narrow)
		report_add_amount(r, value);
}

void report_functions(struct report *r)
{
	struct function *functions;
	uint32_t count;
	uint64_t rest = 0;
	bool cpu = report_has_share(r, VALUE_CPU) && !r->is_narrow, gil = report_has_share(r, VALUE_GIL) && !r->is_narrow;

	r->err = functions_rank(&functions, &count, r->profile, &r->ranking);
	if (r->err)
		return;
	if (count == 0) {
		report_heading(r, "FUNCTIONS", "none: no sample holds a Python frame (--native shows the C frames of a program that embeds Python)");
		free(functions);
		return;
	}
	report_heading(r, "FUNCTIONS", functions_notes[by_what(r)]);
	if (r->is_narrow)
		writer_puts(r->to, " self % total %  function\n");
	else
		writer_printf(r->to, "%9s  self %% %8s total %%%s%s  function (file:first line)\n",
		              r->is_time ? "self s" : "self", r->is_time ? "total s" : "total", cpu ? "  CPU %" : "",
		              gil ? "  GIL %" : "");
	for (uint32_t i = 0; i < count; i++) {
		const struct function *f = &functions[i];
		const struct symbol *symbol = &r->profile->symbols[f->symbol];

		if (i >= FUNCTIONS_MAX) {
			rest += f->self[r->by];
			continue;
		}
		add_amount(r, f->self[r->by]);
		report_add_share(r, f->self[r->by], r->whole);
		add_amount(r, f->total[r->by]);
		report_add_share(r, f->total[r->by], r->whole);
		if (cpu)
			report_add_share(r, f->self[VALUE_CPU], report_whole_of(r, VALUE_CPU, f->self));
		if (gil)
			report_add_share(r, f->self[VALUE_GIL], f->self[r->by]);
		buf_puts(&r->line, "  ");
		add_place(r, symbol, symbol->first_line);
		report_end_line(r);
	}
	if (count > FUNCTIONS_MAX) {
		add_amount(r, rest);
		report_add_share(r, rest, r->whole);
		buf_printf(&r->line, "%*s(other: %" PRIu32 " functions)", r->is_narrow ? 9 : 18 + 7 * cpu + 7 * gil, "",
		           count - FUNCTIONS_MAX);
		report_end_line(r);
	}
	if (cpu || gil)
		report_note(r, "CPU % and GIL %: of the function's self time, on a CPU as the kernel counted, and holding the GIL");
	free(functions);
	add_idle(r);
}

static uint32_t heaviest_child(const struct thread_tree *tree, const uint64_t *totals, uint32_t node,
                               const struct ranking *ranking)
{
	uint32_t best = tree->nodes[node].child;

	for (uint32_t child = best; child; child = tree->nodes[child].sibling)
		if (ranking_amount(ranking, totals + (size_t)child * VALUE_COUNT) >
		    ranking_amount(ranking, totals + (size_t)best * VALUE_COUNT))
			best = child;
	return best;
}

/* From the root of the heaviest thread always on to the heaviest child. */
void report_path(struct report *r)
{
	const struct thread_tree *tree = NULL;
	uint64_t *totals = NULL;
	uint32_t rows = 0, row = 0;
	uint64_t sums[VALUE_COUNT], whole;

	for (int v = 0; v < VALUE_COUNT; v++)
		sums[v] = profile_sum(r->profile, (enum value_index)v);
	whole = ranking_amount(&r->ranking, sums);
	for (uint32_t i = 0; i < r->profile->thread_count; i++) {
		uint64_t *new = profile_totals(&r->profile->threads[i]);

		if (!new) {
			free(totals);
			r->err = -ENOMEM;
			return;
		}
		if (tree && ranking_amount(&r->ranking, new) <= ranking_amount(&r->ranking, totals)) {
			free(new);
			continue;
		}
		free(totals);
		totals = new;
		tree = &r->profile->threads[i];
	}
	if (!tree)
		return;
	for (uint32_t n = heaviest_child(tree, totals, 0, &r->ranking); n; n = heaviest_child(tree, totals, n, &r->ranking))
		rows++;
	if (rows > 0) {
		report_heading(r, "HEAVIEST PATH", path_notes[by_what(r)]);
		if (!r->is_narrow)
			buf_printf(&r->line, "%9s", r->is_time ? "total s" : "total");
		buf_puts(&r->line, " total %  self %  thread ");
		report_add_thread_name(r, tree);
		report_end_line(r);
	}
	for (uint32_t n = heaviest_child(tree, totals, 0, &r->ranking); n;
	     n = heaviest_child(tree, totals, n, &r->ranking), row++) {
		uint32_t deepest = r->is_narrow ? 4 : 20, indent = row < deepest ? row : deepest;

		if (rows > PATH_MAX_ROWS && row >= PATH_MAX_ROWS / 2 && row < rows - PATH_MAX_ROWS / 2) {
			if (row == PATH_MAX_ROWS / 2)
				writer_printf(r->to, "%26s%" PRIu32 " frames in between\n", "... ",
				              rows - PATH_MAX_ROWS);
			continue;
		}
		add_amount(r, ranking_amount(&r->ranking, totals + (size_t)n * VALUE_COUNT));
		report_add_share(r, ranking_amount(&r->ranking, totals + (size_t)n * VALUE_COUNT), whole);
		report_add_share(r, ranking_amount(&r->ranking, tree->nodes[n].self), whole);
		buf_printf(&r->line, "  %*s", (int)indent, "");
		add_place(r, &r->profile->symbols[tree->nodes[n].symbol], tree->nodes[n].line);
		report_end_line(r);
	}
	free(totals);
}
