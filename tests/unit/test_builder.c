/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/builder.h"
#include "tests/unit/build_profile.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

static struct builder *start(const struct builder_options *options)
{
	struct builder *b;

	cr_assert_eq(builder_new(&b, options ? options : &(struct builder_options){0}), 0);
	return b;
}

static uint32_t add_process(struct builder *b, int32_t pid, const char *name)
{
	return builder_process(b, &(struct process){.pid = pid, .name = (char *)name});
}

static uint32_t add_thread(struct builder *b, uint64_t tid)
{
	return builder_thread(b, &(struct thread_tree){.process = add_process(b, 1, "x"), .tid = tid});
}

static uint32_t add_frame(struct builder *b, uint32_t thread, uint32_t parent, const char *name, uint32_t line)
{
	uint32_t symbol = builder_symbol(b, name, strlen(name), "a.py", 4, 1, FRAME_PYTHON, 0);

	return builder_child(b, thread, parent, symbol, line);
}

Test(builder, nothing_added_is_an_empty_profile)
{
	struct profile *p = built_finish(start(NULL));

	cr_assert_eq(p->thread_count, 0);
	cr_assert_eq(p->process_count, 0);
	cr_assert_str_eq(p->values[VALUE_SAMPLES].name, "samples");
	cr_assert_null(p->values[VALUE_WALL].name);
	cr_assert_eq(profile_weight(p), VALUE_SAMPLES);
	cr_assert_not(p->has_runs);
	profile_free(p);
}

Test(builder, the_same_are_one)
{
	struct builder *b = start(NULL);
	uint32_t process = add_process(b, 10, "a"), t, f, g;
	struct profile *p;

	cr_assert_eq(add_process(b, 10, "a"), process);
	cr_assert_neq(add_process(b, 10, "b"), process, "exec'd: another name");
	cr_assert_neq(add_process(b, 11, "a"), process);
	cr_assert_neq(builder_process(b, &(struct process){.pid = 10, .name = "a", .start_time = 5}), process);
	t = builder_thread(b, &(struct thread_tree){.process = process, .tid = 10, .name = "M"});
	cr_assert_eq(builder_thread(b, &(struct thread_tree){.process = process, .tid = 10, .name = "M"}), t);
	cr_assert_neq(builder_thread(b, &(struct thread_tree){.process = process, .tid = 10}), t);
	cr_assert_neq(builder_thread(b, &(struct thread_tree){.process = process, .tid = 10, .name = "N"}), t);
	cr_assert_neq(
		builder_thread(b, &(struct thread_tree){.process = process, .tid = 10, .name = "M", .interpreter = 1}),
		t);
	cr_assert_neq(builder_thread(b, &(struct thread_tree){.process = 1, .tid = 10, .name = "M"}), t);
	f = add_frame(b, t, 0, "f", 3);
	cr_assert_eq(add_frame(b, t, 0, "f", 3), f);
	cr_assert_neq(add_frame(b, t, 0, "f", 4), f);
	g = add_frame(b, t, f, "f", 3);
	cr_assert_neq(g, f, "recursion is a node of its own");
	cr_assert_eq(add_frame(b, t, f, "f", 3), g);
	p = built_finish(b);
	cr_assert_eq(p->process_count, 4);
	cr_assert_eq(p->thread_count, 5);
	cr_assert_eq(p->symbol_count, 1);
	cr_assert_eq(p->threads[0].node_count, 4);
	cr_assert_eq(p->threads[0].depth_max, 2);
	profile_free(p);
}

/* A reader's second thread of a process must not make a second process. */
Test(builder, names_that_are_no_text_are_compared_as_they_are_kept)
{
	struct builder *b = start(NULL);
	uint32_t process = add_process(b, 10, "a\xff\xfe"), t;
	struct profile *p;

	cr_assert_eq(add_process(b, 10, "a\xff\xfe"), process);
	t = builder_thread(b, &(struct thread_tree){.process = process, .name = "\xc3"});
	cr_assert_eq(builder_thread(b, &(struct thread_tree){.process = process, .name = "\xc3"}), t);
	p = built_finish(b);
	cr_assert_str_eq(p->processes[0].name, "a\xef\xbf\xbd\xef\xbf\xbd");
	cr_assert_str_eq(p->threads[0].name, "\xef\xbf\xbd");
	profile_free(p);
}

Test(builder, facts_of_a_process_add_up)
{
	struct builder *b = start(NULL);
	struct process process = {.pid = 1, .name = "x"};
	struct profile *p;

	process.facts.samples = 5;
	process.facts.lost[LOSS_TORN] = 1;
	builder_process(b, &process);
	process.version = 0x030c01;
	process.ended = true;
	builder_process(b, &process);
	p = built_finish(b);
	cr_assert_eq(p->processes[0].facts.samples, 10);
	cr_assert_eq(p->processes[0].facts.lost[LOSS_TORN], 2);
	cr_assert_eq(p->processes[0].version, 0x030c01);
	cr_assert(p->processes[0].ended);
	profile_free(p);
}

Test(builder, hostile_symbols)
{
	struct builder *b = start(NULL);
	uint32_t t = add_thread(b, 1), symbol;
	static char huge[100000];
	struct profile *p;

	memset(huge, 'n', sizeof(huge));
	symbol = builder_symbol(b, "a\0b\xff", 4, "f\0", 2, 1, FRAME_PYTHON, 0);
	builder_child(b, t, 0, symbol, 1);
	symbol = builder_symbol(b, huge, sizeof(huge), "", 0, 1, FRAME_PYTHON, 0);
	builder_child(b, t, 0, symbol, 1);
	symbol = builder_symbol(b, "", 0, "", 0, 1, FRAME_PYTHON, 0);
	builder_child(b, t, 0, symbol, 1);
	p = built_finish(b);
	cr_assert_eq(p->symbol_count, 3);
	cr_assert_str_eq(p->symbols[0].name, "a\xef\xbf\xbd"
	                                     "b\xef\xbf\xbd");
	cr_assert_str_eq(p->symbols[0].file, "f\xef\xbf\xbd");
	cr_assert_leq(strlen(p->symbols[1].name), REC_TEXT_MAX + 3);
	cr_assert(p->symbols[1].flags & SYMBOL_CUT);
	cr_assert_gt(strlen(p->symbols[2].name), 0, "a name is never empty");
	profile_free(p);
}

Test(builder, wrong_numbers_do_nothing_but_count)
{
	struct builder *b = start(NULL);
	uint32_t t = add_thread(b, 1), f = add_frame(b, t, 0, "f", 1);
	uint64_t values[VALUE_COUNT] = {[VALUE_SAMPLES] = 3};
	struct profile *p;

	cr_assert_eq(builder_child(b, t, 99, 0, 1), BUILDER_NONE);
	cr_assert_eq(builder_child(b, 99, 0, 0, 1), BUILDER_NONE);
	cr_assert_eq(builder_child(b, t, 0, 99, 1), BUILDER_NONE);
	cr_assert_eq(builder_child(b, t, BUILDER_NONE, 0, 1), BUILDER_NONE);
	cr_assert_eq(builder_thread(b, &(struct thread_tree){.process = 99}), BUILDER_NONE);
	builder_add(b, t, BUILDER_NONE, values);
	builder_add(b, 99, f, values);
	builder_run(b, t, BUILDER_NONE, 1, 1, 4, 4, 0);
	builder_add(b, t, f, values);
	p = built_finish(b);
	cr_assert_eq(p->out_of_memory, 3 + 3 + 4);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 3);
	profile_free(p);
}

/* What finds no memory is counted, and what was there before goes on counting. */
Test(builder, memory_has_a_bound)
{
	struct builder *b = start(&(struct builder_options){.memory_max_bytes = 100000});
	uint32_t t = add_thread(b, 1), first = add_frame(b, t, 0, "first", 1);
	uint64_t values[VALUE_COUNT] = {[VALUE_SAMPLES] = 1};
	char name[32];
	struct profile *p;

	for (unsigned i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		builder_add(b, t, add_frame(b, t, 0, name, 1), values);
		builder_add(b, t, first, values);
	}
	cr_assert_eq(builder_error(b), 0);
	p = built_finish(b);
	cr_assert_gt(p->out_of_memory, 9000);
	cr_assert_gt(p->threads[0].node_count, 50);
	cr_assert_eq(p->out_of_memory + profile_sum(p, VALUE_SAMPLES), 20000);
	cr_assert_eq(p->threads[0].nodes[first].self[VALUE_SAMPLES], 10000);
	profile_free(p);
}

/* --- values --- */

Test(builder, values_of_ours_and_of_others)
{
	struct builder *b = start(NULL);
	struct profile *p;

	cr_assert_eq(builder_value(b, "samples", "count", VALUE_WALL), VALUE_SAMPLES);
	cr_assert_eq(builder_value(b, "gil", "nanoseconds", VALUE_WALL), VALUE_GIL, "ours have their places");
	cr_assert_eq(builder_value(b, "inuse_space", "bytes", VALUE_WALL), VALUE_WALL, "the weight");
	cr_assert_eq(builder_value(b, "inuse_space", "bytes", VALUE_WALL), VALUE_WALL, "it is there");
	cr_assert_eq(builder_value(b, "inuse_space", "count", VALUE_WALL), VALUE_RUNNABLE,
	             "another unit is another value");
	cr_assert_eq(builder_value(b, "wall", "nanoseconds", VALUE_WALL), VALUE_GIL_WAIT,
	             "its place is taken, so is GIL's");
	p = built_finish(b);
	cr_assert_str_eq(p->values[VALUE_WALL].name, "inuse_space");
	cr_assert_str_eq(p->values[VALUE_WALL].unit, "bytes");
	cr_assert_str_eq(p->values[VALUE_GIL_WAIT].name, "wall");
	cr_assert(profile_has(p, VALUE_GIL));
	cr_assert_not(profile_has(p, VALUE_WALL));
	cr_assert_not(profile_has(p, VALUE_GIL_WAIT));
	cr_assert_eq(profile_weight(p), VALUE_WALL);
	profile_free(p);
}

Test(builder, values_have_an_end)
{
	struct builder *b = start(NULL);
	char name[32];

	for (unsigned i = 1; i < VALUE_COUNT; i++) {
		snprintf(name, sizeof(name), "value%u", i);
		cr_assert_eq(builder_value(b, name, "count", VALUE_WALL), i);
	}
	cr_assert_eq(builder_value(b, "one more", "count", VALUE_WALL), BUILDER_NONE);
	cr_assert_eq(builder_error(b), 0);
	builder_free(b);
}

/* Cut at 64 bytes, and never within a character. */
Test(builder, value_names_are_text)
{
	static const char name[] =
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa9xyz"; /* é at 63 */
	struct builder *b = start(NULL);
	char bad[80];
	struct profile *p;

	memset(bad, 0xff, sizeof(bad));
	bad[79] = '\0';
	builder_value(b, name, "", VALUE_WALL);
	builder_value(b, bad, "u", VALUE_RUNNABLE);
	p = built_finish(b);
	cr_assert_eq(strncmp(p->values[VALUE_WALL].name, name, 63), 0);
	cr_assert_leq(strlen(p->values[VALUE_WALL].name), 64);
	cr_assert_neq(p->values[VALUE_WALL].name[63], '\xc3');
	cr_assert_str_eq(p->values[VALUE_WALL].unit, "?");
	cr_assert_eq(strlen(p->values[VALUE_RUNNABLE].name), 63, "21 times U+FFFD");
	profile_free(p);
}

Test(builder, notes_add_up_and_are_bounded)
{
	static char keys[100][8];
	struct builder *b = start(NULL);
	struct profile *p;

	builder_note(b, "bad", "bad \x1b[31mrecords\xff", 2, false);
	builder_note(b, "bad", "whatever", 3, true);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%u", i);
		builder_note(b, keys[i], "x", 1, false);
	}
	builder_note(b, "bad", "", 1, false);
	p = built_finish(b);
	cr_assert_eq(p->note_count, 32);
	cr_assert_str_eq(p->notes[0].label, "bad \xef\xbf\xbd[31mrecords\xef\xbf\xbd", "it goes to terminals");
	cr_assert_float_eq(p->notes[0].number, 6, 0);
	cr_assert(p->notes[0].loss);
	cr_assert_str_eq(p->notes[31].key, "notes_left_out");
	cr_assert_float_eq(p->notes[31].number, 70, 0);
	profile_free(p);
}

/* --- runs --- */

static uint64_t runs_count(const struct thread_tree *t)
{
	uint64_t count = 0;

	for (size_t i = 0; i < t->run_count; i++)
		count += t->runs[i].count;
	return count;
}

static uint64_t runs_weight(const struct thread_tree *t)
{
	uint64_t weight_ns = 0;

	for (size_t i = 0; i < t->run_count; i++)
		weight_ns += t->runs[i].weight_ns;
	return weight_ns;
}

Test(builder, a_run_counts_by_its_status_and_is_kept)
{
	struct builder *b = start(&(struct builder_options){.runs = true});
	uint32_t t = add_thread(b, 1), f = add_frame(b, t, 0, "f", 1);
	struct profile *p;

	builder_run(b, t, f, 10 * S, 10 * S + 4 * MS, 5, 5 * MS, STATUS_RUNNABLE | STATUS_GIL);
	builder_run(b, t, 0, 9 * S, 9 * S, 1, MS, STATUS_IDLE);
	builder_run(b, t, f, 5, 4, 0, 7, 0);
	p = built_finish(b);
	cr_assert_eq(p->threads[0].nodes[f].self[VALUE_SAMPLES], 5);
	cr_assert_eq(p->threads[0].nodes[f].self[VALUE_WALL], 5 * MS);
	cr_assert_eq(p->threads[0].nodes[f].self[VALUE_GIL], 5 * MS);
	cr_assert_eq(p->threads[0].nodes[f].self[VALUE_IDLE], 0);
	cr_assert_eq(p->threads[0].nodes[0].self[VALUE_IDLE], MS);
	cr_assert(p->has_runs);
	cr_assert_eq(p->threads[0].run_count, 2);
	cr_assert_eq(p->threads[0].runs[0].t_first_ns, 9 * S, "in the order of time");
	cr_assert_eq(p->threads[0].runs[1].span_ns, 4 * MS);
	cr_assert_eq(p->threads[0].runs[1].status, STATUS_RUNNABLE | STATUS_GIL);
	cr_assert_eq(p->t_start_ns, 9 * S);
	cr_assert_eq(p->t_end_ns, 10 * S + 4 * MS);
	profile_free(p);
}

/* More than a run's fields hold: in pieces that add up and lie one behind another. */
static void check_pieces(uint64_t count, uint64_t span_ns, uint64_t weight_ns)
{
	struct builder *b = start(&(struct builder_options){.runs = true});
	uint32_t t = add_thread(b, 1), f = add_frame(b, t, 0, "f", 1);
	struct profile *p;
	uint64_t last_ns = 0;

	builder_run(b, t, f, S, S + span_ns, count, weight_ns, 0);
	p = built_finish(b);
	cr_assert_eq(runs_count(&p->threads[0]), count);
	cr_assert_eq(runs_weight(&p->threads[0]), weight_ns);
	for (size_t i = 0; i < p->threads[0].run_count; i++) {
		const struct run *run = &p->threads[0].runs[i];

		cr_assert_gt(run->count, 0);
		cr_assert(i == 0 || run->t_first_ns >= last_ns);
		last_ns = run->t_first_ns + run->span_ns;
	}
	cr_assert_eq(p->threads[0].runs[0].t_first_ns, S);
	cr_assert_leq(last_ns, S + span_ns);
	cr_assert_geq(last_ns + (count > 1 ? span_ns / (count - 1) : 0) + count, S + span_ns);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), count);
	cr_assert_eq(profile_sum(p, VALUE_WALL), weight_ns);
	profile_free(p);
}

Test(builder, overlong_runs_are_cut_in_pieces)
{
	check_pieces(1, 0, MS);
	check_pieces(RUN_COUNT_MAX, RUN_COUNT_MAX - 1, 5);
	check_pieces(RUN_COUNT_MAX + UINT64_C(1), RUN_COUNT_MAX, 5);
	check_pieces(RUN_COUNT_MAX * UINT64_C(5) + 3, 0, 0);
	check_pieces(2, 10 * S, 2 * MS);
	check_pieces(3, 10 * S, 2 * MS);
	check_pieces(1000, 100 * S, 100 * S);
	check_pieces(7, 33 * S, 29 * S + 1);
	check_pieces(100000, UINT64_C(40000) * S, UINT64_C(40000) * S + 7);
}

Test(builder, runs_have_a_bound)
{
	struct builder *b = start(&(struct builder_options){.runs = true, .runs_max = 3});
	uint32_t t = add_thread(b, 1);
	struct profile *p;

	for (unsigned i = 0; i < 3; i++)
		builder_run(b, t, 0, i, i, 1, 1, 0);
	cr_assert_eq(builder_error(b), 0);
	builder_run(b, t, 0, 9, 9, 1, 1, 0);
	cr_assert_eq(builder_error(b), -E2BIG);
	cr_assert_eq(builder_finish(b, &p), -E2BIG);
	builder_free(b);
}

/* --- windows --- */

static struct profile *in_window(uint64_t from_ns, uint64_t to_ns, uint64_t first_ns, uint64_t last_ns, uint64_t count,
                                 uint64_t weight_ns)
{
	struct builder *b = start(&(struct builder_options){.runs = true, .from_ns = from_ns, .to_ns = to_ns});
	uint32_t t = add_thread(b, 1);

	cr_assert_eq(builder_has_window(b), from_ns || to_ns);
	builder_set_start(b, 100);
	builder_run(b, t, add_frame(b, t, 0, "f", 1), first_ns, last_ns, count, weight_ns, STATUS_GIL);
	return built_finish(b);
}

static void expect_window(uint64_t from_ns, uint64_t to_ns, uint64_t first_ns, uint64_t last_ns, uint64_t count)
{
	/* Samples at 1100, 1200, … 2000, of 10 ns each; the profile starts at 100. */
	struct profile *p = in_window(from_ns, to_ns, 1100, 2000, 10, 100);

	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), count);
	cr_assert_eq(profile_sum(p, VALUE_WALL), 10 * count);
	cr_assert_eq(profile_sum(p, VALUE_GIL), 10 * count);
	cr_assert_eq(p->threads[0].run_count, count > 0);
	if (count > 0) {
		cr_assert_eq(p->threads[0].runs[0].t_first_ns, first_ns);
		cr_assert_eq(p->threads[0].runs[0].t_first_ns + p->threads[0].runs[0].span_ns, last_ns);
	}
	profile_free(p);
}

Test(builder, windows_cut_runs)
{
	expect_window(0, 0, 1100, 2000, 10);
	expect_window(1000, 0, 1100, 2000, 10);
	expect_window(1001, 0, 1200, 2000, 9);
	expect_window(1, 1000, 0, 0, 0); /* its end is outside */
	expect_window(1, 1001, 1100, 1100, 1);
	expect_window(1100, 1400, 1200, 1400, 3);
	expect_window(1101, 1400, 1300, 1400, 2);
	expect_window(1101, 1199, 0, 0, 0); /* between two samples */
	expect_window(1900, 0, 2000, 2000, 1);
	expect_window(1901, 0, 0, 0, 0);
	expect_window(0, 5000, 1100, 2000, 10);
}

/* Windows that meet share a run out without a rest, whatever does not divide. */
Test(builder, windows_add_up)
{
	static const struct {
		uint64_t first, last, count, weight;
	} runs[] = {{100, 110, 4, 7},   {100, 100, 5, 3}, {100, 103, 9, 1000},
	            {101, 117, 16, 15}, {150, 150, 1, 9}, {100, 199, 23, 1}};

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		for (uint64_t cut = 1; cut < 105; cut++) {
			struct profile *before =
				in_window(0, cut, runs[i].first, runs[i].last, runs[i].count, runs[i].weight);
			struct profile *behind =
				in_window(cut, 0, runs[i].first, runs[i].last, runs[i].count, runs[i].weight);

			cr_assert_eq(profile_sum(before, VALUE_SAMPLES) + profile_sum(behind, VALUE_SAMPLES),
			             runs[i].count);
			cr_assert_eq(profile_sum(before, VALUE_WALL) + profile_sum(behind, VALUE_WALL), runs[i].weight);
			cr_assert_eq(runs_count(&before->threads[0]), profile_sum(before, VALUE_SAMPLES));
			profile_free(before);
			profile_free(behind);
		}
}

Test(builder, errors_stick)
{
	struct builder *b = start(&(struct builder_options){.runs = true, .runs_max = 1});
	uint32_t t = add_thread(b, 1);
	uint64_t values[VALUE_COUNT] = {1};
	struct profile *p;

	builder_run(b, t, 0, 1, 1, 1, 1, 0);
	builder_run(b, t, 0, 2, 2, 1, 1, 0);
	cr_assert_eq(add_process(b, 5, "y"), BUILDER_NONE);
	cr_assert_eq(builder_thread(b, &(struct thread_tree){.tid = 9}), BUILDER_NONE);
	cr_assert_eq(builder_symbol(b, "f", 1, "", 0, 0, 0, 0), BUILDER_NONE);
	cr_assert_eq(builder_value(b, "wall", "nanoseconds", VALUE_WALL), BUILDER_NONE);
	builder_add(b, t, 0, values);
	builder_note(b, "k", "x", 1, true);
	cr_assert_eq(builder_finish(b, &p), -E2BIG);
	builder_free(b);
	builder_free(NULL);
}

Test(builder, threads_and_processes_are_bounded, .timeout = 60)
{
	struct builder_options options = {.memory_max_bytes = 1 << 20};
	struct profile *profile;
	struct builder *b;
	char name[32];

	cr_assert_eq(builder_new(&b, &options), 0);
	for (int i = 0; i < 100000; i++) {
		uint32_t process, thread, node;

		snprintf(name, sizeof(name), "%d", i);
		process = i < 100 ? builder_process(b, &(struct process){.pid = i, .name = name}) : 0;
		thread = builder_thread(b, &(struct thread_tree){.process = process, .name = name});
		node = builder_child(b, thread, 0, builder_symbol(b, "f", 1, "", 0, 0, FRAME_PYTHON, 0), 0);
		builder_add(b, thread, node, (const uint64_t[VALUE_COUNT]){[VALUE_SAMPLES] = 1});
	}
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		builder_process(b, &(struct process){.pid = i, .name = name});
	}
	cr_assert_eq(builder_finish(b, &profile), 0);
	cr_assert(profile->thread_count > 100 && profile->thread_count < 2000, "%u", profile->thread_count);
	cr_assert_lt(profile->process_count, 10000u);
	cr_assert_eq(profile_sum(profile, VALUE_SAMPLES) + profile->out_of_memory, 100000u);
	profile_free(profile);
	builder_free(b);
}

Test(builder, processes_are_found_as_they_are_called_now)
{
	struct process first = {.pid = 1, .name = (char[]){"a"}},
		       then = {.pid = 2, .name = (char[]){"b"}, .ended = true};
	struct profile *profile;
	struct builder *b;

	cr_assert_eq(builder_new(&b, &(struct builder_options){0}), 0);
	cr_assert_eq(builder_process(b, &first), 0u);
	builder_describe_process(b, 0, &then);
	builder_describe_process(b, 7, &then);
	cr_assert_eq(builder_process(b, &then), 0u);
	cr_assert_eq(builder_process(b, &first), 1u);
	builder_describe_process(b, 1, &(struct process){.pid = 3, .name = (char[]){""}});
	cr_assert_eq(builder_finish(b, &profile), 0);
	cr_assert_eq(profile->process_count, 2u);
	cr_assert(profile->processes[0].ended && !profile->processes[1].ended);
	cr_assert_str_eq(profile->processes[0].name, "b");
	cr_assert_str_eq(profile->processes[1].name, "a", "an empty name changes nothing");
	cr_assert_eq(profile->processes[1].pid, 3);
	profile_free(profile);
	builder_free(b);
}
