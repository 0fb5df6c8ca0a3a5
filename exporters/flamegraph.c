/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph: our page (exporters/flamegraph/, joined by its bundle.sh at build time) around the profile as data.
 *
 * The data is one JSON object in a script element that no browser runs. Texts and frames are interned; a thread's tree is one
 * base64 text of little-endian base-128 numbers, node after node in pre-order:
 *   2 × frame + (1: has self values), levels to go up from the last node before this one is hung in (0: a child of it);
 *   with self values: samples, wall, then two bits for each of the other value types from VALUE_RUNNABLE on (0: nothing, 1: equal to
 *   wall, 2: given), least significant first, then the given ones.
 * The first node is the root; its frame number is 0 and means nothing. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "exporters/base64.h"
#include "exporters/difference.h"
#include "exporters/facts.h"
#include "exporters/flamegraph.h"
#include "exporters/formats.h"
#include "exporters/walk.h"

/* The page, in the assembler file; the data goes between the two parts. */
extern const char flamegraph_page[];
extern const uint32_t flamegraph_page_bytes;

static const char data_mark[] = "@DATA@";

static void add_number(struct buf *to, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		buf_putc(to, (char)(0x80 | (number & 0x7f)));
	buf_putc(to, (char)number);
}

static bool has_self(const struct node *node)
{
	for (size_t v = 0; v < VALUE_COUNT; v++)
		if (node->self[v])
			return true;
	return false;
}

static void add_self(struct buf *to, const struct node *node)
{
	uint64_t codes = 0, wall = node->self[VALUE_WALL];

	for (size_t v = VALUE_RUNNABLE; v < VALUE_COUNT; v++)
		if (node->self[v])
			codes |= (node->self[v] == wall ? UINT64_C(1) : UINT64_C(2)) << 2 * (v - VALUE_RUNNABLE);
	add_number(to, node->self[VALUE_SAMPLES]);
	add_number(to, wall);
	add_number(to, codes);
	for (size_t v = VALUE_RUNNABLE; v < VALUE_COUNT; v++)
		if (node->self[v] && node->self[v] != wall)
			add_number(to, node->self[v]);
}

static void write_tree(struct flamegraph *f, const struct thread_tree *tree, struct writer *to)
{
	struct buf bytes = {0};
	uint32_t at = 0, left = 0;

	do {
		const struct node *node = &tree->nodes[at];
		uint32_t frame = at ? pair_set_add(&f->frames, node->symbol + 1, node->line) : 0;
		bool self = has_self(node);

		if (frame == INTERN_FAILED || bytes.err)
			break;
		add_number(&bytes, 2 * (uint64_t)frame + self);
		add_number(&bytes, left);
		if (self)
			add_self(&bytes, node);
		if (at)
			f->process_of[node->symbol] = tree->process;
		at = walk_next(tree, at, &left);
	} while (at);
	if (at || bytes.err)
		f->err = -ENOMEM;
	else
		base64_write(to, bytes.data, bytes.bytes);
	buf_release(&bytes);
}

static void write_threads(struct flamegraph *f, struct writer *to)
{
	writer_puts(to, ",\n\"threads\":[");
	for (uint32_t i = 0; i < f->profile->thread_count && !f->err && !to->err; i++) {
		const struct thread_tree *tree = &f->profile->threads[i];

		writer_printf(to, "%s\n[%" PRIu32 ",%" PRId64 ",%" PRIu64 ",", i ? "," : "", tree->process,
		              tree->interpreter, tree->tid);
		writer_json_string(to, tree->name ? tree->name : "");
		writer_printf(to, ",%d,%" PRIu32 ",\"", tree->is_main, tree->node_count);
		write_tree(f, tree, to);
		writer_puts(to, "\"]");
	}
	writer_putc(to, ']');
}

static void write_processes(const struct profile *profile, struct writer *to)
{
	char version[32];

	writer_puts(to, ",\n\"processes\":[");
	for (uint32_t i = 0; i < profile->process_count; i++) {
		const struct process *process = &profile->processes[i];

		facts_version_text(version, sizeof(version), process->version);
		writer_printf(to, "%s[%" PRId32 ",", i ? "," : "", process->pid);
		writer_json_string(to, process->name ? process->name : "");
		writer_printf(to, ",\"%s\",%d]", version, process->ended);
	}
	writer_putc(to, ']');
}

/* [key, label, number, number in words, enum fact_weight] of each. */
static void write_fact_list(const struct facts *facts, struct writer *to)
{
	writer_putc(to, '[');
	for (size_t i = 0; i < facts->count; i++) {
		writer_puts(to, i ? ",[" : "[");
		writer_json_string(to, facts->items[i].key);
		writer_putc(to, ',');
		writer_json_string(to, facts->items[i].label);
		writer_printf(to, ",%.17g,", facts->items[i].number);
		writer_json_string(to, facts->items[i].text);
		writer_printf(to, ",%d]", facts->items[i].weight);
	}
	writer_putc(to, ']');
}

static void write_facts(const struct profile *profile, struct writer *to)
{
	struct facts facts;

	facts_make(&facts, profile);
	writer_puts(to, ",\n\"facts\":");
	write_fact_list(&facts, to);
}

static void write_values(const struct profile *profile, struct writer *to)
{
	writer_puts(to, ",\"values\":[");
	for (size_t v = 0; v < VALUE_COUNT; v++) {
		writer_puts(to, v ? "," : "");
		if (profile->values[v].name)
			writer_json_string(to, profile->values[v].name);
		else
			writer_puts(to, "null");
	}
	writer_puts(to, "],\"units\":[");
	for (size_t v = 0; v < VALUE_COUNT; v++) {
		writer_puts(to, v ? "," : "");
		writer_json_string(to, profile->values[v].name ? profile->values[v].unit : "");
	}
	writer_putc(to, ']');
}

/* [name, file, line, kind, is beyond the noise in self, in total, then self and total: percent before, after, half of the interval]. */
static void write_change(const struct difference *d, const struct difference_row *row, struct writer *to)
{
	const struct side_sums *before = &row->sides[BEFORE], *after = &row->sides[AFTER];

	writer_putc(to, '[');
	writer_json_string(to, difference_name(d, row));
	writer_putc(to, ',');
	writer_json_string(to, difference_file(d, row));
	writer_printf(to, ",%" PRIu32 ",\"%s\",%d,%d,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f]", row->line,
	              difference_kind_text(difference_kind(row, DIFFERENCE_SELF)), row->self.is_certain,
	              row->total.is_certain, difference_percent(d, BEFORE, before->self),
	              difference_percent(d, AFTER, after->self), row->self.within,
	              difference_percent(d, BEFORE, before->total), difference_percent(d, AFTER, after->total),
	              row->total.within);
}

/* What a differential flame graph has besides the joined profile. */
static void write_comparison(const struct comparison *c, struct writer *to)
{
	enum { ROWS_MAX = 2000 };
	const struct difference *d = c->difference;
	uint32_t rows = 0, left_out = 0;

	writer_puts(to, ",\n\"comparison\":{\"titles\":[");
	writer_json_string(to, c->titles[BEFORE]);
	writer_putc(to, ',');
	writer_json_string(to, c->titles[AFTER]);
	writer_printf(to, "],\"samples\":[%u,%u],\"weight\":[%u,%u],\"durations\":[%.9g,%.9g]", c->samples[BEFORE],
	              c->samples[AFTER], c->weight[BEFORE], c->weight[AFTER], d->duration_s[BEFORE],
	              d->duration_s[AFTER]);
	writer_printf(to, ",\"of\":\"%s\"", difference_shares_of(d));
	writer_puts(to, ",\n\"facts\":[");
	write_fact_list(c->facts[BEFORE], to);
	writer_putc(to, ',');
	write_fact_list(c->facts[AFTER], to);
	writer_puts(to, "],\n\"changes\":[");
	for (uint32_t i = 0; i < d->row_count && !to->err; i++) {
		if (difference_kind(&d->rows[i], DIFFERENCE_SELF) == KIND_SAME && d->rows[i].total.points == 0)
			continue;
		if (rows == ROWS_MAX) {
			left_out++;
			continue;
		}
		writer_puts(to, rows++ ? ",\n" : "");
		write_change(d, &d->rows[i], to);
	}
	writer_printf(to, "],\"changesLeftOut\":%" PRIu32 "}", left_out);
}

/* Written after the trees, which say which frames there are. */
static void write_tables(struct flamegraph *f, struct writer *to)
{
	writer_puts(to, ",\n\"symbols\":[");
	for (uint32_t i = 0; i < f->profile->symbol_count && !f->err; i++) {
		const struct symbol *symbol = &f->profile->symbols[i];
		uint32_t name = text_set_add(&f->texts, symbol->name, strlen(symbol->name));
		uint32_t file = text_set_add(&f->texts, symbol->file, strlen(symbol->file));

		uint32_t module = text_set_add(&f->texts, symbol->module, strlen(symbol->module));

		if (name == INTERN_FAILED || file == INTERN_FAILED || module == INTERN_FAILED)
			f->err = -ENOMEM;
		writer_printf(to, "%s%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%u,%" PRIu32 ",%" PRIu32, i ? "," : "", name,
		              file, symbol->first_line, symbol->kind, f->process_of[i], module);
	}
	writer_puts(to, "],\n\"frames\":[");
	for (uint32_t i = 0; i < f->frames.count; i++) {
		struct pair frame = pair_set_get(&f->frames, i);

		writer_printf(to, "%s%" PRIu32 ",%" PRIu32, i ? "," : "", i ? frame.a - 1 : 0, frame.b);
	}
	writer_puts(to, "],\n\"strings\":[");
	for (uint32_t i = 0; i < f->texts.count && !to->err; i++) {
		if (i)
			writer_putc(to, ',');
		writer_json_string(to, text_set_get(&f->texts, i, NULL));
	}
	writer_putc(to, ']');
}

static void write_data(struct flamegraph *f, const struct export_options *options, struct writer *to)
{
	const struct profile *profile = f->profile;

	writer_puts(to, "{\"version\":1,\"title\":");
	writer_json_string(to, options->title ? options->title : "");
	writer_puts(to, ",\"mode\":");
	writer_json_string(to, profile->mode ? profile->mode : "");
	writer_printf(to, ",\"sequence\":%" PRIu64 ",\"startedMs\":%" PRIu64, profile->sequence,
	              profile->wall_start_ns / NS_PER_MS);
	/* The sampler refuses free-threaded builds, so what it sampled is none; of an import nothing is known. */
	writer_printf(to, ",\"intervalNs\":%" PRIu64 ",\"imported\":%s,\"freeThreaded\":%s", profile->interval_ns,
	              profile->imported ? "true" : "false", profile->imported ? "null" : "false");
	write_values(profile, to);
	write_facts(profile, to);
	if (options->comparison)
		write_comparison(options->comparison, to);
	write_processes(profile, to);
	write_threads(f, to);
	if (!f->err)
		write_tables(f, to);
	if (!f->err && options->sources)
		f->err = flamegraph_sources(f, options->sources, to);
	writer_puts(to, "}");
}

int flamegraph_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	const char *mark = memmem(flamegraph_page, flamegraph_page_bytes, data_mark, sizeof(data_mark) - 1);
	struct flamegraph f = {.profile = profile};

	if (!mark)
		return writer_fail(to, -EINVAL);
	f.process_of = calloc(profile->symbol_count + (size_t)1, sizeof(*f.process_of));
	if (!f.process_of || pair_set_add(&f.frames, 0, 0) == INTERN_FAILED) {
		f.err = -ENOMEM;
	} else {
		size_t before = (size_t)(mark - flamegraph_page), behind = before + sizeof(data_mark) - 1;

		writer_add(to, flamegraph_page, before);
		write_data(&f, options, to);
		writer_add(to, flamegraph_page + behind, flamegraph_page_bytes - behind);
	}
	writer_fail(to, f.err);
	free(f.process_of);
	pair_set_release(&f.frames);
	text_set_release(&f.texts);
	return to->err;
}
