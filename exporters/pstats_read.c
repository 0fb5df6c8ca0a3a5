/* SPDX-License-Identifier: Apache-2.0 */
/* pstats files: see pstats.h. Read are those of cProfile and profile of any Python, of Python 3.15's sampling profiler, and ours. The shape
 * is fixed, so depth is bounded by it. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "exporters/formats.h"
#include "exporters/marshal.h"
#include "exporters/pstats.h"

enum {
	FUNCTIONS_MAX = 1 << 22,
	EDGES_MAX = 1 << 24,
	MARKER = -1 /* instead of a function: a key that is none */
};

struct reader {
	struct marshal marshal;
	struct callgraph *graph;
	bool is_tachyon; /* of Python 3.15's sampling profiler */
};

bool pstats_detect(const unsigned char *head, size_t bytes)
{
	if (bytes < 2 || (head[0] & ~MARSHAL_FLAG_REF) != MARSHAL_DICT)
		return false;
	switch (head[1] & ~MARSHAL_FLAG_REF) {
	case MARSHAL_NULL:
		return bytes == 2;
	case MARSHAL_SMALL_TUPLE:
		return bytes > 2 && (head[2] == 3 || head[2] == 1);
	case MARSHAL_TUPLE:
		return bytes > 5 && (head[2] == 3 || head[2] == 1) && head[3] == 0 && head[4] == 0 && head[5] == 0;
	default:
		return false;
	}
}

static int wrong(const struct reader *r, const char *what)
{
	return marshal_wrong(&r->marshal, what);
}

static int no_memory(const struct reader *r)
{
	return fault_set(r->marshal.fault, -ENOMEM, "", "out of memory");
}

static int take_text(struct reader *r, uint32_t *ret_text)
{
	struct marshal_value value;
	int err = marshal_next(&r->marshal, &value);

	if (!err && value.kind != MARSHAL_IS_TEXT)
		err = wrong(r, "a name is no text");
	if (!err)
		*ret_text = value.index;
	return err;
}

/* The third item of a key: a text, or what python -m profile ran, a code object. Its address is of no use, so it is left out. */
static int take_name(struct reader *r, uint32_t *ret_text)
{
	struct text_set *texts = &r->marshal.texts;
	uint32_t name = 0, file = 0, line = 0;
	struct marshal_value value;
	struct buf text = {0};
	size_t bytes;
	const char *part;
	int err = marshal_next(&r->marshal, &value);

	if (!err && value.kind == MARSHAL_IS_TEXT)
		*ret_text = value.index;
	else if (!err && value.kind != MARSHAL_IS_CODE)
		err = wrong(r, "a name is no text");
	if (err || value.kind == MARSHAL_IS_TEXT)
		return err;
	err = marshal_skip_code(&r->marshal, &name, &file, &line);
	if (err)
		return err;
	buf_puts(&text, "<code object ");
	part = text_set_get(texts, name, &bytes);
	buf_add(&text, part, bytes);
	buf_puts(&text, ", file \"");
	part = text_set_get(texts, file, &bytes);
	buf_add(&text, part, bytes);
	buf_printf(&text, "\", line %" PRIu32 ">", line);
	*ret_text = text.err ? INTERN_FAILED : text_set_add(texts, text.data, text.bytes);
	buf_release(&text);
	return *ret_text == INTERN_FAILED ? no_memory(r) : 0;
}

/* -1: nobody counted. */
static int take_count(struct reader *r, int64_t *ret_count)
{
	struct marshal_value value;
	int err = marshal_next(&r->marshal, &value);

	if (!err && value.kind != MARSHAL_IS_NUMBER)
		err = wrong(r, "a count is no whole number");
	if (!err && value.number < -1)
		err = wrong(r, "a count is below 0");
	if (!err)
		*ret_count = value.number;
	return err;
}

static int take_seconds(struct reader *r, double *ret_seconds)
{
	struct marshal_value value;
	int err = marshal_next(&r->marshal, &value);

	if (err)
		return err;
	if (value.kind == MARSHAL_IS_NUMBER) /* profile.py begins with a plain 0 */
		*ret_seconds = (double)value.number;
	else if (value.kind == MARSHAL_IS_FLOAT && isfinite(value.real))
		*ret_seconds = value.real;
	else
		return wrong(r, "a time is no finite number");
	return 0;
}

/* (file, line, name), or a tuple of one text, which says something of the whole file. */
static int take_key_items(struct reader *r, uint32_t items, int64_t *ret_function)
{
	const struct text_set *texts = &r->marshal.texts;
	struct marshal_value line;
	uint32_t file_text = 0, name_text = 0, function;
	size_t file_bytes, name_bytes;
	const char *file, *name;
	int err = items == 1 || items == 3 ? take_text(r, &file_text) : wrong(r, "a key is no function");

	if (err)
		return err;
	file = text_set_get(texts, file_text, &file_bytes);
	if (items == 1) {
		r->is_tachyon |= strcmp(file, "__sampled__") == 0;
		*ret_function = MARKER;
		return 0;
	}
	err = marshal_next(&r->marshal, &line);
	if (!err && line.kind != MARSHAL_IS_NUMBER)
		err = wrong(r, "a line is no whole number");
	if (!err)
		err = take_name(r, &name_text);
	if (err)
		return err;
	if (line.number < 0 || line.number > UINT32_MAX)
		line.number = 0;
	file = text_set_get(texts, file_text, &file_bytes); /* the name may have moved it */
	name = text_set_get(texts, name_text, &name_bytes);
	if (line.number == 0 && file_bytes == 1 && file[0] == '~')
		file_bytes = 0; /* what has no file */
	if (r->graph->function_count >= FUNCTIONS_MAX)
		return wrong(r, "its functions are too many");
	function = callgraph_function(r->graph, name, name_bytes, file, file_bytes, (uint32_t)line.number);
	if (function == INTERN_FAILED)
		return no_memory(r);
	*ret_function = function;
	return 0;
}

/* 0, 1 when the dictionary ends here, or -errno. */
static int take_key(struct reader *r, int64_t *ret_function)
{
	struct marshal_value key = {0};
	int err = marshal_next(&r->marshal, &key);

	if (err)
		return err;
	switch (key.kind) {
	case MARSHAL_IS_NULL:
		return 1;
	case MARSHAL_IS_KNOWN:
		*ret_function = key.index;
		return 0;
	case MARSHAL_IS_TUPLE:
		err = take_key_items(r, key.index, ret_function);
		if (!err && *ret_function != MARKER)
			marshal_remember(&r->marshal, key.slot, (uint32_t)*ret_function);
		return err;
	default:
		return wrong(r, "a key is no function");
	}
}

/* (nc, cc, tottime, cumtime), or the number of calls alone, as profile.py and Python 3.15's sampling profiler write it: then the callee's time is
 * split by calls, as gprof2dot does. */
static int take_caller(struct reader *r, const struct call_sums *callee, struct call_sums *ret_sums)
{
	struct marshal_value value;
	int err = marshal_next(&r->marshal, &value);

	*ret_sums = (struct call_sums){0};
	if (err)
		return err;
	if (value.kind == MARSHAL_IS_NUMBER && value.number >= 0) {
		double share = callee->calls > 0 ? (double)value.number / (double)callee->calls : 0;

		r->graph->edges_are_counts = true;
		ret_sums->calls = ret_sums->primitive_calls = value.number;
		ret_sums->total_s = callee->total_s * (share > 1 ? 1 : share);
		return 0;
	}
	if (value.kind != MARSHAL_IS_TUPLE || value.index != 4)
		return wrong(r, "a caller's values are not four");
	err = take_count(r, &ret_sums->calls);
	if (!err)
		err = take_count(r, &ret_sums->primitive_calls);
	if (!err)
		err = take_seconds(r, &ret_sums->self_s);
	if (!err)
		err = take_seconds(r, &ret_sums->total_s);
	return err;
}

/* A key that stands in the file twice, as no honest one does, is added up. */
static int add_sums(struct reader *r, struct call_sums *to, const struct call_sums *from)
{
	call_sums_add(to, from);
	return isfinite(to->self_s) && isfinite(to->total_s) ? 0 : wrong(r, "its times are too large");
}

static int take_callers(struct reader *r, uint32_t callee, const struct call_sums *sums)
{
	struct marshal_value head = {0};
	int err = marshal_next(&r->marshal, &head);

	if (!err && head.kind != MARSHAL_IS_DICT)
		err = wrong(r, "a function's callers are no dictionary");
	while (!err) {
		struct callgraph_edge *edge;
		struct call_sums caller;
		int64_t function = MARKER;

		err = take_key(r, &function);
		if (err)
			break;
		if (function == MARKER)
			return wrong(r, "a caller is no function");
		err = take_caller(r, sums, &caller);
		if (!err && r->graph->edge_count >= EDGES_MAX)
			err = wrong(r, "its calls are too many");
		if (err)
			break;
		edge = callgraph_edge(r->graph, (uint32_t)function, callee);
		if (!edge)
			return no_memory(r);
		err = add_sums(r, &edge->sums, &caller);
		/* A call of oneself is within a call that counts. */
		edge->outer_s += (uint32_t)function == callee ? 0 : caller.total_s;
	}
	return err < 0 ? err : 0;
}

static int take_function(struct reader *r, uint32_t function)
{
	struct callgraph_function *to;
	struct marshal_value head = {0};
	struct call_sums sums = {0};
	int err = marshal_next(&r->marshal, &head);

	if (!err && (head.kind != MARSHAL_IS_TUPLE || head.index != 5))
		err = wrong(r, "a function's values are not five");
	if (!err)
		err = take_count(r, &sums.primitive_calls);
	if (!err)
		err = take_count(r, &sums.calls);
	if (!err)
		err = take_seconds(r, &sums.self_s);
	if (!err)
		err = take_seconds(r, &sums.total_s);
	if (!err)
		err = take_callers(r, function, &sums);
	if (err)
		return err;
	to = &r->graph->functions[function];
	callgraph_give_sums(r->graph, function);
	r->graph->sampled_s += sums.self_s;
	return add_sums(r, &to->sums, &sums);
}

/* What a key that is no function says: True. */
static int take_marker(struct reader *r)
{
	struct marshal_value value;
	int err = marshal_next(&r->marshal, &value);

	if (!err && (value.kind == MARSHAL_IS_TUPLE || value.kind == MARSHAL_IS_DICT || value.kind == MARSHAL_IS_NULL))
		err = wrong(r, "a value is of a type that such files do not have");
	return err;
}

/* Python's sampling profiler has the samples that end in a function where others have primitive calls, and those that hold it as all calls. */
static void mend_tachyon(struct callgraph *graph)
{
	graph->from_samples = true;
	for (uint32_t i = 0; i < graph->function_count; i++)
		graph->functions[i].sums.primitive_calls = graph->functions[i].sums.calls;
}

static void take_fact(struct callgraph *graph, const char *line, size_t bytes)
{
	struct buf text = {0};
	const char *colon;

	buf_add(&text, line, bytes);
	colon = strstr(buf_text(&text), ": ");
	if (strncmp(buf_text(&text), PSTATS_UNIT, strlen(PSTATS_UNIT)) == 0) {
		callgraph_set_unit(graph, colon + 2);
		graph->is_time = false;
	} else if (colon) {
		text.data[colon - buf_text(&text)] = '\0';
		callgraph_fact(graph, text.data, colon + 2);
	}
	if (text.err)
		graph->err = text.err;
	buf_release(&text);
}

/* The accounting behind it. Anything else there is not ours to judge. */
static int take_facts(struct reader *r)
{
	const unsigned char *head;
	struct marshal_value value;
	const char *text, *end;
	size_t bytes;

	if (input_peek(r->marshal.in, &head, 1) == 0 || head[0] != MARSHAL_UNICODE)
		return 0;
	if (marshal_next(&r->marshal, &value) || value.kind != MARSHAL_IS_TEXT)
		return 0;
	text = text_set_get(&r->marshal.texts, value.index, &bytes);
	end = text + bytes;
	if (bytes < strlen(PSTATS_FACTS) || memcmp(text, PSTATS_FACTS, strlen(PSTATS_FACTS)) != 0)
		return 0;
	text += strlen(PSTATS_FACTS);
	r->graph->from_samples =
		end - text < (ptrdiff_t)strlen(PSTATS_CALLS) || memcmp(text, PSTATS_CALLS, strlen(PSTATS_CALLS)) != 0;
	for (text += r->graph->from_samples ? 0 : strlen(PSTATS_CALLS); text < end && !r->graph->err;) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t length = newline ? (size_t)(newline - text) : (size_t)(end - text);

		take_fact(r->graph, text, length);
		text += newline ? length + 1 : length;
	}
	return r->graph->err ? no_memory(r) : 0;
}

int pstats_read(struct input *from, struct callgraph *to, struct fault *fault)
{
	struct reader r = {.marshal = {.in = from, .fault = fault}, .graph = to};
	struct marshal_value head = {0};
	int err = marshal_next(&r.marshal, &head);

	if (!err && head.kind != MARSHAL_IS_DICT)
		err = wrong(&r, "it is no dictionary");
	if (!err && to->value && strcasecmp(to->value, "time") != 0)
		err = fault_set(fault, -EINVAL, "", "it has no value %.60s; its values: time", to->value);
	while (!err) {
		int64_t function = MARKER;

		err = take_key(&r, &function);
		if (!err)
			err = function == MARKER ? take_marker(&r) : take_function(&r, (uint32_t)function);
	}
	if (err > 0) {
		if (r.is_tachyon)
			mend_tachyon(to);
		err = take_facts(&r);
	}
	marshal_release(&r.marshal);
	return err;
}
