/* SPDX-License-Identifier: Apache-2.0 */
/* The two kinds of tables that the Firefox Profiler's files have, in the three places where versions keep them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/read_back.h"

/* main > work twice, main once, an empty stack; at 2 ms each. */
static void expect(const char *text, uint64_t samples, uint64_t wall_ns)
{
	struct profile *p = read_text("firefox", text);
	const struct thread_tree *tree = &p->threads[0];

	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), samples);
	cr_assert_eq(profile_sum(p, VALUE_WALL), wall_ns);
	cr_assert_eq(tree->node_count, 3);
	cr_assert_str_eq(p->symbols[tree->nodes[1].symbol].name, "main");
	cr_assert_str_eq(p->symbols[tree->nodes[2].symbol].name, "work");
	cr_assert_str_eq(p->symbols[tree->nodes[2].symbol].file, "a.py");
	cr_assert_eq(tree->nodes[2].line, 7);
	cr_assert_eq(tree->nodes[2].parent, 1);
	cr_assert_eq(tree->nodes[2].self[VALUE_SAMPLES], 2);
	profile_free(p);
}

#define META   "\"meta\":{\"interval\":2,\"processType\":0,\"preprocessedProfileVersion\":50,\"startTime\":1700000000000}"
#define THREAD "\"name\":\"T\",\"pid\":\"7\",\"tid\":8"
#define TABLES                                                                                                         \
	"\"stackTable\":{\"frame\":[0,1],\"prefix\":[null,0],\"length\":2},\"frameTable\":{\"func\":[0,1],\"line\":["  \
	"3,7]},"                                                                                                       \
	"\"funcTable\":{\"name\":[0,1],\"fileName\":[2,2],\"lineNumber\":[1,5]}"
#define SHARED_TABLES                                                                                                  \
	"\"stackTable\":{\"frame\":[0,1],\"prefix\":[null,0],\"length\":2},\"frameTable\":{\"func\":[0,1],\"line\":["  \
	"3,7]},"                                                                                                       \
	"\"funcTable\":{\"name\":[0,1],\"source\":[0,0],\"lineNumber\":[1,5]},\"sources\":{\"filename\":[2]}"
#define STRINGS "[\"main\",\"work\",\"a.py\"]"

Test(gecko_read, columns)
{
	expect("{" META ",\"threads\":[{" THREAD ",\"samples\":{\"stack\":[1,1,0,null],\"time\":[1,3,5,7]}," TABLES
	       ",\"stringArray\":" STRINGS "}]}",
	       4, 8000000);
	expect("{" META ",\"shared\":{\"stringArray\":" STRINGS "},\"threads\":[{" THREAD
	       ",\"samples\":{\"stack\":[1,0],\"timeDeltas\":[1,3],\"weight\":[2,1],\"weightType\":\"samples\"}," TABLES
	       "}]}",
	       3, 6000000);
	expect("{" META ",\"shared\":{" SHARED_TABLES ",\"stringArray\":" STRINGS "},\"threads\":[{" THREAD
	       ",\"samples\":{\"stack\":[1,1,0],\"weight\":[1.5,2,3],\"weightType\":\"tracing-ms\"}}]}",
	       3, 6500000);
}

Test(gecko_read, rows_of_firefox_itself_and_processes_within)
{
	static const char thread[] =
		"{\"name\":\"GeckoMain\",\"pid\":7,\"tid\":8,\"samples\":{\"schema\":{\"stack\":0,\"time\":1},\"data\":"
	        "[[1,0],[1,2],[0,4],[null,6]]},"
		"\"stackTable\":{\"schema\":{\"prefix\":0,\"frame\":1},\"data\":[[null,0],[0,1]]},\"frameTable\":{"
	        "\"schema\":{\"location\":0,\"line\":1,"
		"\"other\":2},\"data\":[[0],[1,null,[]]]},\"stringTable\":[\"main (a.py:3)\",\"work (a.py:7:15)\"]}";
	char text[4096];
	struct profile *p;

	snprintf(text, sizeof(text), "{" META ",\"threads\":[%s]}", thread);
	expect(text, 4, 8000000);
	snprintf(text, sizeof(text), "{" META ",\"threads\":[%s],\"processes\":[{" META ",\"threads\":[%s]}]}", thread,
	         thread);
	p = read_text("firefox", text);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 8);
	cr_assert(p->threads[0].is_main);
	profile_free(p);
}

Test(gecko_read, time_order)
{
	static const char text[] =
		"{" META ",\"threads\":[{" THREAD ",\"samples\":{\"stack\":[1,1,0,null],\"time\":[0,2,4,6]}," TABLES
		",\"stringArray\":" STRINGS "}]}";
	struct profile *p;
	struct fault fault;

	cr_assert_eq(read_back(&p, "firefox", text, strlen(text), &(struct builder_options){.runs = true}, &fault), 0);
	cr_assert_eq(p->threads[0].run_count, 4);
	cr_assert_eq(p->threads[0].runs[2].t_first_ns - p->threads[0].runs[0].t_first_ns, 4000000);
	profile_free(p);
}

static void refuse(const char *text, const char *why)
{
	struct profile *p;
	struct fault fault = {0};

	cr_assert_eq(read_as(&p, "firefox", text, strlen(text), NULL, &fault), -EPROTO, "%s", text);
	cr_assert(strstr(fault.why, why), "%s: %s", text, fault.why);
}

Test(gecko_read, refused_and_damaged)
{
	static const char good[] =
		"{" META ",\"threads\":[{" THREAD ",\"samples\":{\"stack\":[1,1],\"time\":[0,2]}," TABLES
		",\"stringArray\":" STRINGS "}]}";

	refuse("{" META "}", "no \"threads\"");
	refuse("{" META
	       ",\"threads\":[{\"samples\":{\"stack\":[0]},\"stackTable\":{\"frame\":[5],\"prefix\":[null]}}]}",
	       "what there is not");
	refuse("{" META ",\"threads\":[{\"samples\":{\"stack\":[0]},\"stackTable\":{\"frame\":[0],\"prefix\":[0]},"
	                "\"frameTable\":{\"func\":[0]}}]}",
	       "what there is not");
	read_damaged("firefox", good, strlen(good));
}
