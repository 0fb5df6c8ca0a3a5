/* SPDX-License-Identifier: Apache-2.0 */
/* The profiles of Dask's distributed (its profile.py): nested JSON objects that merge() and plot_data() take once they are loaded.
 *
 * A node is a function below its callers, known by name, file and first line; the trees of all threads are one, and lines of a function
 * are one, as they are there: description.line_number is the first line that was met. Counts are samples, with what is called; or the weight,
 * where samples are not counted, which the member "sampled" of the root then names ("value", "unit").
 *
 * A history, where one is asked for, is a list of [time, tree], a tree for what was sampled in the interval that ends at that time, in
 * seconds since 1970. The sampling facts are in the member "sampled" of the (first) root, which Dask does not look at.
 *
 * Who reads it recurses: json of Python to 3.11, and Dask itself. So stacks have at most 400 frames; of what is deeper the last two are
 * "<truncated>" and the function itself. Counts add up as they do in the tree. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "exporters/facts.h"
#include "exporters/formats.h"
#include "exporters/intern.h"
#include "exporters/source.h"

enum {
	FILES_MAX = 2000,     /* read for their lines */
	LINE_BYTES_MAX = 200, /* longer ones are cut */
	/* Two levels of JSON a frame, and Python to 3.11 reads 990 in all. */
	DEPTH_MAX = 400,
};

/* The symbol of the node "<truncated>". */
#define TRUNCATED UINT32_MAX

/* Where a node of the trie was met first. */
struct origin {
	uint32_t symbol, line, process, depth;
};

/* A node whose source line is wanted. */
struct wanted {
	struct origin origin;
	uint32_t node;
};

/* Samples of one node in one interval. */
struct piece {
	uint64_t interval;
	uint32_t node, count;
};

struct dask {
	const struct profile *profile;
	struct text_set identifiers;
	struct pair_set nodes; /* of the trie: (parent, identifier); number 0 is the root */
	struct buf origins;    /* struct origin a node */
	struct buf scratch;    /* an identifier while it is made */
	struct text_set lines; /* of sources */
	uint32_t *line_of;     /* a node's, a number in lines; NULL: sources are not read. INTERN_FAILED: none */
	uint32_t **nodes_of;   /* a thread's nodes → the trie's */
	uint64_t *counts;      /* a node's samples, with those below it once add_up() was there */
	uint32_t *child, *sibling;
	bool is_history; /* which counts samples */
	int err;
};

static bool is_failed(struct dask *d, bool failed)
{
	if (failed && !d->err)
		d->err = -ENOMEM;
	return d->err != 0;
}

static const struct symbol *symbol_of(const struct dask *d, uint32_t symbol)
{
	static const struct symbol truncated = {.name = "<truncated>", .file = "", .kind = FRAME_SPECIAL};

	return symbol == TRUNCATED ? &truncated : &d->profile->symbols[symbol];
}

static uint32_t trie_child(struct dask *d, uint32_t parent, struct origin origin)
{
	const struct symbol *s = symbol_of(d, origin.symbol);
	uint32_t before = d->nodes.count, identifier, node;

	d->scratch.bytes = 0;
	buf_puts(&d->scratch, s->name);
	buf_putc(&d->scratch, ';');
	buf_puts(&d->scratch, s->file);
	buf_printf(&d->scratch, ";%" PRIu32, s->first_line);
	identifier = d->scratch.err ? INTERN_FAILED : text_set_add(&d->identifiers, d->scratch.data, d->scratch.bytes);
	if (is_failed(d, identifier == INTERN_FAILED))
		return 0;
	node = pair_set_add(&d->nodes, parent, identifier);
	origin.depth = ((const struct origin *)(const void *)d->origins.data)[parent].depth + 1;
	if (d->nodes.count > before)
		buf_add(&d->origins, &origin, sizeof(origin));
	return is_failed(d, node == INTERN_FAILED || d->origins.err) ? 0 : node;
}

static uint32_t trie_depth(const struct dask *d, uint32_t node)
{
	return ((const struct origin *)(const void *)d->origins.data)[node].depth;
}

/* By number, parents first: the order in which they were first seen. A node below the bound is a child of <truncated>, whatever lies between. */
static void add_tree(struct dask *d, uint32_t thread)
{
	const struct thread_tree *tree = &d->profile->threads[thread];
	uint32_t *to = calloc(tree->node_count, sizeof(*to));

	d->nodes_of[thread] = to;
	if (is_failed(d, !to))
		return;
	for (uint32_t n = 1; n < tree->node_count && !d->err; n++) {
		uint32_t parent = to[tree->nodes[n].parent];
		struct origin origin = {
			.symbol = tree->nodes[n].symbol, .line = tree->nodes[n].line, .process = tree->process};

		if (trie_depth(d, parent) == DEPTH_MAX - 2)
			parent = trie_child(d, parent, (struct origin){.symbol = TRUNCATED, .process = tree->process});
		else if (trie_depth(d, parent) == DEPTH_MAX)
			parent = pair_set_get(&d->nodes, parent).a;
		to[n] = d->err ? 0 : trie_child(d, parent, origin);
	}
}

/* Children in the order in which they were first met. */
static void link_children(struct dask *d)
{
	d->child = calloc(d->nodes.count, sizeof(*d->child));
	d->sibling = calloc(d->nodes.count, sizeof(*d->sibling));
	d->counts = calloc(d->nodes.count, sizeof(*d->counts));
	if (is_failed(d, !d->child || !d->sibling || !d->counts))
		return;
	for (uint32_t n = d->nodes.count - 1; n > 0; n--) {
		uint32_t parent = pair_set_get(&d->nodes, n).a;

		d->sibling[n] = d->child[parent];
		d->child[parent] = n;
	}
}

static void build(struct dask *d)
{
	d->nodes_of = calloc(d->profile->thread_count + (size_t)1, sizeof(*d->nodes_of));
	if (is_failed(d, !d->nodes_of || pair_set_add(&d->nodes, 0, UINT32_MAX) == INTERN_FAILED))
		return;
	buf_add(&d->origins, &(struct origin){0}, sizeof(struct origin));
	for (uint32_t i = 0; i < d->profile->thread_count && !d->err; i++)
		add_tree(d, i);
	if (!d->err)
		link_children(d);
}

/* --- source lines --- */

static const struct origin *origin_of(const struct dask *d, uint32_t node)
{
	return (const struct origin *)(const void *)d->origins.data + node;
}

static int compare_wanted(const void *left, const void *right, void *context)
{
	const struct origin *a = &((const struct wanted *)left)->origin, *b = &((const struct wanted *)right)->origin;
	const struct symbol *symbols = context;
	int files = strcmp(symbols[a->symbol].file, symbols[b->symbol].file);

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (files)
		return files;
	return (a->line > b->line) - (a->line < b->line);
}

/* As distributed does it: without the blanks before it, and with its end. */
static void keep_line(struct dask *d, const struct wanted *wanted, const char *text, size_t bytes)
{
	while (bytes > 0 && (*text == ' ' || *text == '\t' || *text == '\f')) {
		text++;
		bytes--;
	}
	d->scratch.bytes = 0;
	utf8_add_valid(&d->scratch, text, bytes < LINE_BYTES_MAX ? bytes : LINE_BYTES_MAX);
	buf_putc(&d->scratch, '\n');
	if (!d->scratch.err)
		d->line_of[wanted->node] = text_set_add(&d->lines, d->scratch.data, d->scratch.bytes);
}

/* One pass over a file for its wanted lines, which are in rising order. */
static void read_file(struct dask *d, const struct wanted *wanted, size_t count, const struct buf *source)
{
	const char *at = source->data, *end = source->data + source->bytes;
	size_t next = 0;

	for (uint32_t line = 1; at < end && next < count; line++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t bytes = (size_t)((stop ? stop : end) - at);

		for (; next < count && wanted[next].origin.line == line; next++)
			keep_line(d, &wanted[next], at, bytes);
		at = stop ? stop + 1 : end;
	}
}

/* Lines that cannot be read, or are beyond the bound, stay empty. */
static void read_sources(struct dask *d, const struct source_access *access)
{
	const struct symbol *symbols = d->profile->symbols;
	struct wanted *wanted = calloc(d->nodes.count, sizeof(*wanted));
	struct buf source = {0};
	size_t count = 0, files = 0;

	d->line_of = malloc(d->nodes.count * sizeof(*d->line_of));
	if (!is_failed(d, !wanted || !d->line_of)) {
		memset(d->line_of, 0xff, d->nodes.count * sizeof(*d->line_of)); /* INTERN_FAILED */
		for (uint32_t n = 1; n < d->nodes.count; n++)
			if (origin_of(d, n)->line && symbol_of(d, origin_of(d, n)->symbol)->kind == FRAME_PYTHON)
				wanted[count++] = (struct wanted){.origin = *origin_of(d, n), .node = n};
		qsort_r(wanted, count, sizeof(*wanted), compare_wanted, (void *)symbols);
	}
	for (size_t i = 0, same; i < count && files < FILES_MAX; i += same, files++) {
		const char *file = symbols[wanted[i].origin.symbol].file;
		const struct process *process = &d->profile->processes[wanted[i].origin.process];
		const struct source_place *place = access->enter(access->context, process->pid, process->start_time);
		int err = place ? source_read(&source, place, file) : -ENOENT;

		if (place)
			access->leave(access->context);
		for (same = 1; i + same < count && wanted[i + same].origin.process == wanted[i].origin.process &&
		               strcmp(symbols[wanted[i + same].origin.symbol].file, file) == 0;)
			same++;
		if (!err)
			read_file(d, &wanted[i], same, &source);
	}
	buf_release(&source);
	free(wanted);
}

/* Each node gets the counts of those below it; parents come before their children. */
static void add_up(struct dask *d)
{
	for (uint32_t n = d->nodes.count - 1; n > 0; n--)
		d->counts[pair_set_get(&d->nodes, n).a] += d->counts[n];
}

static void write_facts(const struct dask *d, struct writer *to)
{
	const struct profile *profile = d->profile;
	enum value_index value = d->is_history ? VALUE_SAMPLES : profile_counted(profile);
	struct facts facts;

	facts_make(&facts, profile);
	writer_puts(to, ",\"sampled\":{\"facts\":{");
	for (size_t i = 0; i < facts.count; i++) {
		if (i)
			writer_putc(to, ',');
		writer_json_string(to, facts.items[i].key);
		writer_printf(to, ":%.17g", isfinite(facts.items[i].number) ? facts.items[i].number : 0);
	}
	writer_putc(to, '}');
	if (value != VALUE_SAMPLES) {
		writer_puts(to, ",\"value\":");
		writer_json_string(to, profile->values[value].name);
		writer_puts(to, ",\"unit\":");
		writer_json_string(to, profile->values[value].unit);
	}
	writer_putc(to, '}');
}

static void write_head(const struct dask *d, uint32_t node, bool with_facts, struct writer *to)
{
	struct origin origin = *origin_of(d, node);
	const struct symbol *symbol = node ? symbol_of(d, origin.symbol) : NULL;

	writer_puts(to, "{\"identifier\":");
	writer_json_string(to, node ? text_set_get(&d->identifiers, pair_set_get(&d->nodes, node).b, NULL) : "root");
	writer_puts(to, ",\"description\":{\"filename\":");
	writer_json_string(to, symbol ? symbol->file : "");
	writer_puts(to, ",\"name\":");
	writer_json_string(to, symbol ? symbol->name : "");
	writer_printf(to, ",\"line_number\":%" PRIu32 ",\"line\":", origin.line);
	writer_json_string(to, d->line_of && d->line_of[node] != INTERN_FAILED
	                               ? text_set_get(&d->lines, d->line_of[node], NULL)
	                               : "");
	writer_printf(to, "},\"count\":%" PRIu64, d->counts[node]);
	if (with_facts)
		write_facts(d, to);
	writer_puts(to, ",\"children\":{");
}

/* From `node` on, the first sibling that has samples. */
static uint32_t with_samples(const struct dask *d, uint32_t node)
{
	while (node && d->counts[node] == 0)
		node = d->sibling[node];
	return node;
}

static void write_tree(const struct dask *d, bool with_facts, struct writer *to)
{
	uint32_t at = 0, next;

	write_head(d, 0, with_facts, to);
	for (next = with_samples(d, d->child[0]); !to->err;) {
		if (next) {
			writer_json_string(to, text_set_get(&d->identifiers, pair_set_get(&d->nodes, next).b, NULL));
			writer_putc(to, ':');
			write_head(d, next, false, to);
			at = next;
			next = with_samples(d, d->child[at]);
			continue;
		}
		writer_puts(to, "}}");
		if (at == 0)
			break;
		next = with_samples(d, d->sibling[at]);
		at = pair_set_get(&d->nodes, at).a;
		if (next)
			writer_putc(to, ',');
	}
}

static void write_whole(struct dask *d, struct writer *to)
{
	enum value_index value = profile_counted(d->profile);

	for (uint32_t i = 0; i < d->profile->thread_count; i++)
		for (uint32_t n = 0; n < d->profile->threads[i].node_count; n++)
			d->counts[d->nodes_of[i][n]] += d->profile->threads[i].nodes[n].self[value];
	add_up(d);
	write_tree(d, true, to);
}

/* --- the history --- */

/* Cuts a run at the ends of intervals; its samples lie evenly between the first and the last. */
static void cut_run(const struct dask *d, const struct run *run, uint32_t node, uint64_t interval_ns,
                    struct buf *pieces)
{
	uint64_t start_ns = d->profile->t_start_ns,
		 first_ns = run->t_first_ns > start_ns ? run->t_first_ns - start_ns : 0;
	uint64_t last = (first_ns + run->span_ns) / interval_ns, done = 0;

	for (uint64_t at = first_ns / interval_ns; at <= last && done < run->count; at++) {
		uint64_t end = run->count; /* the first sample behind the interval */

		if (at < last && run->span_ns > 0 && run->count > 1) {
			uint64_t left_ns = (at + 1) * interval_ns - first_ns;

			end = (left_ns * (run->count - 1u) + run->span_ns - 1) / run->span_ns;
		}
		if (end > done)
			buf_add(pieces, &(struct piece){.interval = at, .node = node, .count = (uint32_t)(end - done)},
			        sizeof(struct piece));
		done = end > done ? end : done;
	}
}

static int compare_pieces(const void *left, const void *right)
{
	const struct piece *a = left, *b = right;

	if (a->interval != b->interval)
		return a->interval < b->interval ? -1 : 1;
	return (a->node > b->node) - (a->node < b->node);
}

static void write_history(struct dask *d, uint64_t interval_ns, struct writer *to)
{
	const struct profile *profile = d->profile;
	uint64_t start_ns = profile->wall_start_ns ? profile->wall_start_ns : profile->t_start_ns;
	struct buf buf = {0};
	struct piece *pieces;
	size_t count;

	for (uint32_t i = 0; i < profile->thread_count; i++)
		for (size_t r = 0; r < profile->threads[i].run_count; r++) {
			const struct run *run = &profile->threads[i].runs[r];

			cut_run(d, run, d->nodes_of[i][run->node], interval_ns, &buf);
		}
	is_failed(d, buf.err != 0);
	pieces = (struct piece *)(void *)buf.data;
	count = d->err ? 0 : buf.bytes / sizeof(*pieces);
	if (count)
		qsort(pieces, count, sizeof(*pieces), compare_pieces);
	writer_putc(to, '[');
	for (size_t i = 0, same; i < count && !to->err; i += same) {
		uint64_t end_ns = start_ns + (pieces[i].interval + 1) * interval_ns;

		memset(d->counts, 0, d->nodes.count * sizeof(*d->counts));
		for (same = 0; i + same < count && pieces[i + same].interval == pieces[i].interval; same++)
			d->counts[pieces[i + same].node] += pieces[i + same].count;
		add_up(d);
		writer_printf(to, "%s\n[%" PRIu64 ".%09" PRIu64 ",", i ? "," : "", end_ns / NS_PER_S,
		              end_ns % NS_PER_S);
		write_tree(d, i == 0, to);
		writer_putc(to, ']');
	}
	writer_puts(to, "\n]");
	buf_release(&buf);
}

static void release(struct dask *d)
{
	for (uint32_t i = 0; d->nodes_of && i < d->profile->thread_count; i++)
		free(d->nodes_of[i]);
	free(d->nodes_of);
	free(d->counts);
	free(d->child);
	free(d->sibling);
	free(d->line_of);
	text_set_release(&d->lines);
	text_set_release(&d->identifiers);
	pair_set_release(&d->nodes);
	buf_release(&d->origins);
	buf_release(&d->scratch);
}

int dask_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	struct dask d = {.profile = profile, .is_history = options->history_interval_ns > 0};

	build(&d);
	if (!d.err && options->sources)
		read_sources(&d, options->sources);
	if (!d.err && options->history_interval_ns)
		write_history(&d, options->history_interval_ns, to);
	else if (!d.err)
		write_whole(&d, to);
	writer_putc(to, '\n');
	writer_fail(to, d.err);
	release(&d);
	return to->err;
}
