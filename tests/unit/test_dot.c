/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/build_profile.h"
#include "tests/unit/written_graph.h"

static unsigned count(const char *text, const char *part)
{
	unsigned found = 0;

	for (; (text = strstr(text, part)) != NULL; text += strlen(part))
		found++;
	return found;
}

static struct profile *new_profile(uint32_t *ret_thread)
{
	struct profile *p = built_new();

	*ret_thread = built_thread(p, built_process(p, 10, "x"), 0, 10, NULL);
	return p;
}

/* A quarter of the samples in main itself: its share is the ramp's end, that of work √0.75 of the way. */
Test(dot, golden)
{
	uint32_t t, top;
	struct profile *p = new_profile(&t);
	char *text, *nodes;

	top = built_child(p, t, 0, built_symbol(p, "main", "/srv/m.py", 1), 2);
	built_sample(p, t, top, 1, 0);
	built_sample(p, t, built_child(p, t, top, built_symbol(p, "<GC>", "", 0), 0), 3, 0);
	text = written_graph_of(p, "dot", NULL);
	cr_assert_eq(strncmp(text, "digraph \"sampled\" {\n", 20), 0);
	cr_assert(strstr(text, "\tlabel=\"call graph of 4.00 ms, sampled\\lduration: 5.00 s\\l"));
	cr_assert(strstr(text, "lost: torn: 0\\l"));
	nodes = strstr(text, "\tn0 [");
	cr_assert_not_null(nodes);
	/* √0.75 × 2 = 1.732: fd - 0.732 × f = f2, bf - 0.732 × 55 = 81, 8a - 0.732 × 3a = 60. */
	cr_assert_str_eq(
		nodes,
		"\tn0 [label=\"main\\nm.py:1\\n100.0 % (4.00 ms)\\nself 25.0 % (1.00 ms)\", tooltip=\"main "
	        "(/srv/m.py:1)\", "
		"fontsize=17, fillcolor=\"#ee6a50\"];\n"
		"\tn1 [label=\"<GC>\\n75.0 % (3.00 ms)\\nself 75.0 % (3.00 ms)\", tooltip=\"<GC>\", fontsize=22, "
		"fillcolor=\"#f28160\"];\n"
		"\tn0 -> n1 [label=\"75.0 %\\n3.00 ms\", penwidth=3.50];\n"
		"}\n");
	free(text);
	built_free(p);
}

Test(dot, an_empty_profile_is_a_graph_without_nodes)
{
	struct profile *p = built_new();
	char *text = written_graph_of(p, "dot", NULL);

	cr_assert_eq(count(text, "tooltip"), 0);
	cr_assert(strstr(text, "call graph of 0 s"));
	free(text);
	built_free(p);
}

Test(dot, names_are_data)
{
	uint32_t t;
	struct profile *p = new_profile(&t);
	char *text;

	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "a\"];x\\N&lt;\n\x01<b>\xff\xef\xbf\xbe", "", 0), 0), 1,
	             0);
	text = written_graph_of(p, "dot", NULL);
	cr_assert(strstr(text, "[label=\"a\\\"];x\\\\N&amp;lt;  <b>\xef\xbf\xbd\xef\xbf\xbd\\n100.0 %"), "%s", text);
	free(text);
	built_free(p);
}

Test(dot, long_names_are_cut)
{
	static char name[3 * 5000 + 1];
	uint32_t t;
	struct profile *p = new_profile(&t);
	char *text;

	for (size_t i = 0; i < 5000; i++)
		memcpy(name + 3 * i, "\xe5\x87\xbd", 3);
	built_sample(p, t, built_child(p, t, 0, built_symbol(p, name, "", 0), 0), 1, 0);
	text = written_graph_of(p, "dot", NULL);
	cr_assert_eq(count(text, "\xe5\x87\xbd"), 2 * 4096, "in the label and in the tooltip");
	cr_assert_eq(count(text, "\u2026"), 2);
	free(text);
	built_free(p);
}

/* Of 2,000 samples: 0.35 % goes, and 0.5 % stays; of calls, 0.05 % goes with both its ends shown. */
Test(dot, what_is_left_out_is_said)
{
	uint32_t t, top, a, b;
	struct profile *p = new_profile(&t);
	char *text;

	top = built_child(p, t, 0, built_symbol(p, "top", "a.py", 1), 1);
	a = built_child(p, t, top, built_symbol(p, "a", "a.py", 2), 1);
	b = built_child(p, t, top, built_symbol(p, "b", "a.py", 3), 1);
	built_sample(p, t, top, 1972, 0);
	built_sample(p, t, a, 10, 0);
	built_sample(p, t, b, 10, 0);
	built_sample(p, t, built_child(p, t, a, built_symbol(p, "b", "a.py", 3), 9), 1, 0);
	built_sample(p, t, built_child(p, t, top, built_symbol(p, "small", "a.py", 4), 1), 7, 0);
	text = written_graph_of(p, "dot", NULL);
	cr_assert_eq(count(text, "tooltip"), 3);
	cr_assert_eq(count(text, " -> "), 2);
	cr_assert(strstr(text, "left out: 1 functions under 0.5 %, with their calls; self time of these: 0.35 %\\l"),
	          "%s", text);
	cr_assert(strstr(text, "left out: 1 calls between the others under 0.1 %\\l"));
	free(text);
	built_free(p);
}

/* A chain of 400 functions that all have the whole: only so many are laid out. */
Test(dot, no_more_nodes_than_can_be_laid_out)
{
	uint32_t t, at = 0;
	struct profile *p = new_profile(&t);
	char *text;

	for (uint32_t i = 0; i < 400; i++)
		at = built_child(p, t, at, built_symbol(p, "f", "a.py", i), 1);
	built_sample(p, t, at, 10, 0);
	text = written_graph_of(p, "dot", NULL);
	cr_assert_eq(count(text, "tooltip"), 300);
	cr_assert_eq(count(text, " -> "), 299);
	cr_assert(strstr(text, "left out: 0 functions under 0.5 % and 100 beyond the 300 largest, with their calls; "
	                       "self time of these: 100.0 %"));
	free(text);
	built_free(p);
}
