/* SPDX-License-Identifier: Apache-2.0 */
/* The formats that draw what happened when: chrome and firefox, and the slices that both are made of. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/builder.h"
#include "base/clock.h"
#include "exporters/json_parts.h"
#include "exporters/timeline.h"
#include "tests/unit/build_profile.h"
#include "tests/unit/written.h"

static void holds(const char *text, const char *part)
{
	cr_assert(strstr(text, part), "%s\nis not in\n%s", part, text);
}

static char *events(const struct profile *p)
{
	char *text = written(p, "chrome", &(struct export_options){0}), *at = strstr(text, "\"traceEvents\"");

	cr_assert_not_null(at);
	memmove(text, at, strlen(at) + 1);
	return text;
}

/* A run lasts from its last sample back over its weight, and not into the one before. */
Test(timeline, slices)
{
	struct run runs[] = {
		{.t_first_ns = 1000, .span_ns = 200, .weight_ns = 300, .node = 1, .count = 3},
		{.t_first_ns = 1250, .span_ns = 0, .weight_ns = 100, .node = 2, .count = 1},
		{.t_first_ns = 1250, .span_ns = 0, .weight_ns = 100, .node = 3, .count = 1},
		{.t_first_ns = 2000, .span_ns = 0, .weight_ns = 100, .node = 4, .status = STATUS_GC, .count = 1},
	};
	struct thread_tree thread = {.runs = runs, .run_count = 4};
	struct timeline line = {.thread = &thread};
	struct timeline_slice slice;

	cr_assert(timeline_next(&line, &slice));
	cr_assert(slice.start_ns == 900 && slice.end_ns == 1200 && slice.node == 1);
	cr_assert(timeline_next(&line, &slice));
	cr_assert(slice.start_ns == 1200 && slice.end_ns == 1250 && slice.node == 2);
	cr_assert(timeline_next(&line, &slice), "the third has no length");
	cr_assert(slice.start_ns == 1900 && slice.end_ns == 2000 && slice.node == 4 && slice.status == STATUS_GC);
	cr_assert_not(timeline_next(&line, &slice));
}

/* Two samples that were held back, 90 ms apart and given as one run: what was seen in between keeps its time. */
Test(timeline, a_run_of_samples_far_apart)
{
	struct builder *b;
	struct profile *p = NULL;
	struct timeline line = {0};
	struct timeline_slice slice;
	uint64_t sum_ns = 0, ms = NS_PER_MS;
	uint32_t t;

	cr_assert_eq(builder_new(&b, &(struct builder_options){.runs = true}), 0);
	t = builder_thread(b,
	                   &(struct thread_tree){.process = builder_process(b, &(struct process){.pid = 1}), .tid = 1});
	for (uint64_t i = 0; i < 100; i++)
		if (i != 5 && i != 95)
			builder_run(b, t, 0, 1000 * ms + i * ms, 1000 * ms + i * ms, 1, ms, i % 2 ? STATUS_GIL : 0);
	builder_run(b, t, 0, 1005 * ms, 1095 * ms, 2, 2 * ms, STATUS_GIL_WAIT);
	cr_assert_eq(builder_finish(b, &p), 0);
	builder_free(b);
	line.thread = &p->threads[0];
	while (timeline_next(&line, &slice))
		sum_ns += slice.end_ns - slice.start_ns;
	cr_assert_eq(sum_ns, 99 * ms, "of the two that were held one has its time");
	profile_free(p);
}

/* Samples are a millisecond apart, the first at 1 s; so the first span begins at 0.999 s, which is 0 in the file. */
Test(chrome, spans)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "py"), 0, 11, "W"), f, g,
		 g_symbol = built_symbol(p, "g", "", 0);
	uint32_t f_symbol = built_symbol(p, "f", "a.py", 3), at;
	char *text;

	f = built_child(p, t, 0, f_symbol, 4);
	g = built_child(p, t, f, g_symbol, 0);
	built_sample(p, t, g, 2, 0);
	built_sample(p, t, f, 1, 0);
	at = built_child(p, t, built_child(p, t, 0, f_symbol, 5), g_symbol, 0);
	built_sample(p, t, at, 1, 0); /* f goes on at another line; g is another call */
	built_sample(p, t, g, 1, 0);
	built_sample(p, t, 0, 1, 0);
	text = events(p);
	cr_assert_str_eq(text,
	                 "\"traceEvents\":[\n"
	                 "{\"ph\":\"M\",\"pid\":10,\"tid\":11,\"name\":\"process_name\",\"args\":{\"name\":\"py\"}},\n"
	                 "{\"ph\":\"M\",\"pid\":10,\"tid\":11,\"name\":\"thread_name\",\"args\":{\"name\":\"W\"}},\n"
	                 "{\"ph\":\"X\",\"pid\":10,\"tid\":11,\"ts\":0,\"dur\":1999.875,\"name\":\"g\"},\n"
	                 "{\"ph\":\"X\",\"pid\":10,\"tid\":11,\"ts\":3000,\"dur\":999.875,\"name\":\"g\"},\n"
	                 "{\"ph\":\"X\",\"pid\":10,\"tid\":11,\"ts\":0,\"dur\":4999.875,\"name\":\"f (a.py:3)\"},\n"
	                 "{\"ph\":\"X\",\"pid\":10,\"tid\":11,\"ts\":4000,\"dur\":999.875,\"name\":\"g\"}]}\n");
	free(text);
	built_free(p);
}

/* Two intervals without a sample are passed over; what is longer ends the spans. */
Test(chrome, gaps)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "py"), 0, 11, "W"),
		 f = built_child(p, t, 0, built_symbol(p, "f", "", 0), 0);
	char *text;

	built_sample(p, t, f, 1, 0);
	built_sample(p, t, f, 1, 0);
	p->threads[t].runs[1].t_first_ns += 2000000;
	built_sample(p, t, f, 1, 0);
	p->threads[t].runs[2].t_first_ns += 2000001;
	text = events(p);
	holds(text, "{\"ph\":\"X\",\"pid\":10,\"tid\":11,\"ts\":0,\"dur\":3999.875,\"name\":\"f\"},\n"
	            "{\"ph\":\"X\",\"pid\":10,\"tid\":11,\"ts\":6000,\"dur\":999.875,\"name\":\"f\"}]}");
	free(text);
	built_free(p);
}

/* What does not go on ends where it was last seen, however short the pause. */
Test(chrome, what_ends_before_a_pause)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "py"), 0, 11, "W");
	char *text;

	built_short_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "", 0), 0), 20000);
	built_short_sample(p, t, built_child(p, t, 0, built_symbol(p, "g", "", 0), 0), 20000);
	text = events(p);
	holds(text, "{\"ph\":\"X\",\"pid\":10,\"tid\":11,\"ts\":0,\"dur\":19.875,\"name\":\"f\"},\n"
	            "{\"ph\":\"X\",\"pid\":10,\"tid\":11,\"ts\":1000,\"dur\":19.875,\"name\":\"g\"}]}");
	free(text);
	built_free(p);
}

Test(chrome, threads_that_share_an_id_are_told_apart)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 10, "py");
	char *text;

	built_thread(p, process, 0, 11, "A");
	built_thread(p, process, 2, 11, "A");
	built_thread(p, process, 0, 0, NULL);
	built_thread(p, process, 0, UINT64_MAX, NULL);
	text = events(p);
	holds(text, "\"tid\":11,\"name\":\"thread_name\",\"args\":{\"name\":\"A\"}");
	holds(text, "\"tid\":1073741825,\"name\":\"thread_name\",\"args\":{\"name\":\"A, interpreter 2\"}");
	holds(text, "\"tid\":1073741826,\"name\":\"thread_name\",\"args\":{\"name\":\"thread 0\"}");
	holds(text, "\"tid\":1073741827,\"name\":\"thread_name\",\"args\":{\"name\":\"thread 18446744073709551615\"}");
	free(text);
	built_free(p);
}

Test(chrome, empty_profile)
{
	struct profile *p = built_new();
	char *text = events(p);

	cr_assert_str_eq(text, "\"traceEvents\":[]}\n");
	free(text);
	built_free(p);
}

static struct profile *small(void)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "py"), 0, 10, "Main"), f, g;

	f = built_child(p, t, 0, built_symbol(p, "f", "a.py", 3), 4);
	g = built_child(p, t, f, built_symbol(p, "<GC>", "", 0), 0);
	built_sample(p, t, f, 2, STATUS_RUNNABLE | STATUS_GIL);
	built_sample(p, t, g, 1, STATUS_RUNNABLE | STATUS_GIL | STATUS_GC);
	built_sample(p, t, 0, 3, STATUS_IDLE);
	built_sample(p, t, f, 1, STATUS_UNKNOWN | STATUS_GIL_WAIT);
	return p;
}

Test(firefox, tables)
{
	struct profile *p = small();
	char *text;

	built_cpu_time(p);
	text = written(p, "firefox", &(struct export_options){0});
	holds(text, "\"stringArray\":[\"f\",\n\"a.py\",\n\"\\u003cGC\\u003e\",\n\"\",\n\"Has GIL\",");
	holds(text, "\"samples\":{\"stack\":[0,0,1,null,null,null,0],\n\"timeDeltas\":[1,1,1,1,1,1,1],\n"
	            "\"threadCPUDelta\":[700000,700000,700000,0,0,0,0],\n\"weight\":null,\"weightType\":\"samples\","
	            "\"length\":7}");
	holds(text, "\"stackTable\":{\"frame\":[0,1],\"prefix\":[null,0],\"length\":2}");
	holds(text, "\"frameTable\":{\"func\":[0,1],\"line\":[4,null],\"category\":[1,5],");
	holds(text, "\"funcTable\":{\"name\":[0,2],\"fileName\":[1,null],\"lineNumber\":[3,null],");
	free(text);
	built_free(p);
}

/* In the order of their ends: held 0 to 3 ms, collecting 2 to 3, blocked 3 to 6, waiting 6 to 7. */
Test(firefox, markers)
{
	struct profile *p = small();
	char *text = written(p, "firefox", &(struct export_options){0});

	holds(text, "\"name\":[4,7,9,8,5,6],\n\"startTime\":[0,0,2,3,3,6],\n\"endTime\":[3,3,3,6,7,7],\n\"phase\":[1,1,"
	            "1,1,1,1],\n"
	            "\"category\":[3,4,5,4,3,3],\n\"data\":[{\"type\":\"Has GIL\"},{\"type\":\"Runnable\"},"
	            "{\"type\":\"GC\"},{\"type\":\"Not runnable\"},"
	            "{\"type\":\"No GIL\"},{\"type\":\"Waiting for GIL\"}],\n\"length\":6}");
	free(text);
	built_free(p);
}

/* The CPU column is the kernel's count to the nanosecond, over the samples that were runnable. */
Test(firefox, cpu_adds_up_to_what_the_kernel_counted)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "py"), 0, 10, "Main"),
		 f = built_child(p, t, 0, built_symbol(p, "f", "", 0), 0);
	char *text;

	built_sample(p, t, f, 1, STATUS_IDLE);
	built_sample(p, t, f, 3, STATUS_RUNNABLE);
	built_sample(p, t, 0, 2, STATUS_IDLE);
	p->values[VALUE_CPU] = profile_value_types[VALUE_CPU];
	p->threads[t].nodes[f].self[VALUE_CPU] = 100;
	p->threads[t].nodes[0].self[VALUE_CPU] = 7;
	text = written(p, "firefox", &(struct export_options){0});
	holds(text, "\"threadCPUDelta\":[0,33,33,34,3,4]");
	free(text);
	built_free(p);
}

/* What a profile does not know, no marker says. */
Test(firefox, no_markers_without_status)
{
	struct profile *p = small();
	char *text;

	for (int v = VALUE_RUNNABLE; v < VALUE_COUNT; v++)
		p->values[v] = (struct value_type){0};
	text = written(p, "firefox", &(struct export_options){0});
	holds(text, "\"data\":[],\n\"length\":0}");
	cr_assert(!strstr(text, "threadCPUDelta\":["));
	free(text);
	built_free(p);
}

/* Where there would be too many rows, samples of one run share some. */
Test(firefox, many_samples)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "py"), 0, 10, "Main"),
		 f = built_child(p, t, 0, built_symbol(p, "f", "", 0), 0);
	char *text, *at;
	uint64_t sum = 0, rows = 0;

	for (int i = 0; i < 10; i++) {
		built_sample(p, t, i % 2 ? f : 0, 4001, 0);
		p->threads[t].runs[i].count = RUN_COUNT_MAX;
	}
	text = written(p, "firefox", &(struct export_options){0});
	at = strstr(text, "\"weight\":[");
	cr_assert_not_null(at);
	for (at += strlen("\"weight\":["); *at != ']'; at += *at == ',') {
		sum += strtoull(at, &at, 10);
		rows++;
	}
	cr_assert_eq(sum, 10 * (uint64_t)RUN_COUNT_MAX);
	cr_assert(rows <= 1 << 24 && rows > 1 << 23, "%llu", (unsigned long long)rows);
	free(text);
	built_free(p);
}

Test(firefox, empty_profile_has_a_thread)
{
	struct profile *p = built_new();
	char *text = written(p, "firefox", &(struct export_options){0});

	holds(text, "\"threads\":[\n{\"name\":\"no threads\"");
	free(text);
	built_free(p);
}

Test(json_parts, decimals)
{
	static const struct {
		uint64_t ns;
		unsigned digits;
		const char *text;
	} cases[] = {{0, 6, "0"},       {1, 6, "0.000001"},       {1500000, 6, "1.5"},
	             {2000000, 6, "2"}, {1234567, 3, "1234.567"}, {10, 3, "0.01"}};
	static struct writer to;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		writer_open_fd(&to, -1);
		json_decimal(&to, cases[i].ns, cases[i].digits);
		cr_assert_eq(to.used, strlen(cases[i].text));
		cr_assert(memcmp(to.buffer, cases[i].text, to.used) == 0, "%s", cases[i].text);
	}
}
