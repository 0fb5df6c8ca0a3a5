/* SPDX-License-Identifier: Apache-2.0 */
/* Expected numbers are worked out by hand from the formulas named in exporters/difference.h. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "exporters/difference.h"
#include "tests/unit/build_profile.h"

static struct difference compared(struct profile *before, struct profile *after)
{
	struct difference d;

	difference_init(&d);
	d.ranking = difference_ranking(before, after, false);
	cr_assert_eq(difference_add_profile(&d, BEFORE, before), 0);
	cr_assert_eq(difference_add_profile(&d, AFTER, after), 0);
	difference_finish(&d);
	difference_sort(&d, DIFFERENCE_SELF);
	return d;
}

static const struct difference_row *row_named(const struct difference *d, const char *name)
{
	for (uint32_t i = 0; i < d->row_count; i++)
		if (strcmp(difference_name(d, &d->rows[i]), name) == 0)
			return &d->rows[i];
	cr_assert_fail("no row of %s", name);
	return NULL;
}

/* One thread, in which main calls f. f_line: where f is defined. */
static struct profile *with_f(uint64_t f_samples, uint64_t main_samples, uint32_t f_line, uint64_t tid)
{
	struct profile *p = built_new();
	uint32_t thread = built_thread(p, built_process(p, 1, "x"), 0, tid, "MainThread");
	uint32_t top = built_child(p, thread, 0, built_symbol(p, "main", "/a.py", 1), 2);
	uint32_t f = built_child(p, thread, top, built_symbol(p, "f", "/a.py", f_line), f_line + 1);

	if (f_samples)
		built_sample(p, thread, f, f_samples, STATUS_RUNNABLE);
	if (main_samples)
		built_sample(p, thread, top, main_samples, STATUS_RUNNABLE);
	return p;
}

/* 40 % of 1,000 to 50 % of 1,800: z = 0.1 / sqrt(0.4643 × 0.5357 × (1/1000 + 1/1800)) = 5.08. */
Test(difference, shares_are_of_each_side_and_lines_may_move)
{
	struct profile *before = with_f(400, 600, 10, 100), *after = with_f(900, 900, 17, 200);
	struct difference d = compared(before, after);
	const struct difference_row *f = row_named(&d, "f"), *top = row_named(&d, "main");

	cr_assert_eq(d.row_count, 2);
	cr_assert_eq(f->line, 17);
	cr_assert_float_eq(difference_percent(&d, BEFORE, f->sides[BEFORE].self), 40, 1e-9);
	cr_assert_float_eq(difference_percent(&d, AFTER, f->sides[AFTER].self), 50, 1e-9);
	cr_assert_float_eq(f->self.points, 10, 1e-9);
	cr_assert(f->self.is_certain);
	cr_assert_eq(difference_kind(f, DIFFERENCE_SELF), KIND_GREW);
	cr_assert_eq(difference_kind(top, DIFFERENCE_SELF), KIND_SHRANK);
	cr_assert_eq(difference_kind(top, DIFFERENCE_TOTAL), KIND_SAME);
	cr_assert_float_eq(top->sides[BEFORE].total, 1.0, 1e-9, "a second: 1,000 samples of a millisecond");
	cr_assert_float_eq(top->sides[AFTER].total, 1.8, 1e-9);
	cr_assert(d.is_time);
	cr_assert_float_eq(d.duration_s[BEFORE], 5, 1e-9);
	difference_release(&d);
	built_free(before);
	built_free(after);
}

/* The same shares of a tenth as many samples are within the noise: z = 1.61, and the interval is 1.96 × sqrt(0.40196 × 0.59804 / 102 + 0.25 / 182). */
Test(difference, few_samples_prove_little)
{
	struct profile *before = with_f(40, 60, 10, 100), *after = with_f(90, 90, 10, 200);
	struct difference d = compared(before, after);
	const struct difference_row *f = row_named(&d, "f");

	cr_assert_not(f->self.is_certain);
	cr_assert_float_eq(f->self.within, 11.9707, 1e-3);
	difference_release(&d);
	built_free(before);
	built_free(after);
}

/* 10 of 1,000 against none is z = 3.17 with five hits to be expected on each side; 9 of 1,000 has too few for the test. */
Test(difference, five_hits_are_needed)
{
	const uint64_t all[SIDES] = {1000, 1000};

	cr_assert(difference_test((uint64_t[SIDES]){0, 10}, all).is_certain);
	cr_assert_not(difference_test((uint64_t[SIDES]){0, 9}, all).is_certain);
	cr_assert_not(difference_test((uint64_t[SIDES]){500, 500}, all).is_certain);
	cr_assert_not(difference_test((uint64_t[SIDES]){1000, 1000}, all).is_certain, "no spread at all");
	cr_assert_eq(difference_test((uint64_t[SIDES]){0, 10}, (uint64_t[SIDES]){0, 1000}).within, 0);
}

Test(difference, recursion_counts_once_and_new_and_gone_are_told)
{
	struct profile *before = built_new(), *after = built_new();
	uint32_t t = built_thread(before, built_process(before, 1, "x"), 0, 1, "T"), at;
	uint32_t rec = built_symbol(before, "rec", "/a.py", 1), old = built_symbol(before, "old", "/a.py", 9);
	struct difference d;

	at = built_child(before, t, built_child(before, t, 0, rec, 2), rec, 2);
	built_sample(before, t, at, 30, 0);
	built_sample(before, t, built_child(before, t, at, old, 10), 70, 0);
	t = built_thread(after, built_process(after, 1, "x"), 0, 1, "T");
	at = built_child(after, t, 0, built_symbol(after, "rec", "/a.py", 1), 2);
	built_sample(after, t, built_child(after, t, at, built_symbol(after, "new", "", 0), 0), 50, 0);
	d = compared(before, after);
	cr_assert_float_eq(row_named(&d, "rec")->sides[BEFORE].total, 0.1, 1e-9);
	cr_assert_eq(row_named(&d, "rec")->sides[BEFORE].total_samples, 100);
	cr_assert_float_eq(row_named(&d, "rec")->total.points, 0, 1e-9);
	cr_assert_eq(difference_kind(row_named(&d, "old"), DIFFERENCE_SELF), KIND_GONE);
	cr_assert_eq(difference_kind(row_named(&d, "new"), DIFFERENCE_SELF), KIND_NEW);
	cr_assert_eq(row_named(&d, "old")->line, 9);
	cr_assert_str_eq(difference_name(&d, &d.rows[0]), "new", "+100 points comes before -70");
	difference_sort(&d, DIFFERENCE_NAME);
	cr_assert_str_eq(difference_name(&d, &d.rows[0]), "new");
	cr_assert_str_eq(difference_name(&d, &d.rows[2]), "rec");
	difference_release(&d);
	built_free(before);
	built_free(after);
}

/* One thread, in which each function has ten samples of its own. */
static struct profile *with_files(const char *const (*functions)[2], size_t count)
{
	struct profile *p = built_new();
	uint32_t thread = built_thread(p, built_process(p, 1, "x"), 0, 1, "T");

	for (size_t i = 0; i < count; i++)
		built_sample(p, thread, built_child(p, thread, 0, built_symbol(p, functions[i][0], functions[i][1], 5), 6), 10,
		             0);
	return p;
}

/* By the end of the path first, so that two packages' load() are told apart; by name alone where there is no doubt. What may be either is neither. */
Test(difference, functions_whose_file_moved_are_matched)
{
	static const char *const old[][2] = {{"load", "/3.11/json/init.py"}, {"load", "/3.11/toml/init.py"}, {"renamed", "/srv/a.py"},
		                              {"either", "/srv/a.py"},         {"stays", "/srv/a.py"},         {"native", ""}};
	static const char *const new[][2] = {{"load", "/3.12/json/init.py"}, {"load", "/3.12/toml/init.py"}, {"renamed", "/srv/b.py"},
		                              {"either", "/srv/b.py"},         {"either", "/srv/c.py"},        {"stays", "/srv/a.py"},
		                              {"stays", "/srv/b.py"},          {"native", "/srv/b.py"}};
	struct profile *before = with_files(old, 6), *after = with_files(new, 8), *joined;
	struct difference d = compared(before, after);
	struct comparison c = {.difference = &d};
	uint32_t moved = 0;

	for (uint32_t i = 0; i < d.row_count; i++) {
		const struct difference_row *row = &d.rows[i];
		const char *name = difference_name(&d, row), *file = text_set_get(&d.texts, row->file_before, NULL);

		if (!difference_is_moved(row))
			continue;
		moved++;
		cr_assert(strcmp(name, "load") == 0 || strcmp(name, "renamed") == 0, "%s", name);
		cr_assert_eq(difference_kind(row, DIFFERENCE_SELF), KIND_SHRANK, "10 of 60 to 10 of 80");
		if (strcmp(name, "load") == 0)
			cr_assert_str_eq(strrchr(file, '/') - 4, strrchr(difference_file(&d, row), '/') - 4);
		else
			cr_assert_str_eq(file, "/srv/a.py");
	}
	cr_assert_eq(moved, 3);
	cr_assert_eq(d.row_count, 3 + 3 + 2 + 2, "three that moved; either; stays; native");
	cr_assert_eq(difference_join(&joined, &c, before, after), 0);
	cr_assert_eq(joined->threads[0].node_count, 1 + 10);
	profile_free(joined);
	difference_release(&d);
	built_free(before);
	built_free(after);
}

Test(difference, nothing_against_nothing)
{
	struct profile *before = built_new(), *after = with_f(10, 0, 1, 1);
	struct difference d = compared(before, before);

	cr_assert_eq(d.row_count, 0);
	difference_release(&d);
	d = compared(before, after);
	cr_assert_float_eq(row_named(&d, "f")->self.points, 100, 1e-9);
	cr_assert_not(row_named(&d, "f")->self.is_certain, "of nothing nothing is known");
	difference_release(&d);
	built_free(before);
	built_free(after);
}

/* Where units differ, what both have is samples. */
Test(difference, other_units_fall_back_to_samples)
{
	struct profile *before = with_f(10, 0, 1, 1), *after = with_f(10, 0, 1, 1);

	cr_assert_eq(difference_ranking(before, after, true).by, VALUE_WALL);
	after->values[VALUE_WALL] = (struct value_type){"allocated", "bytes"};
	cr_assert_eq(difference_ranking(before, after, true).by, VALUE_SAMPLES);
	before->values[VALUE_WALL] = (struct value_type){0};
	cr_assert_eq(difference_ranking(before, after, true).by, VALUE_SAMPLES);
	built_free(before);
	built_free(after);
}

/* main runs, and a thread sleeps as long or longer, in `sleep`, and waits for the GIL in `f`. */
static struct profile *with_sleep(uint64_t slept, uint64_t awaited)
{
	struct profile *p = with_f(400, 600, 10, 100);
	uint32_t thread = built_thread(p, 0, 0, 101, "worker");

	built_sample(p, thread, built_child(p, thread, 0, built_symbol(p, "sleep", "/a.py", 30), 31), slept, STATUS_IDLE);
	if (awaited)
		built_sample(p, thread, built_child(p, thread, 0, 1, 12), awaited, STATUS_RUNNABLE | STATUS_GIL_WAIT);
	return p;
}

Test(difference, sleep_is_no_part_of_running_time)
{
	struct profile *before = with_sleep(1000, 0), *after = with_sleep(9000, 0);
	struct difference d = compared(before, after), waiting;

	cr_assert(d.ranking.less_idle, "the kernel told no CPU time");
	cr_assert_float_eq(d.wholes[AFTER].self, 1.0, 1e-9);
	cr_assert_eq(d.samples[AFTER], 10000);
	cr_assert_eq(d.wholes[AFTER].self_samples, 1000);
	cr_assert_float_eq(row_named(&d, "f")->self.points, 0, 1e-9, "40 %% of what ran, on both sides");
	cr_assert_eq(row_named(&d, "f")->sides[AFTER].self_samples, 400);
	cr_assert_eq(row_named(&d, "sleep")->sides[AFTER].self_samples, 0);
	difference_init(&waiting);
	waiting.ranking = d.ranking;
	waiting.waiting = true;
	cr_assert_eq(difference_add_profile(&waiting, BEFORE, before), 0);
	cr_assert_eq(difference_add_profile(&waiting, AFTER, after), 0);
	difference_finish(&waiting);
	cr_assert_float_eq(row_named(&waiting, "sleep")->self.points, 40, 1e-9, "of all time: from 50 %% to 90 %%");
	cr_assert(row_named(&waiting, "sleep")->self.is_certain);
	cr_assert_float_eq(row_named(&waiting, "f")->self.points, 0, 1e-9);
	difference_release(&waiting);
	difference_release(&d);
	built_free(before);
	built_free(after);
}

/* built_cpu_time(): seven tenths of what is runnable, so 400 samples of f prove as much as 280 that had the CPU throughout. */
Test(difference, cpu_time_where_both_have_it)
{
	struct profile *before = with_sleep(1000, 100), *after = with_sleep(5000, 300), *joined;
	struct difference d, waiting;
	struct comparison c = {.difference = &d};

	built_cpu_time(before);
	d = compared(before, after);
	cr_assert(d.ranking.less_idle, "one of them has none");
	difference_release(&d);
	built_cpu_time(after);
	d = compared(before, after);
	cr_assert_eq(d.ranking.by, VALUE_CPU);
	cr_assert_eq(row_named(&d, "main")->sides[BEFORE].self_samples, 420);
	cr_assert_eq(row_named(&d, "sleep")->sides[AFTER].total_samples, 0);
	cr_assert_eq(difference_join(&joined, &c, before, after), 0);
	cr_assert_eq(profile_sum(joined, c.weight[AFTER]), (uint64_t)llround(d.wholes[AFTER].self * 1e9));
	cr_assert_leq(d.wholes[AFTER].self_samples - profile_sum(joined, c.samples[AFTER]), 1);
	profile_free(joined);
	difference_init(&waiting);
	waiting.ranking = d.ranking;
	waiting.waiting = true;
	cr_assert_eq(difference_add_profile(&waiting, BEFORE, before), 0);
	cr_assert_eq(difference_add_profile(&waiting, AFTER, after), 0);
	cr_assert_float_eq(row_named(&waiting, "f")->sides[AFTER].self, 0.3, 1e-9, "the GIL awaited");
	cr_assert_float_eq(waiting.wholes[AFTER].self, 6.3, 1e-9);
	difference_release(&waiting);
	difference_release(&d);
	d.ranking = difference_ranking(before, after, true);
	cr_assert_eq(d.ranking.by, VALUE_WALL, "when it is asked for");
	built_free(before);
	built_free(after);
}

/* Call graphs are counted, not sampled: what differs, differs. */
Test(difference, call_graphs)
{
	struct callgraph graphs[SIDES];
	struct difference d;

	difference_init(&d);
	for (int side = 0; side < SIDES; side++) {
		callgraph_init(&graphs[side]);
		for (int i = 0; i < 2; i++) {
			uint32_t f = callgraph_function(&graphs[side], i ? "g" : "f", 1, "a.py", 4, 3);

			graphs[side].functions[f].has_sums = true;
			graphs[side].functions[f].sums = (struct call_sums){1, 1, i ? 3 : 1 + side * 2, 4};
		}
		graphs[side].sampled_s = 4 + side * 2;
		cr_assert_eq(difference_add_callgraph(&d, side, &graphs[side]), 0);
	}
	difference_finish(&d);
	cr_assert_not(d.has_samples);
	cr_assert_float_eq(row_named(&d, "f")->self.points, 25, 1e-9, "1 of 4 to 3 of 6");
	cr_assert(row_named(&d, "f")->self.is_certain);
	cr_assert_eq(row_named(&d, "f")->self.within, 0);
	difference_release(&d);
	callgraph_release(&graphs[BEFORE]);
	callgraph_release(&graphs[AFTER]);
}

Test(difference, joined_tree_has_both_sums)
{
	struct profile *before = with_f(400, 600, 10, 100), *after = with_f(900, 900, 17, 200), *joined;
	struct difference d = {.ranking = {.by = VALUE_WALL}};
	struct comparison c = {.difference = &d};
	uint32_t other = built_thread(after, 0, 0, 201, NULL);

	built_sample(after, other, 0, 50, STATUS_IDLE);
	cr_assert_eq(difference_join(&joined, &c, before, after), 0);
	cr_assert_eq(joined->thread_count, 2, "by name, not by number");
	cr_assert_eq(joined->threads[0].node_count, 3);
	cr_assert_eq(joined->threads[1].node_count, 1);
	cr_assert_eq(profile_sum(joined, c.samples[BEFORE]), 1000);
	cr_assert_eq(profile_sum(joined, c.samples[AFTER]), 1850);
	cr_assert_eq(profile_sum(joined, c.weight[BEFORE]), 1000000000);
	cr_assert_eq(profile_sum(joined, c.weight[AFTER]), 1850000000);
	cr_assert_str_eq(joined->values[c.weight[AFTER]].name, "after");
	profile_free(joined);
	before->values[VALUE_WALL] = (struct value_type){0};
	d.ranking = difference_ranking(before, after, true);
	cr_assert_eq(difference_join(&joined, &c, before, after), 0);
	cr_assert_eq(c.samples[AFTER], c.weight[AFTER]);
	cr_assert_eq(profile_sum(joined, c.weight[BEFORE]), 1000);
	profile_free(joined);
	built_free(before);
	built_free(after);
}

Test(difference, deepest_stack)
{
	struct profile *p = built_deepest(), *joined;
	struct difference d = compared(p, p);
	struct comparison c = {.difference = &d};

	cr_assert_eq(row_named(&d, "f")->sides[AFTER].total_samples, 9);
	cr_assert_eq(difference_kind(&d.rows[0], DIFFERENCE_SELF), KIND_SAME);
	cr_assert_eq(difference_join(&joined, &c, p, p), 0);
	difference_release(&d);
	cr_assert_eq(joined->threads[0].node_count, REC_DEPTH_MAX + 1);
	profile_free(joined);
	built_free(p);
}
