/* SPDX-License-Identifier: Apache-2.0 */
/* Interval markers of the Firefox Profiler's format, from the status of consecutive runs. A table's columns are separate
 * passes over the runs. */
#include <errno.h>
#include <string.h>

#include "exporters/firefox.h"
#include "exporters/json_parts.h"
#include "exporters/timeline.h"

static const struct marker_kind {
	const char *name, *description;
	unsigned set, clear;        /* STATUS_* bits that must be and must not be there */
	enum value_index values[2]; /* that the profile must have, so that the bits mean something */
	enum firefox_category category;
} kinds[] = {
	{"Has GIL", "The thread held the GIL.", STATUS_GIL, 0, {VALUE_GIL, VALUE_GIL}, FIREFOX_GIL},
	{"No GIL", "The thread did not hold the GIL.", 0, STATUS_GIL, {VALUE_GIL, VALUE_GIL}, FIREFOX_GIL},
	{"Waiting for GIL",
         "The thread waited for the GIL.",
         STATUS_GIL_WAIT,
         0,
         {VALUE_GIL_WAIT, VALUE_GIL_WAIT},
         FIREFOX_GIL},
	{"Runnable",
         "The thread was running, or waiting for a CPU.",
         STATUS_RUNNABLE,
         0,
         {VALUE_RUNNABLE, VALUE_RUNNABLE},
         FIREFOX_CPU},
	{"Not runnable",
         "The thread was blocked or asleep.",
         0,
         STATUS_RUNNABLE | STATUS_UNKNOWN,
         {VALUE_RUNNABLE, VALUE_RUNNABLE},
         FIREFOX_CPU},
	{"GC", "The thread collected garbage.", STATUS_GC, 0, {VALUE_GC, VALUE_GC}, FIREFOX_GC},
	{"Has Exception",
         "The thread was handling an exception.",
         STATUS_EXCEPTION,
         0,
         {VALUE_EXCEPTION, VALUE_EXCEPTION},
         FIREFOX_EXCEPTION},
	{"Native Code",
         "The thread was running without the GIL: native code.",
         STATUS_RUNNABLE,
         STATUS_GIL | STATUS_GIL_WAIT,
         {VALUE_RUNNABLE, VALUE_GIL},
         FIREFOX_NATIVE},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* A pass over a thread's markers, in the order of their ends. */
struct markers {
	struct timeline line;
	struct timeline_slice slice; /* the last one taken */
	uint64_t gap_ns, end_ns;     /* end_ns: of the slice before */
	uint64_t since_ns[KINDS];
	unsigned open, closing; /* sets of kinds */
	uint8_t kinds_in[256];  /* those of each status */
	bool over;
};

struct marker {
	unsigned kind;
	uint64_t start_ns, end_ns;
};

static uint8_t kinds_of(unsigned status, unsigned known)
{
	unsigned found = 0;

	for (unsigned kind = 0; kind < KINDS; kind++)
		if ((status & kinds[kind].set) == kinds[kind].set && !(status & kinds[kind].clear))
			found |= 1u << kind;
	return (uint8_t)(found & known);
}

static struct markers markers_of(const struct profile *profile, const struct thread_tree *thread)
{
	struct markers m = {.line = {.thread = thread}, .gap_ns = timeline_gap_ns(profile)};
	unsigned known = 0;

	_Static_assert(KINDS <= 8, "a set of kinds is a byte");
	for (unsigned kind = 0; kind < KINDS; kind++)
		if (profile_has(profile, kinds[kind].values[0]) && profile_has(profile, kinds[kind].values[1]))
			known |= 1u << kind;
	for (unsigned status = 0; status < sizeof(m.kinds_in); status++)
		m.kinds_in[status] = kinds_of(status, known);
	return m;
}

static bool next_marker(struct markers *m, struct marker *ret_marker)
{
	while (!m->closing) {
		struct timeline_slice next = {0};
		unsigned now;

		if (m->over)
			return false;
		for (now = m->kinds_in[m->slice.status & 0xff] & ~m->open; m->slice.end_ns && now; now &= now - 1) {
			unsigned kind = (unsigned)__builtin_ctz(now);

			m->since_ns[kind] = m->slice.start_ns;
			m->open |= 1u << kind;
		}
		m->end_ns = m->slice.end_ns;
		m->over = !timeline_next(&m->line, &next);
		if (m->over || (m->end_ns && next.start_ns - m->end_ns > m->gap_ns))
			m->closing = m->open;
		else
			m->closing = m->open & ~m->kinds_in[next.status & 0xff];
		m->slice = next;
		m->open &= ~m->closing;
	}
	ret_marker->kind = (unsigned)__builtin_ctz(m->closing);
	ret_marker->start_ns = m->since_ns[ret_marker->kind];
	ret_marker->end_ns = m->end_ns;
	m->closing &= m->closing - 1;
	return true;
}

int firefox_add_marker_names(struct text_set *strings)
{
	for (unsigned kind = 0; kind < KINDS; kind++)
		if (text_set_add(strings, kinds[kind].name, strlen(kinds[kind].name)) == INTERN_FAILED)
			return -ENOMEM;
	return 0;
}

void firefox_write_marker_schema(struct writer *to)
{
	writer_putc(to, '[');
	for (unsigned kind = 0; kind < KINDS; kind++)
		writer_printf(to,
		              "%s\n{\"name\":\"%s\",\"display\":[\"marker-chart\",\"marker-table\"%s],\"fields\":[],"
		              "\"description\":\"%s\"}",
		              kind ? "," : "", kinds[kind].name, kinds[kind].set ? ",\"timeline-overview\"" : "",
		              kinds[kind].description);
	writer_putc(to, ']');
}

enum column { MARKER_NAME, MARKER_START, MARKER_END, MARKER_PHASE, MARKER_CATEGORY, MARKER_DATA, MARKER_COLUMNS };

/* How many markers there are. */
static uint64_t write_column(struct markers m, enum column column, uint64_t base_ns, const uint32_t names[KINDS],
                             struct writer *to)
{
	struct marker marker;
	uint64_t count = 0;

	for (; next_marker(&m, &marker) && !to->err; count++) {
		if (count > 0)
			writer_putc(to, ',');
		switch (column) {
		case MARKER_NAME:
			writer_u64(to, names[marker.kind]);
			break;
		case MARKER_START:
			json_decimal(to, marker.start_ns - base_ns, 6);
			break;
		case MARKER_END:
			json_decimal(to, marker.end_ns - base_ns, 6);
			break;
		case MARKER_CATEGORY:
			writer_u64(to, kinds[marker.kind].category);
			break;
		default:
			writer_puts(to, "{\"type\":\"");
			writer_puts(to, kinds[marker.kind].name);
			writer_puts(to, "\"}");
			break;
		}
	}
	return count;
}

/* Each is an interval, whole. */
static void write_phases(uint64_t count, struct writer *to)
{
	for (uint64_t i = 0; i < count && !to->err; i++)
		json_item(to, i == 0, 1);
}

void firefox_write_markers(const struct profile *profile, const struct thread_tree *thread, uint64_t base_ns,
                           struct text_set *strings, struct writer *to)
{
	static const char *const columns[MARKER_COLUMNS] = {"name",  "startTime", "endTime",
	                                                    "phase", "category",  "data"};
	struct markers start = markers_of(profile, thread);
	uint32_t names[KINDS];
	uint64_t count = 0;

	for (unsigned kind = 0; kind < KINDS; kind++)
		names[kind] = text_set_add(strings, kinds[kind].name, strlen(kinds[kind].name));
	writer_putc(to, '{');
	for (int column = 0; column < MARKER_COLUMNS; column++) {
		writer_printf(to, "\n\"%s\":[", columns[column]);
		if (column == MARKER_PHASE)
			write_phases(count, to);
		else
			count = write_column(start, (enum column)column, base_ns, names, to);
		writer_puts(to, "],");
	}
	writer_puts(to, "\n\"length\":");
	writer_u64(to, count);
	writer_putc(to, '}');
}
