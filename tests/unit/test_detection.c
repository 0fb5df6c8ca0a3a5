/* SPDX-License-Identifier: Apache-2.0 */
/* Every format's files given to every reader: by content one takes a file, its own; by name all others refuse it, or find nothing in it, but for the two
 * that take any text by its lines. Functions in them are named like the marks of other formats. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "exporters/format.h"
#include "tests/unit/build_profile.h"
#include "tests/unit/written.h"

struct sample {
	const char *format; /* whose it is; NULL: nobody's */
	const char *data;
	size_t bytes;
};

#define SAMPLE(format, text) {(format), (text), sizeof(text) - 1}

static const char *const marks[] = {
	"shared", "frames", "children", "identifier", "line_number", "traceEvents", "ph", "pid", "schemaVersion", "deviceProperties",
	"meta", "stackTable", "preprocessedProfileVersion", "interval", "processType", "sample_count", "cpu_time", "root_frame",
	"start_call_stack", "run_id", "sample_interval_usec", "https://www.speedscope.app/file-format-schema.json", "nodes", "callFrame",
	"# callgrind format", "events: Ir\nfn=x", "MOJ\3", "a;b 3\nc;d 4", "x 1/1 1.0: 1 cycles:\n", "SQLite format 3"};

/* What other programs write, at its least. */
static const struct sample foreign[] = {
	SAMPLE("collapsed", "main (a.py:1);work (a.py:2) 3\nmain (a.py:1) 2\n"),
	SAMPLE("collapsed", "# austin: 3.6.0\n# mode: wall\nP1;T0:1;a.py:f:3 1000\n"),
	SAMPLE("callgrind", "# callgrind format\nevents: Ir\nfl=a.c\nfn=main\n16 400\n"),
	SAMPLE("callgrind", "version: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd: ./x\npart: 1\n\nevents: Ir\n\nfn=main\n16 400\n"),
	SAMPLE("perf", "x 1/1 100.000001:          1 cycles: \n\t 400 start (/bin/x)\n\n"),
	SAMPLE("speedscope", "{\"shared\":{\"frames\":[{\"name\":\"a\"}]},\"profiles\":[{\"type\":\"sampled\",\"name\":\"t\",\"unit\":\"none\","
	                     "\"startValue\":0,\"endValue\":1,\"samples\":[[0]],\"weights\":[1]}]}"),
	SAMPLE("chrome", "[{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":\"children\",\"ts\":0,\"dur\":5,\"args\":{\"a\":\"identifier\"}}]"),
	SAMPLE("chrome", "{\"schemaVersion\":1,\"deviceProperties\":[],\"traceEvents\":[{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":\"a\",\"ts\":0,\"dur\":5}]}"),
	SAMPLE("firefox", "{\"meta\":{\"interval\":1,\"processType\":0,\"preprocessedProfileVersion\":50},\"threads\":[{\"name\":\"t\",\"pid\":1,\"tid\":1,"
	                  "\"stringArray\":[\"a\"],\"frameTable\":{\"length\":1,\"func\":[0]},\"funcTable\":{\"length\":1,\"name\":[0]},"
	                  "\"stackTable\":{\"length\":1,\"frame\":[0],\"prefix\":[null]},\"samples\":{\"length\":1,\"stack\":[0],\"time\":[1]}}]}"),
	SAMPLE("dask", "{\"count\":1,\"children\":{\"a;a.py;1\":{\"count\":1,\"children\":{},\"identifier\":\"a;a.py;1\",\"description\":{\"name\":\"a\","
	               "\"filename\":\"a.py\",\"line_number\":1,\"line\":\"\"}}},\"identifier\":\"root\",\"description\":{\"name\":\"\","
	               "\"filename\":\"\",\"line_number\":0,\"line\":\"\"}}"),
	SAMPLE("pyinstrument", "{\"start_time\":1.0,\"duration\":1.0,\"sample_count\":1,\"start_call_stack\":[],\"target_description\":\"x\",\"cpu_time\":1.0,"
	                       "\"frame_records\":[[[\"MainThread\\u0000<thread>\\u00001\",\"a\\u0000a.py\\u00001\"],0.5]]}"),
	SAMPLE("tachyon-jsonl", "{\"type\":\"meta\",\"v\":1,\"run_id\":\"x\",\"sample_interval_usec\":1000}\n"),
	SAMPLE("pstats", "{(\3\0\0\0u\4\0\0\0a.pyi\1\0\0\0u\1\0\0\0f(\5\0\0\0i\1\0\0\0i\1\0\0\0f\0011f\0011{00"),
	SAMPLE("austin-mojo", "MOJ\3\1mode\0wall\0"),
	SAMPLE("tachyon", "HCAT\1\0\0\0\0\0\0\0\0\0\0\0"),
	SAMPLE("ascend", "SQLite format 3\0\20\0\1\1\0@  "),
	SAMPLE(NULL, ""),
	SAMPLE(NULL, "\0"),
	SAMPLE(NULL, "{}"),
	SAMPLE(NULL, "[]"),
	SAMPLE(NULL, "[1, 2, 3]\n"),
	SAMPLE(NULL, "{\"name\":\"shared\",\"other\":\"frames\",\"third\":\"traceEvents\"}"),
	SAMPLE(NULL, "{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"children\"}},{\"identifier\":2}],\"samples\":[1]}"),
	SAMPLE(NULL, "just some words\nin a few lines\n"),
	SAMPLE(NULL, "total 12\n-rw-r--r-- 1 root root 512 Nov 29 08:00 a.py\n"),
	SAMPLE(NULL, "name,self,total\na,3,4\nb,1,1\n"),
	SAMPLE(NULL, "heap profile: 1: 2 [3: 4] @ heapprofile\na;b 3\na;c 4\n"),
	SAMPLE(NULL, "digraph \"x\" {\nN1 [label=\"a\"];\n}\n"),
	SAMPLE(NULL, "\x7f" "ELF\2\1\1\0"),
};

static struct profile *with_marks(bool imported)
{
	struct profile *p = built_new();
	uint32_t thread = built_thread(p, built_process(p, 1, "\"traceEvents\": x"), 0, 1, "\"shared\":");
	uint32_t at = 0;

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		at = built_child(p, thread, i % 8 ? at : 0, built_symbol(p, marks[i], i % 2 ? "children" : "identifier", 1), 2);
		built_sample(p, thread, at, 5 + i, imported ? 0 : STATUS_RUNNABLE | STATUS_GIL);
	}
	if (!imported)
		return p;
	for (int v = VALUE_RUNNABLE; v < VALUE_COUNT; v++)
		p->values[v] = (struct value_type){0};
	p->values[VALUE_WALL] = (struct value_type){"sample_count", "bytes"};
	p->imported = p->uncounted = true;
	return p;
}

/* The next name of a list with blanks between; NULL: there is none. */
static const char *next_name(const char **list, char name[32])
{
	size_t bytes = strcspn(*list, " ");

	if (bytes == 0)
		return NULL;
	cr_assert_lt(bytes, 32);
	memcpy(name, *list, bytes);
	name[bytes] = '\0';
	*list += bytes + strspn(*list + bytes, " ");
	return name;
}

static bool looks_like(const struct format *format, const struct sample *s)
{
	static struct input in;
	const unsigned char *head;
	size_t bytes;
	bool found;

	cr_assert_eq(input_open_bytes(&in, s->data, s->bytes), 0);
	bytes = input_peek(&in, &head, FORMAT_HEAD_BYTES); /* unpacked */
	found = format->detect(head, bytes);
	input_close(&in);
	return found;
}

/* How much it finds there; 0 where it refuses. */
static uint64_t found_by(const struct format *format, const struct sample *s)
{
	static struct input in;
	struct builder *builder;
	struct profile *profile = NULL;
	struct callgraph graph;
	struct fault fault = {0};
	uint64_t found = 0;

	cr_assert_eq(input_open_bytes(&in, s->data, s->bytes), 0);
	if (format->read) {
		cr_assert_eq(builder_new(&builder, &(struct builder_options){.memory_max_bytes = 1 << 26}), 0);
		if (format->read(&in, builder, &fault) == 0 && builder_finish(builder, &profile) == 0)
			found = profile_sum(profile, VALUE_SAMPLES) + profile_sum(profile, profile_weight(profile));
		profile_free(profile);
		builder_free(builder);
	} else {
		callgraph_init(&graph);
		if (format->read_callgraph(&in, &graph, &fault) == 0)
			found = graph.function_count;
		callgraph_release(&graph);
	}
	input_close(&in);
	return found;
}

static void check(const struct sample *s, const char *what)
{
	const char *names = format_read_names();
	char name[32];

	while (next_name(&names, name)) {
		const struct format *format = format_by_name(name);
		bool own = s->format && strcmp(s->format, name) == 0;
		bool by_lines = strcmp(name, "collapsed") == 0 || strcmp(name, "perf") == 0;

		cr_expect_eq(looks_like(format, s), own, "%s: %s %s it", what, name, own ? "does not take" : "takes");
		if (!own && !by_lines)
			cr_expect_eq(found_by(format, s), 0, "%s: %s finds something in it", what, name);
	}
}

Test(detection, what_others_write)
{
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		check(&foreign[i], foreign[i].bytes ? foreign[i].data : "nothing");
}

Test(detection, what_we_write)
{
	for (int imported = 0; imported <= 1; imported++) {
		struct profile *p = with_marks(imported);
		const char *names = format_names();
		char name[32];

		while (next_name(&names, name)) {
			const struct format *format = format_by_name(name);
			struct sample s = {.format = format->detect ? format->name : NULL};
			char *data;

			if (imported && format->needs == NEEDS_RUNS)
				continue;
			data = written_bytes(p, name, &(struct export_options){.sources = &built_sources}, &s.bytes);
			s.data = data;
			check(&s, name);
			free(data);
		}
		built_free(p);
	}
}
