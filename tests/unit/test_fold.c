/* SPDX-License-Identifier: Apache-2.0 */
/* Thread churn: memory stays bounded, and no sample is lost by it. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/clock.h"
#include "tests/unit/stream.h"

enum { THREADS = 20000, LASTING = 30 };

static const struct frame stack[] = {
	{.kind = FRAME_PYTHON, .id = 1, .where = 5},
	{.kind = FRAME_PYTHON, .id = 2, .where = 12},
};

static struct stream s;

static void setup(void)
{
	stream_target(&s, 1, 100, "python3 app.py");
	stream_symbol(&s, 1, "run", "threading.py", 1);
	stream_symbol(&s, 2, "work", "app.py", 10);
	stream_thread(&s, 1, 1, 100, THREAD_MAIN, "MainThread");
	stream_stack(&s, 1, STATUS_IDLE, 1, stack, 1); /* and then silent: it is not folded all the same */
}

static void teardown(void)
{
	stream_release(&s);
}

TestSuite(fold, .init = setup, .fini = teardown);

static const struct thread_tree *tree_named(const struct profile *profile, const char *name)
{
	for (uint32_t i = 0; i < profile->thread_count; i++)
		if (profile->threads[i].name && strcmp(profile->threads[i].name, name) == 0)
			return &profile->threads[i];
	return NULL;
}

/* The builder looks its threads up one by one, so the records of the many are made here. */
static void feed_thread(struct aggregator *aggregator, uint32_t id, uint64_t now_ns, bool ends)
{
	struct stream one = {.now_ns = now_ns};

	stream_thread(&one, id, 1, 1000 + id, 0, NULL);
	stream_stack(&one, id, STATUS_RUNNABLE, 2, stack, 1 + id % 2);
	if (ends)
		stream_thread(&one, id, 1, 1000 + id, THREAD_ENDED, NULL);
	cr_assert_eq(stream_feed(&one, aggregator), 0);
	stream_release(&one);
}

Test(fold, ended_threads_become_one)
{
	const struct aggregator_options options = {.idle = true};
	struct aggregator *aggregator;
	struct profile *profile;
	const struct thread_tree *ended;
	uint32_t silent = 0;

	cr_assert_eq(aggregator_new(&aggregator, &options), 0);
	cr_assert_eq(stream_feed(&s, aggregator), 0);
	for (uint32_t id = 2; id < THREADS + 2; id++) {
		feed_thread(aggregator, id, NS_PER_S + id * 100 * NS_PER_MS, id != LASTING);
		if (id == LASTING || (id > LASTING && id % 10 == 0)) { /* one thread that lives on */
			struct stream one = {.now_ns = NS_PER_S + id * 100 * NS_PER_MS};

			stream_stack(&one, LASTING, STATUS_IDLE, 1, stack, 2);
			cr_assert_eq(stream_feed(&one, aggregator), 0);
			stream_release(&one);
		}
	}
	cr_assert_eq(aggregator_profile(aggregator, &profile), 0);
	cr_assert_leq(profile->thread_count, 1024 + 2, "of %d", THREADS);
	ended = tree_named(profile, "(ended threads)");
	cr_assert_not_null(ended);
	cr_assert_eq(ended->node_count, 3);
	cr_assert_gt(ended->nodes[1].self[VALUE_SAMPLES], THREADS / 2);
	cr_assert_eq(ended->depth_max, 2);
	cr_assert_gt(ended->t_first_ns, 0);
	cr_assert_not_null(tree_named(profile, "MainThread"));
	for (uint32_t i = 0; i < profile->thread_count; i++)
		silent += profile->threads[i].tid == 1000 + LASTING;
	cr_assert_eq(silent, 1, "a thread that goes on keeps its tree");
	cr_assert_eq(profile_sum(profile, VALUE_SAMPLES), 1 + 2 * THREADS + 1 + (THREADS + 1) / 10 - LASTING / 10);
	cr_assert_eq(profile_sum(profile, VALUE_SAMPLES), aggregator_samples(aggregator));
	cr_assert_eq(profile->malformed_records, 0);
	profile_free(profile);
	aggregator_free(aggregator);
}

Test(fold, few_threads_and_living_threads_stay_apart)
{
	const struct aggregator_options options = {.idle = true};
	struct aggregator *aggregator;
	struct profile *profile;

	cr_assert_eq(aggregator_new(&aggregator, &options), 0);
	cr_assert_eq(stream_feed(&s, aggregator), 0);
	for (uint32_t id = 2; id < 1000; id++) /* few, long ended */
		feed_thread(aggregator, id, NS_PER_S + id * NS_PER_S, true);
	cr_assert_eq(aggregator_profile(aggregator, &profile), 0);
	cr_assert_eq(profile->thread_count, 999);
	profile_free(profile);
	aggregator_free(aggregator);

	cr_assert_eq(aggregator_new(&aggregator, &options), 0);
	cr_assert_eq(stream_feed(&s, aggregator), 0);
	for (uint32_t id = 2; id < 5000; id++) /* many, all alive */
		feed_thread(aggregator, id, NS_PER_S + id * NS_PER_MS, false);
	cr_assert_eq(aggregator_profile(aggregator, &profile), 0);
	cr_assert_eq(profile->thread_count, 4999);
	cr_assert_null(tree_named(profile, "(ended threads)"));
	profile_free(profile);
	aggregator_free(aggregator);
}
