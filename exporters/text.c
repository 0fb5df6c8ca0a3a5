/* SPDX-License-Identifier: Apache-2.0 */
/* The text report: facts and losses, threads, top functions, heaviest path; readable in 100 columns. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "exporters/facts.h"
#include "exporters/formats.h"
#include "exporters/functions.h"
#include "base/utf8.h"

enum {
	COLUMNS = 100,
	FUNCTIONS_MAX = 40, /* rows of the table of functions */
	THREADS_MAX = 64,
	PATH_MAX_ROWS = 60, /* of the heaviest path; the middle of a longer one is left out and said */
};

struct report {
	const struct profile *profile;
	struct writer *to;
	struct facts facts;
	struct buf line;
	enum value_index by; /* what shares are of: the profile's weight, or samples where that is nothing */
	uint64_t whole;      /* sum of it */
	bool is_time;        /* it is nanoseconds, shown as seconds */
	bool color;
	int err;
};

/* Columns that are left in the line, which up to here is plain ASCII. */
static unsigned columns_left(const struct report *r)
{
	return r->line.bytes < COLUMNS ? COLUMNS - (unsigned)r->line.bytes : 0;
}

static void heading(struct report *r, const char *text)
{
	writer_printf(r->to, r->color ? "\n\033[1m%s\033[0m\n" : "\n%s\n", text);
}

/* Writes out the line that was built, and begins the next. */
static void end_line(struct report *r)
{
	while (r->line.bytes > 0 && r->line.data[r->line.bytes - 1] == ' ')
		r->line.bytes--;
	buf_putc(&r->line, '\n');
	if (r->line.err)
		r->err = r->line.err;
	else
		writer_add(r->to, r->line.data, r->line.bytes);
	r->line.bytes = 0;
}

static void add_amount(struct report *r, uint64_t value)
{
	char text[32];

	if (!r->is_time)
		facts_count_text(text, sizeof(text), value);
	else
		snprintf(text, sizeof(text), value < 10000 * NS_PER_S ? "%.3f" : "%.0f",
		         (double)value / (double)NS_PER_S);
	buf_printf(&r->line, "%9s", text);
}

static void add_share(struct report *r, uint64_t part, uint64_t whole)
{
	if (whole > 0)
		buf_printf(&r->line, " %6.1f", facts_percent(part, whole));
	else
		buf_puts(&r->line, "      -");
}

/* "name (file:line)" in the columns that are left: the name comes first; of the file its end is what tells it from others. */
static void add_place(struct report *r, const struct symbol *symbol, uint32_t line)
{
	unsigned columns = columns_left(r), used, tail;
	char number[16];

	if (symbol->file[0] == '\0') {
		utf8_fit(&r->line, symbol->name, columns, false);
		return;
	}
	used = utf8_fit(&r->line, symbol->name, columns > 30 ? columns * 3 / 5 : columns, false);
	tail = (unsigned)(line ? snprintf(number, sizeof(number), ":%" PRIu32 ")", line)
	                       : snprintf(number, sizeof(number), ")"));
	if (columns < used + tail + 6)
		return;
	buf_puts(&r->line, " (");
	utf8_fit(&r->line, symbol->file, columns - used - tail - 2, true);
	buf_puts(&r->line, number);
}

static void write_head(struct report *r)
{
	const struct profile *profile = r->profile;
	char version[32];

	writer_puts(r->to, r->color ? "\033[1msampled\033[0m: " : "sampled: ");
	writer_printf(r->to, "profile of %" PRIu32 " process%s, %" PRIu32 " thread%s, ", profile->process_count,
	              profile->process_count == 1 ? "" : "es", profile->thread_count,
	              profile->thread_count == 1 ? "" : "s");
	if (profile->imported && r->facts.sum.attempts == 0)
		writer_puts(r->to, "imported");
	else
		writer_printf(r->to, "mode %s", profile->mode ? profile->mode : "wall");
	if (profile->sequence)
		writer_printf(r->to, ", snapshot %" PRIu64, profile->sequence);
	writer_putc(r->to, '\n');
	for (uint32_t i = 0; i < profile->process_count && i < THREADS_MAX; i++) {
		const struct process *process = &profile->processes[i];

		bool is_named = process->name && process->name[0];

		if (process->pid == 0 && !is_named)
			continue; /* an import that says nothing of it */
		buf_printf(&r->line, "  process %" PRId32, process->pid);
		if (process->version) {
			facts_version_text(version, sizeof(version), process->version);
			buf_printf(&r->line, ", Python %s", version);
		}
		buf_puts(&r->line, process->ended ? ", ended" : "");
		if (is_named) {
			buf_puts(&r->line, ": ");
			utf8_fit(&r->line, process->name, columns_left(r), false);
		}
		end_line(r);
	}
	if (profile->process_count > THREADS_MAX)
		writer_printf(r->to, "  and %" PRIu32 " more processes\n", profile->process_count - THREADS_MAX);
}

static void write_facts(struct report *r)
{
	const struct facts *f = &r->facts;
	size_t rows = (f->count + 1) / 2;

	heading(r, "SAMPLING");
	for (size_t i = 0; i < rows; i++) {
		for (size_t half = 0; half < 2 && i + half * rows < f->count; half++) {
			const struct fact *fact = &f->items[i + half * rows];

			buf_puts(&r->line, fact->weight == FACT_LOSS ? "! " : "  ");
			/* An import's label may be any text. */
			for (unsigned used = utf8_fit(&r->line, fact->label, 44, false); used < 29; used++)
				buf_putc(&r->line, ' ');
			buf_putc(&r->line, ' ');
			for (unsigned used = utf8_fit(&r->line, fact->text, 18, false); half == 0 && used < 18; used++)
				buf_putc(&r->line, ' ');
		}
		end_line(r);
	}
}

static void add_thread_name(struct report *r, const struct thread_tree *tree)
{
	struct buf name = {0};

	if (r->profile->process_count > 1)
		buf_printf(&name, "%" PRId32 "/", r->profile->processes[tree->process].pid);
	if (tree->interpreter != 0)
		buf_printf(&name, "interpreter %" PRId64 "/", tree->interpreter);
	if (tree->tid)
		buf_printf(&name, "%" PRIu64, tree->tid);
	else
		buf_putc(&name, '?');
	if (tree->name && tree->name[0])
		buf_printf(&name, " %s", tree->name);
	utf8_fit(&r->line, buf_text(&name), columns_left(r), false);
	if (name.err)
		r->err = name.err;
	buf_release(&name);
}

/* CPU time, then the states, which add up to the whole, then what is a part of one of these. */
static const struct {
	enum value_index value; /* that the profile must have */
	const char *label;
	enum state state; /* STATE_COUNT: the value itself */
} thread_shares[] = {{VALUE_CPU, "CPU", STATE_COUNT},
                     {VALUE_GIL, "GIL", STATE_GIL},
                     {VALUE_GIL_WAIT, "wait", STATE_GIL_WAIT},
                     {VALUE_RUNNABLE, "run", STATE_RUNNABLE},
                     {VALUE_IDLE, "idle", STATE_IDLE},
                     {VALUE_UNKNOWN, "?", STATE_UNKNOWN},
                     {VALUE_GC, "GC", STATE_COUNT}};

struct thread_row {
	const struct thread_tree *tree;
	uint64_t sum[VALUE_COUNT], states[STATE_COUNT];
};

static int compare_threads(const void *left, const void *right)
{
	const struct thread_row *a = left, *b = right;

	if (a->sum[VALUE_SAMPLES] != b->sum[VALUE_SAMPLES])
		return a->sum[VALUE_SAMPLES] < b->sum[VALUE_SAMPLES] ? 1 : -1;
	return (a->tree->tid > b->tree->tid) - (a->tree->tid < b->tree->tid);
}

/* An imported profile may have some of the states, or others in their places. */
static bool has_share(const struct report *r, enum value_index value)
{
	return r->is_time && profile_has(r->profile, value);
}

static void write_threads_head(struct report *r)
{
	if (r->is_time)
		buf_printf(&r->line, "  samples%9s ", "seconds");
	else
		buf_printf(&r->line, "  samples%9s ", "");
	for (size_t v = 0; v < sizeof(thread_shares) / sizeof(thread_shares[0]); v++)
		if (has_share(r, thread_shares[v].value))
			buf_printf(&r->line, "%7s", thread_shares[v].label);
	buf_puts(&r->line, "  thread");
	end_line(r);
}

static uint64_t share_of(const struct thread_row *row, size_t share)
{
	enum state state = thread_shares[share].state;

	return state < STATE_COUNT ? row->states[state] : row->sum[thread_shares[share].value];
}

/* What a thread was doing, in shares of its own time. */
static void write_threads(struct report *r)
{
	uint32_t count = r->profile->thread_count;
	struct thread_row *rows = calloc(count + (size_t)1, sizeof(*rows));

	if (!rows) {
		r->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		rows[i].tree = &r->profile->threads[i];
		for (uint32_t n = 0; n < rows[i].tree->node_count; n++)
			for (size_t v = 0; v < VALUE_COUNT; v++)
				rows[i].sum[v] += rows[i].tree->nodes[n].self[v];
		values_states(rows[i].sum, rows[i].states);
	}
	qsort(rows, count, sizeof(*rows), compare_threads);
	heading(r, has_share(r, VALUE_RUNNABLE)
	                   ? "THREADS (shares of the thread's time. GIL: held, wait: awaited, run: neither, and runnable)"
	                   : "THREADS (shares of the thread's own time)");
	write_threads_head(r);
	for (uint32_t i = 0; i < count && i < THREADS_MAX; i++) {
		buf_printf(&r->line, "%9" PRIu64, rows[i].sum[VALUE_SAMPLES]);
		add_amount(r, rows[i].sum[r->by]);
		buf_putc(&r->line, ' ');
		for (size_t v = 0; v < sizeof(thread_shares) / sizeof(thread_shares[0]); v++)
			if (has_share(r, thread_shares[v].value))
				add_share(r, share_of(&rows[i], v), rows[i].sum[r->by]);
		buf_puts(&r->line, "  ");
		add_thread_name(r, rows[i].tree);
		end_line(r);
	}
	if (count > THREADS_MAX)
		writer_printf(r->to, "  and %" PRIu32 " more threads with fewer samples\n", count - THREADS_MAX);
	free(rows);
}

static void write_functions(struct report *r)
{
	struct function *functions;
	uint32_t count;
	uint64_t rest = 0;
	bool cpu = has_share(r, VALUE_CPU), gil = has_share(r, VALUE_GIL);

	r->err = functions_make(&functions, &count, r->profile, r->by);
	if (r->err)
		return;
	heading(r, "FUNCTIONS (self: in the function itself; total: with what it calls; shares of all sampled time)");
	writer_printf(r->to, "%9s  self %% %8s total %%%s%s  function (file:first line)\n",
	              r->is_time ? "self s" : "self", r->is_time ? "total s" : "total", cpu ? "  CPU %" : "",
	              gil ? "  GIL %" : "");
	for (uint32_t i = 0; i < count; i++) {
		const struct function *f = &functions[i];
		const struct symbol *symbol = &r->profile->symbols[f->symbol];

		if (i >= FUNCTIONS_MAX) {
			rest += f->self[r->by];
			continue;
		}
		add_amount(r, f->self[r->by]);
		add_share(r, f->self[r->by], r->whole);
		add_amount(r, f->total[r->by]);
		add_share(r, f->total[r->by], r->whole);
		if (cpu)
			add_share(r, f->self[VALUE_CPU], f->self[r->by]);
		if (gil)
			add_share(r, f->self[VALUE_GIL], f->self[r->by]);
		buf_puts(&r->line, "  ");
		add_place(r, symbol, symbol->first_line);
		end_line(r);
	}
	if (count > FUNCTIONS_MAX) {
		add_amount(r, rest);
		add_share(r, rest, r->whole);
		buf_printf(&r->line, "%*s(other: %" PRIu32 " functions)", 18 + 7 * cpu + 7 * gil, "",
		           count - FUNCTIONS_MAX);
		end_line(r);
	}
	if (cpu || gil)
		writer_puts(
			r->to,
			"  CPU % and GIL %: of the function's self time, on a CPU as the kernel counted, and holding the GIL\n");
	free(functions);
}

static uint32_t heaviest_child(const struct thread_tree *tree, const uint64_t *totals, uint32_t node,
                               enum value_index by)
{
	uint32_t best = tree->nodes[node].child;

	for (uint32_t child = best; child; child = tree->nodes[child].sibling)
		if (totals[(size_t)child * VALUE_COUNT + by] > totals[(size_t)best * VALUE_COUNT + by])
			best = child;
	return best;
}

/* From the root of the heaviest thread always on to the heaviest child. */
static void write_path(struct report *r)
{
	const struct thread_tree *tree = NULL;
	uint64_t *totals = NULL;
	uint32_t rows = 0, row = 0;

	for (uint32_t i = 0; i < r->profile->thread_count; i++) {
		uint64_t *new = profile_totals(&r->profile->threads[i]);

		if (!new) {
			free(totals);
			r->err = -ENOMEM;
			return;
		}
		if (tree && new[r->by] <= totals[r->by]) {
			free(new);
			continue;
		}
		free(totals);
		totals = new;
		tree = &r->profile->threads[i];
	}
	if (!tree)
		return;
	heading(r, "HEAVIEST PATH (from the outermost call always on to the heaviest)");
	buf_printf(&r->line, "%9s total %%  self %%  thread ", r->is_time ? "total s" : "total");
	add_thread_name(r, tree);
	end_line(r);
	for (uint32_t n = heaviest_child(tree, totals, 0, r->by); n; n = heaviest_child(tree, totals, n, r->by))
		rows++;
	for (uint32_t n = heaviest_child(tree, totals, 0, r->by); n;
	     n = heaviest_child(tree, totals, n, r->by), row++) {
		uint32_t indent = row < 20 ? row : 20;

		if (rows > PATH_MAX_ROWS && row >= PATH_MAX_ROWS / 2 && row < rows - PATH_MAX_ROWS / 2) {
			if (row == PATH_MAX_ROWS / 2)
				writer_printf(r->to, "%26s%" PRIu32 " frames in between\n", "... ",
				              rows - PATH_MAX_ROWS);
			continue;
		}
		add_amount(r, totals[(size_t)n * VALUE_COUNT + r->by]);
		add_share(r, totals[(size_t)n * VALUE_COUNT + r->by], r->whole);
		add_share(r, tree->nodes[n].self[r->by], r->whole);
		buf_printf(&r->line, "  %*s", (int)indent, "");
		add_place(r, &r->profile->symbols[tree->nodes[n].symbol], tree->nodes[n].line);
		end_line(r);
	}
	free(totals);
}

int text_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	static void (*const parts[])(struct report * r) = {write_head, write_facts, write_threads, write_functions,
	                                                   write_path};
	struct report r = {.profile = profile, .to = to, .by = profile_weight(profile), .color = options->color};

	facts_make(&r.facts, profile);
	r.whole = profile_sum(profile, r.by);
	if (r.whole == 0) {
		r.by = VALUE_SAMPLES;
		r.whole = r.facts.in_profile;
	}
	r.is_time = strcmp(profile->values[r.by].unit, "nanoseconds") == 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !r.err && !to->err; i++)
		parts[i](&r);
	writer_fail(to, r.err);
	buf_release(&r.line);
	return to->err;
}
