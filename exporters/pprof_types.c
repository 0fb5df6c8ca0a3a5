/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a pprof file's types of values is the weight and which counts samples, and where each goes in the profile. */
#include "exporters/pprof_reader.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static bool is_type(const struct pprof_tables *t, unsigned i, const char *name, const char *unit)
{
	return pprof_is_text(t, t->types[i].name, name) && pprof_is_text(t, t->types[i].unit, unit);
}

static bool is_count(const struct pprof_tables *t, unsigned i)
{
	return pprof_is_text(t, t->types[i].unit, "count");
}

/* What shares are of: the type that the file says is to be shown; without a word wall time, or else the last. */
static unsigned weight_type(const struct pprof_tables *t, unsigned count)
{
	unsigned shown = count - 1;

	for (unsigned i = 0; i < count && t->default_type; i++)
		if (t->types[i].name == t->default_type)
			return i;
	for (unsigned i = 0; i < count; i++)
		if (is_type(t, i, "wall", "nanoseconds"))
			return i;
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
	} units[] = {{"microseconds", NS_PER_US},
	             {"microsecond", NS_PER_US},
	             {"us", NS_PER_US},
	             {"\xc2\xb5s", NS_PER_US},       /* with the sign for micro */
	             {"\xce\xbcs", NS_PER_US},       /* with the Greek letter */
	             {"(?:\xce\xbc|u)s", NS_PER_US}, /* a pattern for both, which found its way into files */
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
static void place_type(struct pprof_reader *r, unsigned i, enum value_index index)
{
	const struct pprof_type *type = &r->tables.types[i];
	struct pprof_column *column = &r->columns[i];
	char unit[64];

	column->scale = scale_to_ns(pprof_text(&r->tables, &r->text, type->unit));
	snprintf(unit, sizeof(unit), "%s",
	         column->scale > 1 ? "nanoseconds" : pprof_text(&r->tables, &r->text, type->unit));
	column->place = builder_value(r->to, pprof_text(&r->tables, &r->text, type->name), unit, index);
	for (unsigned other = 0; other < i; other++)
		if (column->place != BUILDER_NONE && r->columns[other].place == column->place)
			column->place = BUILDER_NONE; /* the same type twice */
}

void pprof_place_types(struct pprof_reader *r)
{
	const struct pprof_tables *t = &r->tables;
	unsigned count = r->column_count = t->type_count < PPROF_TYPES_MAX ? (unsigned)t->type_count : PPROF_TYPES_MAX;
	unsigned weight = weight_type(t, count), samples = samples_type(t, count, weight);
	uint64_t left_out = t->type_count - count;
	char label[160];

	for (unsigned i = 0; i < count; i++)
		r->columns[i] = (struct pprof_column){.place = BUILDER_NONE, .scale = 1};
	if (samples < count)
		r->columns[samples].place = VALUE_SAMPLES;
	if (weight != samples)
		place_type(r, weight, VALUE_WALL);
	for (unsigned i = 0; i < count; i++) {
		if (i != weight && i != samples)
			place_type(r, i, VALUE_RUNNABLE);
		left_out += r->columns[i].place == BUILDER_NONE;
	}
	r->count_records = samples == count;
	/* Records and objects ("contentions", "inuse_objects") are no samples. */
	builder_profile(r->to)->uncounted =
		weight != samples && !(samples < count && (is_type(t, samples, "samples", "count") ||
	                                                   is_type(t, samples, "sample", "count")));
	if (r->count_records)
		builder_note(r->to, "samples_are_records", "samples are the file's records, being",
		             (double)t->sample_count, false);
	else if (!is_type(t, samples, "samples", "count") && !is_type(t, samples, "sample", "count")) {
		builder_value(r->to, pprof_text(t, &r->text, t->types[samples].name), "count", VALUE_SAMPLES);
		snprintf(label, sizeof(label), "samples are what the file counts as %.64s, type",
		         pprof_text(&r->tables, &r->text, t->types[samples].name));
		builder_note(r->to, "samples_type", label, samples + 1, false);
	}
	if (left_out)
		builder_note(r->to, "types_left_out", "types of values left out: no room", (double)left_out, true);
}
