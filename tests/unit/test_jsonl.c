/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/build_profile.h"
#include "tests/unit/read_back.h"
#include "tests/unit/written.h"

/* All lines but the first hold no facts; those of the first are looked at apart. */
static void expect(const struct profile *p, const char *first, const char *rest)
{
	char *text = written(p, "jsonl", &(struct export_options){0}), *end = strchr(text, '\n');

	cr_assert_not_null(end);
	cr_assert_eq(strncmp(text, first, strlen(first)), 0, "%s", text);
	cr_assert_str_eq(end + 1, rest);
	free(text);
}

#define VALUES                                                                                                         \
	"\"values\":[{\"name\":\"samples\",\"unit\":\"count\"},{\"name\":\"wall\",\"unit\":\"nanoseconds\"},"          \
	"{\"name\":\"runnable\",\"unit\":\"nanoseconds\"},{\"name\":\"gil\",\"unit\":\"nanoseconds\"},"                  \
	"{\"name\":\"gil_wait\",\"unit\":\"nanoseconds\"},{\"name\":\"idle\",\"unit\":\"nanoseconds\"},"               \
	"{\"name\":\"unknown\",\"unit\":\"nanoseconds\"},{\"name\":\"gc\",\"unit\":\"nanoseconds\"},"                  \
	"{\"name\":\"exception\",\"unit\":\"nanoseconds\"}],\"weight\":\"wall\",\"facts\":{"

Test(jsonl, empty)
{
	struct profile *p = built_new();

	expect(p,
	       "{\"type\":\"profile\",\"version\":1,\"title\":null,\"mode\":\"wall\",\"imported\":false,\"sequence\":0,"
	       "\"start_ns\":1700000000000000000,\"duration_ns\":5000000000,\"interval_ns\":1000000,\"samples\":"
	       "0," VALUES,
	       "");
	built_free(p);
}

Test(jsonl, nodes_frames_and_threads)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 10, "python3 </script>\n"), a = built_thread(p, process, 0, 10, "M\"ain"),
		 b = built_thread(p, process, 2, 11, NULL);
	uint32_t f = built_symbol(p, "f", "/a.py", 3), gc = built_symbol(p, "<GC>", "", 0);

	built_sample(p, a, built_child(p, a, built_child(p, a, 0, f, 4), f, 5), 3, STATUS_GIL);
	built_sample(p, b, built_child(p, b, built_child(p, b, 0, f, 4), gc, 0), 2, 0);
	built_sample(p, b, 0, 1, STATUS_IDLE);
	expect(p,
	       "{\"type\":\"profile\",\"version\":1,\"title\":null,\"mode\":\"wall\",\"imported\":false,\"sequence\":0,"
	       "\"start_ns\":1700000000000000000,\"duration_ns\":5000000000,\"interval_ns\":1000000,\"samples\":6,",
	       "{\"type\":\"process\",\"id\":0,\"pid\":10,\"parent_pid\":1,\"name\":\"python3 "
	       "\\u003c/script\\u003e\\u000a\","
	       "\"python\":\"3.12.1\",\"ended\":false}\n"
	       "{\"type\":\"thread\",\"id\":0,\"process\":0,\"interpreter\":0,\"tid\":10,\"name\":\"M\\\"ain\","
	       "\"main\":true,"
	       "\"nodes\":3,\"depth\":2}\n"
	       "{\"type\":\"node\",\"thread\":0,\"id\":0,\"parent\":null,\"frame\":null,\"self\":{},"
	       "\"total\":{\"samples\":3,\"wall\":3000000,\"gil\":3000000}}\n"
	       "{\"type\":\"frame\",\"id\":0,\"function\":\"f\",\"file\":\"/"
	       "a.py\",\"line\":4,\"first_line\":3,\"kind\":\"python\"}\n"
	       "{\"type\":\"node\",\"thread\":0,\"id\":1,\"parent\":0,\"frame\":0,\"self\":{},"
	       "\"total\":{\"samples\":3,\"wall\":3000000,\"gil\":3000000}}\n"
	       "{\"type\":\"frame\",\"id\":1,\"function\":\"f\",\"file\":\"/"
	       "a.py\",\"line\":5,\"first_line\":3,\"kind\":\"python\"}\n"
	       "{\"type\":\"node\",\"thread\":0,\"id\":2,\"parent\":1,\"frame\":1,"
	       "\"self\":{\"samples\":3,\"wall\":3000000,\"gil\":3000000},\"total\":{\"samples\":3,\"wall\":3000000,"
	       "\"gil\":3000000}}\n"
	       "{\"type\":\"thread\",\"id\":1,\"process\":0,\"interpreter\":2,\"tid\":11,\"name\":null,\"main\":false,"
	       "\"nodes\":3,\"depth\":2}\n"
	       "{\"type\":\"node\",\"thread\":1,\"id\":0,\"parent\":null,\"frame\":null,"
	       "\"self\":{\"samples\":1,\"wall\":1000000,\"idle\":1000000},"
	       "\"total\":{\"samples\":3,\"wall\":3000000,\"idle\":1000000}}\n"
	       "{\"type\":\"node\",\"thread\":1,\"id\":1,\"parent\":0,\"frame\":0,\"self\":{},"
	       "\"total\":{\"samples\":2,\"wall\":2000000}}\n"
	       "{\"type\":\"frame\",\"id\":2,\"function\":\"\\u003cGC\\u003e\",\"file\":\"\",\"line\":0,\"first_line\":"
	       "0,"
	       "\"kind\":\"special\"}\n"
	       "{\"type\":\"node\",\"thread\":1,\"id\":2,\"parent\":1,\"frame\":2,\"self\":{\"samples\":2,\"wall\":"
	       "2000000},"
	       "\"total\":{\"samples\":2,\"wall\":2000000}}\n");
	built_free(p);
}

Test(jsonl, imported_values_and_notes)
{
	struct profile *p = read_text("collapsed", "a;b 3\na;c 1\nbad\n");
	char *text = written(p, "jsonl", &(struct export_options){.title = "t"});

	cr_assert(strstr(text, "\"title\":\"t\",\"mode\":\"wall\",\"imported\":true"));
	cr_assert(strstr(text, "\"values\":[{\"name\":\"samples\",\"unit\":\"count\"}],\"weight\":\"samples\""));
	cr_assert(strstr(text, "\"notes\":[{\"key\":\"bad_lines\",\"label\":\"lines that are no stacks\",\"number\":1,"
	                       "\"loss\":true}]"));
	cr_assert(strstr(text, "\"python\":null"));
	free(text);
	profile_free(p);
}
