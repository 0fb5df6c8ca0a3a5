/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Callgrind's profile format (see callgrind.c), of any writer, and Cachegrind's, which is the same without calls. One event is read, the
 * first that is a time, or else the first; the facts name the others. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exporters/callgrind_reader.h"
#include "exporters/formats.h"

enum { LINE_BYTES_MAX = 1 << 20 };

static int wrong_line(struct callgrind_reader *r)
{
	r->bad++;
	if (r->first_bad == 0)
		r->first_bad = r->line_number;
	return 0;
}

static int take_cost(struct callgrind_reader *r, struct span line)
{
	struct callgrind_cost cost;
	int err;

	if (r->name == INTERN_FAILED || !r->columns.count || !callgrind_take_position(&r->positions, &line) ||
	    !callgrind_take_cost(&r->columns, line, &cost))
		return wrong_line(r);
	if (r->calls == 0 && callgrind_is_root(r, r->name))
		return 0;
	err = callgrind_is_root(r, r->name) ? 0 : callgrind_find_function(r);
	if (!err && r->calls)
		err = callgrind_add_call(r, &cost);
	else if (!err)
		err = callgrind_add_self(r, &cost);
	if (!err && !r->calls && r->file == r->home_file)
		callgrind_set_line(&r->graph->functions[r->function], r->positions.line, false);
	r->calls = 0;
	return err;
}

/* calls=COUNT POSITION: where the callee begins. */
static int take_calls(struct callgrind_reader *r, struct span text)
{
	struct callgrind_positions target = r->positions;
	struct span word = span_word(&text);
	uint64_t calls;

	if (!callgrind_number(word, &calls) || calls > CALLGRIND_SUM_MAX || r->callee == INTERN_FAILED)
		return wrong_line(r);
	r->calls = calls ? calls : 1; /* the costs that follow are its */
	if (callgrind_take_position(&target, &text))
		callgrind_set_line(&r->graph->functions[r->callee], target.line, true);
	return 0;
}

static int take_callee(struct callgrind_reader *r, uint32_t name)
{
	uint32_t file = r->callee_file == INTERN_FAILED ? r->file : r->callee_file;

	r->callee =
		callgrind_add_function(r, name, file, r->callee_object == INTERN_FAILED ? r->object : r->callee_object);
	r->callee_file = r->callee_object = INTERN_FAILED;
	if (r->callee != INTERN_FAILED)
		return 0;
	return callgrind_no_function(r);
}

static int take_name(struct callgrind_reader *r, enum callgrind_key key, struct span text)
{
	uint32_t name = callgrind_take_name(&r->names, key, text);

	if (name == INTERN_FAILED)
		return r->names.err ? callgrind_no_memory(r) : wrong_line(r);
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

static int take_events(struct callgrind_reader *r, struct span text)
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
static void take_fact(struct callgrind_reader *r, struct span label, struct span text)
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
static int take_header(struct callgrind_reader *r, struct span key, struct span value)
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
		r->file_total += cost.weight < CALLGRIND_SUM_MAX ? cost.weight : 0;
	return 0;
}

static int read_line(struct callgrind_reader *r)
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

static void add_facts(struct callgrind_reader *r)
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

static void release(struct callgrind_reader *r)
{
	callgrind_names_release(&r->names);
	buf_release(&r->line);
	buf_release(&r->homes);
}

int callgrind_read(struct input *from, struct callgraph *to, struct fault *fault)
{
	struct callgrind_reader r = {.graph = to, .fault = fault, .positions = {.count = 1}};
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
		err = callgrind_add_totals(&r);
	}
	if (!err) {
		add_facts(&r);
		err = to->err ? callgrind_no_memory(&r) : 0;
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
