/* SPDX-License-Identifier: Apache-2.0 */
/* Callgrind's profile format, version 1 (Valgrind's manual, "Callgrind Format Specification"), for KCachegrind and callgrind_annotate.
 *
 * A function's cost is its self values, a call's cost the samples whose outermost frame of the callee it is: then the costs of all calls of a
 * function are its inclusive cost, also under recursion, and that is how readers make it. For this each function that begins a stack is
 * called by <root>. Costs stand on their lines, calls on those of their call sites, as far as a profile tells them; else, as in files of
 * cProfile, on the function's first line. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "exporters/callgrind_head.h"
#include "exporters/formats.h"

#define NO_NAME "???" /* as callgrind itself calls it; readers need a name that is not blank */

struct callgrind {
	const struct callgraph *graph;
	struct writer *to;
	bool has_weight;                           /* besides the samples, or alone */
	double scale;                              /* of a unit of the graph's times, in the file's */
	uint32_t *first, *edges;                   /* by caller */
	struct line_cost *self_lines, *call_lines; /* sorted */
	bool has_modules, *module_known;
	bool *file_known, *known; /* their numbers have been given a text */
	bool *is_ambiguous;       /* another function has its name and file: readers would make them one */
	struct buf text;
};

/* Of all events, in the file's units. */
struct cost {
	uint64_t samples, weight, cpu_ns;
};

static uint64_t whole(const struct callgrind *c, double value)
{
	value *= c->scale;
	return !(value > 0) ? 0 : value >= 9e18 ? UINT64_C(9000000000000000000) : (uint64_t)llround(value);
}

static struct cost self_of(const struct callgrind *c, uint32_t function)
{
	const struct callgraph_function *f = &c->graph->functions[function];

	return (struct cost){.samples = f->self_samples, .weight = whole(c, f->sums.self_s), .cpu_ns = f->cpu_ns};
}

static struct cost call_of(const struct callgrind *c, const struct callgraph_edge *edge)
{
	return (struct cost){
		.samples = edge->outer_samples, .weight = whole(c, edge->outer_s), .cpu_ns = edge->outer_cpu_ns};
}

static uint64_t part_of(uint64_t rest, uint64_t part, bool is_last)
{
	return is_last || part > rest ? rest : part;
}

/* The row's share of *rest, which it leaves. The last one has what is left: times that were rounded add up to the whole. */
static struct cost take_part(struct cost *rest, const struct line_cost *row, bool is_last)
{
	struct cost part = {.samples = part_of(rest->samples, row->samples, is_last),
	                    .weight = part_of(rest->weight, row->weight, is_last),
	                    .cpu_ns = part_of(rest->cpu_ns, row->cpu_ns, is_last)};

	rest->samples -= part.samples;
	rest->weight -= part.weight;
	rest->cpu_ns -= part.cpu_ns;
	return part;
}

static void put_events(struct callgrind *c, struct cost cost)
{
	if (c->graph->has_samples)
		writer_printf(c->to, " %" PRIu64, cost.samples);
	if (c->has_weight)
		writer_printf(c->to, " %" PRIu64, cost.weight);
	if (c->graph->has_cpu)
		writer_printf(c->to, " %" PRIu64, cost.cpu_ns);
	writer_putc(c->to, '\n');
}

static void put_cost(struct callgrind *c, uint32_t line, struct cost cost)
{
	writer_printf(c->to, "%" PRIu32, line);
	put_events(c, cost);
}

/* A text on one line that steers no terminal, and that is not blank. */
static void put_text(struct callgrind *c, uint32_t number)
{
	size_t bytes;
	const char *text = text_set_get(&c->graph->texts, number, &bytes);
	bool blank = true;

	c->text.bytes = 0;
	while (bytes > 0) {
		uint32_t character;
		size_t length = utf8_next(text, bytes, &character);

		if (utf8_is_unsafe(character))
			buf_putc(&c->text, ' ');
		else if (character == 0xfffd)
			buf_puts(&c->text, "\xef\xbf\xbd");
		else
			buf_add(&c->text, text, length);
		blank &= character == ' ' || utf8_is_unsafe(character);
		text += length;
		bytes -= length;
	}
	if (blank)
		writer_puts(c->to, NO_NAME);
	else
		writer_add(c->to, c->text.data, c->text.bytes);
}

/* The module of what follows, where some function has one; Python's are of the first. */
static void put_object(struct callgrind *c, const struct callgraph_function *f, const char *key)
{
	bool *known = &c->module_known[f->module];

	if (!c->has_modules)
		return;
	writer_printf(c->to, "%s=(%" PRIu32 ")", key, f->module + 1);
	if (!*known) {
		writer_putc(c->to, ' ');
		if (f->module)
			put_text(c, f->module - 1);
		else
			writer_puts(c->to, "python");
	}
	*known = true;
	writer_putc(c->to, '\n');
}

/* Where what follows stands. Numbers begin at 1; 0 is <root>. The text follows a number when it is first used. */
static void put_function(struct callgrind *c, uint32_t function, const char *file_key, const char *name_key)
{
	const struct callgraph_function *f = &c->graph->functions[function];

	put_object(c, f, file_key[0] == 'c' ? "cob" : "ob");
	writer_printf(c->to, "%s=(%" PRIu32 ")", file_key, f->file + 1);
	if (!c->file_known[f->file]) {
		writer_putc(c->to, ' ');
		put_text(c, f->file);
	}
	writer_printf(c->to, "\n%s=(%" PRIu32 ")", name_key, function + 1);
	if (!c->known[function]) {
		writer_putc(c->to, ' ');
		put_text(c, f->name);
		if (c->is_ambiguous[function])
			writer_printf(c->to, ":%" PRIu32, f->line);
	}
	writer_putc(c->to, '\n');
	c->file_known[f->file] = c->known[function] = true;
}

/* calls: 1 where they are unknown. */
static void put_call(struct callgrind *c, uint32_t callee, int64_t calls, uint32_t line, struct cost cost)
{
	put_function(c, callee, "cfi", "cfn");
	writer_printf(c->to, "calls=%" PRId64 " %" PRIu32 "\n", calls > 0 ? calls : 1,
	              c->graph->functions[callee].line);
	put_cost(c, line, cost);
}

static uint64_t counted(int64_t calls)
{
	return calls > 0 ? (uint64_t)calls : 0;
}

static uint64_t left_of(uint64_t whole, uint64_t part)
{
	return whole > part ? whole - part : 0;
}

/* What no caller accounts for of a function's total: it began the stack. */
static void put_root(struct callgrind *c)
{
	const struct callgraph *graph = c->graph;
	struct cost *called = calloc(graph->function_count + (size_t)1, sizeof(*called));

	if (!called) {
		c->text.err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < graph->edge_count; i++) {
		struct cost cost = call_of(c, &graph->edges[i]);

		called[graph->edges[i].callee].samples += cost.samples;
		called[graph->edges[i].callee].weight += cost.weight;
		called[graph->edges[i].callee].cpu_ns += cost.cpu_ns;
	}
	writer_puts(c->to, "\nfl=(0) " NO_NAME "\nfn=(0) <root>\n");
	put_cost(c, 0, (struct cost){0});
	for (uint32_t i = 0; i < graph->function_count && !c->to->err; i++) {
		const struct call_sums *sums = &graph->functions[i].sums;
		struct cost rest = {.samples = left_of(counted(sums->primitive_calls), called[i].samples),
		                    .weight = left_of(whole(c, sums->total_s), called[i].weight),
		                    .cpu_ns = left_of(graph->functions[i].cpu_total_ns, called[i].cpu_ns)};

		if ((graph->has_samples && rest.samples) || (c->has_weight && rest.weight) ||
		    (graph->has_cpu && rest.cpu_ns))
			put_call(c, i, graph->has_samples ? (int64_t)rest.samples : sums->primitive_calls, 0, rest);
	}
	free(called);
}

static void put_self(struct callgrind *c, uint32_t function)
{
	struct cost rest = self_of(c, function);
	uint32_t count;
	const struct line_cost *rows =
		line_costs_of(c->self_lines, c->graph->self_lines.places.count, function, &count);

	if (count == 0)
		put_cost(c, c->graph->functions[function].line, rest);
	for (uint32_t i = 0; i < count; i++)
		put_cost(c, rows[i].line, take_part(&rest, &rows[i], i + 1 == count));
}

static void put_edge(struct callgrind *c, uint32_t index)
{
	const struct callgraph_edge *edge = &c->graph->edges[index];
	struct cost rest = call_of(c, edge);
	uint32_t count;
	const struct line_cost *rows = line_costs_of(c->call_lines, c->graph->call_lines.places.count, index, &count);

	if (count == 0)
		put_call(c, edge->callee, edge->sums.calls, c->graph->functions[edge->caller].line, rest);
	for (uint32_t i = 0; i < count; i++)
		put_call(c, edge->callee, (int64_t)rows[i].calls, rows[i].line,
		         take_part(&rest, &rows[i], i + 1 == count));
}

static void put_body(struct callgrind *c)
{
	const struct callgraph *graph = c->graph;

	for (uint32_t i = 0; i < graph->function_count && !c->to->err; i++) {
		if (!graph->functions[i].has_sums && c->first[i] == c->first[i + 1])
			continue;
		writer_putc(c->to, '\n');
		put_function(c, i, "fl", "fn");
		put_self(c, i);
		for (uint32_t e = c->first[i]; e < c->first[i + 1]; e++)
			put_edge(c, c->edges[e]);
	}
}

static void put_sums(struct callgrind *c, const char *key, struct cost sums)
{
	writer_puts(c->to, key);
	put_events(c, sums);
}

static int find_ambiguous(struct callgrind *c)
{
	const struct callgraph *graph = c->graph;
	uint32_t *owner = calloc(graph->function_count + (size_t)1, sizeof(*owner)); /* the first of each place */
	struct pair_set places = {0};
	int err = owner ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < graph->function_count && !err; i++) {
		uint32_t count = places.count;
		uint32_t place = pair_set_add(&places, graph->functions[i].name, graph->functions[i].file);

		if (place == INTERN_FAILED)
			err = -ENOMEM;
		else if (places.count > count)
			owner[place] = i;
		else
			c->is_ambiguous[i] = c->is_ambiguous[owner[place]] = true;
	}
	pair_set_release(&places);
	free(owner);
	return err;
}

static int prepare(struct callgrind *c)
{
	const struct callgraph *graph = c->graph;

	c->has_weight = callgrind_has_weight(graph);
	c->scale = graph->is_time ? (double)NS_PER_S : 1;
	c->file_known = calloc(graph->texts.count + (size_t)1, sizeof(*c->file_known));
	c->module_known = calloc(graph->texts.count + (size_t)1, sizeof(*c->module_known));
	for (uint32_t i = 0; i < graph->function_count; i++)
		c->has_modules |= graph->functions[i].module != 0;
	c->known = calloc(graph->function_count + (size_t)1, sizeof(*c->known));
	c->is_ambiguous = calloc(graph->function_count + (size_t)1, sizeof(*c->is_ambiguous));
	c->self_lines = line_costs_sorted(&graph->self_lines);
	c->call_lines = line_costs_sorted(&graph->call_lines);
	if (!c->file_known || !c->module_known || !c->known || !c->is_ambiguous || !c->self_lines || !c->call_lines)
		return -ENOMEM;
	if (find_ambiguous(c))
		return -ENOMEM;
	return callgraph_sort_edges(graph, true, &c->first, &c->edges);
}

int callgrind_write(const struct callgraph *graph, const struct export_options *options, struct writer *to)
{
	struct callgrind c = {.graph = graph, .to = to};
	struct cost sums = {0};
	int err = prepare(&c);

	(void)options;
	if (!err) {
		for (uint32_t i = 0; i < graph->function_count; i++) {
			sums.samples += self_of(&c, i).samples;
			sums.weight += self_of(&c, i).weight;
			sums.cpu_ns += self_of(&c, i).cpu_ns;
		}
		callgrind_write_head(graph, to);
		put_sums(&c, "summary:", sums); /* it ends the head */
		put_root(&c);
		put_body(&c);
		writer_putc(to, '\n');
		put_sums(&c, "totals:", sums);
		err = c.text.err;
	}
	writer_fail(to, err);
	free(c.first);
	free(c.edges);
	free(c.self_lines);
	free(c.call_lines);
	free(c.file_known);
	free(c.module_known);
	free(c.known);
	free(c.is_ambiguous);
	buf_release(&c.text);
	return to->err;
}
