/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Callgrind's profile format (see callgrind.c), of any writer, and Cachegrind's, which is the same without calls.
 *
 * As callgrind_annotate has it, a function is a name in a file: code that was inlined from another file is a function of its own there, which
 * the function around it calls. One event is read, the first that is a time, or else the first; the facts name the others.
 *
 * A function's total is what its calls cost, those by itself left out; of one that nobody calls, what it costs itself and its calls. In a
 * cycle of functions calls count what is in them again: no total is above the whole. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "exporters/callgrind_parts.h"
#include "exporters/formats.h"

enum {
	LINE_BYTES_MAX = 1 << 20,
	FUNCTIONS_MAX = 1 << 22,
	EDGES_MAX = 1 << 24,
	NAME_ROOT = 6, /* bytes of "<root>" */
};

/* Of all costs: sums stay below 2^64. */
#define SUM_MAX (UINT64_C(1) << 62)

struct reader {
	struct callgraph *graph;
	struct fault *fault;
	struct buf line;
	struct callgrind_names names;
	struct buf homes; /* uint32_t, of each function: the one whose code it is, inlined; INTERN_FAILED: its own */
	char events[256]; /* the line that names them */
	struct callgrind_events columns;
	struct callgrind_positions positions;
	uint32_t file, home_file, object; /* texts of graph; INTERN_FAILED: none */
	uint32_t name;                    /* of the function at hand; INTERN_FAILED: none yet */
	uint32_t function;                /* of it in the file at hand; INTERN_FAILED: it has no cost there yet */
	uint32_t callee_file, callee_object, callee;
	uint64_t calls; /* of the cost line that comes next; 0: it is of the function itself */
	uint64_t sum, file_total, line_number, bad, first_bad;
	bool is_ours;
};

static int no_memory(const struct reader *r)
{
	return fault_set(r->fault, -ENOMEM, "", "out of memory");
}

/* --- functions --- */

static uint32_t *home_of(const struct reader *r, uint32_t function)
{
	return (uint32_t *)(void *)r->homes.data + function;
}

/* "???" is how callgrind says that it does not know. */
static uint32_t add_function(struct reader *r, uint32_t name, uint32_t file, uint32_t object)
{
	struct span name_text = callgrind_name(&r->names, name), file_text = callgrind_name(&r->names, file);
	struct span object_text = callgrind_name(&r->names, object);
	uint32_t none = INTERN_FAILED, function;
	struct buf module = {0};

	if (file_text.bytes == 3 && memcmp(file_text.at, "???", 3) == 0)
		file_text.bytes = 0;
	if (r->graph->function_count >= FUNCTIONS_MAX)
		return INTERN_FAILED;
	function = callgraph_function(r->graph, name_text.at, name_text.bytes, file_text.at, file_text.bytes, 0);
	if (function == INTERN_FAILED)
		return function;
	while (r->homes.bytes / sizeof(none) < r->graph->function_count && !r->homes.err)
		buf_add(&r->homes, &none, sizeof(none));
	if (object_text.bytes > 0 && object_text.at[0] != '?') {
		utf8_add_valid(&module, object_text.at, object_text.bytes);
		callgraph_set_module(r->graph, function, buf_text(&module));
	}
	buf_release(&module);
	return r->homes.err ? INTERN_FAILED : function;
}

/* Of a file of ours: what begins the stacks, no function. */
static bool is_root(const struct reader *r, uint32_t name)
{
	struct span text = callgrind_name(&r->names, name);

	return r->is_ours && text.bytes == NAME_ROOT && memcmp(text.at, "<root>", NAME_ROOT) == 0;
}

/* The function at hand, in the file at hand. */
static int find_function(struct reader *r)
{
	uint32_t home;

	if (r->function != INTERN_FAILED)
		return 0;
	r->function = add_function(r, r->name, r->file, r->object);
	home = r->file == r->home_file ? r->function : add_function(r, r->name, r->home_file, r->object);
	if (r->function == INTERN_FAILED || home == INTERN_FAILED)
		return r->graph->err ? no_memory(r)
		                     : fault_set(r->fault, -EPROTO, "", "it has more than 4 million functions");
	callgraph_give_sums(r->graph, home);
	callgraph_give_sums(r->graph, r->function);
	if (home != r->function)
		*home_of(r, r->function) = home;
	return 0;
}

/* --- costs --- */

/* Where a function begins, for people: what calls of it say, or else its first line with a cost. */
static void set_line(struct callgraph_function *function, uint32_t line, bool is_said)
{
	if (line && (is_said || function->line == 0))
		function->line = line;
}

static int add_self(struct reader *r, const struct callgrind_cost *cost)
{
	struct callgraph_function *function = &r->graph->functions[r->function];
	struct line_cost row = {.of = r->function,
	                        .line = r->positions.line,
	                        .samples = cost->samples,
	                        .weight = cost->weight,
	                        .cpu_ns = cost->cpu_ns};

	function->sums.self_s += (double)cost->weight * r->columns.scale;
	function->self_samples += cost->samples;
	function->cpu_ns += cost->cpu_ns;
	r->sum += cost->weight;
	if (r->sum > SUM_MAX)
		return fault_set(r->fault, -EPROTO, "", "its costs are too large, at line %" PRIu64, r->line_number);
	return line_costs_add(&r->graph->self_lines, &row) ? no_memory(r) : 0;
}

/* What <root> calls begins a stack: it has no caller. */
static int add_root_call(struct reader *r, const struct callgrind_cost *cost)
{
	struct callgraph_function *callee = &r->graph->functions[r->callee];

	callgraph_give_sums(r->graph, r->callee);
	callee->sums.total_s += (double)cost->weight * r->columns.scale;
	callee->sums.primitive_calls += (int64_t)cost->samples;
	callee->cpu_total_ns += cost->cpu_ns;
	return 0;
}

static int add_call(struct reader *r, const struct callgrind_cost *cost)
{
	double seconds = (double)cost->weight * r->columns.scale;
	bool is_recursive = r->callee == r->function;
	struct callgraph_edge *edge;
	struct line_cost row = {.line = r->positions.line,
	                        .calls = r->calls,
	                        .samples = cost->samples,
	                        .weight = cost->weight,
	                        .cpu_ns = cost->cpu_ns};

	if (is_root(r, r->name))
		return add_root_call(r, cost);
	if (r->graph->edge_count >= EDGES_MAX)
		return fault_set(r->fault, -EPROTO, "", "its calls are too many, at line %" PRIu64, r->line_number);
	edge = callgraph_edge(r->graph, r->function, r->callee);
	if (!edge)
		return no_memory(r);
	callgraph_give_sums(r->graph, r->callee);
	edge->sums.calls += (int64_t)r->calls;
	edge->sums.primitive_calls += is_recursive ? 0 : (int64_t)r->calls;
	edge->sums.total_s += seconds;
	edge->outer_s += is_recursive ? 0 : seconds;
	edge->outer_samples += cost->samples;
	edge->outer_cpu_ns += cost->cpu_ns;
	row.of = (uint32_t)(edge - r->graph->edges);
	return line_costs_add(&r->graph->call_lines, &row) ? no_memory(r) : 0;
}

/* --- lines --- */

static int wrong_line(struct reader *r)
{
	r->bad++;
	if (r->first_bad == 0)
		r->first_bad = r->line_number;
	return 0;
}

static int take_cost(struct reader *r, struct span line)
{
	struct callgrind_cost cost;
	int err;

	if (r->name == INTERN_FAILED || !r->columns.count || !callgrind_take_position(&r->positions, &line) ||
	    !callgrind_take_cost(&r->columns, line, &cost))
		return wrong_line(r);
	if (r->calls == 0 && is_root(r, r->name))
		return 0;
	err = is_root(r, r->name) ? 0 : find_function(r);
	if (!err && r->calls)
		err = add_call(r, &cost);
	else if (!err)
		err = add_self(r, &cost);
	if (!err && !r->calls && r->file == r->home_file)
		set_line(&r->graph->functions[r->function], r->positions.line, false);
	r->calls = 0;
	return err;
}

/* calls=COUNT POSITION: where the callee begins. */
static int take_calls(struct reader *r, struct span text)
{
	struct callgrind_positions target = r->positions;
	struct span word = span_word(&text);
	uint64_t calls;

	if (!callgrind_number(word, &calls) || calls > SUM_MAX || r->callee == INTERN_FAILED)
		return wrong_line(r);
	r->calls = calls ? calls : 1; /* the costs that follow are its */
	if (callgrind_take_position(&target, &text))
		set_line(&r->graph->functions[r->callee], target.line, true);
	return 0;
}

static int take_callee(struct reader *r, uint32_t name)
{
	uint32_t file = r->callee_file == INTERN_FAILED ? r->file : r->callee_file;

	r->callee = add_function(r, name, file, r->callee_object == INTERN_FAILED ? r->object : r->callee_object);
	r->callee_file = r->callee_object = INTERN_FAILED;
	if (r->callee != INTERN_FAILED)
		return 0;
	return r->graph->err ? no_memory(r) : fault_set(r->fault, -EPROTO, "", "it has more than 4 million functions");
}

static int take_name(struct reader *r, enum callgrind_key key, struct span text)
{
	uint32_t name = callgrind_take_name(&r->names, key, text);

	if (name == INTERN_FAILED)
		return r->names.err ? no_memory(r) : wrong_line(r);
	switch (key) {
	case CALLGRIND_OB:
		r->object = name;
		return 0;
	case CALLGRIND_FL:
		r->file = r->home_file = name;
		r->function = INTERN_FAILED;
		return 0;
	case CALLGRIND_FI: /* fe= as well */
		r->file = name;
		r->function = INTERN_FAILED;
		return 0;
	case CALLGRIND_FN:
		r->name = name;
		r->home_file = r->file;
		r->function = INTERN_FAILED;
		return 0;
	case CALLGRIND_COB:
		r->callee_object = name;
		return 0;
	case CALLGRIND_CFI:
		r->callee_file = name;
		return 0;
	case CALLGRIND_CFN:
		return take_callee(r, name);
	default: /* of a jump, which costs nothing: but its name may be given here first */
		return 0;
	}
}

static int take_events(struct reader *r, struct span text)
{
	if (r->columns.count == 0) {
		snprintf(r->events, sizeof(r->events), "%.*s", (int)(text.bytes < 255 ? text.bytes : 255), text.at);
		return callgrind_choose_events(&r->columns, text, r->graph->value, r->fault);
	}
	if (strlen(r->events) == text.bytes && memcmp(r->events, text.at, text.bytes) == 0)
		return 0;
	return text.bytes > 255 ? 0
	                        : fault_set(r->fault, -EPROTO, "convert each by itself",
	                                    "its parts count different events, at line %" PRIu64, r->line_number);
}

static bool is_key(struct span key, const char *name)
{
	return key.bytes == strlen(name) && memcmp(key.at, name, key.bytes) == 0;
}

/* "LABEL: TEXT": what the first part says of itself. */
static void take_fact(struct reader *r, struct span label, struct span text)
{
	struct span rest = text;
	const char *colon = memmem(text.at, text.bytes, ": ", 2);
	char name[64], what[256];

	if (r->name != INTERN_FAILED || text.bytes == 0 || text.at[text.bytes - 1] == ':')
		return;
	if (is_key(label, "desc") && colon) {
		label = (struct span){.at = text.at, .bytes = (size_t)(colon - text.at)};
		rest = span_behind(text, label.bytes + 2);
	}
	snprintf(name, sizeof(name), "%.*s", (int)(label.bytes < 63 ? label.bytes : 63), label.at);
	snprintf(what, sizeof(what), "%.*s", (int)(rest.bytes < 255 ? rest.bytes : 255), rest.at);
	callgraph_fact(r->graph, name, what);
}

/* What a head says; a file of several parts has several. Anything that we do not know is passed over. */
static int take_header(struct reader *r, struct span key, struct span value)
{
	struct callgrind_cost cost;

	if (is_key(key, "events"))
		return take_events(r, value);
	if (is_key(key, "positions"))
		callgrind_choose_positions(&r->positions, value);
	else if (is_key(key, "creator"))
		r->is_ours = is_key(value, "sampled");
	else if (is_key(key, "desc") || is_key(key, "cmd"))
		take_fact(r, key, value);
	else if (is_key(key, "totals") && r->columns.count && callgrind_take_cost(&r->columns, value, &cost))
		r->file_total += cost.weight < SUM_MAX ? cost.weight : 0;
	return 0;
}

static int read_line(struct reader *r)
{
	static const struct {
		const char *begins;
		enum callgrind_key key;
	} names[] = {{"fn=", CALLGRIND_FN},   {"fl=", CALLGRIND_FL},   {"fi=", CALLGRIND_FI},   {"fe=", CALLGRIND_FI},
	             {"ob=", CALLGRIND_OB},   {"cfn=", CALLGRIND_CFN}, {"cfi=", CALLGRIND_CFI}, {"cfl=", CALLGRIND_CFI},
	             {"cob=", CALLGRIND_COB}, {"jfi=", CALLGRIND_JFI}, {"jfn=", CALLGRIND_JFN}};
	struct span line = {.at = r->line.data, .bytes = r->line.bytes};
	const char *colon;

	line = span_trim(line);
	if (line.bytes == 0 || line.at[0] == '#')
		return 0;
	if (is_digit(line.at[0]) || strchr("+-*", line.at[0]))
		return take_cost(r, line);
	if (span_begins(line, "calls="))
		return take_calls(r, span_behind(line, 6));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (span_begins(line, names[i].begins))
			return take_name(r, names[i].key, span_trim(span_behind(line, strlen(names[i].begins))));
	if (span_begins(line, "jump=") || span_begins(line, "jcnd="))
		return 0;
	colon = memchr(line.at, ':', line.bytes);
	if (!colon)
		return wrong_line(r);
	return take_header(r, (struct span){.at = line.at, .bytes = (size_t)(colon - line.at)},
	                   span_trim(span_behind(line, (size_t)(colon + 1 - line.at))));
}

/* --- totals --- */

struct called {
	double s; /* what calls of a function by others cost */
	bool any;
};

/* Of a function that nobody calls: its own cost and that of its calls. */
static void add_uncalled(struct reader *r, const struct called *called)
{
	for (uint32_t i = 0; i < r->graph->function_count; i++)
		if (!called[i].any)
			r->graph->functions[i].sums.total_s += r->graph->functions[i].sums.self_s;
	for (uint32_t i = 0; i < r->graph->edge_count; i++) {
		const struct callgraph_edge *edge = &r->graph->edges[i];

		if (!called[edge->caller].any)
			r->graph->functions[edge->caller].sums.total_s += edge->outer_s;
	}
}

/* Code that was inlined is called by the function around it. What is called by itself, too, has its callers. */
static int add_inlined(struct reader *r, const struct called *called)
{
	for (uint32_t i = 0; i < r->homes.bytes / sizeof(uint32_t); i++) {
		uint32_t home = *home_of(r, i);
		struct callgraph_edge *edge;
		double total_s = r->graph->functions[i].sums.total_s;

		if (home == INTERN_FAILED || called[i].any)
			continue;
		edge = r->graph->edge_count < EDGES_MAX ? callgraph_edge(r->graph, home, i) : NULL;
		if (!edge)
			return no_memory(r);
		edge->sums.total_s += total_s;
		edge->outer_s += total_s;
		if (!called[home].any)
			r->graph->functions[home].sums.total_s += total_s;
	}
	return 0;
}

/* What a caller had of a callee's own cost is not said: as much as it had of its total. */
static void share_self(struct callgraph *graph)
{
	for (uint32_t i = 0; i < graph->edge_count; i++) {
		struct callgraph_edge *edge = &graph->edges[i];
		const struct call_sums *callee = &graph->functions[edge->callee].sums;
		double share = callee->total_s > 0 ? edge->outer_s / callee->total_s : 0;

		edge->sums.self_s = callee->self_s * (share > 1 ? 1 : share);
	}
}

static int add_totals(struct reader *r)
{
	struct callgraph *graph = r->graph;
	struct called *called = calloc(graph->function_count + (size_t)1, sizeof(*called));
	int err;

	if (!called)
		return no_memory(r);
	for (uint32_t i = 0; i < graph->function_count; i++) /* by <root> */
		called[i].any = graph->functions[i].sums.total_s > 0 || graph->functions[i].sums.primitive_calls > 0;
	for (uint32_t i = 0; i < graph->edge_count; i++) {
		const struct callgraph_edge *edge = &graph->edges[i];
		struct callgraph_function *callee = &graph->functions[edge->callee];

		callee->sums.calls += edge->sums.calls;
		callee->sums.primitive_calls += r->is_ours ? (int64_t)edge->outer_samples : edge->sums.primitive_calls;
		callee->cpu_total_ns += edge->outer_cpu_ns;
		called[edge->callee].any |= edge->sums.primitive_calls > 0;
		called[edge->callee].s += edge->outer_s;
	}
	add_uncalled(r, called);
	err = add_inlined(r, called);
	graph->sampled_s = (double)r->sum * r->columns.scale;
	for (uint32_t i = 0; i < graph->function_count; i++) {
		struct call_sums *sums = &graph->functions[i].sums;

		sums->total_s += called[i].s;
		if (sums->total_s < sums->self_s)
			sums->total_s = sums->self_s;
		if (sums->total_s > graph->sampled_s)
			sums->total_s = graph->sampled_s;
	}
	share_self(graph);
	free(called);
	return err;
}

static void add_facts(struct reader *r)
{
	char text[64];

	if (!r->is_ours)
		callgraph_fact(r->graph, "event", r->columns.unit);
	if (r->columns.other[0])
		callgraph_fact(r->graph, "other events (--value)", r->columns.other);
	if (r->bad) {
		snprintf(text, sizeof(text), "%" PRIu64 ", the first is line %" PRIu64, r->bad, r->first_bad);
		callgraph_fact(r->graph, "lines that make no sense", text);
	}
	if (r->file_total && r->file_total != r->sum) {
		snprintf(text, sizeof(text), "%" PRIu64 " of %" PRIu64, r->sum, r->file_total);
		callgraph_fact(r->graph, "cost of functions, of what the file says is its whole", text);
	}
}

static void release(struct reader *r)
{
	callgrind_names_release(&r->names);
	buf_release(&r->line);
	buf_release(&r->homes);
}

int callgrind_read(struct input *from, struct callgraph *to, struct fault *fault)
{
	struct reader r = {.graph = to, .fault = fault, .positions = {.count = 1}};
	bool cut;
	int err = 0;

	r.file = r.home_file = r.object = r.name = r.function = INTERN_FAILED;
	r.callee = r.callee_file = r.callee_object = INTERN_FAILED;
	while (!err && input_line(from, &r.line, LINE_BYTES_MAX, &cut)) {
		r.line_number++;
		err = cut ? wrong_line(&r) : read_line(&r);
	}
	if (!err && (from->err || to->err))
		err = input_fault(from->err ? from->err : to->err, fault);
	if (!err && to->entry_count == 0 && !(r.is_ours && r.columns.count)) /* ours may be empty */
		err = fault_set(fault, -EPROTO, "", "it has no function with a cost");
	if (!err) {
		callgraph_set_unit(to, r.columns.unit);
		to->from_samples = r.columns.samples < r.columns.count;
		to->has_samples = to->from_samples && r.is_ours;
		to->has_cpu = r.columns.cpu < r.columns.count && r.is_ours;
		err = add_totals(&r);
	}
	if (!err) {
		add_facts(&r);
		err = to->err ? no_memory(&r) : 0;
	}
	release(&r);
	return err;
}

/* Its first line, or what its head must have, and a function. */
bool callgrind_detect(const unsigned char *head, size_t bytes)
{
	struct span rest = {.at = (const char *)head, .bytes = bytes};
	bool has_events = false;

	if (span_begins(rest, "# callgrind format"))
		return true;
	while (rest.bytes > 0) {
		const char *newline = memchr(rest.at, '\n', rest.bytes);
		struct span line = {.at = rest.at, .bytes = newline ? (size_t)(newline - rest.at) : rest.bytes};

		has_events |= span_begins(line, "events:");
		if (has_events && (span_begins(line, "fn=") || span_begins(line, "fl=") || span_begins(line, "ob=")))
			return true;
		if (!has_events && !memchr(line.at, ':', line.bytes) && span_trim(line).bytes > 0 && line.at[0] != '#')
			return false; /* it begins with keys */
		rest = span_behind(rest, newline ? line.bytes + 1 : line.bytes);
	}
	return false;
}
