/* SPDX-License-Identifier: Apache-2.0 */
/* The Firefox Profiler's processed profile format, version 57 (firefox-devtools/profiler,
 * docs-developer/CHANGELOG-formats.md): readers of some age take it, later ones convert it. Its tables are columns, each a
 * pass over the nodes or runs, so that nothing is copied. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/version.h"
#include "exporters/facts.h"
#include "exporters/firefox.h"
#include "exporters/formats.h"
#include "exporters/json_parts.h"
#include "exporters/native.h"
#include "exporters/timeline.h"

struct firefox {
	const struct profile *profile;
	const struct export_options *options;
	struct writer *to;
	struct text_set strings;
	uint32_t *names, *files; /* strings of each symbol */
	uint32_t *libs;          /* of each symbol, its place in `modules`; INTERN_FAILED: none */
	struct pair_set modules; /* (string of the path, string of the build id) of each library */
	uint64_t base_ns;
	uint32_t row_samples; /* at most so many samples share a row */
	struct buf text;
};

/* The tables of one thread. */
struct tables {
	const struct thread_tree *thread;
	struct pair_set frames;    /* (symbol, line) */
	struct pair_set functions; /* (symbol, 0) */
};

/* --- what the profile is --- */

static const struct {
	const char *name, *color;
} categories[FIREFOX_CATEGORIES] = {
	[FIREFOX_OTHER] = {"Other", "grey"},        [FIREFOX_PYTHON] = {"Python", "yellow"},
	[FIREFOX_NATIVE] = {"Native", "blue"},      [FIREFOX_GIL] = {"GIL", "green"},
	[FIREFOX_CPU] = {"CPU", "purple"},          [FIREFOX_GC] = {"GC", "orange"},
	[FIREFOX_EXCEPTION] = {"Exception", "red"},
};

static void write_extra(struct firefox *f)
{
	struct facts facts;

	facts_make(&facts, f->profile);
	writer_puts(f->to, "[{\"label\":\"Sampling\",\"entries\":[");
	for (size_t i = 0; i < facts.count; i++) {
		writer_puts(f->to, i ? ",\n{\"label\":" : "\n{\"label\":");
		writer_json_string(f->to, facts.items[i].label);
		writer_puts(f->to, ",\"format\":\"string\",\"value\":");
		writer_json_string(f->to, facts.items[i].text);
		writer_putc(f->to, '}');
	}
	writer_puts(f->to, "]}]");
}

static void write_meta(struct firefox *f)
{
	const struct profile *p = f->profile;
	struct writer *to = f->to;
	uint64_t before_ns = p->t_start_ns > f->base_ns ? p->t_start_ns - f->base_ns : 0;

	writer_puts(to, "\"meta\":{\"version\":32,\"preprocessedProfileVersion\":57,\"interval\":");
	json_decimal(to, p->interval_ns ? p->interval_ns : NS_PER_MS, 6);
	writer_puts(to, ",\"startTime\":");
	json_decimal(to, p->wall_start_ns > before_ns ? p->wall_start_ns - before_ns : 0, 6);
	writer_printf(to, ",\"startTimeAsClockMonotonicNanosecondsSinceBoot\":%" PRIu64, f->base_ns);
	writer_puts(to, ",\"profilingStartTime\":0,\"profilingEndTime\":");
	json_decimal(to, p->t_end_ns > f->base_ns ? p->t_end_ns - f->base_ns : 0, 6);
	writer_puts(to, ",\"processType\":0,\"stackwalk\":0,\"debug\":false,\"symbolicated\":true,\"product\":");
	json_title(&f->text, p, f->options);
	json_string_of(to, &f->text);
	writer_puts(
		to,
		",\"importedFrom\":\"sampled " SAMPLED_VERSION "\",\"usesOnlyOneStackType\":true,"
		"\"sourceCodeIsNotOnSearchfox\":true,\"keepProfileThreadOrder\":true,"
		"\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"},\n\"categories\":[");
	for (int i = 0; i < FIREFOX_CATEGORIES; i++)
		writer_printf(to, "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}", i ? "," : "",
		              categories[i].name, categories[i].color);
	writer_puts(to, "],\n\"markerSchema\":");
	firefox_write_marker_schema(to);
	writer_puts(to, ",\n\"extra\":");
	write_extra(f);
	writer_putc(to, '}');
}

/* The string that is the last part of this one. */
static uint32_t lib_name(struct firefox *f, uint32_t path)
{
	const char *name = native_module_name(text_set_get(&f->strings, path, NULL));
	char *copy = strdup(name); /* strings move when one is added */
	uint32_t number = copy ? text_set_add(&f->strings, copy, strlen(copy)) : INTERN_FAILED;

	free(copy);
	return number;
}

static uint32_t add_lib(struct firefox *f, const struct symbol *symbol)
{
	uint32_t path = text_set_add(&f->strings, symbol->module, strlen(symbol->module));
	uint32_t id = text_set_add(&f->strings, symbol->build_id, strlen(symbol->build_id));

	if (path == INTERN_FAILED || id == INTERN_FAILED || lib_name(f, path) == INTERN_FAILED)
		return INTERN_FAILED;
	return pair_set_add(&f->modules, path, id);
}

static int make_strings(struct firefox *f)
{
	f->names = calloc(f->profile->symbol_count + (size_t)1, sizeof(*f->names));
	f->files = calloc(f->profile->symbol_count + (size_t)1, sizeof(*f->files));
	f->libs = calloc(f->profile->symbol_count + (size_t)1, sizeof(*f->libs));
	if (!f->names || !f->files || !f->libs)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->profile->symbol_count; i++) {
		const struct symbol *symbol = &f->profile->symbols[i];

		f->names[i] = text_set_add(&f->strings, symbol->name, strlen(symbol->name));
		f->files[i] = text_set_add(&f->strings, symbol->file, strlen(symbol->file));
		if (f->names[i] == INTERN_FAILED || f->files[i] == INTERN_FAILED)
			return -ENOMEM;
		f->libs[i] = INTERN_FAILED;
		if (symbol->module[0] && (f->libs[i] = add_lib(f, symbol)) == INTERN_FAILED)
			return -ENOMEM;
	}
	return firefox_add_marker_names(&f->strings);
}

static void write_strings(struct firefox *f)
{
	firefox_write_libs(&f->modules, &f->strings, f->to);
	writer_puts(f->to, ",\n\"shared\":{\"stringArray\":[");
	for (uint32_t i = 0; i < f->strings.count && !f->to->err; i++) {
		if (i > 0)
			writer_puts(f->to, ",\n");
		writer_json_string(f->to, text_set_get(&f->strings, i, NULL));
	}
	writer_puts(f->to, "]}");
}

/* --- columns of nodes, frames and functions --- */

static void write_same(struct writer *to, const char *name, const char *text, uint32_t count)
{
	writer_printf(to, ",\"%s\":[", name);
	for (uint32_t i = 0; i < count; i++) {
		if (i > 0)
			writer_putc(to, ',');
		writer_puts(to, text);
	}
	writer_putc(to, ']');
}

/* A node is a stack, by its number less one. */
static void write_stacks(struct firefox *f, struct tables *t)
{
	const struct thread_tree *thread = t->thread;

	writer_puts(f->to, ",\n\"stackTable\":{\"frame\":[");
	for (uint32_t i = 1; i < thread->node_count && !f->to->err; i++) {
		uint32_t symbol = thread->nodes[i].symbol,
			 frame = pair_set_add(&t->frames, symbol, thread->nodes[i].line);

		if (frame == INTERN_FAILED || pair_set_add(&t->functions, symbol, 0) == INTERN_FAILED)
			f->to->err = -ENOMEM;
		json_item(f->to, i == 1, frame);
	}
	writer_puts(f->to, "],\"prefix\":[");
	for (uint32_t i = 1; i < thread->node_count && !f->to->err; i++) {
		if (thread->nodes[i].parent)
			json_item(f->to, i == 1, thread->nodes[i].parent - 1);
		else
			writer_puts(f->to, i == 1 ? "null" : ",null");
	}
	writer_printf(f->to, "],\"length\":%" PRIu32 "}", thread->node_count - 1);
}

static enum firefox_category category_of(const struct symbol *symbol)
{
	if (symbol->kind == FRAME_PYTHON)
		return FIREFOX_PYTHON;
	if (symbol->kind == FRAME_NATIVE)
		return FIREFOX_NATIVE;
	return strcmp(symbol->name, "<GC>") == 0 || strcmp(symbol->name, "<shutdown>") == 0 ? FIREFOX_GC : FIREFOX_OTHER;
}

static void write_frames(struct firefox *f, struct tables *t)
{
	struct writer *to = f->to;
	uint32_t count = t->frames.count;

	writer_puts(to, ",\n\"frameTable\":{\"func\":[");
	for (uint32_t i = 0; i < count && !to->err; i++)
		json_item(to, i == 0, pair_set_add(&t->functions, pair_set_get(&t->frames, i).a, 0));
	writer_puts(to, "],\"line\":[");
	for (uint32_t i = 0; i < count && !to->err; i++) {
		uint32_t line = pair_set_get(&t->frames, i).b;

		if (line)
			json_item(to, i == 0, line);
		else
			writer_puts(to, i == 0 ? "null" : ",null");
	}
	writer_puts(to, "],\"category\":[");
	for (uint32_t i = 0; i < count && !to->err; i++)
		json_item(to, i == 0, category_of(&f->profile->symbols[pair_set_get(&t->frames, i).a]));
	writer_putc(to, ']');
	write_same(to, "subcategory", "0", count);
	write_same(to, "address", "-1", count);
	write_same(to, "inlineDepth", "0", count);
	write_same(to, "nativeSymbol", "null", count);
	write_same(to, "innerWindowID", "0", count);
	write_same(to, "column", "null", count);
	writer_printf(to, ",\"length\":%" PRIu32 "}", count);
}

/* The end of the functions' table, their libraries, and those: each thread has all that are in the file, in their order. */
static void write_resources(struct firefox *f, const struct tables *t)
{
	struct writer *to = f->to;
	uint32_t libs = f->modules.count;

	writer_puts(to, ",\"resource\":[");
	for (uint32_t i = 0; i < t->functions.count && !to->err; i++) {
		uint32_t lib = f->libs[pair_set_get(&t->functions, i).a];

		if (lib != INTERN_FAILED)
			json_item(to, i == 0, lib);
		else
			writer_puts(to, i == 0 ? "-1" : ",-1");
	}
	writer_printf(to, "],\"length\":%" PRIu32 "},\n\"resourceTable\":{\"lib\":[", t->functions.count);
	for (uint32_t i = 0; i < libs; i++)
		json_item(to, i == 0, i);
	writer_puts(to, "],\"name\":[");
	for (uint32_t i = 0; i < libs; i++)
		json_item(to, i == 0, lib_name(f, pair_set_get(&f->modules, i).a));
	writer_putc(to, ']');
	write_same(to, "host", "null", libs);
	write_same(to, "type", "1", libs); /* a library */
	writer_printf(to, ",\"length\":%" PRIu32 "},", libs);
}

static void write_functions(struct firefox *f, struct tables *t)
{
	struct writer *to = f->to;
	uint32_t count = t->functions.count;

	writer_puts(to, ",\n\"funcTable\":{\"name\":[");
	for (uint32_t i = 0; i < count && !to->err; i++)
		json_item(to, i == 0, f->names[pair_set_get(&t->functions, i).a]);
	writer_puts(to, "],\"fileName\":[");
	for (uint32_t i = 0; i < count && !to->err; i++) {
		uint32_t symbol = pair_set_get(&t->functions, i).a;

		if (f->profile->symbols[symbol].file[0])
			json_item(to, i == 0, f->files[symbol]);
		else
			writer_puts(to, i == 0 ? "null" : ",null");
	}
	writer_puts(to, "],\"lineNumber\":[");
	for (uint32_t i = 0; i < count && !to->err; i++) {
		uint32_t line = f->profile->symbols[pair_set_get(&t->functions, i).a].first_line;

		if (line)
			json_item(to, i == 0, line);
		else
			writer_puts(to, i == 0 ? "null" : ",null");
	}
	writer_putc(to, ']');
	write_same(to, "columnNumber", "null", count);
	write_same(to, "isJS", "false", count);
	write_same(to, "relevantForJS", "false", count);
	write_resources(f, t);
	writer_puts(
		to,
		"\n\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0}");
}

/* --- threads --- */

static void write_thread(struct firefox *f, const struct thread_tree *thread)
{
	const struct process *process = &f->profile->processes[thread->process];
	struct tables tables = {.thread = thread};
	struct timeline line = {.thread = thread};
	struct timeline_slice first;
	struct writer *to = f->to;

	writer_puts(to, "\n{\"name\":");
	if (thread->name && thread->name[0])
		buf_puts(&f->text, thread->name);
	else
		buf_printf(&f->text, "thread %" PRIu64, thread->tid);
	if (thread->interpreter)
		buf_printf(&f->text, ", interpreter %" PRId64, thread->interpreter);
	json_string_of(to, &f->text);
	writer_puts(to, ",\"processName\":");
	writer_json_string(to, process->name ? process->name : "");
	/* A number beyond 2^53 is not the same to its readers any more. */
	writer_printf(to,
	              thread->tid >> 53 ? ",\"pid\":\"%" PRId32 "\",\"tid\":\"%" PRIu64 "\""
	                                : ",\"pid\":\"%" PRId32 "\",\"tid\":%" PRIu64,
	              process->pid, thread->tid);
	writer_printf(to,
	              ",\"isMainThread\":%s,\"processType\":\"default\",\"processStartupTime\":0,"
	              "\"processShutdownTime\":null",
	              thread->is_main ? "true" : "false");
	writer_puts(to, ",\"registerTime\":");
	json_decimal(to, timeline_next(&line, &first) ? first.start_ns - f->base_ns : 0, 6);
	writer_puts(to, ",\"unregisterTime\":null,\"pausedRanges\":[],\"showMarkersInTimeline\":true");
	writer_puts(to, ",\n\"samples\":");
	firefox_write_samples(f->profile, thread, f->base_ns, f->row_samples, to);
	writer_puts(to, ",\n\"markers\":");
	firefox_write_markers(f->profile, thread, f->base_ns, &f->strings, to);
	write_stacks(f, &tables);
	write_frames(f, &tables);
	write_functions(f, &tables);
	writer_putc(to, '}');
	pair_set_release(&tables.frames);
	pair_set_release(&tables.functions);
}

/* The profiler refuses a profile without threads. */
static void write_no_thread(struct firefox *f)
{
	struct node root = {0};
	struct process process = {0};
	struct profile none = {.processes = &process, .process_count = 1};
	struct thread_tree thread = {.name = (char[]){"no threads"}, .nodes = &root, .node_count = 1, .is_main = true};
	const struct profile *before = f->profile;

	f->profile = &none;
	write_thread(f, &thread);
	f->profile = before;
}

int firefox_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	struct firefox f = {.profile = profile,
	                    .options = options,
	                    .to = to,
	                    .base_ns = timeline_base_ns(profile),
	                    .row_samples = firefox_row_samples(profile)};
	int err = make_strings(&f);

	writer_fail(to, err);
	writer_putc(to, '{');
	write_meta(&f);
	write_strings(&f);
	writer_puts(to, ",\n\"threads\":[");
	for (uint32_t i = 0; i < profile->thread_count && !to->err; i++) {
		if (i > 0)
			writer_putc(to, ',');
		write_thread(&f, &profile->threads[i]);
	}
	if (profile->thread_count == 0 && !to->err)
		write_no_thread(&f);
	writer_puts(to, "]}\n");
	text_set_release(&f.strings);
	free(f.names);
	free(f.files);
	free(f.libs);
	pair_set_release(&f.modules);
	buf_release(&f.text);
	return to->err;
}
