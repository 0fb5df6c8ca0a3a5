/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/pprof_tables.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "aggregator/builder.h"
#include "exporters/formats.h"
#include "exporters/pprof.h"
#include "sampler/record.h"

/* Of one mapping, location, function or value type: a location with some ten thousand functions inlined. */
enum { MESSAGE_MAX_BYTES = 1 << 20 };
/* All tables together. */
#define TABLES_MAX_BYTES (UINT64_C(1) << 30)

int pprof_fault(const struct pb_stream *stream, int err, const char *what, struct fault *fault)
{
	if (err == -EPROTO && stream->in->err == -EPROTO)
		return fault_set(fault, err, "",
		                 "its compressed data is damaged or cut off, behind byte %" PRIu64 " unpacked",
		                 stream->in->bytes);
	if (err == -EPROTO)
		return fault_set(fault, err, "", "damaged or cut off: %s at byte %" PRIu64 " (unpacked) is not whole",
		                 what, stream->field_off);
	return fault_set(fault, err, "", "%s", err == -ENOMEM ? "out of memory" : strerror(-err));
}

/* --- what stands in the tables --- */

const char *pprof_string(const struct pprof_tables *t, uint64_t index, size_t *ret_bytes)
{
	const size_t *ends = (const size_t *)(const void *)t->ends.data;
	size_t begin;

	if (index >= t->ends.bytes / sizeof(*ends))
		return NULL;
	begin = index ? ends[index - 1] : 0;
	*ret_bytes = ends[index] - begin;
	return t->texts.data ? t->texts.data + begin : "";
}

bool pprof_is_text(const struct pprof_tables *t, uint64_t string, const char *text)
{
	size_t bytes;
	const char *have = pprof_string(t, string, &bytes);

	return have && bytes == strlen(text) && memcmp(have, text, bytes) == 0;
}

const char *pprof_text(const struct pprof_tables *t, struct buf *to, uint64_t string)
{
	size_t bytes;
	const char *text = pprof_string(t, string, &bytes);

	to->bytes = 0;
	buf_add(to, text ? text : "", text ? bytes : 0);
	return buf_text(to);
}

static uint32_t find_id(const struct pprof_ids *ids, uint64_t id)
{
	return pair_set_find(&ids->set, (uint32_t)(id >> 32), (uint32_t)id);
}

struct pprof_location *pprof_location(const struct pprof_tables *t, uint64_t id)
{
	uint32_t at = find_id(&t->location_ids, id);

	return at == INTERN_FAILED ? NULL : (struct pprof_location *)(void *)t->locations.data + at;
}

struct pprof_function *pprof_function(const struct pprof_tables *t, uint64_t id)
{
	uint32_t at = find_id(&t->function_ids, id);

	return at == INTERN_FAILED ? NULL : (struct pprof_function *)(void *)t->functions.data + at;
}

const struct pprof_line *pprof_lines(const struct pprof_tables *t, const struct pprof_location *location)
{
	return (const struct pprof_line *)(const void *)t->lines.data + location->first_line;
}

uint64_t pprof_mapping_file(const struct pprof_tables *t, uint64_t id)
{
	uint32_t at = find_id(&t->mapping_ids, id);

	return at == INTERN_FAILED ? 0 : ((const uint64_t *)(const void *)t->mapping_files.data)[at];
}

/* --- filling them --- */

/* Adds an entry to a table under its id, unless there is one already. */
static int add_entry(struct pprof_ids *ids, uint64_t id, struct buf *table, const void *entry, size_t bytes)
{
	uint32_t before = ids->set.count;

	if (pair_set_add(&ids->set, (uint32_t)(id >> 32), (uint32_t)id) == INTERN_FAILED)
		return -ENOMEM;
	if (ids->set.count == before)
		ids->twice++;
	else
		buf_add(table, entry, bytes);
	return table->err;
}

static uint32_t line_number(uint64_t value)
{
	return value > UINT32_MAX ? 0 : (uint32_t)value; /* negative ones are large here */
}

/* Each of these takes a message apart: 0, -EPROTO or -ENOMEM. Fields of other numbers or wire types are passed over. */

static int take_type(struct pb_message m, struct pprof_type *ret_type)
{
	struct pb_field field;

	*ret_type = (struct pprof_type){0};
	while (pb_next(&m, &field))
		if (field.wire == PB_VARINT && field.number == PPROF_TYPE_NAME)
			ret_type->name = field.value;
		else if (field.wire == PB_VARINT && field.number == PPROF_TYPE_UNIT)
			ret_type->unit = field.value;
	return m.malformed ? -EPROTO : 0;
}

static int take_mapping(struct pprof_tables *t, struct pb_message m)
{
	uint64_t id = 0, file = 0;
	struct pb_field field;

	while (pb_next(&m, &field))
		if (field.wire == PB_VARINT && field.number == PPROF_MAPPING_ID)
			id = field.value;
		else if (field.wire == PB_VARINT && field.number == PPROF_MAPPING_FILE)
			file = field.value;
	return m.malformed ? -EPROTO : add_entry(&t->mapping_ids, id, &t->mapping_files, &file, sizeof(file));
}

static int take_line(struct pprof_tables *t, struct pb_message m)
{
	struct pprof_line line = {0};
	struct pb_field field;

	while (pb_next(&m, &field))
		if (field.wire == PB_VARINT && field.number == PPROF_LINE_FUNCTION)
			line.function = field.value;
		else if (field.wire == PB_VARINT && field.number == PPROF_LINE_NUMBER)
			line.number = line_number(field.value);
	buf_add(&t->lines, &line, sizeof(line));
	return m.malformed ? -EPROTO : t->lines.err;
}

static int take_location(struct pprof_tables *t, struct pb_message m)
{
	struct pprof_location location = {.first_line = t->lines.bytes / sizeof(struct pprof_line),
	                                  .symbol = BUILDER_NONE};
	struct pb_field field;
	uint64_t id = 0;
	int err = 0;

	while (!err && pb_next(&m, &field))
		if (field.wire == PB_BYTES && field.number == PPROF_LOCATION_LINE) {
			err = take_line(t, pb_message_of(&field));
			location.line_count++;
		} else if (field.wire != PB_VARINT) {
			continue;
		} else if (field.number == PPROF_LOCATION_ID) {
			id = field.value;
		} else if (field.number == PPROF_LOCATION_MAPPING) {
			location.mapping = field.value;
		} else if (field.number == PPROF_LOCATION_ADDRESS) {
			location.address = field.value;
		}
	if (err || m.malformed)
		return err ? err : -EPROTO;
	return add_entry(&t->location_ids, id, &t->locations, &location, sizeof(location));
}

static int take_function(struct pprof_tables *t, struct pb_message m)
{
	struct pprof_function function = {.symbol = BUILDER_NONE};
	struct pb_field field;
	uint64_t id = 0;

	while (pb_next(&m, &field)) {
		if (field.wire != PB_VARINT)
			continue;
		if (field.number == PPROF_FUNCTION_ID)
			id = field.value;
		else if (field.number == PPROF_FUNCTION_NAME)
			function.name = field.value;
		else if (field.number == PPROF_FUNCTION_SYSTEM_NAME)
			function.system_name = field.value;
		else if (field.number == PPROF_FUNCTION_FILE)
			function.file = field.value;
		else if (field.number == PPROF_FUNCTION_FIRST_LINE)
			function.first_line = line_number(field.value);
	}
	return m.malformed ? -EPROTO : add_entry(&t->function_ids, id, &t->functions, &function, sizeof(function));
}

static int take_string(struct pprof_tables *t)
{
	buf_add(&t->texts, t->field.data, t->field.bytes);
	buf_add(&t->ends, &t->texts.bytes, sizeof(t->texts.bytes));
	return t->texts.err ? t->texts.err : t->ends.err;
}

static int take_sample_type(struct pprof_tables *t, struct pb_message m)
{
	struct pprof_type type;
	int err = take_type(m, &type);

	if (!err && t->type_count++ < PPROF_TYPES_MAX)
		t->types[t->type_count - 1] = type;
	return err;
}

/* A field of bytes, which stand in t->field. */
static int take_bytes(struct pprof_tables *t, uint32_t number)
{
	struct pb_message m = pb_message_in(&t->field);
	uint64_t string;

	switch (number) {
	case PPROF_SAMPLE_TYPE:
		return take_sample_type(t, m);
	case PPROF_MAPPING:
		return take_mapping(t, m);
	case PPROF_LOCATION:
		return take_location(t, m);
	case PPROF_FUNCTION:
		return take_function(t, m);
	case PPROF_STRING:
		return take_string(t);
	case PPROF_PERIOD_TYPE:
		return take_type(m, &t->period_type);
	default: /* PPROF_COMMENT, packed */
		while (pb_next_packed(&m, &string))
			buf_add(&t->comments, &string, sizeof(string));
		return m.malformed ? -EPROTO : t->comments.err;
	}
}

static int take_number(struct pprof_tables *t, const struct pb_field *field)
{
	switch (field->number) {
	case PPROF_TIME_NS:
		t->time_ns = field->value;
		return 0;
	case PPROF_DURATION_NS:
		t->duration_ns = field->value;
		return 0;
	case PPROF_PERIOD:
		t->period = field->value;
		return 0;
	case PPROF_DEFAULT_TYPE:
		t->default_type = field->value;
		return 0;
	case PPROF_COMMENT:
		buf_add(&t->comments, &field->value, sizeof(field->value));
		return t->comments.err;
	default:
		return 0;
	}
}

/* What each field is, for messages and for its wire type. NULL: fields of no interest, also those behind the last one. */
static const struct {
	const char *name;
	enum pb_wire wire;
} fields[] = {
	[PPROF_SAMPLE_TYPE] = {"a sample type", PB_BYTES},
	[PPROF_SAMPLE] = {"a sample", PB_BYTES},
	[PPROF_MAPPING] = {"a mapping", PB_BYTES},
	[PPROF_LOCATION] = {"a location", PB_BYTES},
	[PPROF_FUNCTION] = {"a function", PB_BYTES},
	[PPROF_STRING] = {"a string", PB_BYTES},
	[PPROF_DROP_FRAMES] = {NULL, PB_VARINT},
	[PPROF_KEEP_FRAMES] = {NULL, PB_VARINT},
	[PPROF_TIME_NS] = {"the time", PB_VARINT},
	[PPROF_DURATION_NS] = {"the duration", PB_VARINT},
	[PPROF_PERIOD_TYPE] = {"the period", PB_BYTES},
	[PPROF_PERIOD] = {"the period", PB_VARINT},
	[PPROF_COMMENT] = {"a comment", PB_VARINT},
	[PPROF_DEFAULT_TYPE] = {"the default type", PB_VARINT},
	[PPROF_DOC_URL] = {NULL, PB_VARINT},
};

enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };

static bool is_known(const struct pb_field *field)
{
	return field->number < FIELD_COUNT && fields[field->number].name;
}

static bool has_right_wire(const struct pb_field *field)
{
	if (field->number == PPROF_COMMENT && field->wire == PB_BYTES) /* packed */
		return true;
	return field->wire == fields[field->number].wire;
}

static uint64_t table_bytes(const struct pprof_tables *t)
{
	return t->texts.bytes + t->ends.bytes + t->locations.bytes + t->lines.bytes + t->functions.bytes +
	       t->mapping_files.bytes + t->comments.bytes;
}

/* One field of the file. */
static int take_field(struct pprof_tables *t, struct pb_stream *stream, const struct pb_field *field)
{
	size_t max_bytes = field->number == PPROF_STRING ? REC_TEXT_MAX + 1 : MESSAGE_MAX_BYTES;

	if (!is_known(field))
		return pb_stream_skip(stream, field) ? 0 : stream->err;
	if (!has_right_wire(field))
		return -EPROTO;
	if (field->wire == PB_VARINT)
		return take_number(t, field);
	if (field->number == PPROF_SAMPLE) {
		t->sample_count++;
		return pb_stream_skip(stream, field) ? 0 : stream->err;
	}
	if (field->number != PPROF_STRING && field->value > max_bytes)
		return -EPROTO;
	if (!pb_stream_take(stream, field, &t->field, max_bytes))
		return stream->err;
	return take_bytes(t, field->number);
}

int pprof_tables_read(struct pprof_tables *t, struct input *in, struct fault *fault)
{
	struct pb_stream stream = {.in = in};
	struct pb_field field = {0};

	while (pb_stream_next(&stream, &field)) {
		int err = take_field(t, &stream, &field);

		if (err)
			return pprof_fault(&stream, err, is_known(&field) ? fields[field.number].name : "a field",
			                   fault);
		if (table_bytes(t) > TABLES_MAX_BYTES)
			return fault_set(fault, -EFBIG, "", "its functions and strings take more than 1 GiB");
	}
	if (stream.err)
		return pprof_fault(&stream, stream.err, "a field", fault);
	if (t->type_count == 0)
		return fault_set(fault, -EPROTO, "", "no sample type is in it, so its values mean nothing");
	return 0;
}

static void release_ids(struct pprof_ids *ids)
{
	pair_set_release(&ids->set);
}

void pprof_tables_release(struct pprof_tables *t)
{
	release_ids(&t->mapping_ids);
	release_ids(&t->location_ids);
	release_ids(&t->function_ids);
	buf_release(&t->comments);
	buf_release(&t->texts);
	buf_release(&t->ends);
	buf_release(&t->mapping_files);
	buf_release(&t->locations);
	buf_release(&t->lines);
	buf_release(&t->functions);
	buf_release(&t->field);
}

/* --- is it one? --- */

/* Protobuf has no magic number. What there is: fields that Profile has, with their wire types, whose messages hold numbers where numbers belong;
 * and a type of samples (or of the period, which Go's heap profiles have first) that names something. Text never passes: the length of a value
 * type and its fields' tags are control characters. */
bool pprof_detect(const unsigned char *head, size_t bytes)
{
	struct pb_message m = {.at = head, .end = head + bytes};
	struct pb_field field;
	bool typed = false;

	while (pb_next(&m, &field)) {
		struct pprof_type type = {0};

		if (field.number >= FIELD_COUNT ? !typed : !has_right_wire(&field))
			return false; /* fields to come stand behind those that are there */
		if (field.number != PPROF_SAMPLE_TYPE && field.number != PPROF_PERIOD_TYPE)
			continue;
		if (field.value > 64 || take_type(pb_message_of(&field), &type))
			return false;
		typed |= type.name > 0 && type.name < UINT32_MAX;
	}
	/* The head may end within a field. */
	return typed;
}
