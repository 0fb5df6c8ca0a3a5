/* SPDX-License-Identifier: Apache-2.0 */
/* JSON Lines, for jq and scripts: one object a line, documented in docs/JSONL.md, which changes with this file. Stacks are nodes that name
 * their parents, and frames are numbered once, so that deep trees do not grow with the square of their depth. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/facts.h"
#include "exporters/formats.h"
#include "exporters/intern.h"

enum { JSONL_VERSION = 1 };

static void write_number(double number, struct writer *to)
{
	writer_printf(to, "%.17g", isfinite(number) ? number : 0);
}

/* A value's name; where another has the same, with its unit. */
static void write_value_name(const struct profile *profile, size_t value, struct writer *to)
{
	const struct value_type *values = profile->values;
	char name[160];

	snprintf(name, sizeof(name), "%s", values[value].name);
	for (size_t v = 0; v < VALUE_COUNT; v++)
		if (v != value && values[v].name && strcmp(values[v].name, values[value].name) == 0)
			snprintf(name, sizeof(name), "%s (%s)", values[value].name, values[value].unit);
	writer_json_string(to, name);
}

static void write_values(const struct profile *profile, struct writer *to)
{
	const char *comma = "";

	writer_puts(to, ",\"values\":[");
	for (size_t v = 0; v < VALUE_COUNT; v++) {
		if (!profile->values[v].name)
			continue;
		writer_printf(to, "%s{\"name\":", comma);
		write_value_name(profile, v, to);
		writer_puts(to, ",\"unit\":");
		writer_json_string(to, profile->values[v].unit);
		writer_putc(to, '}');
		comma = ",";
	}
	writer_puts(to, "],\"weight\":");
	write_value_name(profile, profile_weight(profile), to);
}

/* The facts by their keys; which of them are losses that happened; and the texts of notes. */
static void write_facts(const struct profile *profile, struct writer *to)
{
	const char *comma = "";
	struct facts facts;

	facts_make(&facts, profile);
	writer_puts(to, ",\"facts\":{");
	for (size_t i = 0; i < facts.count; i++) {
		writer_puts(to, i ? "," : "");
		writer_json_string(to, facts.items[i].key);
		writer_putc(to, ':');
		write_number(facts.items[i].number, to);
	}
	writer_puts(to, "},\"losses\":[");
	for (size_t i = 0; i < facts.count; i++) {
		if (facts.items[i].weight != FACT_LOSS)
			continue;
		writer_puts(to, comma);
		writer_json_string(to, facts.items[i].key);
		comma = ",";
	}
	writer_puts(to, "],\"notes\":[");
	for (uint32_t i = 0; i < profile->note_count; i++) {
		const struct note *note = &profile->notes[i];

		writer_printf(to, "%s{\"key\":", i ? "," : "");
		writer_json_string(to, note->key);
		writer_puts(to, ",\"label\":");
		writer_json_string(to, note->label);
		writer_puts(to, ",\"number\":");
		write_number(note->number, to);
		writer_printf(to, ",\"loss\":%s}", note->loss ? "true" : "false");
	}
	writer_putc(to, ']');
}

static void write_profile(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	uint64_t duration_ns = profile->t_end_ns > profile->t_start_ns ? profile->t_end_ns - profile->t_start_ns : 0;

	writer_printf(to, "{\"type\":\"profile\",\"version\":%d,\"title\":", JSONL_VERSION);
	if (options->title)
		writer_json_string(to, options->title);
	else
		writer_puts(to, "null");
	writer_puts(to, ",\"mode\":");
	writer_json_string(to, profile->mode ? profile->mode : "wall");
	writer_printf(to,
	              ",\"imported\":%s,\"sequence\":%" PRIu64 ",\"start_ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64
	              ",\"interval_ns\":%" PRIu64 ",\"samples\":%" PRIu64,
	              profile->imported ? "true" : "false", profile->sequence, profile->wall_start_ns, duration_ns,
	              profile->interval_ns, profile_sum(profile, VALUE_SAMPLES));
	write_values(profile, to);
	write_facts(profile, to);
	writer_puts(to, "}\n");
}

static void write_processes(const struct profile *profile, struct writer *to)
{
	char version[32];

	for (uint32_t i = 0; i < profile->process_count; i++) {
		const struct process *process = &profile->processes[i];

		writer_printf(to,
		              "{\"type\":\"process\",\"id\":%" PRIu32 ",\"pid\":%" PRId32 ",\"parent_pid\":%" PRId32
		              ",\"name\":",
		              i, process->pid, process->parent_pid);
		writer_json_string(to, process->name ? process->name : "");
		facts_version_text(version, sizeof(version), process->version);
		writer_puts(to, ",\"python\":");
		if (process->version)
			writer_json_string(to, version);
		else
			writer_puts(to, "null");
		writer_printf(to, ",\"ended\":%s}\n", process->ended ? "true" : "false");
	}
}

static void write_thread(const struct thread_tree *tree, uint32_t number, struct writer *to)
{
	writer_printf(to,
	              "{\"type\":\"thread\",\"id\":%" PRIu32 ",\"process\":%" PRIu32 ",\"interpreter\":%" PRId64
	              ",\"tid\":%" PRIu64 ",\"name\":",
	              number, tree->process, tree->interpreter, tree->tid);
	if (tree->name)
		writer_json_string(to, tree->name);
	else
		writer_puts(to, "null");
	writer_printf(to, ",\"main\":%s,\"nodes\":%" PRIu32 ",\"depth\":%" PRIu32 "}\n",
	              tree->is_main ? "true" : "false", tree->node_count, tree->depth_max);
}

static void write_frame(const struct profile *profile, uint32_t number, const struct node *node, struct writer *to)
{
	static const char *const kinds[] = {
		[FRAME_PYTHON] = "python", [FRAME_NATIVE] = "native", [FRAME_SPECIAL] = "special"};
	const struct symbol *symbol = &profile->symbols[node->symbol];

	writer_printf(to, "{\"type\":\"frame\",\"id\":%" PRIu32 ",\"function\":", number);
	writer_json_string(to, symbol->name);
	writer_puts(to, ",\"file\":");
	writer_json_string(to, symbol->file);
	writer_printf(to, ",\"line\":%" PRIu32 ",\"first_line\":%" PRIu32 ",\"kind\":\"%s\"", node->line,
	              symbol->first_line, symbol->kind <= FRAME_SPECIAL ? kinds[symbol->kind] : "python");
	if (symbol->module[0]) {
		writer_puts(to, ",\"module\":");
		writer_json_string(to, symbol->module);
		writer_puts(to, ",\"build_id\":");
		writer_json_string(to, symbol->build_id);
	}
	writer_puts(to, "}\n");
}

/* Those that are not 0. */
static void write_numbers(const struct profile *profile, const char *name, const uint64_t *values, struct writer *to)
{
	const char *comma = "";

	writer_printf(to, ",\"%s\":{", name);
	for (size_t v = 0; v < VALUE_COUNT; v++) {
		if (!profile->values[v].name || values[v] == 0)
			continue;
		writer_puts(to, comma);
		write_value_name(profile, v, to);
		writer_printf(to, ":%" PRIu64, values[v]);
		comma = ",";
	}
	writer_putc(to, '}');
}

/* 0 or -ENOMEM. */
static int write_tree(const struct profile *profile, uint32_t thread, struct pair_set *frames, struct writer *to)
{
	const struct thread_tree *tree = &profile->threads[thread];
	uint64_t *totals = profile_totals(tree);

	if (!totals)
		return -ENOMEM;
	write_thread(tree, thread, to);
	for (uint32_t n = 0; n < tree->node_count && !to->err; n++) { /* parents first */
		const struct node *node = &tree->nodes[n];
		uint32_t before = frames->count, frame = n ? pair_set_add(frames, node->symbol, node->line) : 0;

		if (frame == INTERN_FAILED) {
			free(totals);
			return -ENOMEM;
		}
		if (frames->count > before)
			write_frame(profile, frame, node, to);
		writer_printf(to, "{\"type\":\"node\",\"thread\":%" PRIu32 ",\"id\":%" PRIu32, thread, n);
		if (n)
			writer_printf(to, ",\"parent\":%" PRIu32 ",\"frame\":%" PRIu32, node->parent, frame);
		else
			writer_puts(to, ",\"parent\":null,\"frame\":null");
		write_numbers(profile, "self", node->self, to);
		write_numbers(profile, "total", totals + (size_t)n * VALUE_COUNT, to);
		writer_puts(to, "}\n");
	}
	free(totals);
	return 0;
}

int jsonl_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	struct pair_set frames = {0}; /* (symbol, line) */
	int err = 0;

	write_profile(profile, options, to);
	write_processes(profile, to);
	for (uint32_t i = 0; i < profile->thread_count && !err && !to->err; i++)
		err = write_tree(profile, i, &frames, to);
	writer_fail(to, err);
	pair_set_release(&frames);
	return to->err;
}
