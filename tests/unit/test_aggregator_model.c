/* SPDX-License-Identifier: Apache-2.0 */
/* Random streams, against the plainest possible aggregator: a list of (thread, stack) pairs looked through from the
 * start. What makes the real one fast (shared prefixes, kept paths, symbols defined anew) must not show. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "tests/unit/stream.h"

enum { THREADS = 3, SYMBOLS = 6, LINES = 3, DEPTH = 8, STEPS = 3000, PATHS = 20000 };

struct model_frame {
	uint32_t symbol; /* 0 … SYMBOLS - 1; function fN in file N % 3 .py */
	uint32_t line;
};

struct model_path {
	uint32_t thread, depth;
	struct model_frame frames[DEPTH];
	uint64_t samples, runnable_ns;
};

struct model {
	struct model_path paths[PATHS];
	uint32_t count;
	uint64_t filtered, omitted;
};

static struct model model;
static uint64_t seed;

static uint32_t roll(uint32_t sides)
{
	seed++;
	return (uint32_t)(hash_u64(seed) % sides);
}

static struct model_path *model_find(uint32_t thread, const struct model_frame *frames, uint32_t depth)
{
	for (uint32_t i = 0; i < model.count; i++) {
		struct model_path *path = &model.paths[i];

		if (path->thread == thread && path->depth == depth &&
		    memcmp(path->frames, frames, depth * sizeof(*frames)) == 0)
			return path;
	}
	return NULL;
}

/* omit: files 0.py; stop: function f4. */
static void model_add(uint32_t thread, const struct model_frame *frames, uint32_t depth, uint16_t status, uint32_t count,
                      const struct aggregator_options *options)
{
	struct model_path *path;
	uint32_t start = 0;

	if (options->mode == MODE_CPU && !(status & STATUS_RUNNABLE)) {
		model.filtered += count;
		return;
	}
	for (uint32_t i = 0; i < depth && options->omit; i++)
		if (frames[i].symbol % 3 == 0) {
			model.omitted += count;
			return;
		}
	while (options->stop && start < depth && frames[start].symbol != 4)
		start++;
	if (start < depth) {
		frames += start;
		depth -= start;
	}
	path = model_find(thread, frames, depth);
	if (!path) {
		cr_assert_lt(model.count, PATHS);
		path = &model.paths[model.count++];
		*path = (struct model_path){.thread = thread, .depth = depth};
		memcpy(path->frames, frames, depth * sizeof(*frames));
	}
	path->samples += count;
	if (status & STATUS_RUNNABLE)
		path->runnable_ns += count * NS_PER_MS;
}

static void define(struct stream *s, uint32_t id, uint32_t symbol)
{
	char name[16], file[16];

	snprintf(name, sizeof(name), "f%u", symbol);
	snprintf(file, sizeof(file), "%u.py", symbol % 3);
	stream_symbol(s, id, name, file, symbol);
}

/* Each thread's stack changes from some depth on; now and then a symbol that no stack holds is forgotten and defined anew. */
static void make_stream(struct stream *s, const struct aggregator_options *options)
{
	struct model_frame stacks[THREADS][DEPTH] = {0};
	uint32_t depths[THREADS] = {0};
	uint32_t ids[SYMBOLS];
	uint32_t next_id = 1;

	model = (struct model){0};
	stream_target(s, 1, 100, "python3");
	for (uint32_t i = 0; i < SYMBOLS; i++)
		define(s, ids[i] = next_id++, i);
	for (uint32_t i = 0; i < THREADS; i++)
		stream_thread(s, i + 1, 1, 100 + i, 0, NULL);
	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t thread = roll(THREADS);
		struct model_frame *stack = stacks[thread];
		uint32_t shared = roll(depths[thread] + 1);
		uint16_t status = roll(2) ? STATUS_RUNNABLE : STATUS_IDLE;
		uint32_t count = 1 + roll(5);
		struct frame frames[DEPTH];

		depths[thread] = shared + roll(DEPTH - shared + 1);
		for (uint32_t i = shared; i < depths[thread]; i++)
			stack[i] = (struct model_frame){.symbol = roll(SYMBOLS), .line = roll(LINES)};
		for (uint32_t i = 0; i < depths[thread]; i++)
			frames[i] = stream_frame(ids[stack[i].symbol], stack[i].line);
		s->now_ns += 10 * NS_PER_MS;
		stream_stack(s, thread + 1, status, count, frames, depths[thread]);
		model_add(thread, stack, depths[thread], status, count, options);
		if (roll(20) == 0) {
			uint32_t symbol = roll(SYMBOLS);

			stream_forget(s, ids[symbol]);
			define(s, ids[symbol] = next_id++, symbol);
		}
	}
	stream_facts(s, 1, NULL);
}

/* Every node with samples stands for one path of the model, and no path is missing. */
static void compare(const struct profile *profile)
{
	uint32_t matched = 0;

	for (uint32_t t = 0; t < profile->thread_count; t++) {
		const struct thread_tree *tree = &profile->threads[t];

		for (uint32_t n = 0; n < tree->node_count; n++) {
			struct model_frame frames[DEPTH];
			const struct model_path *path;
			uint32_t depth = 0;

			for (uint32_t up = n; up; up = tree->nodes[up].parent)
				depth++;
			cr_assert_leq(depth, DEPTH);
			for (uint32_t up = n, at = depth; up; up = tree->nodes[up].parent)
				frames[--at] = (struct model_frame){
					.symbol = profile->symbols[tree->nodes[up].symbol].first_line,
					.line = tree->nodes[up].line,
				};
			path = model_find((uint32_t)tree->tid - 100, frames, depth);
			cr_assert_eq(tree->nodes[n].self[VALUE_SAMPLES], path ? path->samples : 0);
			cr_assert_eq(tree->nodes[n].self[VALUE_RUNNABLE], path ? path->runnable_ns : 0);
			matched += path != NULL;
		}
	}
	cr_assert_eq(matched, model.count);
	cr_assert_eq(profile->filtered, model.filtered);
	cr_assert_eq(profile->omitted, model.omitted);
	cr_assert_eq(profile->malformed_records, 0);
	cr_assert_eq(profile->processes[0].facts.samples,
	             profile_sum(profile, VALUE_SAMPLES) + profile->filtered + profile->omitted);
}

Test(aggregator_model, random_streams)
{
	regex_t omit, stop;

	cr_assert_eq(regcomp(&omit, "^0", REG_EXTENDED | REG_NOSUB), 0);
	cr_assert_eq(regcomp(&stop, "^f4$", REG_EXTENDED | REG_NOSUB), 0);
	for (unsigned variant = 0; variant < 16; variant++) {
		const struct aggregator_options options = {
			.idle = true,
			.omit = variant & 1 ? &omit : NULL,
			.stop = variant & 2 ? &stop : NULL,
			.mode = variant & 4 ? MODE_CPU : MODE_WALL,
		};
		struct stream s = {0};
		struct profile *profile;

		seed = UINT64_C(1000000) * (variant + 1);
		make_stream(&s, &options);
		profile = stream_profile(&s, &options);
		compare(profile);
		profile_free(profile);
		stream_release(&s);
	}
	regfree(&omit);
	regfree(&stop);
}
