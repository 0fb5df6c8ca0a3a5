/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pprof files of any writer: ours, Go's runtime, perf_to_profile, Parca, py-spy and what else there is. The file is gone over twice, for the
 * tables and for the samples, so memory is that of the tables and of the tree. What a writer got wrong but can be counted is counted and
 * said in notes; a file that is not protobuf is refused at the byte where that shows.
 *
 * Here the samples are taken apart and counted. The tables, the comments, types, stacks and threads are files of their own. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/formats.h"
#include "exporters/pprof.h"
#include "exporters/pprof_reader.h"

/* Of a sample: the deepest stack, a million labels. */
enum { SAMPLE_MAX_BYTES = 16 << 20 };
/* Of standard input, unpacked. */
#define KEPT_MAX_BYTES (UINT64_C(16) << 30)

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
			err = field.wire == PB_BYTES ? pprof_take_label(r, pb_message_of(&field)) : -EPROTO;
	return err ? err : m.malformed ? -EPROTO : r->ids.err;
}

/* A value as the tree has it: not negative, and small enough that the profile's sum stays within 63 bits. */
static uint64_t kept_value(struct pprof_reader *r, struct pprof_column *column, int64_t value)
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
	thread = pprof_find_thread(r);
	builder_add(r->to, thread, pprof_find_node(r, thread), values);
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
	if (t->period > 1 && t->period <= INT64_MAX && pprof_is_text(t, t->period_type.unit, "nanoseconds"))
		p->interval_ns = t->period;
	pprof_said_read(&r->said, t, r->to);
	pprof_place_processes(r);
	pprof_place_types(r);
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
