/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/foreign.h"

#include <stdbool.h>
#include <string.h>

#include "exporters/json_head.h"

/* What begins with `begins`, and holds both others in its head. */
struct mark {
	const char *begins;
	size_t begins_bytes;
	const char *holds, *holds_too;
	struct foreign foreign;
};

#define BEGINS(text) .begins = (text), .begins_bytes = sizeof(text) - 1

static const struct mark marks[] = {
	{BEGINS("\xff\xfe"), .foreign = {"text in UTF-16", "iconv -f UTF-16 -t UTF-8 makes it readable"}},
	{BEGINS("\xfe\xff"), .foreign = {"text in UTF-16", "iconv -f UTF-16 -t UTF-8 makes it readable"}},
	{BEGINS("PERFILE2"), .foreign = {"perf's own file", "perf script -i FILE >FILE.perf makes it readable"}},
	{BEGINS("\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
         .foreign = {"gperftools' CPU profile", "pprof -proto FILE >FILE.pb.gz makes it readable"}},
	{BEGINS("heap profile:"),
         .foreign = {"pprof's legacy format", "pprof -proto FILE >FILE.pb.gz makes it readable"}},
	{BEGINS("heap_v2/"), .foreign = {"jemalloc's heap profile", "jeprof --collapsed makes it readable"}},
	{BEGINS("--- contention"),
         .foreign = {"pprof's legacy format", "pprof -proto FILE >FILE.pb.gz makes it readable"}},
	{BEGINS("--- threadz"),
         .foreign = {"pprof's legacy format", "pprof -proto FILE >FILE.pb.gz makes it readable"}},
	{BEGINS("goroutine profile:"),
         .foreign = {"pprof's legacy format", "pprof -proto FILE >FILE.pb.gz makes it readable"}},
	{BEGINS("{"), .holds = "\"callFrame\"", .holds_too = "\"nodes\"", .foreign = {"V8's cpuprofile", ""}},
	{BEGINS("{"), .holds = "\"callFrame\"", .holds_too = "\"selfSize\"", .foreign = {"V8's heap profile", ""}},
	{BEGINS("v8-version,"), .foreign = {"V8's log", ""}},
	{BEGINS("FLR\0"),
         .foreign = {"a Java flight recording", "async-profiler's jfrconv -o collapsed makes it readable"}},
	{BEGINS("Nettrace"), .foreign = {"a .NET trace", "dotnet-trace convert --format Speedscope makes it readable"}},
	{BEGINS("memray\0"), .foreign = {"memray's file", ""}},
	{BEGINS("\x80\x02"), .foreign = {"a Python pickle", "to read one is to run it"}},
	{BEGINS("\x80\x03"), .foreign = {"a Python pickle", "to read one is to run it"}},
	{BEGINS("\x80\x04"), .foreign = {"a Python pickle", "to read one is to run it"}},
	{BEGINS("\x80\x05"), .foreign = {"a Python pickle", "to read one is to run it"}},
	{BEGINS("\x7f"
                "ELF"),
         .foreign = {"a program or a core", "sampled dump --core FILE shows the stacks of a core"}},
	{BEGINS("PK\3\4"), .foreign = {"a ZIP archive", "unpack it first"}},
	{BEGINS("digraph"), .foreign = {"a graph for Graphviz", ""}},
	{BEGINS("strict digraph"), .foreign = {"a graph for Graphviz", ""}},
	{BEGINS("<!DOCTYPE html"),
         .foreign = {"a page for a browser", "sampled reads its own recordings, not its pages"}},
	{BEGINS("<!doctype html"),
         .foreign = {"a page for a browser", "sampled reads its own recordings, not its pages"}},
	{BEGINS("<html"), .foreign = {"a page for a browser", ""}},
	{BEGINS("<svg"), .foreign = {"a drawing (SVG)", ""}},
	{BEGINS("<?xml"), .holds = "<svg", .foreign = {"a drawing (SVG)", ""}},
	{BEGINS("<?xml"), .foreign = {"XML", ""}},
	{BEGINS("Flat profile:"), .foreign = {"gprof's report", ""}},
	{BEGINS("{\"type\":\"profile\","), .foreign = {"sampled's JSON Lines", "convert the recording it was made from"}},
	{BEGINS("sampled: profile of "), .foreign = {"sampled's text report", "convert the recording it was made from"}},
};

static const struct foreign other_json = {"JSON of another kind", "no key of a format that is known stands in its first 64 KiB"};


static bool holds(const unsigned char *head, size_t bytes, const char *text)
{
	return !text || memmem(head, bytes, text, strlen(text));
}

const struct foreign *foreign_by_content(const unsigned char *head, size_t bytes)
{
	/* Blanks before a text's first character do not count. */
	while (bytes > 0 && head[0] != 0 && strchr(" \t\r\n", head[0])) {
		head++;
		bytes--;
	}
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		const struct mark *mark = &marks[i];

		if (bytes >= mark->begins_bytes && memcmp(head, mark->begins, mark->begins_bytes) == 0 &&
		    holds(head, bytes, mark->holds) && holds(head, bytes, mark->holds_too))
			return &mark->foreign;
	}
	return json_begins(head, bytes, '{') ? &other_json : NULL;
}
