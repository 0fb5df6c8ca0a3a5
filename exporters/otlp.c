/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP profiles: opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest of opentelemetry-proto 1.11, the message that is
 * posted to an OpenTelemetry Collector. v1development may change without notice: the fields' numbers below are of that release.
 *
 * A resource a process, and in it a profile for each kind of value, since OTLP's profiles have one each; the first is what a viewer shows by
 * default, so it is the weight. Values are sums over the time of the profile: there are no time stamps. Everything that stacks refer to is in
 * the dictionary, each thing once and element 0 of every table its zero value.
 *
 * Messages hold messages whose length stands before them. So stacks and samples, which are many, are made twice: to be counted, to be
 * written. In memory are the dictionary, stacks as a trie, and one number a node. */
#include "exporters/otlp.h"

#include <errno.h>
#include <stdlib.h>

#include "exporters/formats.h"
#include "exporters/protobuf.h"

/* Field numbers, by message. */
enum { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY };
enum { DICT_MAPPING = 1, DICT_LOCATION, DICT_FUNCTION, DICT_LINK, DICT_STRING, DICT_ATTRIBUTE, DICT_STACK };
enum { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE_PROFILES };
enum { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES };
enum { PROFILE_TYPE = 1, PROFILE_SAMPLES, PROFILE_TIME, PROFILE_DURATION, PROFILE_PERIOD_TYPE, PROFILE_PERIOD };
enum { TYPE_NAME = 1, TYPE_UNIT };
enum { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES, SAMPLE_VALUES = 4 };
enum { STACK_LOCATIONS = 1 };
enum { MAPPING_START = 1, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILE, MAPPING_ATTRIBUTES };
enum { LOCATION_MAPPING = 1, LOCATION_ADDRESS, LOCATION_LINES };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_NAME = 1, FUNCTION_FILE = 3, FUNCTION_FIRST_LINE };

/* --- what is counted first and then written --- */

/* What stands in `message`, as a field; it is emptied. */
static void put(struct otlp *o, uint32_t field, struct buf *message)
{
	o->bytes += pb_field_bytes(field, message->bytes);
	if (o->to) {
		char head[16];
		struct buf to = {.data = head, .room = sizeof(head)}; /* a tag and a length always fit */

		pb_head(&to, field, message->bytes);
		writer_add(o->to, head, to.bytes);
		writer_add(o->to, message->data, message->bytes);
	}
	message->bytes = 0;
}

/* Fields that were encoded already. */
static void put_raw(struct otlp *o, struct buf *fields)
{
	o->bytes += fields->bytes;
	if (o->to)
		writer_add(o->to, fields->data, fields->bytes);
	fields->bytes = 0;
}

/* The head of a field whose content follows. */
static void put_head(struct otlp *o, uint32_t field, uint64_t bytes)
{
	pb_head(&o->message, field, bytes);
	put_raw(o, &o->message);
}

/* Of Python's frames there is none: that of the tables with number 0 is the zero value. By build id and address a store finds the names of what has
 * none. */
static void put_mappings(struct otlp *o)
{
	put(o, DICT_MAPPING, &o->message);
	for (uint32_t i = 1; i < o->tables.modules.count; i++) {
		struct stack_mapping mapping = stack_tables_mapping(&o->tables, i);

		pb_uint(&o->message, MAPPING_START, mapping.from);
		pb_uint(&o->message, MAPPING_LIMIT, mapping.to);
		pb_uint(&o->message, MAPPING_OFFSET, mapping.from);
		pb_uint(&o->message, MAPPING_FILE, mapping.file);
		if (o->build_ids[i]) {
			pb_varint(&o->part, o->build_ids[i]);
			pb_message(&o->message, MAPPING_ATTRIBUTES, &o->part);
		}
		put(o, DICT_MAPPING, &o->message);
	}
}

static void put_locations(struct otlp *o)
{
	put(o, DICT_LOCATION, &o->message);
	for (uint32_t i = 0; i < o->tables.locations.count; i++) {
		struct pair location = pair_set_get(&o->tables.locations, i);

		pb_uint(&o->message, LOCATION_MAPPING, stack_tables_mapping_of(&o->tables, location));
		if (location.a & STACK_PLACE) {
			pb_uint(&o->message, LOCATION_ADDRESS, location.b);
		} else {
			pb_uint(&o->part, LINE_FUNCTION, (uint64_t)location.a + 1);
			pb_uint(&o->part, LINE_LINE, location.b);
			pb_message(&o->message, LOCATION_LINES, &o->part);
		}
		put(o, DICT_LOCATION, &o->message);
	}
}

static void put_functions(struct otlp *o)
{
	put(o, DICT_FUNCTION, &o->message);
	for (uint32_t i = 0; i < o->tables.functions.count; i++) {
		struct stack_function function = stack_tables_function(&o->tables, i);

		pb_uint(&o->message, FUNCTION_NAME, function.name);
		pb_uint(&o->message, FUNCTION_FILE, function.file);
		pb_uint(&o->message, FUNCTION_FIRST_LINE, function.first_line);
		put(o, DICT_FUNCTION, &o->message);
	}
}

static void put_texts(struct otlp *o, uint32_t field, const struct text_set *texts)
{
	for (uint32_t i = 0; i < texts->count; i++) {
		size_t bytes;
		const char *text = text_set_get(texts, i, &bytes);

		buf_add(&o->message, text, bytes);
		put(o, field, &o->message);
	}
}

static void put_stacks(struct otlp *o)
{
	put(o, DICT_STACK, &o->message);
	for (uint32_t i = 1; i < o->stacks.count; i++) {
		if (!o->stack_numbers[i])
			continue;
		for (uint32_t at = i; at; at = pair_set_get(&o->stacks, at).a)
			pb_varint(&o->part, (uint64_t)pair_set_get(&o->stacks, at).b + 1);
		pb_message(&o->message, STACK_LOCATIONS, &o->part);
		put(o, DICT_STACK, &o->message);
	}
}

static void put_dictionary(struct otlp *o)
{
	put_mappings(o);
	put_locations(o);
	put_functions(o);
	put(o, DICT_LINK, &o->message);
	put_texts(o, DICT_STRING, &o->tables.strings);
	put(o, DICT_ATTRIBUTE, &o->message);
	put_texts(o, DICT_ATTRIBUTE, &o->attributes);
	put_stacks(o);
}

static void put_samples(struct otlp *o, uint32_t process, const struct value_column *column)
{
	for (uint32_t t = 0; t < o->profile->thread_count; t++) {
		const struct thread_tree *tree = &o->profile->threads[t];
		const struct buf *attributes = &o->thread_attributes[t];

		if (tree->process != process)
			continue;
		for (uint32_t n = 0; n < tree->node_count; n++) {
			if (tree->nodes[n].self[column->from] == 0)
				continue;
			pb_uint(&o->message, SAMPLE_STACK, o->node_stacks[t][n]);
			if (attributes->bytes > 0)
				pb_bytes(&o->message, SAMPLE_ATTRIBUTES, attributes->data, attributes->bytes);
			pb_varint(&o->part, (uint64_t)column_value(&tree->nodes[n], column));
			pb_message(&o->message, SAMPLE_VALUES, &o->part);
			put(o, PROFILE_SAMPLES, &o->message);
		}
	}
}

/* Of some imports nobody knows how far apart their samples are. */
static bool has_period(const struct profile *profile)
{
	return !profile->imported || profile->interval_ns;
}

static void put_type(struct otlp *o, uint32_t field, uint32_t name, uint32_t unit)
{
	pb_uint(&o->message, TYPE_NAME, name);
	pb_uint(&o->message, TYPE_UNIT, unit);
	put(o, field, &o->message);
}

static void put_profile(struct otlp *o, uint32_t process, const struct value_column *column)
{
	put_type(o, PROFILE_TYPE, column->name, column->unit);
	put_samples(o, process, column);
	pb_fixed64(&o->message, PROFILE_TIME, o->profile->wall_start_ns);
	pb_uint(&o->message, PROFILE_DURATION, o->facts.duration_ns);
	put_raw(o, &o->message);
	if (!has_period(o->profile))
		return;
	put_type(o, PROFILE_PERIOD_TYPE, o->wall, o->nanoseconds);
	pb_int(&o->message, PROFILE_PERIOD, sampling_period_ns(o->profile, &o->facts));
	put_raw(o, &o->message);
}

/* --- resources --- */

/* How long what follows is: it is made twice, the first time with no writer. */
static uint64_t counted(struct otlp *o, uint32_t process, const struct value_column *column)
{
	struct writer *to = o->to;
	uint64_t before = o->bytes, bytes;

	o->to = NULL;
	if (column)
		put_profile(o, process, column);
	else
		put_dictionary(o);
	bytes = o->bytes - before;
	o->bytes = before;
	o->to = to;
	return bytes;
}

static void put_resource(struct otlp *o, uint32_t process)
{
	uint64_t profile_bytes[VALUE_COUNT] = {0}, scope_bytes = pb_field_bytes(SCOPE_PROFILES_SCOPE, o->scope.bytes);
	struct buf resource = {0};

	otlp_make_resource(o, process, &resource);
	for (unsigned i = 0; i < o->column_count; i++) {
		profile_bytes[i] = counted(o, process, &o->columns[i]);
		scope_bytes += pb_field_bytes(SCOPE_PROFILES_PROFILES, profile_bytes[i]);
	}
	put_head(o, REQUEST_RESOURCE_PROFILES,
	         pb_field_bytes(RESOURCE_PROFILES_RESOURCE, resource.bytes) +
	                 pb_field_bytes(RESOURCE_PROFILES_SCOPE_PROFILES, scope_bytes));
	put(o, RESOURCE_PROFILES_RESOURCE, &resource);
	put_head(o, RESOURCE_PROFILES_SCOPE_PROFILES, scope_bytes);
	buf_add(&o->message, o->scope.data, o->scope.bytes);
	put(o, SCOPE_PROFILES_SCOPE, &o->message);
	for (unsigned i = 0; i < o->column_count && !o->err; i++) {
		put_head(o, SCOPE_PROFILES_PROFILES, profile_bytes[i]);
		put_profile(o, process, &o->columns[i]);
	}
	if (resource.err)
		o->err = resource.err;
	buf_release(&resource);
}

/* --- the whole --- */

static void find_build_ids(struct otlp *o)
{
	if (!o->err)
		o->build_ids = calloc(o->tables.modules.count + (size_t)1, sizeof(*o->build_ids));
	if (!o->build_ids) {
		o->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 1; i < o->tables.modules.count && !o->tables.err; i++) {
		const char *build_id =
			text_set_get(&o->tables.build_ids, stack_tables_mapping(&o->tables, i).build_id, NULL);

		if (build_id[0])
			o->build_ids[i] = otlp_text_attribute(o, "process.executable.build_id.gnu", build_id);
	}
}

static int prepare(struct otlp *o)
{
	uint32_t threads = o->profile->thread_count;

	stack_tables_init(&o->tables, o->profile);
	o->node_stacks = calloc((size_t)threads + 1, sizeof(*o->node_stacks));
	o->thread_attributes = calloc((size_t)threads + 1, sizeof(*o->thread_attributes));
	if (!o->node_stacks || !o->thread_attributes || pair_set_add(&o->stacks, 0, UINT32_MAX) == INTERN_FAILED)
		return -ENOMEM;
	if (o->profile->process_count > 0)
		o->column_count = stack_tables_columns(&o->tables, o->columns);
	for (unsigned i = 1; i < o->column_count; i++)
		if (o->columns[i].from == profile_weight(o->profile)) {
			struct value_column weight = o->columns[i];

			o->columns[i] = o->columns[0];
			o->columns[0] = weight;
		}
	if (o->column_count > 0 && has_period(o->profile)) {
		o->wall = stack_tables_string(&o->tables, "wall");
		o->nanoseconds = stack_tables_string(&o->tables, "nanoseconds");
	}
	facts_make(&o->facts, o->profile);
	otlp_find_stacks(o);
	find_build_ids(o);
	otlp_make_scope(o);
	return o->err ? o->err : o->tables.err;
}

static void release(struct otlp *o)
{
	for (uint32_t t = 0; t < o->profile->thread_count; t++) {
		if (o->node_stacks)
			free(o->node_stacks[t]);
		if (o->thread_attributes)
			buf_release(&o->thread_attributes[t]);
	}
	free(o->node_stacks);
	free(o->thread_attributes);
	free(o->stack_numbers);
	free(o->build_ids);
	stack_tables_release(&o->tables);
	pair_set_release(&o->stacks);
	text_set_release(&o->attributes);
	buf_release(&o->scope);
	buf_release(&o->message);
	buf_release(&o->part);
	buf_release(&o->inner);
	buf_release(&o->text);
}

int otlp_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	struct otlp *o = calloc(1, sizeof(*o)); /* facts are large */
	int err;

	if (!o)
		return writer_fail(to, -ENOMEM);
	o->profile = profile;
	o->labels = options->labels;
	err = prepare(o);
	if (!err) {
		o->to = to;
		for (uint32_t i = 0; i < profile->process_count && !o->err; i++)
			put_resource(o, i);
		put_head(o, REQUEST_DICTIONARY, counted(o, 0, NULL));
		put_dictionary(o);
		err = o->err ? o->err : o->tables.err ? o->tables.err : o->message.err ? o->message.err : o->scope.err;
	}
	writer_fail(to, err);
	release(o);
	free(o);
	return to->err;
}
