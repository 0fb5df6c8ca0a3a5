/* SPDX-License-Identifier: Apache-2.0 */
/* What the aggregator makes of a well-formed stream. Malformed ones are in test_feed.c, random ones against a model in
 * test_aggregator_model.c. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/unit/stream.h"

static struct stream s;

/* main calls work and idle; work is in lib.py. */
static void setup(void)
{
	stream_target(&s, 1, 100, "python3 app.py");
	stream_symbol(&s, 1, "main", "app.py", 1);
	stream_symbol(&s, 2, "work", "lib.py", 10);
	stream_symbol(&s, 3, "leaf", "lib.py", 20);
	stream_thread(&s, 1, 1, 100, THREAD_MAIN, "MainThread");
}

static void teardown(void)
{
	stream_release(&s);
}

TestSuite(aggregator, .init = setup, .fini = teardown);

static const struct frame stack[] = {
	{.kind = FRAME_PYTHON, .id = 1, .where = 5},
	{.kind = FRAME_PYTHON, .id = 2, .where = 12},
	{.kind = FRAME_PYTHON, .id = 3, .where = 21},
};

/* The node that a path of names leads to, or NULL. */
static const struct node *node_at(const struct profile *profile, const struct thread_tree *tree, const char *const *names)
{
	uint32_t node = 0;

	for (; *names; names++) {
		uint32_t child = tree->nodes[node].child;

		while (child && strcmp(profile->symbols[tree->nodes[child].symbol].name, *names) != 0)
			child = tree->nodes[child].sibling;
		if (!child)
			return NULL;
		node = child;
	}
	return &tree->nodes[node];
}

#define PATH(...) ((const char *const[]){__VA_ARGS__, NULL})

static uint64_t accounted(const struct profile *profile)
{
	return profile_sum(profile, VALUE_SAMPLES) + profile->filtered + profile->omitted + profile->out_of_memory +
	       profile->malformed_samples;
}

Test(aggregator, a_run_counts_at_its_leaf_in_every_state_it_was_in)
{
	struct profile *profile;
	const struct thread_tree *tree;
	const struct node *node;

	stream_stack(&s, 1, STATUS_RUNNABLE | STATUS_GIL | STATUS_GC | STATUS_EXCEPTION, 3, stack, 3);
	stream_stack(&s, 1, STATUS_RUNNABLE | STATUS_GIL_WAIT, 2, stack, 3);
	stream_stack(&s, 1, STATUS_IDLE, 4, stack, 1);
	stream_facts(&s, 1, NULL);
	profile = stream_profile(&s, NULL);
	tree = &profile->threads[0];
	cr_assert_eq(profile->thread_count, 1);
	cr_assert_str_eq(tree->name, "MainThread");
	cr_assert(tree->is_main);
	cr_assert_eq(tree->tid, 100);
	cr_assert_eq(tree->node_count, 4);
	cr_assert_eq(tree->depth_max, 3);
	node = node_at(profile, tree, PATH("main", "work", "leaf"));
	cr_assert_not_null(node);
	cr_assert_eq(node->line, 21);
	cr_assert_eq(node->self[VALUE_SAMPLES], 5);
	cr_assert_eq(node->self[VALUE_WALL], 5 * NS_PER_MS);
	cr_assert_eq(node->self[VALUE_RUNNABLE], 5 * NS_PER_MS);
	cr_assert_eq(node->self[VALUE_GIL], 3 * NS_PER_MS);
	cr_assert_eq(node->self[VALUE_GC], 3 * NS_PER_MS);
	cr_assert_eq(node->self[VALUE_EXCEPTION], 3 * NS_PER_MS);
	cr_assert_eq(node->self[VALUE_GIL_WAIT], 2 * NS_PER_MS);
	cr_assert_eq(node->self[VALUE_IDLE], 0);
	cr_assert_eq(node_at(profile, tree, PATH("main"))->self[VALUE_IDLE], 4 * NS_PER_MS);
	cr_assert_eq(node_at(profile, tree, PATH("main", "work"))->self[VALUE_SAMPLES], 0);
	cr_assert_eq(accounted(profile), profile->processes[0].facts.samples);
	cr_assert_str_eq(profile->processes[0].name, "python3 app.py");
	cr_assert_str_eq(profile->mode, "wall");
	profile_free(profile);
}

Test(aggregator, lines_of_a_function_are_nodes_of_their_own)
{
	struct frame other = stream_frame(1, 6);
	struct profile *profile;

	stream_stack(&s, 1, 0, 1, stack, 1);
	stream_stack(&s, 1, 0, 1, &other, 1);
	stream_stack(&s, 1, 0, 1, stack, 1);
	profile = stream_profile(&s, NULL);
	cr_assert_eq(profile->threads[0].node_count, 3);
	cr_assert_eq(profile->threads[0].nodes[1].self[VALUE_SAMPLES], 2);
	profile_free(profile);
}

Test(aggregator, modes_take_their_samples_and_count_the_rest)
{
	static const struct {
		struct aggregator_options options;
		uint64_t samples;
	} cases[] = {
		{{.mode = MODE_WALL, .idle = true}, 15},
		{{.mode = MODE_WALL, .idle = false}, 11},
		{{.mode = MODE_CPU}, 3},
		{{.mode = MODE_CPU, .idle = true}, 3},
		{{.mode = MODE_GIL}, 2},
		{{.mode = MODE_EXCEPTION}, 3},
	};

	stream_stack(&s, 1, STATUS_RUNNABLE, 1, stack, 3);
	stream_stack(&s, 1, STATUS_RUNNABLE | STATUS_GIL, 2, stack, 2);
	stream_stack(&s, 1, STATUS_IDLE, 4, stack, 3);
	stream_stack(&s, 1, STATUS_GIL_WAIT | STATUS_EXCEPTION, 3, stack, 3);
	stream_stack(&s, 1, STATUS_GIL_WAIT, 5, stack, 3);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct profile *profile = stream_profile(&s, &cases[i].options);

		cr_assert_eq(profile_sum(profile, VALUE_SAMPLES), cases[i].samples, "case %zu", i);
		cr_assert_eq(profile->filtered, 15 - cases[i].samples, "case %zu", i);
		profile_free(profile);
	}
}

Test(aggregator, omit_drops_and_stop_cuts)
{
	struct aggregator_options options = {.idle = true};
	struct profile *profile;
	regex_t lib, work;

	cr_assert_eq(regcomp(&lib, "^lib\\.py$", REG_EXTENDED | REG_NOSUB), 0);
	cr_assert_eq(regcomp(&work, "^work$", REG_EXTENDED | REG_NOSUB), 0);
	stream_stack(&s, 1, 0, 1, stack, 3);
	stream_stack(&s, 1, 0, 2, stack, 1);
	stream_stack(&s, 1, 0, 4, stack, 2);

	options.omit = &lib;
	profile = stream_profile(&s, &options);
	cr_assert_eq(profile->omitted, 5);
	cr_assert_eq(node_at(profile, &profile->threads[0], PATH("main"))->self[VALUE_SAMPLES], 2);
	cr_assert_eq(profile->threads[0].node_count, 2);
	profile_free(profile);

	options = (struct aggregator_options){.idle = true, .omit = &work};
	profile = stream_profile(&s, &options);
	cr_assert_eq(profile->omitted, 0, "--omit looks at files, not at names");
	profile_free(profile);

	options = (struct aggregator_options){.idle = true, .stop = &work};
	profile = stream_profile(&s, &options);
	cr_assert_eq(node_at(profile, &profile->threads[0], PATH("work", "leaf"))->self[VALUE_SAMPLES], 1);
	cr_assert_eq(node_at(profile, &profile->threads[0], PATH("work"))->self[VALUE_SAMPLES], 4);
	cr_assert_eq(node_at(profile, &profile->threads[0], PATH("main"))->self[VALUE_SAMPLES], 2, "no match: whole");
	profile_free(profile);
	regfree(&lib);
	regfree(&work);
}

Test(aggregator, threads_are_filtered_by_name_or_tid_and_renaming_counts)
{
	const struct thread_filter filters[] = {{.name = "worker"}, {.tid = 103}};
	const struct aggregator_options options = {.idle = true, .threads = filters, .thread_filter_count = 2};
	struct profile *profile;

	stream_thread(&s, 2, 1, 102, 0, NULL);
	stream_thread(&s, 3, 1, 103, 0, "other");
	stream_stack(&s, 1, 0, 1, stack, 1);
	stream_stack(&s, 2, 0, 2, stack, 1); /* not yet called worker */
	stream_stack(&s, 3, 0, 4, stack, 1);
	stream_thread(&s, 2, 1, 102, 0, "worker");
	stream_stack(&s, 2, 0, 8, stack, 3); /* shares a frame that was filtered */
	stream_thread(&s, 2, 1, 102, 0, "another");
	stream_stack(&s, 2, 0, 16, stack, 3);
	profile = stream_profile(&s, &options);
	cr_assert_eq(profile->filtered, 1 + 2 + 16);
	cr_assert_eq(profile->thread_count, 2, "the main thread is left out");
	cr_assert_str_eq(profile->threads[0].name, "another");
	cr_assert_eq(node_at(profile, &profile->threads[0], PATH("main", "work", "leaf"))->self[VALUE_SAMPLES], 8);
	cr_assert_eq(profile->threads[1].tid, 103);
	cr_assert_eq(profile_sum(profile, VALUE_SAMPLES), 12);
	profile_free(profile);
}

Test(aggregator, a_function_defined_again_stays_one)
{
	struct frame again = stream_frame(4, 5);
	struct frame later = stream_frame(5, 7);
	struct profile *profile;

	stream_stack(&s, 1, 0, 1, stack, 1);
	stream_stack(&s, 1, 0, 1, NULL, 0);
	stream_forget(&s, 1);
	stream_symbol(&s, 4, "main", "app.py", 1);
	stream_stack(&s, 1, 0, 1, &again, 1);
	stream_symbol(&s, 5, "main", "app.py", 2); /* first line differs: another function */
	stream_stack(&s, 1, 0, 1, &later, 1);
	profile = stream_profile(&s, NULL);
	cr_assert_eq(profile->malformed_records, 0);
	cr_assert_eq(profile->threads[0].node_count, 3);
	cr_assert_eq(profile->threads[0].nodes[1].self[VALUE_SAMPLES], 2);
	cr_assert_eq(profile->threads[0].nodes[0].self[VALUE_SAMPLES], 1);
	profile_free(profile);
}

Test(aggregator, symbols_that_nobody_names_go)
{
	char name[32];
	struct profile *profile;

	for (uint32_t id = 100; id < 20000; id++) {
		snprintf(name, sizeof(name), "generated_%u", id);
		stream_symbol(&s, id, name, "<string>", 1);
		stream_forget(&s, id);
	}
	profile = stream_profile(&s, NULL);
	cr_assert_leq(profile->symbol_count, 4, "slots are used again");
	profile_free(profile);
}

Test(aggregator, deep_stacks_and_wide_nodes)
{
	struct frame *deep = calloc(REC_DEPTH_MAX, sizeof(*deep));
	struct profile *profile;
	struct frame wide[2] = {stack[0]};

	for (uint32_t i = 0; i < REC_DEPTH_MAX; i++)
		deep[i] = stream_frame(2, 11);
	stream_stack(&s, 1, 0, 1, deep, REC_DEPTH_MAX);
	stream_stack(&s, 1, 0, 1, deep, REC_DEPTH_MAX - 1);
	for (uint32_t line = 1; line <= 10000; line++) {
		wide[1] = stream_frame(2, line);
		stream_stack(&s, 1, 0, 1, wide, 2);
	}
	profile = stream_profile(&s, NULL);
	cr_assert_eq(profile->malformed_records, 0);
	cr_assert_eq(profile->threads[0].depth_max, REC_DEPTH_MAX);
	cr_assert_eq(profile->threads[0].node_count, 1 + REC_DEPTH_MAX + 1 + 10000);
	profile_free(profile);
	free(deep);
}

Test(aggregator, a_record_that_comes_late_does_not_turn_time_back)
{
	struct profile *profile;

	s.now_ns = 5 * NS_PER_S;
	stream_stack(&s, 1, 0, 1, stack, 3);
	s.now_ns = 7 * NS_PER_S;
	stream_stack(&s, 1, 0, 1, stack, 2);
	s.now_ns = 4 * NS_PER_S; /* held until its calls were known */
	stream_stack(&s, 1, 0, 1, stack, 3);
	s.now_ns = 6 * NS_PER_S;
	stream_stack(&s, 1, 0, 1, stack, 1);
	profile = stream_profile(&s, NULL);
	cr_assert_eq(profile->malformed_records, 0);
	cr_assert_eq(profile->threads[0].t_first_ns, 4 * NS_PER_S);
	cr_assert_eq(profile->threads[0].t_last_ns, 7 * NS_PER_S);
	profile_free(profile);
}

Test(aggregator, at_the_memory_bound_samples_are_counted_as_such)
{
	const struct aggregator_options options = {.idle = true, .memory_max_bytes = 100000};
	struct frame frame;
	struct profile *profile;

	stream_stack(&s, 1, 0, 5, stack, 3);
	for (uint32_t line = 1; line <= 5000; line++) {
		frame = stream_frame(1, line);
		stream_stack(&s, 1, 0, 1, &frame, 1);
	}
	stream_stack(&s, 1, 0, 7, stack, 3); /* a node that is there goes on counting */
	stream_facts(&s, 1, NULL);
	profile = stream_profile(&s, &options);
	cr_assert_gt(profile->out_of_memory, 4000);
	cr_assert_eq(profile->threads[0].nodes[3].self[VALUE_SAMPLES], 12);
	cr_assert_leq(profile->threads[0].node_count * sizeof(struct node), options.memory_max_bytes);
	cr_assert_eq(accounted(profile), profile->processes[0].facts.samples);
	profile_free(profile);
}
