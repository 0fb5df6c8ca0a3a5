/* SPDX-License-Identifier: Apache-2.0 */
/* 100,000 random records through histories with several bounds, against the plainest possible one: a list of all runs with the slice that each is in.
 * Whatever is merged, folded, compacted or dropped must not show in the sums of any window. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/history.h"
#include "base/clock.h"
#include "base/hash.h"
#include "tests/unit/stream.h"

enum {
	TARGETS = 6,
	THREADS = 3,
	SYMBOLS = 40,
	LINES = 4,
	DEPTH = 7,
	RECORDS = 100000,
	SLICE_RECORDS = 120,
	TABLE = 1 << 17
};

struct event {
	uint64_t slice_from_ns;
	int32_t pid;
	uint32_t group;
	uint64_t tid;
	uint64_t path;     /* hash of functions and lines */
	uint64_t function; /* hash of functions */
	uint64_t values[VALUE_COUNT];
};

struct cell {
	uint64_t key;
	uint64_t values[VALUE_COUNT];
};

/* What a profile, or the model, says of each key. */
struct table {
	struct cell cells[TABLE];
	uint64_t sums[VALUE_COUNT];
};

enum detail { BY_LINE, BY_FUNCTION, BY_SUM };

static struct table expected, found;
static struct event *events;
static size_t event_count;
static uint64_t seed;
static struct history *history;
static struct stream s;
static size_t fed;
static uint64_t slice_from_ns;

static uint32_t roll(uint32_t sides)
{
	seed++;
	return (uint32_t)(hash_u64(seed) % sides);
}

static void table_add(struct table *table, uint64_t key, const uint64_t values[VALUE_COUNT])
{
	uint32_t at;

	key |= 1;
	at = (uint32_t)key % TABLE;
	while (table->cells[at].key && table->cells[at].key != key)
		at = (at + 1) % TABLE;
	table->cells[at].key = key;
	for (int v = 0; v < VALUE_COUNT; v++) {
		table->cells[at].values[v] += values[v];
		table->sums[v] += values[v];
	}
}

static uint64_t path_step(uint64_t hash, uint32_t first_line, uint32_t line)
{
	return hash_combine(hash_combine(hash, first_line), line);
}

/* --- the stream --- */

struct live {
	uint32_t id, group;
	int32_t pid;
	uint32_t threads[THREADS];
	struct {
		struct frame frames[DEPTH];
		uint32_t depth;
	} stacks[THREADS];
};

static struct live targets[TARGETS];
static uint32_t next_target, next_thread, symbol_ids[SYMBOLS], next_symbol;

static void start_target(struct live *target)
{
	struct rec_target *record;
	size_t at = s.bytes.bytes;

	*target = (struct live){.id = ++next_target, .group = roll(2), .pid = 1000 + (int32_t)next_target};
	stream_target(&s, target->id, target->pid, "python3");
	record = (struct rec_target *)(s.bytes.data + at);
	record->group = target->group;
	for (uint32_t i = 0; i < THREADS; i++) {
		target->threads[i] = ++next_thread;
		stream_thread(&s, next_thread, target->id, (uint64_t)target->pid * 10 + i, i == 0 ? THREAD_MAIN : 0,
		              i == 0 ? "MainThread" : "worker");
	}
}

static void define(uint32_t symbol)
{
	char name[16];

	snprintf(name, sizeof(name), "f%u", symbol);
	symbol_ids[symbol] = ++next_symbol;
	stream_symbol(&s, next_symbol, name, "app.py", symbol + 1);
}

static void write_run(void)
{
	static const uint16_t states[] = {STATUS_IDLE,
	                                  STATUS_RUNNABLE | STATUS_GIL,
	                                  STATUS_RUNNABLE | STATUS_GIL_WAIT,
	                                  STATUS_GIL_WAIT,
	                                  STATUS_UNKNOWN,
	                                  STATUS_RUNNABLE | STATUS_GIL | STATUS_GC,
	                                  STATUS_EXCEPTION | STATUS_RUNNABLE};
	struct live *target = &targets[roll(TARGETS)];
	uint32_t thread = roll(THREADS), shared, count = roll(3) ? 1 : 1 + roll(1000);
	uint32_t depth = target->stacks[thread].depth;
	struct frame *frames = target->stacks[thread].frames;
	uint16_t status = states[roll(sizeof(states) / sizeof(states[0]))];
	struct event event = {.slice_from_ns = slice_from_ns,
	                      .pid = target->pid,
	                      .group = target->group,
	                      .tid = (uint64_t)target->pid * 10 + thread};

	shared = thread == 2 ? depth : roll(depth + 1); /* the third one is parked for long */
	depth = thread == 2 && depth ? depth : shared + roll(DEPTH - shared + 1);
	for (uint32_t i = 0; i < depth; i++) {
		uint32_t symbol = i < shared ? frames[i].where / LINES : roll(SYMBOLS);

		if (i >= shared)
			frames[i].where = symbol * LINES + roll(LINES);
		frames[i] = stream_frame(symbol_ids[symbol], frames[i].where);
		event.path = path_step(event.path, symbol + 1, frames[i].where);
		event.function = path_step(event.function, symbol + 1, 0);
	}
	target->stacks[thread].depth = depth;
	stream_stack(&s, target->threads[thread], status, count, frames, depth);
	values_add(event.values, count, count * s.interval_ns, status);
	events[event_count++] = event;
}

static void end_slice(void)
{
	size_t at;
	const struct rec_head *record;

	for (uint32_t i = 0; i < TARGETS; i++)
		stream_facts(&s, targets[i].id, NULL);
	stream_mark(&s, 1);
	for (at = fed; (record = stream_next(&s, &at));)
		cr_assert_eq(history_feed(history, record), 0);
	fed = at;
	s.now_ns += 10 * NS_PER_S - 100 + roll(200);
	cr_assert_eq(history_close_slice(history, s.now_ns), 0);
	slice_from_ns = s.now_ns;
}

/* --- the comparison --- */

static void read_profile(const struct profile *profile, enum detail detail)
{
	memset(&found, 0, sizeof(found));
	for (uint32_t t = 0; t < profile->thread_count; t++) {
		const struct thread_tree *tree = &profile->threads[t];
		uint64_t *hashes = calloc(tree->node_count, sizeof(*hashes));

		for (uint32_t n = 0; n < tree->node_count; n++) {
			const struct node *node = &tree->nodes[n];
			uint64_t key;

			if (n > 0)
				hashes[n] = path_step(hashes[node->parent], profile->symbols[node->symbol].first_line,
				                      detail == BY_LINE ? node->line : 0);
			key = detail == BY_LINE       ? hash_combine(tree->tid, hashes[n])
			      : detail == BY_FUNCTION ? hashes[n]
			                              : 0;
			if (node->self[VALUE_SAMPLES])
				table_add(&found, key, node->self);
		}
		free(hashes);
	}
}

static void read_model(uint64_t from_ns, uint64_t to_ns, int32_t pid, enum detail detail)
{
	memset(&expected, 0, sizeof(expected));
	for (size_t i = 0; i < event_count; i++) {
		const struct event *event = &events[i];

		if (event->slice_from_ns >= from_ns && event->slice_from_ns < to_ns && (pid == 0 || pid == event->pid))
			table_add(&expected,
			          detail == BY_LINE       ? hash_combine(event->tid, event->path)
			          : detail == BY_FUNCTION ? event->function
			                                  : 0,
			          event->values);
	}
}

/* Whether both say the same of each key. */
static bool is_equal(const struct table *a, const struct table *b)
{
	for (uint32_t i = 0; i < TABLE; i++) {
		const struct cell *cell = &a->cells[i];
		uint32_t at = (uint32_t)cell->key % TABLE;

		if (!cell->key)
			continue;
		while (b->cells[at].key && b->cells[at].key != cell->key)
			at = (at + 1) % TABLE;
		if (memcmp(cell, &b->cells[at], sizeof(*cell)) != 0)
			return false;
	}
	return memcmp(a->sums, b->sums, sizeof(a->sums)) == 0;
}

static void compare(struct history_query query, enum detail detail)
{
	struct profile *profile;
	struct rec_facts facts;
	uint64_t values[VALUE_COUNT];

	cr_assert_eq(history_profile(history, &query, &profile), 0);
	profile_facts(profile, &facts);
	cr_assert_eq(facts.samples, profile_sum(profile, VALUE_SAMPLES) + profile->out_of_memory);
	cr_assert_eq(facts.attempts, facts.samples);
	read_profile(profile, detail);
	read_model(profile->t_start_ns, profile->t_end_ns, query.pid, detail);
	cr_assert_eq(expected.sums[VALUE_SAMPLES], found.sums[VALUE_SAMPLES] + profile->out_of_memory);
	if (profile->out_of_memory == 0)
		cr_assert(is_equal(&expected, &found) && is_equal(&found, &expected));
	cr_assert_eq(history_sums(history, &query, values), 0);
	cr_assert_eq(memcmp(values, found.sums, sizeof(values)), 0);
	profile_free(profile);
}

/* All of it, windows, and one target. */
static void compare_all(void)
{
	struct history_stats stats;
	enum detail detail;

	history_stats(history, &stats);
	cr_assert(stats.max_bytes == 0 || stats.used_bytes <= stats.max_bytes, "%lu of %lu bytes",
	          (unsigned long)stats.used_bytes, (unsigned long)stats.max_bytes);
	detail = stats.steps[HISTORY_FOLDED_LINES] || stats.steps[HISTORY_MERGED_ENDED] ||
	                         stats.steps[HISTORY_MERGED_ALIVE]
	                 ? BY_FUNCTION
	                 : BY_LINE;
	compare((struct history_query){0}, detail);
	compare((struct history_query){.merge = true}, BY_FUNCTION);
	for (int i = 0; i < 4; i++) {
		uint64_t span_ns = s.now_ns - stats.oldest_ns,
			 from_ns = stats.oldest_ns + hash_u64(seed + (uint64_t)i) % span_ns;

		compare((struct history_query){.from_ns = from_ns, .to_ns = from_ns + span_ns / 8}, detail);
		compare((struct history_query){.from_ns = from_ns}, detail);
	}
	if (stats.steps[HISTORY_MERGED_ALIVE] == 0)
		compare((struct history_query){.pid = targets[0].pid}, detail);
}

static void run(uint64_t memory_max_bytes, struct history_stats *ret_stats)
{
	seed = memory_max_bytes * 7919;
	cr_assert_eq(history_new(&history, &(struct history_options){.memory_max_bytes = memory_max_bytes}), 0);
	s = (struct stream){.interval_ns = 20000};
	s.now_ns = slice_from_ns = 100 * NS_PER_S;
	events = calloc(RECORDS, sizeof(*events));
	fed = event_count = next_target = next_thread = next_symbol = 0;
	cr_assert_not_null(events);
	for (uint32_t i = 0; i < SYMBOLS; i++)
		define(i);
	for (uint32_t i = 0; i < TARGETS; i++)
		start_target(&targets[i]);
	for (uint32_t i = 0; i < RECORDS; i++) {
		uint32_t target = roll(TARGETS), symbol = roll(SYMBOLS);

		write_run();
		if (i % SLICE_RECORDS == 0)
			end_slice();
		if (i % (RECORDS / 5) == RECORDS / 10)
			compare_all();
		if (roll(1000) == 0) {
			stream_facts(&s, targets[target].id, NULL);
			stream_target_event(&s, targets[target].id, roll(2) ? TARGET_EXITED : TARGET_EXECED,
			                    targets[target].pid);
			start_target(&targets[target]);
		}
		if (roll(500) == 0) { /* no stack that shares frames may name it after this */
			uint32_t id = symbol_ids[symbol];

			define(symbol);
			stream_forget(&s, id);
		}
	}
	end_slice();
	compare_all();
	history_stats(history, ret_stats);
	history_free(history);
	stream_release(&s);
	free(events);
}

Test(history_model, without_a_bound)
{
	struct history_stats stats;

	run(0, &stats);
	for (int i = 0; i < HISTORY_STEPS; i++)
		cr_assert_eq(stats.steps[i], 0);
	cr_assert_eq(stats.dropped, 0);
	cr_assert_eq(stats.out_of_memory, 0);
}

/* Each step is taken by one bound or another, and none lets it be passed. */
Test(history_model, bounds)
{
	static const uint64_t bounds_bytes[] = {UINT64_C(4) << 20, UINT64_C(1) << 20, UINT64_C(256) << 10};
	struct history_stats stats;
	uint64_t steps[HISTORY_STEPS] = {0};

	for (size_t i = 0; i < sizeof(bounds_bytes) / sizeof(bounds_bytes[0]); i++) {
		run(bounds_bytes[i], &stats);
		for (int step = 0; step < HISTORY_STEPS; step++)
			steps[step] += stats.steps[step];
		cr_assert_gt(stats.compactions, 0);
		cr_assert_gt(stats.dropped, 0);
	}
	for (int step = 0; step < HISTORY_STEPS; step++)
		cr_assert_gt(steps[step], 0, "%s", history_step_names[step]);
}
