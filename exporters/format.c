/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/format.h"

#include <string.h>
#include <strings.h>

#include "exporters/formats.h"
#include "exporters/native.h"
#include "exporters/recording.h"

/* The registry: one line a format. The first is the default. What begins like no other (text) is asked last. */
static const struct format formats[] = {
	{.name = "flamegraph", .suffix = ".html", .mime = "text/html", .write = flamegraph_write, .compares = true},
	{.name = "recording",
         .suffix = ".sampled",
         .mime = "application/octet-stream",
         .needs = NEEDS_RUNS,
         .write = recording_write,
         .places = true,
         .detect = recording_detect,
         .read = recording_read,
         .timed = true,
         .states = true},
	{.name = "pstats",
         .suffix = ".pstats",
         .mime = "application/octet-stream",
         .write_callgraph = pstats_write,
         .detect = pstats_detect,
         .read_callgraph = pstats_read},
	{.name = "pprof",
         .suffix = ".pb.gz",
         .mime = "application/gzip",
         .write = pprof_write,
         .places = true,
         .detect = pprof_detect,
         .read = pprof_read},
	{.name = "speedscope",
         .suffix = ".speedscope.json",
         .mime = "application/json",
         .needs = WANTS_RUNS,
         .write = speedscope_write,
         .detect = speedscope_detect,
         .read = speedscope_read,
         .timed = true},
	{.name = "firefox",
         .suffix = ".firefox.json",
         .mime = "application/json",
         .needs = NEEDS_RUNS,
         .write = firefox_write,
         .detect = gecko_detect,
         .read = gecko_read,
         .timed = true},
	{.name = "chrome",
         .suffix = ".trace.json",
         .mime = "application/json",
         .needs = NEEDS_RUNS,
         .write = chrome_write,
         .detect = trace_detect,
         .read = trace_read,
         .timed = true},
	{.name = "svg", .suffix = ".svg", .mime = "image/svg+xml", .write = svg_write, .compares = true},
	{.name = "dot", .suffix = ".dot", .mime = "text/vnd.graphviz", .write_callgraph = dot_write},
	{.name = "callgrind",
         .suffix = ".callgrind",
         .mime = "text/plain",
         .write_callgraph = callgrind_write,
         .detect = callgrind_detect,
         .read_callgraph = callgrind_read,
         .by_line = true},
	{.name = "heatmap", .suffix = ".heatmap.html", .mime = "text/html", .write = heatmap_write},
	{.name = "dask",
         .suffix = ".dask.json",
         .mime = "application/json",
         .write = dask_write,
         .detect = dask_detect,
         .read = dask_read,
         .timed = true},
	{.name = "jsonl", .suffix = ".jsonl", .mime = "application/jsonl", .write = jsonl_write},
	{.name = "otlp", .suffix = ".otlp", .mime = "application/x-protobuf", .write = otlp_write, .places = true},
	{.name = "text", .suffix = ".txt", .mime = "text/plain", .write = text_write},
	{.name = "tachyon",
         .suffix = ".bin",
         .mime = "application/octet-stream",
         .detect = tachyon_detect,
         .read = tachyon_read,
         .timed = true,
         .states = true},
	{.name = "tachyon-jsonl",
         .suffix = ".jsonl",
         .mime = "application/jsonl",
         .detect = tachyon_totals_detect,
         .read_callgraph = tachyon_totals_read},
	{.name = "austin-mojo",
         .suffix = ".mojo",
         .mime = "application/octet-stream",
         .detect = mojo_detect,
         .read = mojo_read},
	{.name = "pyinstrument",
         .suffix = ".pyisession",
         .mime = "application/json",
         .detect = pyinstrument_detect,
         .read = pyinstrument_read,
         .timed = true},
	{.name = "ascend",
         .suffix = ".db",
         .mime = "application/vnd.sqlite3",
         .detect = ascend_detect,
         .read = ascend_read},
	{.name = "perf",
         .suffix = ".perf",
         .mime = "text/plain",
         .detect = perfscript_detect,
         .read = perfscript_read,
         .timed = true},
	{.name = "collapsed",
         .suffix = ".collapsed",
         .mime = "text/plain",
         .write = collapsed_write,
         .detect = collapsed_detect,
         .read = collapsed_read},
};

/* Other suffixes that people use for a format. */
static const struct {
	const char *suffix, *name;
} suffixes[] = {
	{".htm", "flamegraph"}, {".folded", "collapsed"}, {".text", "text"},    {".prof", "pstats"},
	{".gv", "dot"},         {".pprof", "pprof"},      {".trace", "chrome"},
};

enum { FORMAT_COUNT = sizeof(formats) / sizeof(formats[0]) };

const struct format *format_by_name(const char *name)
{
	for (size_t i = 0; i < FORMAT_COUNT; i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

static bool ends_with(const char *path, const char *suffix)
{
	size_t path_bytes = strlen(path), suffix_bytes = strlen(suffix);

	return path_bytes > suffix_bytes && strcasecmp(path + path_bytes - suffix_bytes, suffix) == 0;
}

const struct format *format_by_suffix(const char *path)
{
	const struct format *found = NULL;

	/* The longest: x.heatmap.html is no flame graph. */
	for (size_t i = 0; i < FORMAT_COUNT; i++)
		if (format_is_written(&formats[i]) && ends_with(path, formats[i].suffix) &&
		    (!found || strlen(formats[i].suffix) > strlen(found->suffix)))
			found = &formats[i];
	if (found)
		return found;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (ends_with(path, suffixes[i].suffix))
			return format_by_name(suffixes[i].name);
	return NULL;
}

const struct format *format_by_content(struct input *input)
{
	const unsigned char *head;
	size_t bytes = input_peek(input, &head, FORMAT_HEAD_BYTES);

	for (size_t i = 0; i < FORMAT_COUNT; i++)
		if (formats[i].detect && formats[i].detect(head, bytes))
			return &formats[i];
	return NULL;
}

bool format_is_written(const struct format *format)
{
	return format->write || format->write_callgraph;
}

/* The same text whoever makes it, so a race between first callers does no harm. */
static const char *join_names(char *names, bool written)
{
	if (names[0] == '\0')
		for (size_t i = 0; i < FORMAT_COUNT; i++) {
			if (written ? !format_is_written(&formats[i]) : !formats[i].detect)
				continue;
			if (names[0] != '\0')
				strcat(names, " ");
			strcat(names, formats[i].name);
		}
	return names;
}

const char *format_names(void)
{
	static char names[FORMAT_COUNT * 16];

	return join_names(names, true);
}

const char *format_read_names(void)
{
	static char names[FORMAT_COUNT * 16];

	return join_names(names, false);
}

static int write_shown(const struct format *format, const struct profile *profile,
                       const struct export_options *options, struct writer *to)
{
	struct callgraph graph;

	if (format->write)
		return format->write(profile, options, to);
	callgraph_init(&graph);
	graph.with_lines = format->by_line;
	if (callgraph_add_profile(&graph, profile) == 0)
		format->write_callgraph(&graph, options, to);
	else if (!to->err)
		to->err = graph.err;
	callgraph_release(&graph);
	return to->err;
}

int format_write(const struct format *format, const struct profile *profile, const struct export_options *options,
                 struct writer *to)
{
	struct profile *shown;
	int err;

	if (format->places || !native_needs_showing(profile))
		return write_shown(format, profile, options, to);
	err = native_show(profile, &shown);
	if (err)
		return writer_fail(to, err);
	write_shown(format, shown, options, to);
	profile_free(shown);
	return to->err;
}
