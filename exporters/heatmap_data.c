/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/heatmap_data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "exporters/facts.h"
#include "exporters/heatmap_sources.h"

static void write_facts(const struct profile *profile, struct writer *to)
{
	struct facts facts;

	facts_make(&facts, profile);
	writer_puts(to, ",\n\"facts\":[");
	for (size_t i = 0; i < facts.count; i++) {
		writer_puts(to, i ? ",[" : "[");
		writer_json_string(to, facts.items[i].label);
		writer_putc(to, ',');
		writer_json_string(to, facts.items[i].text);
		writer_printf(to, ",%d]", facts.items[i].weight);
	}
	writer_putc(to, ']');
}

static void write_measures(const uint64_t measures[MEASURES], struct writer *to)
{
	for (int i = 0; i < MEASURES; i++)
		writer_printf(to, ",%" PRIu64, measures[i]);
}

static void write_spot(const struct spot *spot, struct writer *to)
{
	write_measures(spot->self, to);
	write_measures(spot->total, to);
}

static void write_texts(const char *name, const struct text_set *texts, struct writer *to)
{
	writer_printf(to, ",\n\"%s\":[", name);
	for (uint32_t i = 0; i < texts->count && !to->err; i++) {
		writer_puts(to, i ? "," : "");
		writer_json_string(to, text_set_get(texts, i, NULL));
	}
	writer_putc(to, ']');
}

static void write_spots(const struct heatmap *h, struct writer *to)
{
	write_texts("fileNames", &h->file_names, to);
	write_texts("names", &h->names, to);
	/* Each: whether it is Python's, self and total by each measure. */
	writer_puts(to, ",\n\"files\":[");
	for (uint32_t i = 0; i < h->file_names.count; i++) {
		writer_printf(to, "%s%d", i ? "," : "", heatmap_spot(&h->file_spots, i)->is_source);
		write_spot(heatmap_spot(&h->file_spots, i), to);
	}
	/* Each: file, line, function's name, self and total by each measure. */
	writer_puts(to, "],\n\"lines\":[");
	for (uint32_t i = 0; i < h->lines.count; i++) {
		struct pair line = pair_set_get(&h->lines, i);

		writer_printf(to, "%s%" PRIu32 ",%" PRIu32 ",%" PRIu32, i ? "," : "", line.a, line.b,
		              heatmap_spot(&h->line_spots, i)->name);
		write_spot(heatmap_spot(&h->line_spots, i), to);
	}
	/* Each: caller's line, callee's line, each measure. */
	writer_puts(to, "],\n\"edges\":[");
	for (uint32_t i = 0; i < h->edges.count; i++) {
		struct pair edge = pair_set_get(&h->edges, i);
		const struct spot *spot = heatmap_spot(&h->edge_spots, i);

		writer_printf(to, "%s%" PRIu32 ",%" PRIu32, i ? "," : "", edge.a, edge.b);
		write_measures(spot->total, to);
	}
	/* Each: line, name of an opcode, each measure. */
	writer_puts(to, "],\n\"opcodes\":[");
	for (uint32_t i = 0; i < h->opcodes.places.count; i++) {
		const struct line_cost *cost = &h->opcodes.rows[i];

		writer_printf(to, "%s%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, i ? "," : "", cost->of,
		              cost->line, cost->samples, cost->weight, cost->cpu_ns, cost->gil_ns);
	}
	writer_putc(to, ']');
}

static void write_all_sources(struct heatmap *h, const struct source_access *access, struct writer *to)
{
	struct heatmap_file *files = calloc(h->file_names.count + (size_t)1, sizeof(*files));
	uint32_t left_out = 0;
	size_t count = 0;

	if (!files) {
		h->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < h->file_names.count; i++) {
		const struct spot *spot = heatmap_spot(&h->file_spots, i);

		if (spot->is_source)
			files[count++] = (struct heatmap_file){.name = text_set_get(&h->file_names, i, NULL),
			                                       .process = &h->profile->processes[spot->process],
			                                       .total = spot->total[MEASURE_WEIGHT],
			                                       .number = i};
	}
	writer_puts(to, ",\n\"sources\":[");
	if (access)
		left_out = heatmap_write_sources(files, count, access, to);
	writer_printf(to, "],\"sourcesLeftOut\":%" PRIu32, left_out);
	free(files);
}

void heatmap_write_data(struct heatmap *h, const struct export_options *options, struct writer *to)
{
	const struct profile *profile = h->profile;

	writer_puts(to, "{\"version\":1,\"title\":");
	writer_json_string(to, options->title                                         ? options->title
	                       : profile->process_count && profile->processes[0].name ? profile->processes[0].name
	                                                                              : "");
	writer_puts(to, ",\"mode\":");
	writer_json_string(to, profile->mode ? profile->mode : "wall");
	writer_printf(to, ",\"startedMs\":%" PRIu64 ",\"processes\":%" PRIu32 ",\"weight\":",
	              profile->wall_start_ns / NS_PER_MS, profile->process_count);
	writer_json_string(to, profile->values[h->weight].name);
	writer_puts(to, ",\"unit\":");
	writer_json_string(to, profile->values[h->weight].unit);
	writer_printf(to, ",\"sums\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", profile_sum(profile, VALUE_SAMPLES),
	              profile_sum(profile, h->weight), h->has_cpu ? profile_sum(profile, VALUE_CPU) : 0,
	              h->has_gil ? profile_sum(profile, VALUE_GIL) : 0);
	write_facts(profile, to);
	write_spots(h, to);
	write_all_sources(h, options->sources, to);
	writer_puts(to, "}");
}
