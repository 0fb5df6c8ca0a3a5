/* SPDX-License-Identifier: Apache-2.0 */
/* The still flame graph's text; that it is XML and can be seen is tests/integration/test_format_svg.py's and the browser test's. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/svg_tree.h"
#include "tests/unit/build_profile.h"
#include "tests/unit/written.h"

static char *svg_of(const struct profile *p)
{
	char *text = written(p, "svg", &(struct export_options){0});

	cr_assert_eq(strncmp(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg ", 44), 0);
	cr_assert_str_eq(text + strlen(text) - 7, "</svg>\n");
	cr_assert_null(strstr(text, "<script"));
	return text;
}

/* main 100 %, two lines of work 75 %: 1,180 px are all, so work is 885 px wide, less the gap. */
Test(svg, places_titles_and_numbers)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "python3 x.py"), 0, 10, "MainThread");
	uint32_t top = built_child(p, t, 0, built_symbol(p, "main", "/srv/app.py", 3), 4),
		 work = built_symbol(p, "work", "/srv/<b>&\".py", 7);
	char *text;

	built_sample(p, t, built_child(p, t, top, work, 8), 500, 0);
	built_sample(p, t, built_child(p, t, top, work, 9), 250, 0);
	built_sample(p, t, top, 250, 0);
	text = svg_of(p);
	cr_assert_not_null(strstr(text, "<title>main (/srv/app.py:3), 1,000 samples, 1.00 s, 100.0 %</title>"));
	cr_assert_not_null(strstr(text,
	                          "<title>work (/srv/&lt;b&gt;&amp;&quot;.py:7), 750 samples, 750.00 ms, 75.0 %</title>"
	                          "<rect class="),
	                   "lines are one");
	cr_assert_not_null(strstr(text, "x=\"10.00\" y=\"78\" width=\"884.50\" height=\"17\""));
	cr_assert_not_null(strstr(text, "<title>MainThread (10), 1,000 samples, 1.00 s, 100.0 %</title>"));
	cr_assert_eq(count_of(text, "<g>"), 3);
	cr_assert_not_null(strstr(text, ">samples in this profile: 1,000<"));
	cr_assert_not_null(strstr(text, "prefers-color-scheme:dark"));
	free(text);
	built_free(p);
}

Test(svg, threads_stand_below_all)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 10, "x"), a = built_thread(p, process, 0, 10, "A"),
		 b = built_thread(p, process, 2, 0, NULL);
	char *text;

	built_sample(p, a, 0, 1, 0);
	built_sample(p, b, 0, 3, 0);
	text = svg_of(p);
	cr_assert_not_null(strstr(text, "<title>all, 4 samples, 4.00 ms, 100.0 %</title>"));
	cr_assert_not_null(strstr(text, "<title>A (10), 1 sample, 1.00 ms, 25.0 %</title>"));
	cr_assert_not_null(strstr(text, "<title>interpreter 2 / thread ?, 3 samples, 3.00 ms, 75.0 %</title><rect "
	                                "class=\"t\" x=\"10.00\""),
	                   "the widest comes first");
	free(text);
	built_free(p);
}

/* It has the colour that the page gives it, whatever its file, and a legend; what has no native code has none. */
Test(svg, native_code_has_its_colour)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "x"), 0, 10, "A"), at;
	char *text;

	at = built_child(p, t, 0, built_symbol(p, "main", "m.py", 1), 2);
	built_sample(p, t, at, 1, 0);
	text = svg_of(p);
	cr_assert_null(strstr(text, "other native code"));
	free(text);
	at = built_child(p, t, at, built_native(p, "deflate", "deflate.c", 9, "/usr/lib/libz.so.1", ""), 12);
	built_sample(p, t, at, 3, 0);
	text = svg_of(p);
	cr_assert_not_null(
		strstr(text, "<title>deflate (deflate.c:9), 3 samples, 3.00 ms, 75.0 %</title><rect class=\"v\" "));
	cr_assert_not_null(strstr(text, ">C, C++ and other native code</text>"));
	free(text);
	built_free(p);
}

Test(svg, empty_and_nothing_but_noise)
{
	struct profile *p = built_new();
	char *text = svg_of(p);

	cr_assert_not_null(strstr(text, ">No samples.<"));
	free(text);
	built_thread(p, built_process(p, 10, "x"), 0, 10, "A");
	text = svg_of(p);
	cr_assert_not_null(strstr(text, ">No samples.<"));
	free(text);
	built_free(p);
}

/* 3,000 frames of 1 sample beside one of 10,000: each is below a thousandth. */
Test(svg, narrow_frames_are_merged_and_counted)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "x"), 0, 10, "A");
	char name[32], *text;

	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "wide", "", 0), 0), 10000, 0);
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "tiny_%u", i);
		built_sample(p, t, built_child(p, t, 0, built_symbol(p, name, "", 0), 0), 1, 0);
	}
	text = svg_of(p);
	cr_assert_not_null(strstr(text, "<title>(other): 3,000 narrow frames, 3,000 samples, 3.00 s, 23.1 %</title>"));
	cr_assert_not_null(strstr(text, ">3,000 narrow frames merged into (other); 0 deeper than 400 rows left out<"));
	cr_assert_null(strstr(text, "tiny_"));
	free(text);
	built_free(p);
}

/* Row 0 is the thread's: of 16,384 frames 399 are drawn. */
Test(svg, height_is_bounded)
{
	struct profile *p = built_deepest();
	char *text = svg_of(p);

	cr_assert_eq(count_of(text, "<title>f ("), SVG_ROWS_MAX - 1);
	cr_assert_not_null(strstr(text, "0 narrow frames merged into (other); 15,985 deeper than 400 rows left out"));
	free(text);
	built_free(p);
}

/* Control characters that XML 1.0 has not, text that is not UTF-8, what reorders, U+FFFE. */
Test(svg, nothing_that_xml_has_not)
{
	static const char *const names[] = {"a\x01"
	                                    "b",
	                                    "\x1b[31m",
	                                    "\xff\xc3",
	                                    "\xe2\x80\xae"
	                                    "x",
	                                    "\xef\xbf\xbe",
	                                    "]]>",
	                                    "<!--",
	                                    "\x7f",
	                                    "\t"};
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "\x08<&>"), 0, 10, "\x02</g>");
	char *text;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		built_sample(p, t, built_child(p, t, 0, built_symbol(p, names[i], names[i], 1), 1), 100, 0);
	text = svg_of(p);
	for (const char *c = text; *c; c++)
		cr_assert(*c == '\n' || (unsigned char)*c >= 0x20);
	cr_assert_eq(count_of(text, "<g>"), count_of(text, "</g>"));
	cr_assert_eq(count_of(text, "<g>"), 10);
	cr_assert_null(strstr(text, "\xef\xbf\xbe"));
	cr_assert_null(strstr(text, "\xe2\x80\xae"));
	cr_assert_not_null(strstr(text, "]]&gt;"));
	free(text);
	built_free(p);
}

Test(svg, two_profiles_by_both_widths)
{
	struct profile *sides[SIDES] = {built_new(), built_new()}, *joined;
	struct facts facts[SIDES];
	struct difference d;
	struct comparison c = {.titles = {"old<", "new&"}, .facts = {&facts[BEFORE], &facts[AFTER]}, .difference = &d};
	char *text, *before;

	difference_init(&d);
	for (int side = 0; side < SIDES; side++) {
		struct profile *p = sides[side];
		uint32_t t = built_thread(p, built_process(p, 1, "x"), 0, 1, "T");

		built_sample(p, t, built_child(p, t, 0, built_symbol(p, "both", "a.py", 1), 1), 500, 0);
		built_sample(p, t, built_child(p, t, 0, built_symbol(p, side ? "came" : "went", "a.py", 1), 1), 500, 0);
		facts_make(&facts[side], p);
		d.ranking = (struct ranking){.by = VALUE_WALL};
		difference_add_profile(&d, side, p);
	}
	difference_finish(&d);
	cr_assert_eq(difference_join(&joined, &c, sides[BEFORE], sides[AFTER]), 0);
	text = written(joined, "svg", &(struct export_options){.comparison = &c});
	before = strstr(text, "<g id=\"before\">");
	cr_assert_not_null(before);
	cr_assert_not_null(strstr(text, ">new&amp;<"));
	cr_assert_not_null(strstr(before, ">old&lt;<"));
	cr_assert(strstr(text, "<title>came (") < before && !strstr(before, "<title>came ("));
	cr_assert(strstr(text, "<title>went (") > before);
	cr_assert_not_null(strstr(
		text, "<title>came (a.py:1)&#10;before, 0 samples, 0 s, 0.00 %&#10;after, 500 samples, 500.00 ms, "
		      "50.0 %&#10;change +50.00 points, 95 % interval \u00b1 3.10</title><rect class=\"g3\""));
	cr_assert_not_null(strstr(before, "change -50.00 points, 95 % interval \u00b1 3.10</title><rect class=\"s3\""));
	cr_assert_not_null(strstr(text, "within the noise</title><rect class=\"n\""));
	free(text);
	profile_free(joined);
	difference_release(&d);
	built_free(sides[BEFORE]);
	built_free(sides[AFTER]);
}
