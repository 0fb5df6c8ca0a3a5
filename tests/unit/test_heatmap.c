/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/build_profile.h"
#include "tests/unit/read_back.h"
#include "tests/unit/written.h"

/* What the page holds from `begin` on. */
static void expect(const struct profile *p, const struct export_options *options, const char *begin, const char *what)
{
	char *page = written(p, "heatmap", options), *at = strstr(page, begin);

	cr_assert_not_null(at, "%s", begin);
	cr_assert_eq(strncmp(at, what, strlen(what)), 0, "%.*s", 800, at);
	free(page);
}

#define SPOTS "\"fileNames\":"

Test(heatmap, empty)
{
	struct profile *p = built_new();

	expect(p, &(struct export_options){0}, "\"version\":1",
	       "\"version\":1,\"title\":\"\",\"mode\":\"wall\",\"startedMs\":1700000000000,\"processes\":0,\"weight\":"
	       "\"wall\","
	       "\"unit\":\"nanoseconds\",\"sums\":[0,0,0,0],");
	expect(p, &(struct export_options){0}, SPOTS,
	       "\"fileNames\":[],\n\"names\":[],\n\"files\":[],\n\"lines\":[],\n\"edges\":[],\n\"opcodes\":[],"
	       "\n\"sources\":[],"
	       "\"sourcesLeftOut\":0}"
	       "</script>");
	built_free(p);
}

/* main:2 → f:4 → f:4 → g:9, and f:4 alone: what stands twice in a stack counts once. */
Test(heatmap, recursion_counts_once)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "x"), 0, 10, "M"), at;
	uint32_t top = built_symbol(p, "main", "/m.py", 1), f = built_symbol(p, "f", "/f.py", 3),
		 g = built_symbol(p, "g", "/f.py", 8), gc = built_symbol(p, "<GC>", "", 0);

	at = built_child(p, t, built_child(p, t, 0, top, 2), f, 4);
	built_sample(p, t, at, 5, 0);
	at = built_child(p, t, at, f, 4);
	built_sample(p, t, at, 1, 0);
	at = built_child(p, t, at, g, 9);
	built_sample(p, t, at, 2, 0);
	built_sample(p, t, built_child(p, t, at, gc, 0), 3, 0);
	built_sample(p, t, 0, 7, 0);
	/* Files: 7 without a frame; /m.py holds all other 11, /f.py too, with 5 + 1 + 2 of its own; <GC> 3. */
	expect(p, &(struct export_options){0}, SPOTS,
	       "\"fileNames\":[\"(no frame)\",\"/m.py\",\"/f.py\",\"\\u003cGC\\u003e\"],\n"
	       "\"names\":[\"(no frame)\",\"main\",\"f\",\"g\",\"\\u003cGC\\u003e\"],\n"
	       "\"files\":[0,7,7000000,0,0,7,7000000,0,0,1,0,0,0,0,11,11000000,0,0,1,8,8000000,0,0,11,11000000,0,0,0,3,3000000,0,0,3,3000000,0,0],\n"
	       "\"lines\":[0,0,0,7,7000000,0,0,7,7000000,0,0,1,2,1,0,0,0,0,11,11000000,0,0,2,4,2,6,6000000,0,0,11,11000000,0,0,2,9,3,2,2000000,0,0,5,5000000,0,0,3,0,4,3,3000000,0,0,3,3000000,0,0],\n"
	       /* Edges: main → f 11; f → f 6; f → g 5; g → <GC> 3. */
	       "\"edges\":[1,2,11,11000000,0,0,2,2,6,6000000,0,0,2,3,5,5000000,0,0,3,4,3,3000000,0,0],\n"
	       "\"opcodes\":[],\n\"sources\":[],\"sourcesLeftOut\":0}");
	built_free(p);
}

/* main:2 stands at <LOAD_ATTR>, in which <GC> runs once, and at <CALL>, with the GIL: samples of its own line, counted by
 * instruction. */
Test(heatmap, opcodes_of_a_line)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "x"), 0, 10, "M"), at, load;
	uint32_t top = built_symbol(p, "main", "/m.py", 1), gc = built_symbol(p, "<GC>", "", 0),
		 attr = built_symbol(p, "<LOAD_ATTR>", "", 0), call = built_symbol(p, "<CALL>", "", 0);

	at = built_child(p, t, 0, top, 2);
	load = built_child(p, t, at, attr, 0);
	built_sample(p, t, load, 5, 0);
	built_sample(p, t, built_child(p, t, load, gc, 0), 1, 0);
	built_sample(p, t, built_child(p, t, at, call, 0), 2, STATUS_GIL);
	/* built_child() puts the newest child first. */
	expect(p, &(struct export_options){0}, SPOTS,
	       "\"fileNames\":[\"/m.py\",\"\\u003cGC\\u003e\"],\n"
	       "\"names\":[\"main\",\"\\u003cCALL\\u003e\",\"\\u003cLOAD_ATTR\\u003e\",\"\\u003cGC\\u003e\"],\n"
	       "\"files\":[1,7,7000000,0,2000000,8,8000000,0,2000000,0,1,1000000,0,0,1,1000000,0,0],\n"
	       "\"lines\":[0,2,0,7,7000000,0,2000000,8,8000000,0,2000000,1,0,3,1,1000000,0,0,1,1000000,0,0],\n"
	       "\"edges\":[0,1,1,1000000,0,0],\n"
	       "\"opcodes\":[0,1,2,2000000,0,2000000,0,2,6,6000000,0,0],\n"
	       "\"sources\"");
	built_free(p);
}

Test(heatmap, two_branches_of_a_line_add_up)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "x"), 0, 10, "M"), f = built_symbol(p, "f", "/f.py", 3);
	uint32_t u = built_thread(p, 0, 0, 11, "N"), g = built_symbol(p, "g", "/g.py", 1),
		 h = built_symbol(p, "h", "/h.py", 1);

	built_sample(p, t, built_child(p, t, built_child(p, t, 0, g, 2), f, 4), 2, 0);
	built_sample(p, t, built_child(p, t, built_child(p, t, 0, h, 2), f, 4), 3, 0);
	built_sample(p, u, built_child(p, u, built_child(p, u, 0, g, 2), f, 4), 4, 0);
	/* built_child() puts the newest child first: h's branch is walked before g's. */
	expect(p, &(struct export_options){0}, "\"lines\":",
	       "\"lines\":[0,2,0,0,0,0,0,3,3000000,0,0,1,4,1,9,9000000,0,0,9,9000000,0,0,2,2,2,0,0,0,0,6,6000000,0,0],\n"
	       "\"edges\":[0,1,3,3000000,0,0,2,1,6,6000000,0,0],");
	built_free(p);
}

Test(heatmap, imported_without_time)
{
	struct profile *p = read_text("collapsed", "a (</script>:3) 3\n");

	expect(p, &(struct export_options){.title = "</title>"}, "\"version\":1",
	       "\"version\":1,\"title\":\"\\u003c/"
	       "title\\u003e\",\"mode\":\"wall\",\"startedMs\":0,\"processes\":1,\"weight\":\"samples\","
	       "\"unit\":\"count\",\"sums\":[3,3,0,0],");
	expect(p, &(struct export_options){0}, "\"lines\":", "\"lines\":[0,3,0,3,3,0,0,3,3,0,0],\n\"edges\":[],");
	profile_free(p);
}

Test(heatmap, policy_and_deepest_stack)
{
	struct profile *p = built_deepest();

	expect(p, &(struct export_options){0},
	       "\"lines\":", "\"lines\":[0,2,0,9,9000000,0,0,9,9000000,0,0],\n\"edges\":[0,0,9,9000000,0,0],");
	expect(p, &(struct export_options){0}, "content=\"default-src",
	       "content=\"default-src 'none'; script-src 'sha256-");
	built_free(p);
}

Test(heatmap, suffix_is_its_own)
{
	cr_assert_str_eq(format_by_suffix("x.heatmap.html")->name, "heatmap");
	cr_assert_str_eq(format_by_suffix("x.html")->name, "flamegraph");
	cr_assert_str_eq(format_by_suffix("x.dask.json")->name, "dask");
}
