/* SPDX-License-Identifier: Apache-2.0 */
/* Line by line what pstats prints of the same file. Profiles of samples get 3.15's column titles, and say below the totals what is counted
 * and what was lost. */
#include "exporters/stats_tables.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "exporters/ranking.h"

enum {
	NOTES_COLUMNS = 100,
	NAME_COLUMNS_MIN = 24,
};

#define INDENT "        " /* as pstats' totals */

/* Of a trace of microseconds, seconds would read 0.000; those of a file of pstats are as pstats shows them. */
static const struct time_unit {
	double below_s, scale;
	const char *name;
} time_units[] = {{1e-4, 1e6, "microseconds"}, {0.1, 1e3, "milliseconds"}};

static const struct time_unit *time_unit(const struct stats *stats)
{
	const struct callgraph *graph = stats->graph;

	for (size_t i = 0; i < sizeof(time_units) / sizeof(time_units[0]); i++)
		if (graph->from_samples && graph->is_time && graph->sampled_s > 0 && graph->sampled_s < time_units[i].below_s)
			return &time_units[i];
	return NULL;
}

static double scale(const struct stats *stats)
{
	const struct time_unit *unit = time_unit(stats);

	return unit ? unit->scale : 1;
}

/* pstats' f8(); not a number has no sign there. */
static void add_time(struct writer *to, double seconds)
{
	if (isnan(seconds))
		writer_puts(to, "     nan");
	else
		writer_printf(to, "%8.3f", seconds);
}

static void add_share(struct writer *to, double seconds, int64_t count)
{
	if (count == 0)
		writer_puts(to, INDENT);
	else
		add_time(to, seconds / (double)count);
}

static void add_safe(struct writer *to, const char *text)
{
	struct buf safe = {0};

	utf8_add_safe(&safe, text);
	writer_puts(to, buf_text(&safe));
	writer_fail(to, safe.err);
	buf_release(&safe);
}

/* "3/1": all calls, and the primitive ones where they are fewer. */
static void add_counts(struct writer *to, int width, int64_t all, int64_t primitive)
{
	char text[48];

	if (all == primitive)
		snprintf(text, sizeof(text), "%" PRId64, all);
	else
		snprintf(text, sizeof(text), "%" PRId64 "/%" PRId64, all, primitive);
	writer_printf(to, "%*s", width, text);
}

/* A name behind `used` columns: in a terminal without the folders that say nothing, and cut at its front. */
static void add_fitted_name(const struct stats_view *v, uint32_t function, unsigned used, struct writer *to)
{
	struct buf whole = {0}, fitted = {0};
	unsigned room = v->columns > used + NAME_COLUMNS_MIN ? v->columns - used : NAME_COLUMNS_MIN;
	size_t bytes;
	const char *name = stats_safe_name(v->stats, function, &bytes);

	buf_add(&whole, name, bytes);
	if (v->columns)
		utf8_fit(&fitted, ranking_short_file(buf_text(&whole)), room, true);
	writer_puts(to, buf_text(v->columns ? &fitted : &whole));
	writer_fail(to, whole.err ? whole.err : fitted.err);
	buf_release(&whole);
	buf_release(&fitted);
}

static void add_name(struct writer *to, const struct stats *stats, uint32_t function)
{
	size_t bytes;
	const char *name = stats_safe_name(stats, function, &bytes);

	writer_add(to, name, bytes);
}

/* "lost: torn: 0", "thread time not sampled: 0 s" */
static bool is_nought(const char *fact, size_t bytes)
{
	const char *end = fact + bytes;

	return (bytes > 3 && memcmp(end - 3, ": 0", 3) == 0) || (bytes > 5 && memcmp(end - 5, ": 0 s", 5) == 0);
}

/* The facts that are not nought, in lines of NOTES_COLUMNS. */
static void add_facts(const struct callgraph *graph, unsigned columns, struct writer *to)
{
	size_t column = 0, at = 0, bytes;
	const char *fact;

	while ((fact = stats_fact(graph, &at, &bytes)) != NULL) {
		if (is_nought(fact, bytes))
			continue;
		if (column > 0 && column + bytes + 3 > columns) {
			writer_puts(to, ";\n");
			column = 0;
		}
		writer_puts(to, column > 0 ? "; " : INDENT " ");
		writer_add(to, fact, bytes);
		column += (column > 0 ? 2 : strlen(INDENT " ")) + bytes;
	}
	if (column > 0)
		writer_putc(to, '\n');
}

/* What the columns hold when nobody counted calls, and what sampling lost. */
static void add_notes(const struct callgraph *graph, unsigned columns, struct writer *to)
{
	if (graph->from_samples)
		writer_printf(to,
		              "%1$s from samples: the first column counts samples (frames/samples where a%2$sfunction recurs), not calls\n",
		              INDENT, columns && columns < NOTES_COLUMNS + 12 ? "\n" INDENT " " : " ");
	add_facts(graph, columns ? columns : NOTES_COLUMNS, to);
}

static void add_totals(const struct stats_view *v, struct writer *to)
{
	const struct stats *s = v->stats;

	writer_puts(to, v->files);
	if (*v->files)
		writer_putc(to, '\n');
	if (s->graph->from_samples)
		writer_printf(to, INDENT " %" PRId64 " frame%s sampled ", s->calls, s->calls == 1 ? "" : "s");
	else
		writer_printf(to, INDENT " %" PRId64 " function calls ", s->calls); /* as pstats has it, of one, too */
	if (s->calls != s->primitive_calls)
		writer_printf(to, "(%" PRId64 " primitive %s) ", s->primitive_calls,
		              s->graph->from_samples ? "ones" : "calls");
	writer_puts(to, "in ");
	if (isnan(s->graph->sampled_s))
		writer_puts(to, "nan");
	else
		writer_printf(to, "%.*f", s->graph->is_time ? 3 : 0, s->graph->sampled_s * scale(s));
	writer_putc(to, ' ');
	add_safe(to, time_unit(s)                                                                 ? time_unit(s)->name
	             : s->graph->sampled_s == 1 && strcmp(s->graph->unit, "samples") == 0 ? "sample"
	                                                                                  : s->graph->unit);
	writer_putc(to, '\n');
	if (!v->brief)
		add_notes(s->graph, v->columns, to);
	writer_putc(to, '\n');
}

static void add_title(const struct stats_view *v, struct writer *to)
{
	writer_puts(to, v->stats->graph->from_samples ? " nsamples  tottime persample cumtime persample "
	                                              : "   ncalls  tottime  percall  cumtime  percall ");
	if (v->on_cpu)
		writer_puts(to, "  on_cpu ");
	if (v->gil)
		writer_puts(to, "     gil ");
	writer_puts(to, v->columns && v->columns < NOTES_COLUMNS ? "file:line(function)\n" : "filename:lineno(function)\n");
}

static void add_line(const struct stats_view *v, uint32_t function, struct writer *to)
{
	const struct callgraph_function *f = &v->stats->graph->functions[function];
	const struct call_sums *sums = &f->sums;
	double per_s = scale(v->stats);
	uint64_t start = to->bytes;

	add_counts(to, 9, sums->calls, sums->primitive_calls);
	writer_putc(to, ' ');
	add_time(to, sums->self_s * per_s);
	writer_putc(to, ' ');
	add_share(to, sums->self_s * per_s, sums->calls);
	writer_putc(to, ' ');
	add_time(to, sums->total_s * per_s);
	writer_putc(to, ' ');
	add_share(to, sums->total_s * per_s, sums->primitive_calls);
	writer_putc(to, ' ');
	if (v->on_cpu) {
		add_time(to, (double)f->cpu_ns / (double)NS_PER_S * per_s);
		writer_putc(to, ' ');
	}
	if (v->gil) {
		add_time(to, (double)f->gil_ns / (double)NS_PER_S * per_s);
		writer_putc(to, ' ');
	}
	add_fitted_name(v, function, (unsigned)(to->bytes - start), to);
	writer_putc(to, '\n');
}

/* What the restrictions leave, with the message above it; of nothing pstats prints nothing. */
static int begin_table(const struct stats_view *v, struct stats_selection *ret_selection, struct writer *to)
{
	int err = stats_select(ret_selection, v->stats, v->limits, v->limit_count);

	if (!err && ret_selection->count > 0) {
		writer_puts(to, buf_text(&ret_selection->message));
		writer_putc(to, '\n');
	}
	return err;
}

static int end_table(struct stats_selection *selection, int err, struct writer *to)
{
	if (!err && selection->count > 0)
		writer_puts(to, "\n\n");
	stats_selection_release(selection);
	return err ? err : to->err;
}

int stats_print(const struct stats_view *view, struct writer *to)
{
	struct stats_selection selection;
	int err;

	add_totals(view, to);
	err = begin_table(view, &selection, to);
	if (!err && selection.count > 0)
		add_title(view, to);
	for (uint32_t i = 0; i < selection.count && !err; i++)
		add_line(view, selection.functions[i], to);
	return end_table(&selection, err, to);
}

/* pstats measures in characters, of all functions or of those that were selected. */
static unsigned name_width(const struct stats *stats, const struct stats_selection *selection)
{
	uint32_t width = 0;

	for (uint32_t i = 0; i < selection->count; i++) {
		uint32_t characters = stats->names[selection->functions[i]].characters;

		width = characters > width ? characters : width;
	}
	return width + 2;
}

static void pad(struct writer *to, uint32_t columns)
{
	for (; columns > 0; columns--)
		writer_putc(to, ' ');
}

static void add_heading(const struct stats *stats, unsigned width, const char *what, struct writer *to)
{
	static const char heading[] = "Function ";

	writer_puts(to, heading);
	if (width > strlen(heading))
		pad(to, width - (unsigned)strlen(heading));
	writer_puts(to, what);
	writer_putc(to, '\n');
	if (stats->graph->edge_count > 0 && !stats->graph->edges_are_counts) {
		pad(to, width);
		writer_puts(to, stats->graph->from_samples ? "    nsamples  tottime  cumtime" : "    ncalls  tottime  cumtime");
		if (time_unit(stats))
			writer_printf(to, " (%s)", time_unit(stats)->name);
		writer_putc(to, '\n');
	}
}

/* profile.py counts calls only: "name(count)", and the function's cumulative time. */
static void add_count(const struct stats *stats, const struct callgraph_edge *edge, uint32_t other, struct writer *to)
{
	add_name(to, stats, other);
	writer_printf(to, "(%" PRId64 ") ", edge->sums.calls);
	add_time(to, stats->graph->functions[other].sums.total_s);
	writer_putc(to, '\n');
}

/* pstats' print_call_line(): the first call stands behind the function, the others below it. */
static void add_calls(const struct stats *stats, const struct stats_calls *calls, bool callers, uint32_t function,
                      unsigned width, struct writer *to)
{
	uint32_t first = calls->starts[function], end = calls->starts[function + 1];

	add_name(to, stats, function);
	if (stats->names[function].characters < width)
		pad(to, width - stats->names[function].characters);
	writer_puts(to, callers ? "<- " : "-> ");
	if (first == end)
		writer_putc(to, '\n');
	for (uint32_t i = first; i < end; i++) {
		const struct callgraph_edge *edge = &stats->graph->edges[calls->edges[i]];

		if (stats->graph->edges_are_counts) {
			if (i > first)
				pad(to, width + 3);
			add_count(stats, edge, callers ? edge->caller : edge->callee, to);
			continue;
		}
		if (i > first)
			pad(to, width + 1);
		add_counts(to, i > first ? 9 : 7, edge->sums.calls, edge->sums.primitive_calls);
		writer_putc(to, ' ');
		add_time(to, edge->sums.self_s * scale(stats));
		writer_putc(to, ' ');
		add_time(to, edge->sums.total_s * scale(stats));
		writer_puts(to, "  ");
		add_name(to, stats, callers ? edge->caller : edge->callee);
		writer_putc(to, '\n');
	}
}

int stats_print_calls(const struct stats_view *view, bool callers, struct writer *to)
{
	const struct stats *stats = view->stats;
	struct stats_selection selection;
	struct stats_calls calls;
	unsigned width;
	int err = stats_calls_make(&calls, stats, callers);

	if (err)
		return err;
	if (stats->graph->from_samples && !view->brief) {
		add_notes(stats->graph, view->columns, to);
		writer_putc(to, '\n');
	}
	err = begin_table(view, &selection, to);
	width = name_width(stats, &selection);
	if (!err && selection.count > 0)
		add_heading(stats, width, callers ? "was called by..." : "called...", to);
	for (uint32_t i = 0; i < selection.count && !err; i++)
		add_calls(stats, &calls, callers, selection.functions[i], width, to);
	stats_calls_release(&calls);
	return end_table(&selection, err, to);
}
