/* SPDX-License-Identifier: Apache-2.0 */
/* The text report: facts and losses, threads, top functions, heaviest path; in as many columns as the terminal has, or 100. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "exporters/facts.h"
#include "exporters/formats.h"
#include "base/utf8.h"
#include "exporters/text_report.h"

enum {
	COLUMNS_DEFAULT = 100,
	COLUMNS_TABLES = 80, /* that whole tables take: in a narrower terminal they are left with their shares */
	COLUMNS_MIN = 40,    /* below that lines break */
	THREADS_MAX = 64,
	FACT_COLUMNS = 18,
};

unsigned report_columns_left(const struct report *r)
{
	return r->line.bytes < r->columns ? r->columns - (unsigned)r->line.bytes : 0;
}

/* Words in lines that fit; the first one goes on behind `used` columns. */
static void add_words(struct report *r, const char *words, unsigned used)
{
	while (*words) {
		size_t bytes = strcspn(words, " ");

		if (used + 1 + bytes > r->columns) {
			writer_puts(r->to, "\n ");
			used = 1;
		}
		writer_printf(r->to, " %.*s", (int)bytes, words);
		used += 1 + (unsigned)bytes;
		words += bytes + strspn(words + bytes, " ");
	}
	writer_putc(r->to, '\n');
}

void report_heading(struct report *r, const char *title, const char *note)
{
	writer_printf(r->to, r->color ? "\n\033[1m%s\033[0m" : "\n%s", title);
	add_words(r, note, (unsigned)strlen(title));
}

void report_note(struct report *r, const char *words)
{
	writer_putc(r->to, ' ');
	add_words(r, words, 1);
}

void report_end_line(struct report *r)
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

void report_add_amount(struct report *r, uint64_t value)
{
	char text[32];

	if (!r->is_time)
		facts_count_text(text, sizeof(text), value);
	else
		snprintf(text, sizeof(text), value < 10000 * NS_PER_S ? "%.3f" : "%.0f",
		         (double)value / (double)NS_PER_S);
	buf_printf(&r->line, "%9s", text);
}

void report_add_share(struct report *r, uint64_t part, uint64_t whole)
{
	if (whole > 0)
		buf_printf(&r->line, " %6.1f", facts_percent(part, whole));
	else
		buf_puts(&r->line, "      -");
}

static void write_head(struct report *r)
{
	const struct profile *profile = r->profile;
	struct buf head = {0};
	char version[32];

	writer_puts(r->to, r->color ? "\033[1msampled\033[0m:" : "sampled:");
	buf_printf(&head, "profile of %" PRIu32 " process%s, %" PRIu32 " thread%s, ", profile->process_count,
	              profile->process_count == 1 ? "" : "es", profile->thread_count,
	              profile->thread_count == 1 ? "" : "s");
	if (profile->imported && r->facts.sum.attempts == 0)
		buf_puts(&head, "imported");
	else
		buf_printf(&head, "mode %s", profile->mode ? profile->mode : "wall");
	if (profile->sequence)
		buf_printf(&head, ", snapshot %" PRIu64, profile->sequence);
	add_words(r, buf_text(&head), (unsigned)strlen("sampled:"));
	buf_release(&head);
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
			utf8_fit(&r->line, process->name, report_columns_left(r), false);
		}
		report_end_line(r);
	}
	if (profile->process_count > THREADS_MAX)
		writer_printf(r->to, "  and %" PRIu32 " more processes\n", profile->process_count - THREADS_MAX);
}

/* Nothing is lost by leaving it out. */
static bool is_nought(const struct fact *fact)
{
	return fact->weight != FACT_LOSS && fact->number == 0 && fact->text[0] == '0' &&
	       strcmp(fact->key, "in_profile") != 0;
}

/* "label: number", over as many lines as it takes. */
static void write_fact(struct report *r, const struct fact *fact)
{
	struct buf text = {0};

	utf8_fit(&text, fact->label, 44, false);
	buf_printf(&text, ": %s", fact->text);
	writer_puts(r->to, fact->weight == FACT_LOSS ? "!" : " ");
	add_words(r, buf_text(&text), 1);
	buf_release(&text);
}

/* Its text is cut by no column: it stands behind the others. */
static bool is_long(const struct report *r, const struct fact *fact)
{
	return !r->is_narrow && strlen(fact->text) > FACT_COLUMNS;
}

/* In two columns where there is room for them. */
static void write_facts(struct report *r)
{
	const struct fact *shown[sizeof(r->facts.items) / sizeof(r->facts.items[0])];
	size_t count = 0, halves = r->columns < COLUMNS_DEFAULT ? 1 : 2, rows;

	for (size_t i = 0; i < r->facts.count; i++)
		if (!is_nought(&r->facts.items[i]) && !is_long(r, &r->facts.items[i]))
			shown[count++] = &r->facts.items[i];
	rows = (count + halves - 1) / halves;
	report_heading(r, "SAMPLING", "(what is not named here is 0)");
	for (size_t i = 0; r->is_narrow && i < count; i++)
		write_fact(r, shown[i]);
	for (size_t i = 0; !r->is_narrow && i < rows; i++) {
		for (size_t half = 0; half < halves && i + half * rows < count; half++) {
			const struct fact *fact = shown[i + half * rows];

			buf_puts(&r->line, fact->weight == FACT_LOSS ? "! " : "  ");
			/* An import's label may be any text. */
			for (unsigned used = utf8_fit(&r->line, fact->label, 44, false); used < 29; used++)
				buf_putc(&r->line, ' ');
			buf_putc(&r->line, ' ');
			for (unsigned used = utf8_fit(&r->line, fact->text, FACT_COLUMNS, false); half == 0 && used < FACT_COLUMNS; used++)
				buf_putc(&r->line, ' ');
		}
		report_end_line(r);
	}
	for (size_t i = 0; i < r->facts.count; i++)
		if (!is_nought(&r->facts.items[i]) && is_long(r, &r->facts.items[i]))
			write_fact(r, &r->facts.items[i]);
}

void report_add_thread_name(struct report *r, const struct thread_tree *tree)
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
	utf8_fit(&r->line, buf_text(&name), report_columns_left(r), false);
	if (name.err)
		r->err = name.err;
	buf_release(&name);
}

/* CPU time, then the states, which add up to the whole, then what is a part of one of these. */
static const struct {
	enum value_index value; /* that the profile must have */
	const char *label;
	enum state state; /* STATE_COUNT: the value itself */
	bool matters;     /* it is shown where there is room for a few */
} thread_shares[] = {{VALUE_CPU, "CPU", STATE_COUNT, true},
                     {VALUE_GIL, "GIL", STATE_GIL, true},
                     {VALUE_GIL_WAIT, "wait", STATE_GIL_WAIT, false},
                     {VALUE_RUNNABLE, "run", STATE_RUNNABLE, false},
                     {VALUE_IDLE, "idle", STATE_IDLE, true},
                     {VALUE_UNKNOWN, "?", STATE_UNKNOWN, false},
                     {VALUE_GC, "GC", STATE_COUNT, false}};

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

bool report_has_share(const struct report *r, enum value_index value)
{
	return r->is_time && profile_has(r->profile, value);
}

static bool is_share_shown(const struct report *r, size_t share)
{
	return report_has_share(r, thread_shares[share].value) && (thread_shares[share].matters || !r->is_narrow);
}

static void write_threads_head(struct report *r)
{
	if (!r->is_narrow)
		buf_printf(&r->line, "  samples%9s ", r->is_time ? "seconds" : "");
	for (size_t v = 0; v < sizeof(thread_shares) / sizeof(thread_shares[0]); v++)
		if (is_share_shown(r, v))
			buf_printf(&r->line, "%7s", thread_shares[v].label);
	buf_puts(&r->line, "  thread");
	report_end_line(r);
}

static uint64_t share_of(const struct thread_row *row, size_t share)
{
	enum state state = thread_shares[share].state;

	return state < STATE_COUNT ? row->states[state] : row->sum[thread_shares[share].value];
}

uint64_t report_whole_of(const struct report *r, enum value_index value, const uint64_t values[VALUE_COUNT])
{
	uint64_t due_ns = values[r->by], counted_ns = values[VALUE_CPU];

	if (value != VALUE_CPU)
		return due_ns;
	if (r->facts.covered > 0)
		due_ns = (uint64_t)((double)due_ns / r->facts.covered);
	if (profile_has(r->profile, VALUE_RUN_WAIT))
		counted_ns += values[VALUE_RUN_WAIT];
	return due_ns > counted_ns ? due_ns : counted_ns;
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
	report_heading(r, "THREADS", report_has_share(r, VALUE_RUNNABLE)
	                                   ? "(shares of the thread's time. GIL: held, wait: awaited, run: neither, and runnable)"
	                                   : "(shares of the thread's own time)");
	write_threads_head(r);
	for (uint32_t i = 0; i < count && i < THREADS_MAX; i++) {
		if (!r->is_narrow) {
			buf_printf(&r->line, "%9" PRIu64, rows[i].sum[VALUE_SAMPLES]);
			report_add_amount(r, rows[i].sum[r->by]);
			buf_putc(&r->line, ' ');
		}
		for (size_t v = 0; v < sizeof(thread_shares) / sizeof(thread_shares[0]); v++)
			if (is_share_shown(r, v))
				report_add_share(r, share_of(&rows[i], v),
				                 report_whole_of(r, thread_shares[v].value, rows[i].sum));
		buf_puts(&r->line, "  ");
		report_add_thread_name(r, rows[i].tree);
		report_end_line(r);
	}
	if (count > THREADS_MAX)
		writer_printf(r->to, "  and %" PRIu32 " more threads with fewer samples\n", count - THREADS_MAX);
	free(rows);
}

int text_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	static void (*const parts[])(struct report * r) = {write_head, write_facts, write_threads, report_functions,
	                                                   report_path};
	struct report r = {.profile = profile,
	                   .to = to,
	                   .columns = options->columns ? options->columns : COLUMNS_DEFAULT,
	                   .by = profile_weight(profile),
	                   .ranking = ranking_of(profile),
	                   .color = options->color};

	r.columns = r.columns < COLUMNS_MIN ? COLUMNS_MIN : r.columns;
	r.is_narrow = r.columns < COLUMNS_TABLES;
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
