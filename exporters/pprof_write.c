/* SPDX-License-Identifier: Apache-2.0 */
/* pprof: perftools.profiles.Profile, packed with gzip. Written for pprof itself, Parca and Pyroscope, of which each refuses something else: ids are
 * sequential from 1, string 0 is empty, every sample has as many values as there are sample types, every label has a key, every location a mapping
 * and every line a function.
 *
 * One sample a node of a tree, with the node's own values, leaf first; a stack of no frames has no location. Status is not a label: a node
 * stands for many samples, so the time on the CPU and with the GIL are values beside the whole time.
 *
 * Samples are packed one by one as they are made: in memory are the tables and one tree's locations. Field numbers:
 * https://github.com/google/pprof/blob/main/proto/profile.proto */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "exporters/facts.h"
#include "exporters/formats.h"
#include "exporters/gzip.h"
#include "exporters/pprof.h"
#include "exporters/protobuf.h"
#include "exporters/stacktables.h"

struct pprof {
	const struct profile *profile;
	struct stack_tables tables;
	struct value_column columns[VALUE_COUNT];
	unsigned column_count;
	struct facts facts;
	struct gzip *gzip;
	struct buf message, part; /* of a field that is being made, and of a field in it */
	struct buf labels;        /* of the thread at hand, as fields of a sample */
	struct buf comments;      /* uint32_t, strings */
};

/* Writes what stands in p->message as a field. */
static void put(struct pprof *p, uint32_t field)
{
	char head[16];
	struct buf to = {.data = head, .room = sizeof(head)}; /* a tag and a length always fit */

	pb_head(&to, field, p->message.bytes);
	gzip_add(p->gzip, head, to.bytes);
	gzip_add(p->gzip, p->message.data, p->message.bytes);
	p->message.bytes = 0;
}

static void put_value_type(struct pprof *p, uint32_t field, const struct value_column *column)
{
	pb_uint(&p->message, PPROF_TYPE_NAME, column->name);
	pb_uint(&p->message, PPROF_TYPE_UNIT, column->unit);
	put(p, field);
}

/* --- samples --- */

static void add_label(struct pprof *p, const char *key, const char *text, int64_t number)
{
	pb_uint(&p->part, PPROF_LABEL_KEY, stack_tables_string(&p->tables, key));
	if (text)
		pb_uint(&p->part, PPROF_LABEL_STR, stack_tables_string(&p->tables, text));
	else
		pb_int(&p->part, PPROF_LABEL_NUM, number);
	pb_message(&p->labels, PPROF_SAMPLE_LABEL, &p->part);
}

static void make_labels(struct pprof *p, const struct thread_tree *tree)
{
	p->labels.bytes = 0;
	if (tree->name && tree->name[0] != '\0')
		add_label(p, "thread", tree->name, 0);
	if (tree->tid)
		add_label(p, "tid", NULL, (int64_t)tree->tid);
	if (p->profile->process_count > 1 && p->profile->processes[tree->process].pid)
		add_label(p, "pid", NULL, p->profile->processes[tree->process].pid);
	if (tree->interpreter)
		add_label(p, "interpreter", NULL, tree->interpreter);
}

/* ids: of the tree's nodes, 0 where none was asked for yet. */
static void put_sample(struct pprof *p, const struct thread_tree *tree, uint32_t node, uint32_t *ids)
{
	for (uint32_t n = node; n; n = tree->nodes[n].parent) {
		if (!ids[n])
			ids[n] = stack_tables_location(&p->tables, tree->nodes[n].symbol, tree->nodes[n].line) + 1;
		pb_varint(&p->part, ids[n]);
	}
	if (node)
		pb_message(&p->message, PPROF_SAMPLE_LOCATION, &p->part);
	for (unsigned i = 0; i < p->column_count; i++)
		pb_varint(&p->part, (uint64_t)column_value(&tree->nodes[node], &p->columns[i]));
	pb_message(&p->message, PPROF_SAMPLE_VALUE, &p->part);
	if (p->labels.bytes > 0)
		buf_add(&p->message, p->labels.data, p->labels.bytes);
	put(p, PPROF_SAMPLE);
}

static void put_tree(struct pprof *p, const struct thread_tree *tree)
{
	uint32_t *ids = calloc(tree->node_count, sizeof(*ids));

	if (!ids) {
		p->tables.err = -ENOMEM;
		return;
	}
	make_labels(p, tree);
	for (uint32_t n = 0; n < tree->node_count; n++)
		if (node_has_values(&tree->nodes[n], p->columns, p->column_count))
			put_sample(p, tree, n, ids);
	free(ids);
}

/* --- tables --- */

/* Of Python's frames, and all that say nothing of theirs: it says that names are there already, so that nobody looks for a binary to find them in. Its file is what pprof shows as
 * the profile's: the interpreter. */
static void put_mapping(struct pprof *p)
{
	const char *command = p->profile->process_count ? p->profile->processes[0].name : NULL;
	char *program = strndup(command ? command : "", command ? strcspn(command, " ") : 0);

	pb_uint(&p->message, PPROF_MAPPING_ID, 1);
	pb_uint(&p->message, PPROF_MAPPING_FILE, stack_tables_string(&p->tables, program ? program : ""));
	pb_uint(&p->message, PPROF_MAPPING_HAS_FUNCTIONS, 1);
	pb_uint(&p->message, PPROF_MAPPING_HAS_FILES, 1);
	pb_uint(&p->message, PPROF_MAPPING_HAS_LINES, 1);
	put(p, PPROF_MAPPING);
	free(program);
}

/* Of native code: by build id and address a store finds the names of what has none. */
static void put_native_mapping(struct pprof *p, uint32_t number)
{
	struct stack_mapping mapping = stack_tables_mapping(&p->tables, number);

	pb_uint(&p->message, PPROF_MAPPING_ID, (uint64_t)number + 1);
	pb_uint(&p->message, PPROF_MAPPING_START, mapping.from);
	pb_uint(&p->message, PPROF_MAPPING_LIMIT, mapping.to);
	pb_uint(&p->message, PPROF_MAPPING_OFFSET, mapping.from);
	pb_uint(&p->message, PPROF_MAPPING_FILE, mapping.file);
	pb_uint(&p->message, PPROF_MAPPING_BUILD_ID,
	        stack_tables_string(&p->tables, text_set_get(&p->tables.build_ids, mapping.build_id, NULL)));
	if (mapping.has_functions) {
		pb_uint(&p->message, PPROF_MAPPING_HAS_FUNCTIONS, 1);
		pb_uint(&p->message, PPROF_MAPPING_HAS_FILES, mapping.has_files);
		pb_uint(&p->message, PPROF_MAPPING_HAS_LINES, mapping.has_files);
	}
	put(p, PPROF_MAPPING);
}

static void put_mappings(struct pprof *p)
{
	put_mapping(p);
	for (uint32_t i = 1; i < p->tables.modules.count; i++)
		put_native_mapping(p, i);
}

static void put_locations(struct pprof *p)
{
	for (uint32_t i = 0; i < p->tables.locations.count; i++) {
		struct pair location = pair_set_get(&p->tables.locations, i);

		pb_uint(&p->message, PPROF_LOCATION_ID, (uint64_t)i + 1);
		pb_uint(&p->message, PPROF_LOCATION_MAPPING,
		        (uint64_t)stack_tables_mapping_of(&p->tables, location) + 1);
		if (location.a & STACK_PLACE) {
			pb_uint(&p->message, PPROF_LOCATION_ADDRESS, location.b);
		} else {
			pb_uint(&p->part, PPROF_LINE_FUNCTION, (uint64_t)location.a + 1);
			pb_uint(&p->part, PPROF_LINE_NUMBER, location.b);
			pb_message(&p->message, PPROF_LOCATION_LINE, &p->part);
		}
		put(p, PPROF_LOCATION);
	}
}

static void put_functions(struct pprof *p)
{
	for (uint32_t i = 0; i < p->tables.functions.count; i++) {
		struct stack_function function = stack_tables_function(&p->tables, i);

		pb_uint(&p->message, PPROF_FUNCTION_ID, (uint64_t)i + 1);
		pb_uint(&p->message, PPROF_FUNCTION_NAME, function.name);
		pb_uint(&p->message, PPROF_FUNCTION_SYSTEM_NAME, function.name);
		pb_uint(&p->message, PPROF_FUNCTION_FILE, function.file);
		pb_uint(&p->message, PPROF_FUNCTION_FIRST_LINE, function.first_line);
		put(p, PPROF_FUNCTION);
	}
}

static void add_comment(struct pprof *p)
{
	uint32_t string = stack_tables_string(&p->tables, buf_text(&p->part));

	p->part.bytes = 0;
	buf_add(&p->comments, &string, sizeof(string));
}

/* One "key: text" each: who was sampled, how, and what was lost. */
static void make_comments(struct pprof *p)
{
	buf_puts(&p->part, "written by: sampled");
	add_comment(p);
	if (!p->profile->imported) {
		buf_printf(&p->part, "mode: %s", p->profile->mode ? p->profile->mode : "wall");
		add_comment(p);
	}
	for (uint32_t i = 0; i < p->profile->process_count; i++) {
		const struct process *process = &p->profile->processes[i];

		buf_printf(&p->part, "process %d: %s", process->pid, process->name ? process->name : "");
		add_comment(p);
	}
	for (size_t i = 0; i < p->facts.count; i++) {
		const struct fact *fact = &p->facts.items[i];
		size_t bytes = strlen(fact->key);

		buf_printf(&p->part, "%s: ", fact->key);
		if (bytes > 3 && strcmp(fact->key + bytes - 3, "_ns") == 0) /* the words are rounded */
			buf_printf(&p->part, "%.0f, ", fact->number);
		buf_puts(&p->part, fact->text);
		add_comment(p);
	}
}

static void put_strings(struct pprof *p)
{
	for (uint32_t i = 0; i < p->tables.strings.count; i++) {
		size_t bytes;
		const char *text = text_set_get(&p->tables.strings, i, &bytes);

		buf_add(&p->message, text, bytes);
		put(p, PPROF_STRING);
	}
}

/* --- the whole --- */

static void put_rest(struct pprof *p, const struct value_column *period, const struct value_column *shown)
{
	const uint32_t *comments;

	if (p->profile->wall_start_ns <= INT64_MAX)
		pb_uint(&p->message, PPROF_TIME_NS, p->profile->wall_start_ns);
	pb_uint(&p->message, PPROF_DURATION_NS, p->facts.duration_ns);
	gzip_add(p->gzip, p->message.data, p->message.bytes);
	p->message.bytes = 0;
	put_value_type(p, PPROF_PERIOD_TYPE, period);
	pb_int(&p->message, PPROF_PERIOD, sampling_period_ns(p->profile, &p->facts));
	comments = (const uint32_t *)(const void *)p->comments.data;
	for (size_t i = 0; i < p->comments.bytes / sizeof(*comments); i++)
		pb_uint(&p->message, PPROF_COMMENT, comments[i]);
	pb_uint(&p->message, PPROF_DEFAULT_TYPE, shown->name);
	gzip_add(p->gzip, p->message.data, p->message.bytes);
	p->message.bytes = 0;
}

static void put_profile(struct pprof *p)
{
	const struct value_column *shown = &p->columns[0];
	struct value_column period = {0};

	period.name = stack_tables_string(&p->tables, "wall");
	period.unit = stack_tables_string(&p->tables, "nanoseconds");
	for (unsigned i = 0; i < p->column_count; i++) {
		put_value_type(p, PPROF_SAMPLE_TYPE, &p->columns[i]);
		if (p->columns[i].from == profile_weight(p->profile))
			shown = &p->columns[i];
	}
	if (p->profile->imported && !p->profile->interval_ns)
		period = *shown; /* nobody knows how far apart its samples are */
	for (uint32_t i = 0; i < p->profile->thread_count && !p->tables.err; i++)
		put_tree(p, &p->profile->threads[i]);
	if (p->tables.err)
		return;
	make_comments(p);
	put_mappings(p);
	put_locations(p);
	put_functions(p);
	put_strings(p);
	put_rest(p, &period, shown);
}

int pprof_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	struct pprof *p = calloc(1, sizeof(*p)); /* facts are large */

	(void)options;
	if (!p)
		return writer_fail(to, -ENOMEM);
	p->profile = profile;
	p->gzip = gzip_new(to);
	stack_tables_init(&p->tables, profile);
	p->column_count = stack_tables_columns(&p->tables, p->columns);
	facts_make(&p->facts, profile);
	if (p->gzip && !p->tables.err)
		put_profile(p);
	if (!to->err && (p->tables.err || p->message.err || p->part.err || p->labels.err || p->comments.err))
		to->err = -ENOMEM;
	gzip_finish(p->gzip);
	stack_tables_release(&p->tables);
	buf_release(&p->message);
	buf_release(&p->part);
	buf_release(&p->labels);
	buf_release(&p->comments);
	free(p);
	return to->err;
}
