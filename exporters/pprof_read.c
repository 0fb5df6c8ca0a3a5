/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pprof files of any writer: ours, Go's runtime, perf_to_profile, Parca, py-spy and what else there is. The file is gone over twice, for the
 * tables and for the samples, so memory is that of the tables and of the tree. What a writer got wrong but can be counted is counted and
 * said in notes; a file that is not protobuf is refused at the byte where that shows.
 *
 * The tables and the comments are files of their own; here is what a sample passes through, from its types to its node. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "exporters/formats.h"
#include "exporters/pprof.h"
#include "exporters/pprof_said.h"
#include "exporters/pprof_tables.h"

/* Of a sample: the deepest stack, a million labels. */
enum { SAMPLE_MAX_BYTES = 16 << 20, PROCESSES_MAX = 4096 };
/* Of standard input, unpacked. */
#define KEPT_MAX_BYTES (UINT64_C(16) << 30)

struct column {
	uint32_t place; /* enum value_index; BUILDER_NONE: left out */
	uint64_t scale; /* to nanoseconds, where it is a time */
	uint64_t sum;
};

/* What went wrong in samples. */
struct doubts {
	uint64_t misfits;    /* not as many values as types */
	uint64_t negative;   /* values */
	uint64_t overflows;  /* values that do not fit into the sum */
	uint64_t references; /* to locations, functions or strings that are not there */
	uint64_t deep;       /* stacks that were cut */
	uint64_t labels;     /* that are not kept */
	uint64_t processes;  /* samples of processes beyond PROCESSES_MAX */
};

struct frame_at {
	uint32_t symbol, line;
};

struct pprof_reader {
	struct pprof_tables tables;
	struct pprof_said said;
	struct builder *to;
	struct pb_stream stream;
	struct column columns[PPROF_TYPES_MAX];
	unsigned column_count;
	bool count_records; /* no type counts samples */
	uint32_t process;   /* of samples without a pid; BUILDER_NONE: none yet */
	struct pair_set pids;
	uint32_t pid_processes[PROCESSES_MAX]; /* by number in pids */
	struct doubts doubts;
	struct buf text;
	/* The sample at hand. */
	struct buf ids; /* uint64_t, leaf first, as many as fit */
	uint64_t id_count, value_count;
	int64_t values[PPROF_TYPES_MAX];
	uint64_t tid, pid;
	uint64_t thread_name; /* string */
	/* The thread of the sample before, and what it was known by. */
	uint32_t thread;
	uint64_t last_tid, last_pid, last_name;
	struct frame_at frames[REC_DEPTH_MAX];
};

/* --- what the values are --- */

static bool is_text(const struct pprof_tables *t, uint64_t string, const char *text)
{
	size_t bytes;
	const char *have = pprof_string(t, string, &bytes);

	return have && bytes == strlen(text) && memcmp(have, text, bytes) == 0;
}

static bool is_type(const struct pprof_tables *t, unsigned i, const char *name, const char *unit)
{
	return is_text(t, t->types[i].name, name) && is_text(t, t->types[i].unit, unit);
}

static bool is_count(const struct pprof_tables *t, unsigned i)
{
	return is_text(t, t->types[i].unit, "count");
}

/* A text of the file as a C string, in r->text. "" where there is none. */
static const char *text_of(struct pprof_reader *r, uint64_t string)
{
	size_t bytes;
	const char *text = pprof_string(&r->tables, string, &bytes);

	r->text.bytes = 0;
	buf_add(&r->text, text ? text : "", text ? bytes : 0);
	return buf_text(&r->text);
}

/* What shares are of: our own wall time; or the type that the file says is to be shown, which without a word is the last. */
static unsigned weight_type(const struct pprof_tables *t, unsigned count)
{
	unsigned shown = count - 1;

	for (unsigned i = 0; i < count; i++)
		if (is_type(t, i, "wall", "nanoseconds"))
			return i;
	for (unsigned i = 0; i < count && t->default_type; i++)
		if (t->types[i].name == t->default_type)
			shown = i;
	return shown;
}

/* What counts samples: "samples", or else a count beside the weight ("contentions", "inuse_objects"), or the weight itself if it is a count. `count`:
 * nothing does. */
static unsigned samples_type(const struct pprof_tables *t, unsigned count, unsigned weight)
{
	for (unsigned i = 0; i < count; i++)
		if (is_type(t, i, "samples", "count") || is_type(t, i, "sample", "count"))
			return i;
	for (unsigned i = weight; i > 0; i--)
		if (is_count(t, i - 1))
			return i - 1;
	if (is_count(t, weight))
		return weight;
	for (unsigned i = weight + 1; i < count; i++)
		if (is_count(t, i))
			return i;
	return count;
}

static uint64_t scale_to_ns(const char *unit)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {{"microseconds", NS_PER_S / 1000000},
	             {"us", NS_PER_S / 1000000},
	             {"milliseconds", NS_PER_MS},
	             {"ms", NS_PER_MS},
	             {"seconds", NS_PER_S},
	             {"s", NS_PER_S}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(unit, units[i].unit) == 0)
			return units[i].ns;
	return 1;
}

/* Gives a type a place in the profile. */
static void place_type(struct pprof_reader *r, unsigned i, enum value_index index, bool beside_wall)
{
	const struct pprof_type *type = &r->tables.types[i];
	struct column *column = &r->columns[i];
	char unit[64], name[64];

	column->scale = scale_to_ns(text_of(r, type->unit));
	snprintf(unit, sizeof(unit), "%s", column->scale > 1 ? "nanoseconds" : text_of(r, type->unit));
	/* Ours is called so in files, where everybody knows it by that name. */
	if (beside_wall && is_type(&r->tables, i, "cpu", "nanoseconds"))
		snprintf(name, sizeof(name), "on_cpu");
	else
		snprintf(name, sizeof(name), "%s", text_of(r, type->name));
	column->place = builder_value(r->to, name, unit, index);
	for (unsigned other = 0; other < i; other++)
		if (column->place != BUILDER_NONE && r->columns[other].place == column->place)
			column->place = BUILDER_NONE; /* the same type twice */
}

static void place_types(struct pprof_reader *r)
{
	const struct pprof_tables *t = &r->tables;
	unsigned count = r->column_count = t->type_count < PPROF_TYPES_MAX ? (unsigned)t->type_count : PPROF_TYPES_MAX;
	unsigned weight = weight_type(t, count), samples = samples_type(t, count, weight);
	bool has_wall = is_type(t, weight, "wall", "nanoseconds");
	uint64_t left_out = t->type_count - count;
	char label[160];

	for (unsigned i = 0; i < count; i++)
		r->columns[i] = (struct column){.place = BUILDER_NONE, .scale = 1};
	if (samples < count)
		r->columns[samples].place = VALUE_SAMPLES;
	if (weight != samples)
		place_type(r, weight, VALUE_WALL, has_wall);
	for (unsigned i = 0; i < count; i++) {
		if (i != weight && i != samples)
			place_type(r, i, VALUE_ON_CPU, has_wall);
		left_out += r->columns[i].place == BUILDER_NONE;
	}
	r->count_records = samples == count;
	if (r->count_records)
		builder_note(r->to, "samples_are_records", "samples are the file's records, being",
		             (double)t->sample_count, false);
	else if (!is_text(t, t->types[samples].name, "samples")) {
		snprintf(label, sizeof(label), "samples are what the file counts as %.64s, type",
		         text_of(r, t->types[samples].name));
		builder_note(r->to, "samples_type", label, samples + 1, false);
	}
	if (left_out)
		builder_note(r->to, "types_left_out", "types of values left out: no room", (double)left_out, true);
}

/* --- frames --- */

static const char *base_name(const char *path, size_t *bytes)
{
	const char *slash = memrchr(path, '/', *bytes);

	if (slash) {
		*bytes -= (size_t)(slash + 1 - path);
		path = slash + 1;
	}
	return path;
}

static const char *string_or_empty(struct pprof_reader *r, uint64_t string, size_t *ret_bytes)
{
	const char *text = pprof_string(&r->tables, string, ret_bytes);

	if (text)
		return text;
	r->doubts.references++;
	*ret_bytes = 0;
	return "";
}

static uint32_t special_symbol(struct pprof_reader *r, const char *name)
{
	return builder_symbol(r->to, name, strlen(name), "", 0, 0, FRAME_SPECIAL, 0);
}

static uint32_t function_symbol(struct pprof_reader *r, uint64_t id)
{
	struct pprof_function *f = pprof_function(&r->tables, id);
	size_t name_bytes, file_bytes;
	const char *name, *file;
	bool is_special;

	if (!f) {
		r->doubts.references++;
		return special_symbol(r, "<unknown>");
	}
	if (f->symbol != BUILDER_NONE)
		return f->symbol;
	name = string_or_empty(r, f->name, &name_bytes);
	if (name_bytes == 0)
		name = string_or_empty(r, f->system_name, &name_bytes);
	file = string_or_empty(r, f->file, &file_bytes);
	is_special = file_bytes == 0 && (name_bytes == 0 || name[0] == '<' || name[0] == '(');
	if (name_bytes == 0) {
		name = "<unknown>";
		name_bytes = strlen(name);
	}
	f->symbol = builder_symbol(r->to, name, name_bytes, file, file_bytes, f->first_line,
	                           is_special ? FRAME_SPECIAL : FRAME_PYTHON, 0);
	return f->symbol;
}

/* A location without functions: its address, in the file that is mapped there. */
static uint32_t address_symbol(struct pprof_reader *r, struct pprof_location *location)
{
	char name[32];
	size_t bytes;
	const char *file;

	if (location->symbol == BUILDER_NONE) {
		file = string_or_empty(r, pprof_mapping_file(&r->tables, location->mapping), &bytes);
		file = base_name(file, &bytes);
		snprintf(name, sizeof(name), "<0x%" PRIx64 ">", location->address);
		location->symbol = builder_symbol(r->to, name, strlen(name), file, bytes, 0,
		                                  bytes > 0 ? FRAME_NATIVE : FRAME_SPECIAL, 0);
	}
	return location->symbol;
}

/* The frames of a location into r->frames behind `depth`, innermost first; the new depth, at most REC_DEPTH_MAX. *cut is set when more would
 * follow. */
static unsigned add_frames(struct pprof_reader *r, unsigned depth, uint64_t id, bool *cut)
{
	struct pprof_location *location = pprof_location(&r->tables, id);
	const struct pprof_line *lines;
	uint32_t taken = 0;

	if (!location) {
		r->doubts.references++;
		r->frames[depth++] = (struct frame_at){.symbol = special_symbol(r, "<unknown>")};
		return depth;
	}
	if (location->line_count == 0) {
		r->frames[depth++] = (struct frame_at){.symbol = address_symbol(r, location)};
		return depth;
	}
	lines = pprof_lines(&r->tables, location);
	while (taken < location->line_count && depth < REC_DEPTH_MAX) {
		uint32_t symbol = function_symbol(r, lines[taken].function);

		r->frames[depth++] = (struct frame_at){.symbol = symbol, .line = lines[taken++].number};
	}
	*cut |= taken < location->line_count;
	return depth;
}

static uint32_t find_node(struct pprof_reader *r, uint32_t thread)
{
	const uint64_t *ids = (const uint64_t *)(const void *)r->ids.data;
	uint64_t count = r->ids.bytes / sizeof(*ids), taken = 0;
	unsigned depth = 0;
	uint32_t node = 0;
	bool cut = false;

	for (; taken < count && depth < REC_DEPTH_MAX; taken++)
		depth = add_frames(r, depth, ids[taken], &cut);
	if (cut || taken < r->id_count) {
		r->doubts.deep++;
		depth = depth == REC_DEPTH_MAX ? depth - 1 : depth;
		node = builder_child(r->to, thread, node, special_symbol(r, "<truncated>"), 0);
	}
	while (depth-- > 0)
		node = builder_child(r->to, thread, node, r->frames[depth].symbol, r->frames[depth].line);
	return node;
}

/* --- threads --- */

/* A number that some writers put as a text: what its digits say; 0 where there are none. */
static uint64_t label_number(struct pprof_reader *r, uint64_t string, uint64_t number)
{
	return string ? strtoull(text_of(r, string), NULL, 10) : number;
}

static int take_label(struct pprof_reader *r, struct pb_message m)
{
	uint64_t key = 0, string = 0, number = 0;
	struct pb_field field;

	while (pb_next(&m, &field)) {
		if (field.wire != PB_VARINT)
			continue;
		if (field.number == PPROF_LABEL_KEY)
			key = field.value;
		else if (field.number == PPROF_LABEL_STR)
			string = field.value;
		else if (field.number == PPROF_LABEL_NUM)
			number = field.value;
	}
	if (is_text(&r->tables, key, "thread") || is_text(&r->tables, key, "thread_name") ||
	    is_text(&r->tables, key, "thread name"))
		r->thread_name = string;
	else if (is_text(&r->tables, key, "tid") || is_text(&r->tables, key, "thread_id"))
		r->tid = label_number(r, string, number);
	else if (is_text(&r->tables, key, "pid") || is_text(&r->tables, key, "process_id"))
		r->pid = label_number(r, string, number);
	else
		r->doubts.labels++;
	return m.malformed ? -EPROTO : 0;
}

/* The process that samples without a pid are of: the one that the file names, or else the first mapping, which is the program itself. */
static uint32_t only_process(struct pprof_reader *r)
{
	const uint64_t *files = (const uint64_t *)(const void *)r->tables.mapping_files.data;
	struct process process = {0};

	if (r->process != BUILDER_NONE)
		return r->process;
	if (r->said.process_count == 1) {
		process.pid = r->said.processes[0].pid;
		process.name = r->said.processes[0].name;
	} else if (r->said.process_count == 0 && r->tables.mapping_files.bytes > 0) {
		process.name = (char *)(uintptr_t)text_of(r, files[0]); /* it is copied */
	}
	r->process = builder_process(r->to, &process);
	return r->process;
}

/* The process with this pid, which is added; a profile has at most PROCESSES_MAX of them. */
static uint32_t process_of(struct pprof_reader *r, uint64_t pid)
{
	struct process process = {.pid = (int32_t)pid};
	uint32_t at;

	if (pid == 0 || pid > INT32_MAX)
		return only_process(r);
	at = pair_set_find(&r->pids, (uint32_t)pid, 0);
	if (at != INTERN_FAILED)
		return r->pid_processes[at];
	if (r->pids.count == PROCESSES_MAX) {
		r->doubts.processes++;
		return only_process(r);
	}
	at = pair_set_add(&r->pids, (uint32_t)pid, 0);
	if (at == INTERN_FAILED)
		return BUILDER_NONE;
	process.name = pprof_said_name(&r->said, process.pid);
	return r->pid_processes[at] = builder_process(r->to, &process);
}

static uint32_t find_thread(struct pprof_reader *r)
{
	struct thread_tree like = {.tid = r->tid};

	if (r->thread != BUILDER_NONE && r->tid == r->last_tid && r->pid == r->last_pid &&
	    r->thread_name == r->last_name)
		return r->thread;
	like.process = process_of(r, r->pid);
	like.is_main = like.process != BUILDER_NONE && r->tid &&
	               (int64_t)r->tid == builder_profile(r->to)->processes[like.process].pid;
	if (r->thread_name)
		like.name = (char *)(uintptr_t)text_of(r, r->thread_name); /* it is copied */
	r->thread = builder_thread(r->to, &like);
	r->last_tid = r->tid;
	r->last_pid = r->pid;
	r->last_name = r->thread_name;
	return r->thread;
}

/* --- samples --- */

static void take_location(struct pprof_reader *r, uint64_t id)
{
	if (r->id_count++ < REC_DEPTH_MAX)
		buf_add(&r->ids, &id, sizeof(id));
}

static void take_value(struct pprof_reader *r, uint64_t value)
{
	if (r->value_count < PPROF_TYPES_MAX)
		r->values[r->value_count] = (int64_t)value;
	r->value_count++;
}

/* Locations and values, packed or one by one. */
static int take_numbers(const struct pb_field *field, struct pprof_reader *r,
                        void (*take)(struct pprof_reader *r, uint64_t number))
{
	struct pb_message packed;
	uint64_t number;

	if (field->wire == PB_VARINT) {
		take(r, field->value);
		return 0;
	}
	if (field->wire != PB_BYTES)
		return -EPROTO;
	packed = pb_message_of(field);
	while (pb_next_packed(&packed, &number))
		take(r, number);
	return packed.malformed ? -EPROTO : 0;
}

/* Takes the sample apart that stands in tables.field. */
static int take_sample(struct pprof_reader *r)
{
	struct pb_message m = pb_message_in(&r->tables.field);
	struct pb_field field;
	int err = 0;

	r->ids.bytes = 0;
	r->id_count = r->value_count = 0;
	r->tid = r->pid = r->thread_name = 0;
	while (!err && pb_next(&m, &field))
		if (field.number == PPROF_SAMPLE_LOCATION)
			err = take_numbers(&field, r, take_location);
		else if (field.number == PPROF_SAMPLE_VALUE)
			err = take_numbers(&field, r, take_value);
		else if (field.number == PPROF_SAMPLE_LABEL)
			err = field.wire == PB_BYTES ? take_label(r, pb_message_of(&field)) : -EPROTO;
	return err ? err : m.malformed ? -EPROTO : r->ids.err;
}

/* A value as the tree has it: not negative, and small enough that the profile's sum stays within 63 bits. */
static uint64_t kept_value(struct pprof_reader *r, struct column *column, int64_t value)
{
	uint64_t kept;

	if (value < 0) {
		r->doubts.negative++;
		return 0;
	}
	if (__builtin_mul_overflow((uint64_t)value, column->scale, &kept) || kept > (uint64_t)INT64_MAX - column->sum) {
		r->doubts.overflows++;
		return 0;
	}
	column->sum += kept;
	return kept;
}

static void add_sample(struct pprof_reader *r)
{
	uint64_t values[VALUE_COUNT] = {0};
	uint32_t thread;

	if (r->value_count != r->tables.type_count) {
		r->doubts.misfits++;
		return;
	}
	for (unsigned i = 0; i < r->column_count; i++)
		if (r->columns[i].place != BUILDER_NONE)
			values[r->columns[i].place] = kept_value(r, &r->columns[i], r->values[i]);
	if (r->count_records)
		values[VALUE_SAMPLES] = 1;
	thread = find_thread(r);
	builder_add(r->to, thread, find_node(r, thread), values);
}

static int read_samples(struct pprof_reader *r, struct fault *fault)
{
	struct pb_field field;
	int err = 0;

	while (pb_stream_next(&r->stream, &field)) {
		if (field.number != PPROF_SAMPLE) {
			if (!pb_stream_skip(&r->stream, &field))
				break;
			continue;
		}
		if (field.value > SAMPLE_MAX_BYTES)
			return fault_set(fault, -EPROTO, "",
			                 "a sample at byte %" PRIu64 " (unpacked) has more than 16 MiB",
			                 r->stream.field_off);
		if (!pb_stream_take(&r->stream, &field, &r->tables.field, SAMPLE_MAX_BYTES))
			break;
		err = take_sample(r);
		if (err)
			return pprof_fault(&r->stream, err, "a sample", fault);
		add_sample(r);
		if (builder_error(r->to))
			return fault_set(fault, builder_error(r->to), "", "out of memory");
	}
	return r->stream.err ? pprof_fault(&r->stream, r->stream.err, "a sample", fault) : 0;
}

/* --- the whole --- */

static void note_doubts(struct pprof_reader *r)
{
	const struct pprof_tables *t = &r->tables;
	const struct {
		const char *key, *label;
		uint64_t count;
		bool loss;
	} notes[] = {
		{"misfits", "samples left out: not as many values as types", r->doubts.misfits, true},
		{"negative", "values left out: negative (a difference of profiles)", r->doubts.negative, true},
		{"overflows", "values left out: too large", r->doubts.overflows, true},
		{"references", "references to what is not in the file", r->doubts.references, true},
		{"truncated_stacks", "samples with a stack that was cut", r->doubts.deep, true},
		{"processes_left_out", "samples of more processes than are told apart", r->doubts.processes, true},
		{"ids_twice", "ids that were taken already",
	         t->mapping_ids.twice + t->location_ids.twice + t->function_ids.twice, true},
		{"labels_left_out", "labels of samples that are not kept", r->doubts.labels, false},
	};

	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
		if (notes[i].count)
			builder_note(r->to, notes[i].key, notes[i].label, (double)notes[i].count, notes[i].loss);
}

/* What there is to know before the first sample. */
static void begin_profile(struct pprof_reader *r)
{
	const struct pprof_tables *t = &r->tables;
	struct profile *p = builder_profile(r->to);

	p->imported = true;
	p->wall_start_ns = t->time_ns <= INT64_MAX ? t->time_ns : 0;
	p->t_end_ns = t->duration_ns <= INT64_MAX ? t->duration_ns : 0;
	/* 1: what writers put that do not know it, we too. */
	if (t->period > 1 && t->period <= INT64_MAX && is_text(t, t->period_type.unit, "nanoseconds"))
		p->interval_ns = t->period;
	pprof_said_read(&r->said, t, r->to);
	if (r->said.process_count == 1)
		only_process(r);
	else
		for (unsigned i = 0; i < r->said.process_count; i++)
			process_of(r, (uint64_t)r->said.processes[i].pid);
	place_types(r);
}

int pprof_read(struct input *from, struct builder *to, struct fault *fault)
{
	struct pprof_reader *r = calloc(1, sizeof(*r));
	int err = r ? 0 : -ENOMEM;

	if (!err)
		err = input_keep(from, KEPT_MAX_BYTES);
	if (err) {
		free(r);
		return fault_set(fault, err, "", err == -EPROTO ? "its compressed data is damaged or cut off" : "%s",
		                 strerror(-err));
	}
	r->to = to;
	r->thread = r->process = BUILDER_NONE;
	err = pprof_tables_read(&r->tables, from, fault);
	if (!err) {
		begin_profile(r);
		err = input_rewind(from);
		if (err)
			fault_set(fault, err, "", "%s", strerror(-err));
	}
	r->stream.in = from;
	if (!err)
		err = read_samples(r, fault);
	if (!err)
		note_doubts(r);
	pprof_tables_release(&r->tables);
	pprof_said_release(&r->said);
	pair_set_release(&r->pids);
	buf_release(&r->text);
	buf_release(&r->ids);
	free(r);
	return err;
}
