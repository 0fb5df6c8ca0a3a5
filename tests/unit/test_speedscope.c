/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/build_profile.h"
#include "tests/unit/read_back.h"
#include "tests/unit/written.h"

/* What stands behind the facts, which are facts.c's own. */
static char *behind_facts(const struct profile *p)
{
	char *text = written(p, "speedscope", &(struct export_options){0}), *shared = strstr(text, "\"shared\"");

	cr_assert_not_null(shared);
	memmove(text, shared, strlen(shared) + 1);
	return text;
}

static void expect(const struct profile *p, const char *text)
{
	char *found = behind_facts(p);

	cr_assert_str_eq(found, text);
	free(found);
}

/* 0 and a profile, or the error and why. */
static int parse(const char *text, size_t bytes, struct profile **ret_profile, struct fault *fault)
{
	static const struct builder_options options = {.memory_max_bytes = 1 << 28};

	return read_as(ret_profile, "speedscope", text, bytes, &options, fault);
}

static struct profile *parsed(const char *text)
{
	struct profile *p;
	struct fault fault;

	cr_assert_eq(parse(text, strlen(text), &p, &fault), 0, "%s", fault.why);
	return p;
}

static void refuses(const char *text, const char *why)
{
	struct profile *p;
	struct fault fault;

	cr_assert_eq(parse(text, strlen(text), &p, &fault), -EPROTO, "%s", text);
	cr_assert(strstr(fault.why, why), "%s: %s", text, fault.why);
	cr_assert(!strchr(fault.why, '\n'));
}

#define FRAMES "\"shared\":{\"frames\":[{\"name\":\"a\"},{\"name\":\"b\",\"file\":\"b.py\",\"line\":7}]}"

Test(speedscope, empty_profile)
{
	struct profile *p = built_new();

	expect(p, "\"shared\":{\"frames\":[]},\n\"profiles\":[\n{\"type\":\"sampled\",\"name\":\"no "
	          "samples\",\"unit\":\"nanoseconds\","
	          "\"startValue\":0,\"endValue\":0,\"samples\":[],\"weights\":[]}]}\n");
	built_free(p);
}

/* Rows in the order of time; two runs of one stack that differ in status alone are one row. */
Test(speedscope, rows_by_time)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "python3 x.py"), 0, 11, "Worker"), top, leaf;

	top = built_child(p, t, 0, built_symbol(p, "main", "/srv/app.py", 3), 4);
	leaf = built_child(p, t, top, built_symbol(p, "run", "", 0), 0);
	built_sample(p, t, leaf, 2, STATUS_RUNNABLE);
	built_sample(p, t, leaf, 1, STATUS_IDLE);
	built_sample(p, t, top, 1, 0);
	built_sample(p, t, 0, 1, 0);
	built_sample(p, t, leaf, 5, 0);
	expect(p, "\"shared\":{\"frames\":[\n{\"name\":\"main\",\"file\":\"/srv/"
	          "app.py\",\"line\":4},\n{\"name\":\"run\"}]},\n\"profiles\":[\n"
	          "{\"type\":\"sampled\",\"name\":\"Worker (tid "
	          "11)\",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":10000000,\n"
	          "\"sampled\":{\"pid\":10,\"process\":\"python3 "
	          "x.py\",\"interpreter\":0,\"tid\":11,\"main\":false,\"thread\":\"Worker\"},\n"
	          "\"samples\":[[0,1],[0],[],[0,1]],\n\"weights\":[3000000,1000000,1000000,5000000],\n\"counts\":[3,1,"
	          "1,5]}]}\n");
	built_free(p);
}

/* Without runs the nodes themselves, in the tree's order; with runs that do not hold all, too. */
Test(speedscope, rows_by_tree)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "x"), 2, 0, NULL), leaf;

	leaf = built_child(p, t, built_child(p, t, 0, built_symbol(p, "f", "", 0), 0), built_symbol(p, "g", "", 0), 0);
	built_sample(p, t, leaf, 2, 0);
	built_sample(p, t, 0, 3, 0);
	built_sample(p, t, leaf, 2, 0);
	for (int how = 0; how < 2; how++) {
		char *text;

		if (how == 0)
			p->has_runs = false;
		else
			p->threads[t].run_count = 2;
		text = behind_facts(p);
		cr_assert(strstr(text, "\"samples\":[[],[0,1]],\n\"weights\":[3000000,4000000],\n\"counts\":[3,4]"),
		          "%s", text);
		cr_assert(strstr(text, "\"name\":\"thread ?, interpreter 2\""), "%s", text);
		free(text);
		p->has_runs = true;
	}
	built_free(p);
}

/* A profile of its own behind those of the threads, and no samples in it. */
Test(speedscope, cpu_time_is_a_second_profile)
{
	struct profile *p = built_new(), *again;
	uint32_t t = built_thread(p, built_process(p, 10, "python3 x.py"), 0, 10, "MainThread"), idle = built_thread(p, 0, 0, 11, "idle");
	uint32_t symbol = built_symbol(p, "main", "/srv/app.py", 3);
	char *text;

	built_sample(p, t, built_child(p, t, 0, symbol, 4), 10, STATUS_RUNNABLE);
	built_sample(p, t, built_child(p, t, 0, symbol, 5), 3, STATUS_IDLE);
	built_sample(p, idle, built_child(p, idle, 0, symbol, 4), 13, STATUS_IDLE);
	built_cpu_time(p);
	text = behind_facts(p);
	cr_assert(strstr(text, "\"name\":\"MainThread (tid 10), CPU time\",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":7000000,"), "%s", text);
	cr_assert(!strstr(text, "idle, CPU time"), "%s", text);
	free(text);
	text = written(p, "speedscope", &(struct export_options){0});
	again = parsed(text);
	cr_expect_eq(again->thread_count, 2);
	cr_expect_eq(profile_sum(again, VALUE_SAMPLES), 26);
	cr_expect_eq(profile_sum(again, VALUE_WALL), 26000000);
	cr_expect(profile_has(again, VALUE_CPU));
	cr_expect_eq(profile_sum(again, VALUE_CPU), 7000000);
	profile_free(again);
	free(text);
	built_free(p);
}

static int parse_in_order(const char *text, struct profile **ret_profile, struct fault *fault)
{
	static const struct builder_options options = {.memory_max_bytes = 1 << 28, .runs = true};

	return read_as(ret_profile, "speedscope", text, strlen(text), &options, fault);
}

/* Samples of a time, or events, are in its order: in whatever order the columns come. Other units have none, nor have our own rows by the tree. */
Test(speedscope, time_order_is_read)
{
	static const char *const samples[] = {
		"\"samples\":[[0],[0,1],[0]],\"weights\":[2,3,4],\"counts\":[1,2,3]",
		"\"weights\":[2,3,4],\"counts\":[1,2,3],\"samples\":[[0],[0,1],[0]]",
		"\"counts\":[1,2,3],\"samples\":[[0],[0,1],[0]],\"weights\":[2,3,4]",
		"\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":5},{\"type\":\"O\",\"frame\":1,\"at\":7},{\"type\":\"C\",\"frame\":1,\"at\":10},"
		"{\"type\":\"C\",\"frame\":0,\"at\":14}]"};
	static const uint64_t counts[] = {1, 2, 3};
	struct profile *p;
	struct fault fault;
	char text[1024];

	for (size_t i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "{" FRAMES ",\"profiles\":[{\"unit\":\"milliseconds\",%s}]}", samples[i]);
		cr_assert_eq(parse_in_order(text, &p, &fault), 0, "%s", fault.why);
		cr_assert_eq(p->threads[0].run_count, 3);
		for (int run = 0; run < 3; run++) {
			cr_assert_eq(p->threads[0].runs[run].weight_ns, (uint64_t)(run + 2) * 1000000);
			cr_assert_eq(p->threads[0].runs[run].count, i < 3 ? counts[run] : 1);
		}
		cr_assert_eq(p->threads[0].runs[0].node, p->threads[0].runs[2].node);
		cr_assert_eq(p->threads[0].runs[2].t_first_ns - p->threads[0].runs[0].t_first_ns, 7000000);
		cr_assert_eq(profile_sum(p, VALUE_WALL), 9000000);
		cr_assert_eq(profile_sum(p, VALUE_SAMPLES), i < 3 ? 6 : 3);
		profile_free(p);
	}
	snprintf(text, sizeof(text), "{" FRAMES ",\"profiles\":[{\"unit\":\"bytes\",%s}]}", samples[0]);
	cr_assert_eq(parse_in_order(text, &p, &fault), -EINVAL);
	cr_assert(strstr(fault.why, "no time order"), "%s", fault.why);
	snprintf(text, sizeof(text), "{" FRAMES ",\"profiles\":[{\"unit\":\"seconds\",\"sampled\":{\"ordered\":false},%s}]}", samples[0]);
	cr_assert_eq(parse_in_order(text, &p, &fault), -EINVAL);
	p = parsed(text);
	cr_assert_eq(profile_sum(p, VALUE_WALL), UINT64_C(9000000000));
	profile_free(p);
}

Test(speedscope, hostile_names_come_back)
{
	static const char *const names[] = {"</script>", "\"\\\n\x01",
	                                    "\xe2\x80\xae"
	                                    "x",
	                                    "\xe5\x87\xbd", "__proto__"};
	struct profile *p = built_new(), *again;
	uint32_t t = built_thread(p, built_process(p, 10, "a\"b"), 3, UINT64_C(1) << 52, "t\\");
	char *text, *before, *after;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		built_sample(p, t, built_child(p, t, 0, built_symbol(p, names[i], names[i], 0), (uint32_t)i), i + 1, 0);
	text = written(p, "speedscope", &(struct export_options){0});
	cr_assert(!strstr(text, "</script"));
	again = parsed(text);
	before = written(p, "collapsed", &(struct export_options){0});
	after = written(again, "collapsed", &(struct export_options){0});
	cr_assert_str_eq(after, before);
	cr_assert_eq(profile_sum(again, VALUE_WALL), 15000000);
	cr_assert_eq(profile_weight(again), VALUE_WALL);
	cr_assert(again->imported);
	free(text);
	free(before);
	free(after);
	profile_free(again);
	built_free(p);
}

Test(speedscope, deepest_stack)
{
	struct profile *p = built_deepest(), *again;
	char *text = written(p, "speedscope", &(struct export_options){0});

	again = parsed(text);
	cr_assert_eq(again->threads[0].depth_max, REC_DEPTH_MAX);
	cr_assert_eq(again->note_count, 0);
	free(text);
	profile_free(again);
	built_free(p);
}

Test(speedscope, keys_in_any_order)
{
	struct profile *p = parsed("{\"profiles\":[{\"weights\":[2,0.5,1],\"counts\":[1,1,4],\"samples\":[[1],[0,1],[0,"
	                           "1]],\"unit\":\"microseconds\","
	                           "\"name\":\"t\"}]," FRAMES "}");
	char *text = written(p, "collapsed", &(struct export_options){0});

	cr_assert_str_eq(text, "thread ? \"t\";a;b (b.py:7) 5\nthread ? \"t\";b (b.py:7) 1\n");
	cr_assert_eq(profile_sum(p, VALUE_WALL), 3500);
	free(text);
	profile_free(p);
}

Test(speedscope, units)
{
	struct profile *p =
		parsed("{" FRAMES ",\"profiles\":[{\"samples\":[[0],[1]],\"weights\":[3,4],\"unit\":\"none\"}]}");

	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 7, "a weight without a unit counts samples");
	cr_assert_eq(profile_weight(p), VALUE_SAMPLES);
	profile_free(p);
	p = parsed("{" FRAMES ",\"profiles\":[{\"samples\":[[0],[1]],\"weights\":[3,4],\"unit\":\"bytes\"}]}");
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 2);
	cr_assert_eq(profile_sum(p, VALUE_WALL), 7);
	cr_assert_str_eq(p->values[VALUE_WALL].unit, "bytes");
	profile_free(p);
	p = parsed("{" FRAMES
	           ",\"profiles\":[{\"samples\":[[0],[1],[0]],\"weights\":[0.25,-1,1e300],\"unit\":\"seconds\"}]}");
	cr_assert_eq(profile_sum(p, VALUE_WALL), 250000000);
	cr_assert_eq(p->note_count, 1);
	cr_assert_eq(p->notes[0].number, 2);
	profile_free(p);
}

Test(speedscope, evented)
{
	struct profile *p = parsed(
		"{" FRAMES
		",\"profiles\":[{\"name\":\"t\",\"unit\":\"none\",\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":5},"
		"{\"type\":\"O\",\"frame\":1,\"at\":7},{\"at\":10,\"frame\":1,\"type\":\"C\"},{\"type\":\"C\","
		"\"frame\":0,\"at\":11},"
		"{\"type\":\"O\",\"frame\":1,\"at\":100}]}]}");
	char *text = written(p, "collapsed", &(struct export_options){0});

	cr_assert_str_eq(text, "thread ? \"t\";a 3\nthread ? \"t\";a;b (b.py:7) 3\n");
	cr_assert_eq(p->note_count, 1, "one was left open");
	free(text);
	profile_free(p);
}

Test(speedscope, malformed)
{
	refuses("[]", "no object");
	refuses("{}", "no \"frames\"");
	refuses("{" FRAMES "}", "no \"profiles\"");
	refuses("{" FRAMES ",\"profiles\":[{\"samples\":[[2]],\"weights\":[1]}]}", "frame 2 of 2");
	refuses("{" FRAMES ",\"profiles\":[{\"samples\":[[0.5]],\"weights\":[1]}]}", "not the number of a frame");
	refuses("{" FRAMES ",\"profiles\":[{\"samples\":[[1e30]],\"weights\":[1]}]}", "not the number of a frame");
	refuses("{" FRAMES ",\"profiles\":[{\"samples\":[[0]],\"weights\":[1,1]}]}", "more weights");
	refuses("{" FRAMES ",\"profiles\":[{\"samples\":[[0]]}]}", "1 samples and 0 weights");
	refuses("{" FRAMES ",\"profiles\":[{\"weights\":[1]}]}", "no samples");
	refuses("{" FRAMES ",\"profiles\":[{\"samples\":[0],\"weights\":[1]}]}", "a number stands where a stack");
	refuses("{" FRAMES ",\"profiles\":[{\"samples\":[[[0]]],\"weights\":[1]}]}", "an array stands");
	refuses("{" FRAMES ",\"profiles\":[{\"unit\":\"parsecs\"}]}", "unit");
	refuses("{" FRAMES ",\"profiles\":[{\"events\":[{\"type\":\"C\",\"frame\":0,\"at\":5}]}]}",
	        "not the innermost");
	refuses("{" FRAMES ",\"profiles\":[{\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":5},{\"type\":\"C\","
	        "\"frame\":0,\"at\":4}]}]}",
	        "lies before");
	refuses("{" FRAMES ",\"profiles\":[]} x", "at byte");
	refuses("{" FRAMES ",\"profiles\":[{\"samples\":[[0]],\"weights\":["
	        "12345678901234567890123456789012345678901234567890123456789012345]}]}",
	        "too many digits");
}

Test(speedscope, nesting_without_end)
{
	char *text = malloc(1 << 20);

	memset(text, '[', 1 << 20);
	memcpy(text, "{\"x\":", 5);
	text[(1 << 20) - 1] = '\0';
	refuses(text, "nested too deeply");
	free(text);
}

/* Cut off anywhere, or with any byte changed, it is refused in one line or read; memory is ASan's to judge. */
Test(speedscope, every_byte)
{
	static const char text[] =
		"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"," FRAMES
		",\"profiles\":[{\"name\":\"t\",\"unit\":\"seconds\",\"samples\":[[0,1],[]],\"weights\":[1,2],"
		"\"counts\":[1,2],\"sampled\":{\"tid\":3}},"
		"{\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":5},{\"type\":\"C\",\"frame\":0,\"at\":6}]}]}";
	static const char changes[] = "\0\"[{]}9-\\\xff";
	char copy[sizeof(text)];
	struct profile *p;
	struct fault fault;

	for (size_t bytes = 0; bytes < sizeof(text) - 1; bytes++) {
		cr_assert_eq(parse(text, bytes, &p, &fault), -EPROTO, "%zu", bytes);
		cr_assert(fault.why[0] && !strchr(fault.why, '\n'));
	}
	for (size_t at = 0; at < sizeof(text) - 1; at++)
		for (size_t i = 0; i < sizeof(changes) - 1; i++) {
			memcpy(copy, text, sizeof(copy));
			copy[at] = changes[i];
			if (parse(copy, sizeof(copy) - 1, &p, &fault) != 0)
				cr_assert(fault.why[0] && !strchr(fault.why, '\n'));
			profile_free(p);
		}
}

Test(speedscope, is_told_by_its_head)
{
	static const struct {
		const char *head;
		bool is;
	} heads[] = {
		{"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"", true},
		{" \n{\"shared\":{\"frames\":[", true},
		{"\xef\xbb\xbf{\"shared\":{\"frames\":[", true},
		{"[\"speedscope.app/file-format-schema\"]", false},
		{"{\"meta\":{},\"shared\":{\"stringArray\":[\"frames\"", false},
		{"{\"traceEvents\":[]}", false},
		{"", false},
	};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		cr_assert_eq(format_by_name("speedscope")
		                     ->detect((const unsigned char *)heads[i].head, strlen(heads[i].head)),
		             heads[i].is, "%s", heads[i].head);
}
