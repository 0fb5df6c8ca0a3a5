/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/summary.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "daemon/terminal.h"
#include "exporters/functions.h"
#include "exporters/native.h"
#include "exporters/ranking.h"

enum {
	TOP_COUNT = 3,
	PROCESSES_MAX = 4,
	NAMES_MAX = 4,    /* of who waits, or is idle */
	LABEL_COLUMNS = 11, /* "  on CPU   " */
	COLUMNS_MIN = 30,
};

/* A line that goes on below its label where it is too long for the terminal. */
struct lines {
	struct buf line;
	unsigned used, columns;
	bool fresh; /* nothing stands behind the label */
};

static void end_line(struct lines *l)
{
	terminal_line(buf_text(&l->line));
	l->line.bytes = 0;
}

static void begin(struct lines *l, const char *label)
{
	buf_printf(&l->line, "  %-*s", LABEL_COLUMNS - 2, label);
	l->used = LABEL_COLUMNS;
	l->fresh = true;
}

/* Puts text behind the separator, or into a line of its own. */
static void add_text(struct lines *l, const char *separator, const char *text)
{
	struct buf part = {0};
	unsigned columns = utf8_fit(&part, text, l->columns - LABEL_COLUMNS, false), gap = (unsigned)strlen(separator);

	/* One column is kept for the comma that may come behind it. */
	if (!l->fresh && l->used + gap + columns >= l->columns) {
		while (*separator && strchr(",;:", *separator))
			buf_putc(&l->line, *separator++);
		end_line(l);
		begin(l, "");
	} else if (!l->fresh) {
		buf_puts(&l->line, separator);
		l->used += gap;
	}
	buf_puts(&l->line, buf_text(&part));
	l->used += columns;
	l->fresh = false;
	buf_release(&part);
}

__attribute__((format(printf, 3, 4))) static void add(struct lines *l, const char *separator, const char *format, ...)
{
	char *text;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) >= 0) {
		add_text(l, separator, text);
		free(text);
	}
	va_end(args);
}

static const struct fact *find_fact(const struct facts *facts, const char *key)
{
	for (size_t i = 0; i < facts->count; i++)
		if (strcmp(facts->items[i].key, key) == 0)
			return &facts->items[i];
	return NULL;
}

static const char *fact_text(const struct facts *facts, const char *key)
{
	const struct fact *fact = find_fact(facts, key);

	return fact ? fact->text : "?";
}

/* A command line without the folders of its program. */
static const char *command_text(const char *name)
{
	const char *end = name ? name + strcspn(name, " ") : NULL;

	while (end && end > name && end[-1] != '/')
		end--;
	return end ? end : "?";
}

static void print_head(struct lines *l, const struct profile *profile, const struct facts *facts)
{
	l->used = 0;
	l->fresh = true;
	add(l, "", "sampled: %s sample%s", fact_text(facts, "in_profile"), facts->in_profile == 1 ? "" : "s");
	add(l, " ", "of %u thread%s", profile->thread_count, profile->thread_count == 1 ? "" : "s");
	add(l, " ", "in %s", fact_text(facts, "duration_ns"));
	end_line(l);
	for (uint32_t i = 0; i < profile->process_count && i < PROCESSES_MAX; i++) {
		const struct process *process = &profile->processes[i];
		char version[16];

		facts_version_text(version, sizeof(version), process->version);
		begin(l, "process");
		add(l, "", "%d, Python %s: %s", process->pid, version, command_text(process->name));
		end_line(l);
	}
	if (profile->process_count > PROCESSES_MAX) {
		begin(l, "");
		add(l, "", "and %u more processes", profile->process_count - PROCESSES_MAX);
		end_line(l);
	}
}

static void add_share(struct lines *l, const char *label, uint64_t part, uint64_t whole, bool always)
{
	double percent = facts_percent(part, whole);

	if (part || always)
		add(l, ", ", "%s %.*f %%", label, percent < 9.95, percent);
}

/* The time that the kernel's counts are shares of: it counted while nothing was sampled, too. Of a part of the threads that is their part; at least all that
 * it counted of them. */
static uint64_t counted_ns(const struct profile *profile, const struct facts *facts, const uint64_t values[VALUE_COUNT])
{
	uint64_t due_ns = values[VALUE_WALL], counted = profile_has(profile, VALUE_CPU) ? values[VALUE_CPU] : 0;

	if (profile_has(profile, VALUE_RUN_WAIT))
		counted += values[VALUE_RUN_WAIT];
	if (facts->covered > 0)
		due_ns = (uint64_t)((double)due_ns / facts->covered);
	return due_ns > counted ? due_ns : counted;
}

/* CPU time is the kernel's; the others are what was seen, and add up to the whole. */
static void print_times(struct lines *l, const struct profile *profile, const uint64_t values[VALUE_COUNT],
                        uint64_t counted)
{
	uint64_t states[STATE_COUNT], whole = values[VALUE_WALL];

	values_states(values, states);
	begin(l, "time");
	if (profile_has(profile, VALUE_CPU))
		add_share(l, "CPU", values[VALUE_CPU], counted, true);
	add_share(l, "GIL held", states[STATE_GIL], whole, true);
	add_share(l, "awaited", states[STATE_GIL_WAIT], whole, false);
	add_share(l, "runnable without it", states[STATE_RUNNABLE], whole, false);
	add_share(l, "idle", states[STATE_IDLE], whole, false);
	add_share(l, "unknown", states[STATE_UNKNOWN], whole, false);
	end_line(l);
}

/* "sympy/core/cache.py:69", or the native module, or "". */
static void add_place(struct buf *to, const struct symbol *symbol)
{
	if (symbol->module[0] && !symbol->file[0] && !strstr(symbol->name, "+0x"))
		buf_puts(to, native_module_name(symbol->module));
	else if (symbol->file[0]) /* a special frame, such as <GC>, has none */
		buf_printf(to, "%s:%u", ranking_short_file(symbol->file), symbol->first_line);
}

/* Name and place in two columns, the place cut at its front, where files differ least. */
static void print_function(struct lines *l, const char *label, const struct symbol *symbol, double percent,
                           unsigned name_columns)
{
	unsigned left = l->columns - LABEL_COLUMNS - 9, used;
	struct buf place = {0};

	begin(l, label);
	buf_printf(&l->line, "%5.1f %%  ", percent);
	used = utf8_fit(&l->line, symbol->name, name_columns < left ? name_columns : left, false);
	add_place(&place, symbol);
	if (buf_text(&place)[0] && used + 12 < left) {
		for (; used < name_columns + 2; used++)
			buf_putc(&l->line, ' ');
		utf8_fit(&l->line, buf_text(&place), left - used, true);
	}
	end_line(l);
	buf_release(&place);
}

static unsigned columns_of(const char *text)
{
	struct buf fitted = {0};
	unsigned columns = utf8_fit(&fitted, text, 1000, false);

	buf_release(&fitted);
	return columns;
}

static void print_top(struct lines *l, const struct profile *profile, const struct ranking *ranking,
                      const struct function *functions, uint32_t count, uint64_t whole)
{
	unsigned widest = 0, most = (l->columns - LABEL_COLUMNS - 9) / 2;

	count = count < TOP_COUNT ? count : TOP_COUNT;
	while (count > 0 && ranking_amount(ranking, functions[count - 1].self) == 0)
		count--;
	for (uint32_t i = 0; i < count; i++) {
		unsigned columns = columns_of(profile->symbols[functions[i].symbol].name);

		widest = columns > widest ? columns : widest;
	}
	for (uint32_t i = 0; i < count; i++)
		print_function(l, i ? "" : ranking->label, &profile->symbols[functions[i].symbol],
		               facts_percent(ranking_amount(ranking, functions[i].self), whole),
		               widest < most ? widest : most);
}

static bool of_one_name(const struct thread_tree *a, const struct thread_tree *b)
{
	return a == b || (a->name && a->name[0] && b->name && strcmp(a->name, b->name) == 0);
}

/* Which threads have the largest part of a value; those of one name, such as the main threads of workers, together. */
static void add_threads(struct lines *l, const struct profile *profile, enum value_index value, uint64_t whole)
{
	bool *named = calloc(profile->thread_count + (size_t)1, sizeof(*named));

	for (uint32_t names = 0; named && names < NAMES_MAX; names++) {
		const struct thread_tree *best = NULL, *threads = profile->threads;
		uint64_t most = whole / 20;
		unsigned count = 0;

		for (uint32_t i = 0; i < profile->thread_count; i++)
			if (!named[i] && ranking_thread_sum(&threads[i], value) > most) {
				best = &threads[i];
				most = ranking_thread_sum(best, value);
			}
		if (!best)
			break;
		for (uint32_t i = 0; i < profile->thread_count; i++)
			if (of_one_name(best, &threads[i]) && ranking_thread_sum(&threads[i], value) > whole / 20) {
				named[i] = true;
				count++;
			}
		if (!best->name || !best->name[0])
			add(l, names ? ", " : ": ", "%llu", (unsigned long long)best->tid);
		else if (count > 1)
			add(l, names ? ", " : ": ", "%u \u00d7 %s", count, best->name);
		else
			add(l, names ? ", " : ": ", "%s", best->name);
	}
	free(named);
}

/* Who waits for what, where that is a percent or more. */
static void print_waiting(struct lines *l, const struct profile *profile, const uint64_t values[VALUE_COUNT],
                          uint64_t counted)
{
	static const struct {
		enum value_index value;
		const char *what;
	} waits[] = {{VALUE_GIL_WAIT, "for the GIL"}, {VALUE_RUN_WAIT, "for a CPU"}};
	bool first = true;

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		enum value_index value = waits[i].value;
		double percent = facts_percent(values[value], value == VALUE_RUN_WAIT ? counted : values[VALUE_WALL]);

		if (!profile_has(profile, value) || percent < 1)
			continue;
		begin(l, first ? "waiting" : "");
		add(l, "", "%5.1f %%  %s", percent, waits[i].what);
		add_threads(l, profile, value, values[value]);
		end_line(l);
		first = false;
	}
}

/* Where threads sleep, in one line: idle time answers no question about speed. */
static void print_idle(struct lines *l, const struct profile *profile, const uint64_t values[VALUE_COUNT])
{
	struct function *functions;
	uint32_t count;

	if (values[VALUE_IDLE] == 0 || functions_make(&functions, &count, profile, VALUE_IDLE))
		return;
	begin(l, "idle");
	add(l, "", "%5.1f %%", facts_percent(values[VALUE_IDLE], values[VALUE_WALL]));
	for (uint32_t i = 0; i < count && i < NAMES_MAX && functions[i].self[VALUE_IDLE] >= values[VALUE_IDLE] / 20 + 1; i++)
		add(l, i ? ", " : "  ", "%s", profile->symbols[functions[i].symbol].name);
	end_line(l);
	free(functions);
}

static void add_loss(struct lines *l, const char *of, uint64_t part, uint64_t whole)
{
	char text[32];

	facts_percent_text(text, sizeof(text), part, whole);
	if (part)
		add(l, ", ", "%s of %s", text, of);
}

/* What is missing, in one line; what is not missing is not named. */
static void print_losses(struct lines *l, const struct profile *profile, const struct facts *facts, bool figures)
{
	const struct rec_facts *sum = &facts->sum;
	uint64_t excluded = profile->filtered + profile->omitted;
	char text[32];

	begin(l, "lost");
	add_loss(l, "samples", facts->lost, sum->attempts);
	add_loss(l, "ticks", sum->ticks_missed, sum->ticks + sum->ticks_missed);
	facts_percent_text(text, sizeof(text), (uint64_t)(1e6 * (1 - facts->covered)), 1000000); /* of all that was due, whatever options leave out */
	if (sum->unsampled_ns)
		add(l, ", ", "%s of thread time", text);
	add_loss(l, "stacks' outer frames", sum->truncated, sum->samples);
	add_loss(l, "native frames", sum->native_failed + sum->native_mismatched, sum->samples);
	add_loss(l, "samples for want of memory", profile->out_of_memory, sum->samples);
	if (l->fresh)
		add(l, "", "nothing");
	if (sum->lost[LOSS_TORN] > sum->attempts / 100)
		add(l, "; ", "a lower rate or --blocking loses less");
	if (excluded) {
		facts_count_text(text, sizeof(text), excluded);
		add(l, "; ", "excluded by options: %s", text);
	}
	if (!figures)
		add(l, " ", "(-v: all figures)");
	end_line(l);
}

/* Which reader the samples are of (docs/SAMPLING.md). */
static void print_exact(struct lines *l, const struct facts *facts)
{
	for (size_t i = 0; i < facts->count; i++) {
		if (strcmp(facts->items[i].key, "exact") != 0)
			continue;
		begin(l, "exact");
		add(l, "", "%s", facts->items[i].text);
		end_line(l);
	}
}

/* The one share that every output has, whatever options leave out. */
static void print_overload(struct lines *l, const struct facts *facts)
{
	const struct fact *fact = find_fact(facts, "overload");

	if (!fact)
		return;
	begin(l, "");
	add(l, "", "overloaded machine: %s of runnable time was waiting for a CPU", fact->text);
	end_line(l);
}

void summary_print(const struct profile *profile, const struct summary_options *options)
{
	unsigned columns = terminal_columns(STDERR_FILENO);
	struct lines l = {.columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns};
	struct ranking ranking = ranking_of(profile);
	uint64_t values[VALUE_COUNT], counted;
	struct function *functions;
	struct facts facts;
	uint32_t count;

	for (int v = 0; v < VALUE_COUNT; v++)
		values[v] = profile_sum(profile, (enum value_index)v);
	facts_make(&facts, profile);
	print_head(&l, profile, &facts);
	counted = counted_ns(profile, &facts, values);
	print_times(&l, profile, values, counted);
	if (functions_rank(&functions, &count, profile, &ranking) == 0) {
		print_top(&l, profile, &ranking, functions, count,
		          ranking.by == VALUE_CPU ? counted : values[ranking.by]);
		free(functions);
	}
	print_waiting(&l, profile, values, counted);
	print_idle(&l, profile, values);
	print_exact(&l, &facts);
	print_losses(&l, profile, &facts, options->figures);
	print_overload(&l, &facts);
	if (options->figures)
		summary_print_figures(profile, &facts);
	if (options->stats)
		summary_print_stats(&facts, options->ring);
	if (options->open_with) {
		begin(&l, "open");
		add(&l, "", "%s%s", options->open_with, options->opened);
		end_line(&l);
	}
	buf_release(&l.line);
}
