/* SPDX-License-Identifier: Apache-2.0 */
/* One stream with native frames, named as a profile's writer names them, through every format. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/named.h"
#include "exporters/format.h"
#include "exporters/native.h"
#include "tests/unit/read_back.h"
#include "tests/unit/stream.h"
#include "tests/unit/written.h"
#include "tests/unit/written_graph.h"

#define ZLIB    "/usr/lib/libz.so.1.2.13"
#define ZLIB_ID "00ff4a5b6c7d8e9f00112233445566778899aabb"

enum { MAIN = 1, LIBZ };

/* 0x10: deflate() with longest_match() inlined; 0x20: crc32(), whose source is not known; else nothing is known. */
static size_t name(void *none, const struct profile *p, const struct node *node, struct named_frame *to, size_t room)
{
	struct named_frame frame = {.file = "", .kind = FRAME_NATIVE, .module = ZLIB, .build_id = ZLIB_ID};

	(void)none;
	(void)p;
	(void)room;
	to[0] = to[1] = frame;
	if (node->line == 0x20) {
		to[0].name = "crc32";
		return 1;
	}
	to[0].name = "deflate";
	to[1].name = "longest_match";
	to[0].file = to[1].file = "src/deflate.c";
	to[0].first_line = 763;
	to[0].line = 800;
	to[1].first_line = 1200;
	to[1].line = 1234;
	return node->line == 0x10 ? 2 : FRAMES_SAME;
}

static struct profile *make(void)
{
	static const uint32_t places[] = {0x10, 0x20, 0x1234};
	struct stream s = {0};
	struct profile *p;

	stream_target(&s, 1, 42, "python");
	stream_thread(&s, 1, 1, 42, THREAD_MAIN, "main");
	stream_symbol(&s, MAIN, "main", "/srv/app.py", 3);
	stream_mapping(&s, LIBZ, 0, ZLIB, ZLIB_ID);
	for (size_t i = 0; i < 3; i++) {
		const struct frame stack[] = {stream_frame(MAIN, 5), stream_native(LIBZ, places[i])};

		stream_stack(&s, 1, STATUS_RUNNABLE, 10, stack, 2);
		s.now_ns += UINT64_C(10000000);
	}
	stream_facts(&s, 1, NULL);
	p = stream_profile(&s, NULL);
	stream_release(&s);
	cr_assert_eq(profile_name(&p, name, NULL), 0);
	return p;
}

static void expect(const char *format, const char *const *texts)
{
	struct profile *p = make();
	char *text = written(p, format, &(struct export_options){0});

	for (; *texts; texts++)
		cr_assert(strstr(text, *texts), "%s: \"%s\" is missing in\n%s", format, *texts, text);
	free(text);
	profile_free(p);
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(native_formats, text_of_all_kinds)
{
	expect("collapsed",
	       TEXTS("main (/srv/app.py:5);deflate (src/deflate.c:800);longest_match (src/deflate.c:1234) 10\n",
	             "main (/srv/app.py:5);crc32 (libz.so.1.2.13) 10\n",
	             "main (/srv/app.py:5);libz.so.1.2.13+0x1234 10\n"));
	expect("text",
	       TEXTS("longest_match (src/deflate.c:1200)", "crc32 (libz.so.1.2.13)", "libz.so.1.2.13+0x1234\n"));
	expect("svg",
	       TEXTS("longest_match (src/deflate.c:1200)", "crc32 (libz.so.1.2.13)", "<title>libz.so.1.2.13+0x1234,"));
	expect("jsonl",
	       TEXTS("\"function\":\"longest_match\",\"file\":\"src/deflate.c\",\"line\":1234,\"first_line\":1200,"
	             "\"kind\":\"native\",\"module\":\"" ZLIB "\",\"build_id\":\"" ZLIB_ID "\"}",
	             "\"function\":\"crc32\",\"file\":\"libz.so.1.2.13\",\"line\":0,",
	             "\"function\":\"libz.so.1.2.13+0x1234\",\"file\":\"\",\"line\":0,\"first_line\":0,\"kind\":"
	             "\"native\",\"module\":\"" ZLIB "\""));
	expect("speedscope",
	       TEXTS("{\"name\":\"longest_match\",\"file\":\"src/deflate.c\",\"line\":1234}",
	             "{\"name\":\"crc32\",\"file\":\"libz.so.1.2.13\"}", "{\"name\":\"libz.so.1.2.13+0x1234\"}"));
	expect("dask",
	       TEXTS("longest_match", "\"filename\":\"libz.so.1.2.13\",\"name\":\"crc32\"", "libz.so.1.2.13+0x1234"));
	expect("flamegraph", TEXTS("\"longest_match\"", "\"" ZLIB "\"", "\"libz.so.1.2.13+0x1234\""));
	expect("firefox", TEXTS("\"libs\":[\n{\"arch\":\"\",\"name\":\"libz.so.1.2.13\",\"debugName\":\"libz.so.1.2."
	                        "13\",\"path\":\"" ZLIB "\",\"debugPath\":\"" ZLIB
	                        "\",\"breakpadId\":\"5B4AFF007D6C9F8E00112233445566770\",\"codeId\":\"" ZLIB_ID "\"}]",
	                        "\"resourceTable\":{\"lib\":[0],", "\"host\":[null],\"type\":[1],\"length\":1}"));
	expect("heatmap", TEXTS("longest_match", "\"libz.so.1.2.13\"", "libz.so.1.2.13+0x1234"));
}

Test(native_formats, call_graphs)
{
	struct profile *p = make(), *shown;
	size_t bytes;
	char *text;

	cr_assert(native_needs_showing(p));
	cr_assert_eq(native_show(p, &shown), 0);
	cr_assert_not(native_needs_showing(shown), "once is enough");
	cr_assert_eq(profile_sum(p, VALUE_WALL), profile_sum(shown, VALUE_WALL));
	text = written_graph_of(shown, "dot", NULL);
	cr_assert(strstr(text, "crc32 (libz.so.1.2.13)") && strstr(text, "libz.so.1.2.13+0x1234"));
	free(text);
	text = written_graph_of(shown, "callgrind", NULL);
	cr_assert(strstr(text, "crc32") && strstr(text, "libz.so.1.2.13+0x1234") && strstr(text, "src/deflate.c"));
	cr_assert(strstr(text, "ob=(0) python\n") || strstr(text, "ob=(1) python\n"));
	cr_assert(strstr(text, "ob=") && strstr(text, ") " ZLIB "\ncfi="), "%s", text);
	free(text);
	text = written_graph_of(shown, "pstats", &bytes);
	cr_assert(memmem(text, bytes, "libz.so.1.2.13+0x1234", 21));
	free(text);
	profile_free(shown);
	profile_free(p);
}

Test(native_formats, of_an_import_nothing_changes)
{
	struct profile *p =
		read_text("perf", "python 42 1.000000: 1 cycles:\n\t7f00 deflate+0x10 (/usr/lib/libz.so.1)\n\n");

	cr_assert_not(native_needs_showing(p));
	profile_free(p);
}
