/* SPDX-License-Identifier: Apache-2.0 */
/* Reads profiles of the Firefox Profiler: "processed" ones, which its page saves, and samply, Tachyon and we write (columns: {"stack":[…],"time":
 * […]}), and those of Firefox itself ("Gecko": rows, {"schema":{"stack":0,"time":1},"data":[[…]]}, other processes within). Both are tables of
 * samples, stacks, frames, functions and texts that name each other by number; a table is the thread's own, or, in later versions, shared by all.
 *
 * A count is a sample's weight, and its time that times the interval, as the page shows it; where weights are times, they are that.
 *
 * Files are read whole, since a thread's tables may come in any order; how large is bounded by json_read(). */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/formats.h"
#include "exporters/gecko_tables.h"
#include "exporters/json_head.h"
#include "exporters/json_read.h"

enum { PROCESSES_DEEP = 8, STACKS_MAX = 1 << 24 };

struct gecko {
	struct builder *to;
	const struct json_tree *tree;
	const struct json_value *shared; /* of all threads; NULL: each has its own tables */
	double interval_ms;
	uint64_t start_ns;  /* in front of all times: 0 is none here */
	uint64_t bad, late; /* samples: without a stack or time that makes sense; out of order */
	bool weights_are_times, has_untimed;
	struct fault *fault;
};

/* --- texts and symbols --- */

static struct span text_at(const struct json_tree *tree, const struct json_value *strings,
                           const struct json_value *number)
{
	uint64_t index = json_index(number, UINT32_MAX);

	struct span none = {.at = ""};

	return index == UINT64_MAX ? none : json_text(tree, json_at(tree, strings, index));
}

/* Of Firefox itself: "f (file:line:column)", "f (file:line)", or a bare name. */
static void split_location(struct span *name, struct span *file, uint32_t *line)
{
	const char *open =
		name->bytes > 3 && name->at[name->bytes - 1] == ')' ? memmem(name->at, name->bytes, " (", 2) : NULL;
	struct span in;

	if (!open)
		return;
	in = (struct span){.at = open + 2, .bytes = (size_t)(name->at + name->bytes - open) - 3};
	for (int i = 0; i < 2; i++) {
		const char *colon = memrchr(in.at, ':', in.bytes);
		struct span number = colon ? span_behind(in, (size_t)(colon - in.at) + 1) : (struct span){.at = ""};
		uint64_t value = 0;
		bool good = number.bytes > 0 && number.bytes < 10;

		for (size_t c = 0; good && c < number.bytes; c++) {
			good = is_digit(number.at[c]);
			value = value * 10 + (uint64_t)(number.at[c] - '0');
		}
		if (!good)
			break;
		*line = (uint32_t)value;
		in.bytes = (size_t)(colon - in.at);
	}
	*file = in;
	name->bytes = (size_t)(open - name->at);
}

/* What names a thread's frames. */
struct names {
	struct gecko_table frames, functions, sources, resources, libs;
	const struct json_value *strings;
};

static struct names names_of(const struct gecko *g, const struct json_value *thread)
{
	struct names n = {.frames = gecko_table(g->tree, g->shared, thread, "frameTable"),
	                  .functions = gecko_table(g->tree, g->shared, thread, "funcTable"),
	                  .sources = gecko_table(g->tree, g->shared, thread, "sources"),
	                  .resources = gecko_table(g->tree, g->shared, thread, "resourceTable")};

	n.strings = json_member(g->tree, thread, "stringTable");
	n.strings = n.strings ? n.strings : json_member(g->tree, thread, "stringArray");
	n.strings = n.strings ? n.strings : json_member(g->tree, g->shared, "stringArray");
	return n;
}

static struct span file_of(const struct gecko *g, const struct names *n, uint64_t function)
{
	struct gecko_column files = gecko_column(&n->functions, "fileName"), sources = gecko_column(&n->functions, "source"),
		      names = gecko_column(&n->sources, "filename"), resources = gecko_column(&n->functions, "resource"),
		      resource_names = gecko_column(&n->resources, "name");
	struct span file = text_at(g->tree, n->strings, gecko_cell(&files, NULL, function));
	uint64_t index;

	if (file.bytes)
		return file;
	index = json_index(gecko_cell(&sources, NULL, function), UINT32_MAX);
	if (index != UINT64_MAX)
		file = text_at(g->tree, n->strings, gecko_cell(&names, NULL, index));
	index = json_index(gecko_cell(&resources, NULL, function), UINT32_MAX);
	if (!file.bytes && index != UINT64_MAX) /* a library */
		file = text_at(g->tree, n->strings, gecko_cell(&resource_names, NULL, index));
	return file;
}

struct frame_name {
	uint32_t symbol, line;
};

/* row: of the frame, where the table has rows. */
static struct frame_name frame_name(const struct gecko *g, const struct names *n, const struct json_value *row,
                                    uint64_t index)
{
	struct gecko_column functions = gecko_column(&n->frames, "func"), lines = gecko_column(&n->frames, "line"),
		      locations = gecko_column(&n->frames, "location"), names = gecko_column(&n->functions, "name"),
		      first_lines = gecko_column(&n->functions, "lineNumber"), js = gecko_column(&n->functions, "isJS");
	struct span name, file = {.at = ""};
	uint64_t function = json_index(gecko_cell(&functions, row, index), UINT32_MAX),
		 number = json_index(gecko_cell(&lines, row, index), UINT32_MAX);
	uint32_t first_line = 0, line = number == UINT64_MAX ? 0 : (uint32_t)number;
	bool special, native = false;

	if (function != UINT64_MAX) {
		name = text_at(g->tree, n->strings, gecko_cell(&names, NULL, function));
		file = file_of(g, n, function);
		number = json_index(gecko_cell(&first_lines, NULL, function), UINT32_MAX);
		first_line = number == UINT64_MAX ? 0 : (uint32_t)number;
		native = gecko_cell(&js, NULL, function) && gecko_cell(&js, NULL, function)->type == JSON_FALSE && !first_line &&
		         !line;
	} else {
		name = text_at(g->tree, n->strings, gecko_cell(&locations, row, index));
		split_location(&name, &file, &line);
	}
	if (file.bytes == 1 && file.at[0] == '~') /* of Tachyon's special frames */
		file.bytes = 0;
	special = !file.bytes && name.bytes && name.at[0] == '<';
	return (struct frame_name){.symbol =
	                                   builder_symbol(g->to, name.bytes ? name.at : "<unknown>",
	                                                  name.bytes ? name.bytes : 9, file.at, file.bytes, first_line,
	                                                  special  ? FRAME_SPECIAL
	                                                  : native ? FRAME_NATIVE
	                                                           : FRAME_PYTHON,
	                                                  0),
	                           .line = line};
}

/* --- a thread --- */

/* Each stack's node, parents first, as they stand in the table. NULL: no memory, or it makes no sense, which *fault says. */
static uint32_t *make_nodes(struct gecko *g, const struct json_value *value, uint32_t thread, uint64_t *ret_count)
{
	struct gecko_table stacks = gecko_table(g->tree, g->shared, value, "stackTable");
	struct gecko_column prefixes = gecko_column(&stacks, "prefix"), frames = gecko_column(&stacks, "frame");
	struct names names = names_of(g, value);
	uint32_t *nodes = stacks.length < STACKS_MAX ? calloc(stacks.length + 1, sizeof(*nodes)) : NULL;
	struct frame_name *known =
		names.frames.length < STACKS_MAX ? calloc(names.frames.length + 1, sizeof(*known)) : NULL;
	const struct json_value *row = stacks.columns ? NULL : json_first(stacks.rows);
	const struct json_value *frame_row = names.frames.columns ? NULL : json_first(names.frames.rows);
	uint64_t count = nodes && known ? stacks.length : 0;

	for (uint64_t i = 0; known && i < names.frames.length; i++) {
		known[i] = frame_name(g, &names, frame_row, i);
		frame_row = frame_row ? json_after(g->tree, names.frames.rows, frame_row) : NULL;
	}
	for (uint64_t i = 0; i < count && !builder_error(g->to); i++) {
		uint64_t prefix = json_index(gecko_cell(&prefixes, row, i), UINT32_MAX),
			 frame = json_index(gecko_cell(&frames, row, i), UINT32_MAX);

		if (frame >= names.frames.length || (prefix != UINT64_MAX && prefix >= i)) {
			fault_set(g->fault, -EPROTO, "", "stack %" PRIu64 " of a thread names what there is not", i);
			free(nodes);
			nodes = NULL;
			break;
		}
		nodes[i] = builder_child(g->to, thread, prefix == UINT64_MAX ? 0 : nodes[prefix], known[frame].symbol,
		                         known[frame].line);
		row = row ? json_after(g->tree, stacks.rows, row) : NULL;
	}
	if (!known && nodes) {
		free(nodes);
		nodes = NULL;
	}
	if (!nodes && g->fault->why[0] == '\0')
		fault_set(g->fault, -ENOMEM, "", "out of memory");
	free(known);
	*ret_count = stacks.length;
	return nodes;
}

struct sample {
	double time_ms; /* NAN: it has none */
	double weight;
	uint32_t node;
};

static void add_sample(struct gecko *g, uint32_t thread, const struct sample *sample)
{
	uint64_t values[VALUE_COUNT] = {0}, ns;
	double weight_ms = g->weights_are_times ? sample->weight : sample->weight * g->interval_ms;
	uint64_t weight_ns = weight_ms > 0 && weight_ms < 1e12 ? (uint64_t)llround(weight_ms * 1e6) : 0;
	uint64_t count = g->weights_are_times ? 1 : sample->weight < 1e12 ? (uint64_t)llround(sample->weight) : 0;

	if (builder_keeps_runs(g->to) || builder_has_window(g->to)) {
		if (isnan(sample->time_ms)) {
			g->has_untimed = true;
			return;
		}
		ns = g->start_ns + (uint64_t)llround(sample->time_ms * 1e6);
		builder_run(g->to, thread, sample->node, ns, ns, count, weight_ns, STATUS_UNKNOWN);
		return;
	}
	values[VALUE_SAMPLES] = count;
	values[VALUE_WALL] = weight_ns;
	builder_add(g->to, thread, sample->node, values);
}

static int add_samples(struct gecko *g, const struct json_value *value, uint32_t thread)
{
	struct gecko_table samples = gecko_table(g->tree, g->shared, value, "samples");
	struct gecko_column stacks = gecko_column(&samples, "stack"), times = gecko_column(&samples, "time"),
		      deltas = gecko_column(&samples, "timeDeltas"), weights = gecko_column(&samples, "weight");
	const struct json_value *row = samples.columns ? NULL : json_first(samples.rows);
	const struct json_value *type = samples.columns ? json_member(g->tree, samples.columns, "weightType") : NULL;
	uint64_t count;
	uint32_t *nodes = make_nodes(g, value, thread, &count);
	double now_ms = 0;

	if (!nodes)
		return g->fault->err;
	g->weights_are_times = json_is(g->tree, type, "tracing-ms");
	builder_profile(g->to)->uncounted |= g->weights_are_times && samples.length > 0;
	for (uint64_t i = 0; i < samples.length && !builder_error(g->to); i++) {
		uint64_t stack = json_index(gecko_cell(&stacks, row, i), UINT32_MAX);
		const struct json_value *at = gecko_cell(&stacks, row, i);
		struct sample sample = {.weight = json_number(gecko_cell(&weights, row, i), 1),
		                        .time_ms = json_number(gecko_cell(&times, row, i), NAN)};

		now_ms += json_number(gecko_cell(&deltas, row, i), 0);
		if (isnan(sample.time_ms) && deltas.values)
			sample.time_ms = now_ms;
		if (!(sample.time_ms >= 0 && sample.time_ms < 1e12))
			sample.time_ms = NAN;
		row = row ? json_after(g->tree, samples.rows, row) : NULL;
		if ((at && at->type == JSON_NUMBER && stack >= count) || sample.weight < 0) {
			g->bad++;
			continue;
		}
		sample.node = stack < count ? nodes[stack] : 0;
		add_sample(g, thread, &sample);
	}
	free(nodes);
	return builder_error(g->to);
}

static int add_thread(struct gecko *g, const struct json_value *value)
{
	struct span name = json_text(g->tree, json_member(g->tree, value, "name")),
		    process_name = json_text(g->tree, json_member(g->tree, value, "processName"));
	struct span pid_text = json_text(g->tree, json_member(g->tree, value, "pid")),
		    tid_text = json_text(g->tree, json_member(g->tree, value, "tid"));
	uint64_t pid = json_index(json_member(g->tree, value, "pid"), INT32_MAX),
		 tid = json_index(json_member(g->tree, value, "tid"), UINT64_C(1) << 53);
	const struct json_value *is_main = json_member(g->tree, value, "isMainThread");
	struct buf names = {0};
	struct process process = {0};
	struct thread_tree like = {0};
	uint32_t thread;

	buf_add(&names, process_name.at, process_name.bytes);
	buf_putc(&names, '\0');
	buf_add(&names, name.at, name.bytes);
	buf_putc(&names, '\0');
	buf_add(&names, pid_text.at, pid_text.bytes);
	buf_putc(&names, '\0');
	buf_add(&names, tid_text.at, tid_text.bytes);
	buf_putc(&names, '\0');
	if (names.err)
		return fault_set(g->fault, -ENOMEM, "", "out of memory");
	process.name = process_name.bytes ? names.data : NULL;
	like.name = name.bytes ? names.data + process_name.bytes + 1 : NULL;
	pid = pid != UINT64_MAX ? pid : strtoull(names.data + process_name.bytes + name.bytes + 2, NULL, 10);
	process.pid = pid <= INT32_MAX ? (int32_t)pid : 0;
	like.tid = tid != UINT64_MAX
	                   ? tid
	                   : strtoull(names.data + process_name.bytes + name.bytes + pid_text.bytes + 3, NULL, 10);
	like.is_main = is_main ? is_main->type == JSON_TRUE : strcmp(like.name ? like.name : "", "GeckoMain") == 0;
	like.process = builder_process(g->to, &process);
	thread = like.process == BUILDER_NONE ? BUILDER_NONE : builder_new_thread(g->to, &like);
	buf_release(&names);
	if (thread == BUILDER_NONE)
		return fault_set(g->fault, builder_error(g->to), "", "out of memory");
	return add_samples(g, value, thread);
}

/* Threads of a process, and of those whose profiles are within. */
static int add_process(struct gecko *g, const struct json_value *of, uint32_t depth)
{
	const struct json_value *threads = json_member(g->tree, of, "threads"),
				*within = json_member(g->tree, of, "processes");
	const struct json_value *meta = json_member(g->tree, of, "meta"), *shared = g->shared;
	int err = 0;

	g->shared = json_member(g->tree, of, "shared");
	g->interval_ms = json_number(json_member(g->tree, meta, "interval"), 1);
	g->interval_ms = g->interval_ms > 0 && g->interval_ms < 1e7 ? g->interval_ms : 1;
	if (depth == 0)
		builder_profile(g->to)->interval_ns = (uint64_t)llround(g->interval_ms * 1e6);
	for (const struct json_value *v = json_first(threads); v && !err; v = json_after(g->tree, threads, v))
		err = add_thread(g, v);
	for (const struct json_value *v = json_first(within); v && !err && depth < PROCESSES_DEEP;
	     v = json_after(g->tree, within, v))
		err = add_process(g, v, depth + 1);
	g->shared = shared;
	return err;
}

int gecko_read(struct input *from, struct builder *to, struct fault *fault)
{
	struct json_tree tree = {0};
	struct gecko g = {.to = to, .tree = &tree, .fault = fault, .start_ns = 1};
	const struct json_value *meta;
	double start_ms;
	int err = json_read(&tree, from, fault);

	if (err)
		return err;
	builder_profile(to)->imported = true;
	builder_value(to, profile_value_types[VALUE_WALL].name, profile_value_types[VALUE_WALL].unit, VALUE_WALL);
	builder_set_start(to, g.start_ns);
	meta = json_member(&tree, json_root(&tree), "meta");
	start_ms = json_number(json_member(&tree, meta, "startTime"), 0);
	if (start_ms >= 1e12 && start_ms < 1e13)
		builder_profile(to)->wall_start_ns = (uint64_t)(start_ms * 1e6);
	if (!json_member(&tree, json_root(&tree), "threads"))
		err = fault_set(fault, -EPROTO, "", "it has no \"threads\"");
	if (!err)
		err = add_process(&g, json_root(&tree), 0);
	if (!err && g.has_untimed)
		err = fault_set(fault, -EINVAL, "", "there are samples without a time in it");
	if (err && fault->why[0] == '\0')
		fault_set(fault, err, "", "%s", strerror(-err));
	if (g.bad)
		builder_note(to, "bad_samples", "samples left out: no such stack, or a weight below zero",
		             (double)g.bad, true);
	json_tree_release(&tree);
	return err;
}

bool gecko_detect(const unsigned char *head, size_t bytes)
{
	if (!json_begins(head, bytes, '{') || !json_has_key(head, bytes, "meta"))
		return false;
	return json_has_key(head, bytes, "preprocessedProfileVersion") || json_has_key(head, bytes, "stackTable") ||
	       (json_has_key(head, bytes, "interval") && json_has_key(head, bytes, "processType"));
}
