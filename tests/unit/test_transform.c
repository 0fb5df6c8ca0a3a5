/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/transform.h"
#include "tests/unit/build_profile.h"

#define S UINT64_C(1000000000)

static const struct transform nothing;

static struct builder *start(uint64_t memory_max_bytes)
{
	struct builder *b;

	cr_assert_eq(builder_new(&b, &(struct builder_options){.runs = true, .memory_max_bytes = memory_max_bytes}), 0);
	return b;
}

static struct profile *transformed(const struct profile *from, const struct transform *how)
{
	struct builder *b = start(0);

	cr_assert_eq(transform_add(b, from, how), 0);
	return built_finish(b);
}

static regex_t *compiled(const char *pattern)
{
	static regex_t regexes[8];
	static unsigned used;
	regex_t *regex = &regexes[used++ % 8];

	cr_assert_eq(regcomp(regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	return regex;
}

/* The stacks of all threads, "f;g 3 ", in the order of the nodes; each with its samples. */
static const char *stacks(const struct profile *p)
{
	static char text[4096];
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < p->thread_count; i++)
		for (uint32_t n = 0; n < p->threads[i].node_count; n++) {
			const struct node *nodes = p->threads[i].nodes;
			uint32_t path[64], depth = 0;

			if (nodes[n].self[VALUE_SAMPLES] == 0)
				continue;
			for (uint32_t k = n; k; k = nodes[k].parent)
				path[depth++] = k;
			while (depth > 0) {
				const struct node *node = &nodes[path[--depth]];

				at += (size_t)snprintf(text + at, sizeof(text) - at, "%s:%u%s",
				                       p->symbols[node->symbol].name, node->line, depth ? ";" : "");
			}
			at += (size_t)snprintf(text + at, sizeof(text) - at, " %u ",
			                       (unsigned)nodes[n].self[VALUE_SAMPLES]);
		}
	return text;
}

/* What must hold of each: runs are of their nodes and have their samples. */
static void check_runs(const struct profile *p)
{
	for (uint32_t i = 0; i < p->thread_count; i++) {
		const struct thread_tree *t = &p->threads[i];
		uint64_t *counts = calloc(t->node_count, sizeof(*counts));

		for (size_t r = 0; r < t->run_count; r++) {
			cr_assert_lt(t->runs[r].node, t->node_count);
			counts[t->runs[r].node] += t->runs[r].count;
		}
		for (uint32_t n = 0; n < t->node_count; n++)
			cr_assert_eq(counts[n], t->nodes[n].self[VALUE_SAMPLES], "node %u of thread %u", n, i);
		free(counts);
	}
}

/* main (a.py) calls work (lib/b.py), which calls leaf (lib/c.py) and itself; a thread without frames, too. */
static struct profile *make(void)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 10, "x"), t = built_thread(p, process, 0, 10, "Main");
	uint32_t other = built_thread(p, process, 0, 11, "Pool");
	uint32_t main_ = built_symbol(p, "main", "/srv/a.py", 1), work = built_symbol(p, "work", "/srv/lib/b.py", 10);
	uint32_t leaf = built_symbol(p, "leaf", "/srv/lib/c.py", 20), at, below;

	at = built_child(p, t, 0, main_, 2);
	built_sample(p, t, at, 1, STATUS_RUNNABLE);
	below = built_child(p, t, at, work, 11);
	built_sample(p, t, below, 2, STATUS_GIL);
	built_sample(p, t, built_child(p, t, below, leaf, 21), 30, STATUS_IDLE);
	built_sample(p, t, built_child(p, t, below, leaf, 22), 40, STATUS_GC);
	built_sample(p, t, built_child(p, t, below, work, 12), 5, 0);
	built_sample(p, t, built_child(p, t, 0, leaf, 21), 6, 0);
	built_sample(p, other, 0, 16, STATUS_IDLE);
	return p;
}

enum { ALL = 100 };

static void expect(const struct transform *how, const char *text, uint64_t filtered, uint64_t omitted)
{
	struct profile *p = make(), *to = transformed(p, how);

	cr_assert_str_eq(stacks(to), text, "%s", stacks(to));
	cr_assert_eq(to->filtered, filtered);
	cr_assert_eq(to->omitted, omitted);
	cr_assert_eq(profile_sum(to, VALUE_SAMPLES) + to->filtered + to->omitted, ALL);
	cr_assert_eq(profile_sum(to, VALUE_WALL), profile_sum(to, VALUE_SAMPLES) * 1000000);
	cr_assert_eq(profile_sum(to, VALUE_WALL) + to->left_out.wall, ALL * 1000000);
	check_runs(to);
	profile_free(to);
	built_free(p);
}

Test(transform, nothing_asked_changes_nothing)
{
	struct profile *p = make(), *to = transformed(p, &nothing);

	expect(&nothing,
	       "main:2 1 main:2;work:11 2 main:2;work:11;leaf:21 30 main:2;work:11;leaf:22 40 main:2;work:11;work:12 5 "
	       "leaf:21 6  16 ",
	       0, 0);
	for (int v = 0; v < VALUE_COUNT; v++)
		cr_assert_eq(profile_sum(to, v), profile_sum(p, v), "value %d", v);
	cr_assert_eq(to->t_start_ns, p->t_start_ns);
	cr_assert_eq(to->t_end_ns, p->t_end_ns);
	cr_assert_eq(to->wall_start_ns, p->wall_start_ns);
	cr_assert_eq(to->interval_ns, p->interval_ns);
	cr_assert_eq(to->processes[0].facts.samples, ALL);
	profile_free(to);
	built_free(p);
}

Test(transform, focus)
{
	expect(&(struct transform){.focus = compiled("^leaf$")},
	       "main:2;work:11;leaf:21 30 main:2;work:11;leaf:22 40 leaf:21 6 ", 24, 0);
	expect(&(struct transform){.focus = compiled("b\\.py$")}, /* by file, too */
	       "main:2;work:11 2 main:2;work:11;leaf:21 30 main:2;work:11;leaf:22 40 main:2;work:11;work:12 5 ", 23, 0);
	expect(&(struct transform){.focus = compiled("nothing is like this")}, "", ALL, 0);
}

Test(transform, ignore)
{
	expect(&(struct transform){.ignore = compiled("^leaf$")},
	       "main:2 1 main:2;work:11 2 main:2;work:11;work:12 5  16 ", 76, 0);
	expect(&(struct transform){.focus = compiled("work"), .ignore = compiled("c.py")},
	       "main:2;work:11 2 main:2;work:11;work:12 5 ", 93, 0);
}

/* By file only, and counted apart; what is both ignored and omitted is omitted. */
Test(transform, omit)
{
	expect(&(struct transform){.omit = compiled("work")},
	       "main:2 1 main:2;work:11 2 main:2;work:11;leaf:21 30 main:2;work:11;leaf:22 40 main:2;work:11;work:12 5 "
	       "leaf:21 6  16 ",
	       0, 0);
	expect(&(struct transform){.omit = compiled("/b.py"), .ignore = compiled("leaf")}, "main:2 1  16 ", 6, 77);
}

/* The outermost frame that matches becomes the root's child; samples without one stay as they are. */
Test(transform, stop)
{
	expect(&(struct transform){.stop = compiled("^work$")},
	       "main:2 1 work:11 2 work:11;leaf:21 30 work:11;leaf:22 40 work:11;work:12 5 leaf:21 6  16 ", 0, 0);
	expect(&(struct transform){.stop = compiled("^leaf$")},
	       "main:2 1 main:2;work:11 2 leaf:21 36 leaf:22 40 main:2;work:11;work:12 5  16 ", 0, 0);
	expect(&(struct transform){.stop = compiled("^leaf$"), .focus = compiled("^main$")},
	       "main:2 1 main:2;work:11 2 leaf:21 30 leaf:22 40 main:2;work:11;work:12 5 ", 22, 0);
}

/* Lines of a function fold into its first; recursion does not. */
Test(transform, by_function)
{
	expect(&(struct transform){.by_function = true},
	       "main:1 1 main:1;work:10 2 main:1;work:10;leaf:20 70 main:1;work:10;work:10 5 leaf:20 6  16 ", 0, 0);
}

Test(transform, strip_dirs_joins_what_reads_alike)
{
	struct profile *p = built_new(), *to;
	uint32_t t = built_thread(p, built_process(p, 1, "x"), 0, 1, NULL);
	uint32_t special = built_symbol(p, "<a/b>", "", 0);

	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "/one/a.py", 1), 2), 3, 0);
	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "two/a.py", 1), 2), 4, 0);
	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "a.py", 1), 2), 5, 0);
	built_sample(p, t, built_child(p, t, 0, special, 0), 6, 0);
	to = transformed(p, &(struct transform){.strip_dirs = true});
	cr_assert_str_eq(stacks(to), "f:2 12 <a/b>:0 6 ");
	cr_assert_str_eq(to->symbols[to->threads[0].nodes[1].symbol].file, "a.py");
	check_runs(to);
	profile_free(to);
	built_free(p);
}

Test(transform, threads_by_name_and_number)
{
	expect(&(struct transform){.threads = &(struct thread_filter){.name = "Pool"}, .thread_count = 1}, " 16 ", 84,
	       0);
	expect(&(struct transform){.threads = &(struct thread_filter){.tid = 11}, .thread_count = 1}, " 16 ", 84, 0);
	expect(&(struct transform){.threads = (struct thread_filter[]){{.tid = 5}, {.name = "Main"}},
	                           .thread_count = 2},
	       "main:2 1 main:2;work:11 2 main:2;work:11;leaf:21 30 main:2;work:11;leaf:22 40 main:2;work:11;work:12 5 "
	       "leaf:21 6 ",
	       16, 0);
}

/* What is smaller joins below its caller, what is below that with it; the root is never small. */
Test(transform, min_percent)
{
	expect(&(struct transform){.min_percent = 6.5},
	       "main:2 1 main:2;work:11 2 main:2;work:11;leaf:21 30 main:2;work:11;leaf:22 40 main:2;work:11;(other):0 "
	       "5 "
	       "(other):0 6  16 ",
	       0, 0);
	expect(&(struct transform){.min_percent = 35},
	       "main:2 1 main:2;work:11 2 main:2;work:11;(other):0 35 "
	       "main:2;work:11;leaf:22 40 (other):0 6  16 ",
	       0, 0);
	expect(&(struct transform){.min_percent = 100}, "(other):0 84  16 ", 0, 0);
	expect(&(struct transform){.min_percent = 50, .stop = compiled("leaf")},
	       "main:2 1 main:2;work:11 2 (other):0 76 main:2;work:11;(other):0 5  16 ", 0, 0);
}

Test(transform, deepest_stack)
{
	struct profile *p = built_deepest();
	struct profile *to =
		transformed(p, &(struct transform){.by_function = true, .focus = compiled("f"), .min_percent = 1});

	cr_assert_eq(to->threads[0].depth_max, REC_DEPTH_MAX);
	cr_assert_eq(to->threads[0].nodes[REC_DEPTH_MAX].self[VALUE_SAMPLES], 9);
	check_runs(to);
	profile_free(to);
	built_free(p);
}

Test(transform, memory_has_a_bound)
{
	struct profile *p = built_new(), *to;
	uint32_t t = built_thread(p, built_process(p, 1, "x"), 0, 1, NULL);
	struct builder *b = start(50000);
	char name[32];

	for (unsigned i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		built_sample(p, t, built_child(p, t, 0, built_symbol(p, name, "", 1), 1), 2, 0);
	}
	cr_assert_eq(transform_add(b, p, &nothing), 0);
	to = built_finish(b);
	cr_assert_gt(to->out_of_memory, 1000);
	cr_assert_eq(to->out_of_memory + profile_sum(to, VALUE_SAMPLES), 6000);
	check_runs(to);
	profile_free(to);
	built_free(p);
}

/* --- merging --- */

static struct profile *merged(const struct profile *a, const struct profile *b)
{
	struct builder *to = start(0);

	cr_assert_eq(transform_add(to, a, &nothing), 0);
	cr_assert_eq(transform_add(to, b, &nothing), 0);
	return built_finish(to);
}

Test(transform, the_same_twice_is_twice_as_much)
{
	struct profile *p = make(), *to = merged(p, p);

	cr_assert_eq(to->process_count, 1);
	cr_assert_eq(to->thread_count, 2);
	cr_assert_eq(to->processes[0].facts.samples, 2 * ALL);
	for (int v = 0; v < VALUE_COUNT; v++)
		cr_assert_eq(profile_sum(to, v), 2 * profile_sum(p, v));
	cr_assert_eq(to->threads[0].node_count, 7);
	cr_assert_eq(to->threads[0].run_count, 12);
	for (size_t i = 1; i < to->threads[0].run_count; i++)
		cr_assert_geq(to->threads[0].runs[i].t_first_ns, to->threads[0].runs[i - 1].t_first_ns);
	check_runs(to);
	profile_free(to);
	built_free(p);
}

Test(transform, others_stay_apart)
{
	struct profile *p = make(), *q = built_new(), *to;
	uint32_t t = built_thread(q, built_process(q, 10, "y"), 0, 10, "Main");

	built_sample(q, t, built_child(q, t, 0, built_symbol(q, "main", "/srv/a.py", 1), 2), 7, 0);
	q->filtered = 3;
	q->omitted = 4;
	q->out_of_memory = 5;
	q->malformed_samples = 6;
	q->mode = "gil";
	to = merged(p, q);
	cr_assert_eq(to->process_count, 2);
	cr_assert_eq(to->thread_count, 3);
	cr_assert_eq(to->threads[2].process, 1);
	cr_assert_eq(to->symbol_count, 3, "the function is the same");
	cr_assert_eq(profile_sum(to, VALUE_SAMPLES), ALL + 7);
	cr_assert_eq(to->filtered, 3);
	cr_assert_eq(to->omitted, 4);
	cr_assert_eq(to->out_of_memory, 5);
	cr_assert_eq(to->malformed_samples, 6);
	cr_assert_str_eq(to->mode, "wall");
	profile_free(to);
	built_free(q);
	built_free(p);
}

static void expect_times(uint64_t wall_a, uint64_t span_a, uint64_t wall_b, uint64_t span_b, uint64_t wall,
                         uint64_t span)
{
	struct profile *a = built_new(), *b = built_new(), *to;

	built_process(a, 1, "x");
	built_process(b, 2, "y");
	built_sample(b, built_thread(b, 0, 0, 2, NULL), 0, 1, 0);
	a->t_start_ns = 1000 * S;
	a->t_end_ns = a->t_start_ns + span_a;
	a->wall_start_ns = wall_a;
	b->t_start_ns = span_b ? 5 * S : 0; /* booted later */
	b->t_end_ns = b->t_start_ns + span_b;
	b->wall_start_ns = wall_b;
	b->threads[0].t_first_ns = b->t_start_ns;
	b->threads[0].t_last_ns = b->t_end_ns;
	to = merged(a, b);
	cr_assert_eq(to->t_end_ns - to->t_start_ns, span, "%g s", (double)(to->t_end_ns - to->t_start_ns) / 1e9);
	cr_assert_eq(to->wall_start_ns, wall);
	profile_free(to);
	built_free(a);
	built_free(b);
}

Test(transform, times_of_merged_profiles)
{
	const uint64_t t = UINT64_C(1700000000) * S;

	expect_times(t, 10 * S, t, 10 * S, t, 10 * S);
	expect_times(t, 10 * S, t + 5 * S, 10 * S, t, 15 * S);
	expect_times(t + 5 * S, 10 * S, t, 10 * S, t, 15 * S);
	expect_times(t, 10 * S, t + 60 * S, 4 * S, t, 14 * S);
	expect_times(t, 10 * S, t + S, 2 * S, t, 10 * S);
	expect_times(t, 10 * S, 0, 0, t, 10 * S);     /* an import without times */
	expect_times(t, 10 * S, 0, 3 * S, t, 13 * S); /* one that does not tell when */
	expect_times(0, 10 * S, t, 3 * S, t, 13 * S);
	expect_times(0, 10 * S, 0, 3 * S, 0, 13 * S);
}

/* Values that are not ours find their places by their names, whatever place they have in each profile. */
Test(transform, values_of_others)
{
	struct builder *b = start(0);
	struct profile *p, *q = make(), *to;
	uint64_t values[VALUE_COUNT] = {0};
	uint32_t t, size, gil;

	builder_process(b, &(struct process){.pid = 10, .name = "x"});
	t = builder_thread(b, &(struct thread_tree){.tid = 77});
	size = builder_value(b, "alloc_space", "bytes", VALUE_WALL);
	gil = builder_value(b, "gil", "nanoseconds", VALUE_RUNNABLE);
	values[VALUE_SAMPLES] = 3;
	values[size] = 4096;
	values[gil] = 11;
	builder_add(b, t, 0, values);
	builder_note(b, "skipped", "records skipped", 2, true);
	builder_profile(b)->imported = true;
	p = built_finish(b);
	cr_assert_eq(size, VALUE_WALL);
	cr_assert_eq(gil, VALUE_GIL);

	built_cpu_time(q);
	to = merged(q, p); /* ours first: the bytes' place is taken, and so are all others */
	cr_assert_eq(profile_sum(to, VALUE_SAMPLES), ALL + 3);
	cr_assert_eq(profile_sum(to, VALUE_WALL), profile_sum(q, VALUE_WALL), "bytes are no time");
	cr_assert_eq(profile_sum(to, VALUE_GIL), profile_sum(q, VALUE_GIL) + 11);
	cr_assert_eq(to->note_count, 2);
	cr_assert_str_eq(to->notes[0].key, "values_left_out");
	cr_assert_float_eq(to->notes[1].number, 2, 0);
	cr_assert(to->imported);
	profile_free(to);

	to = merged(p, q); /* the other way round one of ours finds none */
	cr_assert_str_eq(to->values[VALUE_WALL].name, "alloc_space");
	cr_assert_eq(profile_sum(to, VALUE_WALL), 4096);
	cr_assert_eq(profile_sum(to, VALUE_GIL), profile_sum(q, VALUE_GIL) + 11);
	profile_free(to);
	profile_free(p);
	built_free(q);
}
