/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics for programs: JSON and CSV, numbers in full precision. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "exporters/stats_tables.h"

/* The fewest digits that read back as the same. */
static void add_number(struct writer *to, double value, const char *otherwise)
{
	char text[40];

	if (!isfinite(value)) {
		writer_puts(to, otherwise);
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	writer_puts(to, text);
}

static double per(double seconds, int64_t count)
{
	return count ? seconds / (double)count : (double)NAN;
}

/* --- JSON --- */

static void add_key(struct writer *to, const char *key)
{
	writer_printf(to, ", \"%s\": ", key);
}

static void add_double(struct writer *to, const char *key, double value)
{
	add_key(to, key);
	add_number(to, value, "null");
}

static void add_count(struct writer *to, const char *key, int64_t count)
{
	add_key(to, key);
	writer_printf(to, "%" PRId64, count);
}

static void add_string(struct writer *to, const char *key, const char *text)
{
	add_key(to, key);
	writer_json_string(to, text);
}

/* Without a key before it. */
static void add_place(struct writer *to, const struct stats *stats, uint32_t function)
{
	size_t bytes;

	writer_puts(to, "{\"file\": ");
	writer_json_string(to, stats_file(stats, function, &bytes));
	add_count(to, "line", stats->graph->functions[function].line);
	add_string(to, "function", callgraph_name(stats->graph, function));
}

static void add_json_calls(struct writer *to, const struct stats *stats, const struct stats_calls *calls, bool callers,
                           uint32_t function)
{
	const char *separator = "";

	add_key(to, callers ? "callers" : "callees");
	writer_putc(to, '[');
	for (uint32_t i = calls->starts[function]; i < calls->starts[function + 1]; i++) {
		const struct callgraph_edge *edge = &stats->graph->edges[calls->edges[i]];

		writer_puts(to, separator);
		add_place(to, stats, callers ? edge->caller : edge->callee);
		add_count(to, "ncalls", edge->sums.calls);
		add_count(to, "pcalls", edge->sums.primitive_calls);
		add_double(to, "tottime", edge->sums.self_s);
		add_double(to, "cumtime", edge->sums.total_s);
		writer_putc(to, '}');
		separator = ", ";
	}
	writer_putc(to, ']');
}

static void add_json_function(struct writer *to, const struct stats_view *v, uint32_t function)
{
	const struct callgraph_function *f = &v->stats->graph->functions[function];

	add_place(to, v->stats, function);
	add_count(to, "ncalls", f->sums.calls);
	add_count(to, "pcalls", f->sums.primitive_calls);
	add_double(to, "tottime", f->sums.self_s);
	add_double(to, "tottime_percall", per(f->sums.self_s, f->sums.calls));
	add_double(to, "cumtime", f->sums.total_s);
	add_double(to, "cumtime_percall", per(f->sums.total_s, f->sums.primitive_calls));
	if (v->on_cpu)
		add_double(to, "on_cpu", (double)f->cpu_ns / (double)NS_PER_S);
	if (v->gil)
		add_double(to, "gil", (double)f->gil_ns / (double)NS_PER_S);
}

static void add_json_head(struct writer *to, const struct stats_view *v)
{
	const struct stats *s = v->stats;
	struct buf line = {0};
	const char *fact;
	size_t at = 0, bytes;

	writer_printf(to, "{\"counts\": \"%s\"", s->graph->from_samples ? "samples" : "calls");
	add_string(to, "unit", s->graph->unit);
	add_count(to, "ncalls", s->calls);
	add_count(to, "pcalls", s->primitive_calls);
	add_double(to, "tottime", s->graph->sampled_s);
	add_key(to, "facts");
	writer_putc(to, '[');
	while ((fact = stats_fact(s->graph, &at, &bytes)) != NULL) {
		writer_puts(to, line.bytes ? ", " : "");
		line.bytes = 0;
		buf_add(&line, fact, bytes);
		writer_json_string(to, buf_text(&line));
	}
	writer_putc(to, ']');
	buf_release(&line);
}

int stats_write_json(const struct stats_view *view, unsigned which, struct writer *to)
{
	struct stats_selection selection;
	struct stats_calls callers = {0}, callees = {0};
	int err = stats_select(&selection, view->stats, view->limits, view->limit_count);

	if (!err && which & STATS_CALLERS)
		err = stats_calls_make(&callers, view->stats, true);
	if (!err && which & STATS_CALLEES)
		err = stats_calls_make(&callees, view->stats, false);
	if (!err) {
		add_json_head(to, view);
		add_string(to, "message", buf_text(&selection.message));
		add_key(to, "functions");
		writer_putc(to, '[');
	}
	for (uint32_t i = 0; i < selection.count && !err; i++) {
		writer_puts(to, i ? ",\n" : "\n");
		add_json_function(to, view, selection.functions[i]);
		if (which & STATS_CALLERS)
			add_json_calls(to, view->stats, &callers, true, selection.functions[i]);
		if (which & STATS_CALLEES)
			add_json_calls(to, view->stats, &callees, false, selection.functions[i]);
		writer_putc(to, '}');
	}
	if (!err)
		writer_puts(to, "\n]}\n");
	stats_calls_release(&callers);
	stats_calls_release(&callees);
	stats_selection_release(&selection);
	return err ? err : to->err;
}

/* --- CSV --- */

/* Quoted where RFC 4180 asks for it. */
static void add_field(struct writer *to, const char *text, bool safe)
{
	struct buf valid = {0};

	if (safe)
		utf8_add_safe(&valid, text);
	else
		utf8_add_valid(&valid, text, strlen(text));
	text = buf_text(&valid);
	writer_fail(to, valid.err);
	if (!strpbrk(text, ",\"\r\n")) {
		writer_puts(to, text);
	} else {
		writer_putc(to, '"');
		for (; *text; text++) {
			if (*text == '"')
				writer_putc(to, '"');
			writer_putc(to, *text);
		}
		writer_putc(to, '"');
	}
	buf_release(&valid);
}

static void add_csv_place(struct writer *to, const struct stats_view *v, uint32_t function)
{
	size_t bytes;

	add_field(to, stats_file(v->stats, function, &bytes), v->safe);
	writer_printf(to, ",%" PRIu32 ",", v->stats->graph->functions[function].line);
	add_field(to, callgraph_name(v->stats->graph, function), v->safe);
}

static void add_csv_function(struct writer *to, const struct stats_view *v, uint32_t function)
{
	const struct callgraph_function *f = &v->stats->graph->functions[function];
	const double times[] = {f->sums.self_s, per(f->sums.self_s, f->sums.calls), f->sums.total_s,
	                        per(f->sums.total_s, f->sums.primitive_calls)};

	writer_printf(to, "%" PRId64 ",%" PRId64 ",", f->sums.calls, f->sums.primitive_calls);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		add_number(to, times[i], "");
		writer_putc(to, ',');
	}
	if (v->on_cpu) {
		add_number(to, (double)f->cpu_ns / (double)NS_PER_S, "");
		writer_putc(to, ',');
	}
	if (v->gil) {
		add_number(to, (double)f->gil_ns / (double)NS_PER_S, "");
		writer_putc(to, ',');
	}
	add_csv_place(to, v, function);
	writer_puts(to, "\r\n");
}

static void add_csv_calls(struct writer *to, const struct stats_view *v, const struct stats_calls *calls, bool callers,
                          uint32_t function)
{
	for (uint32_t i = calls->starts[function]; i < calls->starts[function + 1]; i++) {
		const struct callgraph_edge *edge = &v->stats->graph->edges[calls->edges[i]];

		add_csv_place(to, v, function);
		writer_putc(to, ',');
		add_csv_place(to, v, callers ? edge->caller : edge->callee);
		writer_printf(to, ",%" PRId64 ",%" PRId64 ",", edge->sums.calls, edge->sums.primitive_calls);
		add_number(to, edge->sums.self_s, "");
		writer_putc(to, ',');
		add_number(to, edge->sums.total_s, "");
		writer_puts(to, "\r\n");
	}
}

static void add_csv_head(struct writer *to, const struct stats_view *v, unsigned which)
{
	const char *counts = v->stats->graph->from_samples ? "nsamples,psamples" : "ncalls,pcalls";

	if (which)
		writer_printf(to, "file,line,function,%1$s_file,%1$s_line,%1$s_function,%2$s,tottime,cumtime\r\n",
		              which == STATS_CALLERS ? "caller" : "callee", counts);
	else
		writer_printf(to, "%s,tottime,tottime_percall,cumtime,cumtime_percall,%s%sfile,line,function\r\n",
		              counts, v->on_cpu ? "on_cpu," : "", v->gil ? "gil," : "");
}

int stats_write_csv(const struct stats_view *view, unsigned which, struct writer *to)
{
	struct stats_selection selection;
	struct stats_calls calls = {0};
	int err = stats_select(&selection, view->stats, view->limits, view->limit_count);

	if (!err && which)
		err = stats_calls_make(&calls, view->stats, which == STATS_CALLERS);
	if (!err)
		add_csv_head(to, view, which);
	for (uint32_t i = 0; i < selection.count && !err; i++) {
		if (which)
			add_csv_calls(to, view, &calls, which == STATS_CALLERS, selection.functions[i]);
		else
			add_csv_function(to, view, selection.functions[i]);
	}
	stats_calls_release(&calls);
	stats_selection_release(&selection);
	return err ? err : to->err;
}
