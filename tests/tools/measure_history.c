/* SPDX-License-Identifier: Apache-2.0 */
/* What the history costs: measure_history [PROCESSES] simulates 10, 50 and 500 processes (or only so many of them) at 49 Hz, two of them busy, the
 * others parked with four threads each, and prints JSON: bytes a slice, at each level of age, and the CPU time of a slice's end and of queries. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/history.h"
#include "base/clock.h"
#include "base/hash.h"

enum { BUSY = 2, PARKED_THREADS = 4, PARKED_DEPTH = 12, SYMBOLS = 2000, STACKS = 400, BUSY_DEPTH = 16, TICKS = 490 };

#define INTERVAL_NS (NS_PER_S / 49)
#define SLICE_NS    (10 * NS_PER_S)

static union {
	struct rec_head head;
	struct rec_target target;
	struct rec_thread thread;
	struct rec_symbol symbol;
	struct rec_stack stack;
	struct rec_facts facts;
	char room[4096];
} record;

static struct history *history;
static uint64_t seed;
/* CPU time of what is measured, in nanoseconds. */
static uint64_t close_ns, close_worst_ns, feed_ns, fed;

static uint32_t roll(uint32_t sides)
{
	return (uint32_t)(hash_u64(++seed) % sides);
}

static uint64_t cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void take(uint32_t type, size_t bytes)
{
	record.head = (struct rec_head){.type = type, .bytes = rec_round(bytes)};
	if (history_feed(history, &record.head))
		abort();
	memset(&record, 0, sizeof(record));
}

static void define_symbols(void)
{
	for (uint32_t i = 1; i <= SYMBOLS; i++) {
		record.symbol = (struct rec_symbol){.id = i, .first_line = i % 900 + 1};
		record.symbol.name_bytes =
			(uint32_t)sprintf(record.symbol.text, "Class%" PRIu32 ".method_%" PRIu32, i / 20, i);
		record.symbol.file_bytes =
			(uint32_t)sprintf(record.symbol.text + record.symbol.name_bytes,
		                          "/srv/lib/package%" PRIu32 "/module%" PRIu32 ".py", i % 12, i % 90);
		take(REC_SYMBOL, sizeof(record.symbol) + record.symbol.name_bytes + record.symbol.file_bytes);
	}
}

/* Threads of process p are p × PARKED_THREADS + 1 … */
static void define_process(uint32_t p, uint64_t now_ns)
{
	record.target = (struct rec_target){.id = p + 1,
	                                    .event = TARGET_ATTACHED,
	                                    .t_ns = now_ns,
	                                    .pid = (int32_t)(1000 + p),
	                                    .start_time = p,
	                                    .group = p % 4};
	record.target.name_bytes =
		(uint32_t)sprintf(record.target.text, "/usr/bin/python3 -m service.worker --number %" PRIu32, p);
	take(REC_TARGET, sizeof(record.target) + record.target.name_bytes);
	for (uint32_t t = 0; t < PARKED_THREADS; t++) {
		record.thread = (struct rec_thread){.id = p * PARKED_THREADS + t + 1,
		                                    .target = p + 1,
		                                    .tid = 10000 + p * PARKED_THREADS + t,
		                                    .flags = t == 0 ? THREAD_MAIN : 0};
		record.thread.name_bytes = (uint32_t)sprintf(record.thread.text, "worker-%" PRIu32, t);
		take(REC_THREAD, sizeof(record.thread) + record.thread.name_bytes);
	}
}

/* same: it is the stack of the record before. */
static void write_stack(uint32_t thread, uint32_t stack, uint32_t depth, bool same, uint32_t count, uint64_t weight_ns,
                        uint16_t status, uint64_t t_first_ns)
{
	record.stack = (struct rec_stack){.thread = thread,
	                                  .count = count,
	                                  .t_first_ns = t_first_ns,
	                                  .t_last_ns = t_first_ns + weight_ns,
	                                  .weight_ns = weight_ns,
	                                  .status = status,
	                                  .depth = depth,
	                                  .shared = same ? depth : 0};
	/* Stacks near each other share all but their last frames. */
	for (uint32_t i = 0; i < depth && !same; i++) {
		uint32_t behind = depth - 1 - i, key = stack >> (behind < 10 ? behind : 10);
		uint32_t symbol = (uint32_t)(hash_u64((uint64_t)key << 8 | i) % SYMBOLS) + 1;

		record.stack.frames[i] = frame_make(FRAME_PYTHON, symbol, symbol % 900 + 3);
	}
	take(REC_STACK, sizeof(record.stack) + (same ? 0 : depth) * sizeof(struct frame));
}

/* A busy process: two threads take turns at the GIL, over some hundreds of stacks a slice, some often and most seldom; the others are parked. */
static uint64_t run_busy(uint32_t p, uint64_t from_ns)
{
	uint64_t runs = 0;

	for (uint32_t tick = 0; tick < TICKS; tick++) {
		uint32_t running = roll(2), weight_ns = (uint32_t)INTERVAL_NS - 500000 + roll(1000000);

		for (uint32_t t = 0; t < 2; t++, runs++) {
			uint32_t stack = roll(4) ? roll(STACKS / 8) : roll(STACKS);

			write_stack(p * PARKED_THREADS + t + 1, stack, BUSY_DEPTH, false, 1, weight_ns,
			            t == running ? STATUS_RUNNABLE | STATUS_GIL : STATUS_GIL_WAIT,
			            from_ns + tick * INTERVAL_NS);
		}
	}
	for (uint32_t t = 2; t < PARKED_THREADS; t++, runs++)
		write_stack(p * PARKED_THREADS + t + 1, 100000 + p * 4 + t, PARKED_DEPTH, fed > 0, TICKS, SLICE_NS,
		            STATUS_IDLE, from_ns);
	return runs;
}

static uint64_t run_parked(uint32_t p, uint64_t from_ns)
{
	uint64_t weight_ns = SLICE_NS - 1000000 + roll(2000000);

	for (uint32_t t = 0; t < PARKED_THREADS; t++)
		write_stack(p * PARKED_THREADS + t + 1, 100000 + p * 4 + t, PARKED_DEPTH, fed > 0, TICKS, weight_ns,
		            STATUS_IDLE, from_ns);
	return PARKED_THREADS;
}

static struct rec_facts *facts; /* of each process */

static void run_slice(uint32_t processes, uint64_t from_ns)
{
	uint64_t start_ns = cpu_ns(), spent_ns;

	for (uint32_t p = 0; p < processes; p++) {
		struct rec_facts *f = &facts[p];
		uint64_t reads = p < BUSY ? TICKS : roll(3);

		f->runs += p < BUSY ? run_busy(p, from_ns) : run_parked(p, from_ns);
		f->target = p + 1;
		f->interval_ns = INTERVAL_NS;
		f->t_last_ns = from_ns + SLICE_NS;
		f->ticks += TICKS;
		f->samples += TICKS * PARKED_THREADS;
		f->attempts += TICKS * PARKED_THREADS;
		f->reads += reads;
		f->ticks_credited += TICKS - reads;
		f->read_segments += p < BUSY ? TICKS * 8 : 0;
		f->read_bytes += p < BUSY ? TICKS * 20000 + roll(100000) : 0;
		f->read_ns += p < BUSY ? TICKS * 9000 + roll(100000) : 0;
		record.facts = *f;
		take(REC_FACTS, sizeof(record.facts));
	}
	spent_ns = cpu_ns();
	feed_ns += spent_ns - start_ns;
	if (history_close_slice(history, from_ns + SLICE_NS))
		abort();
	spent_ns = cpu_ns() - spent_ns;
	close_ns += spent_ns;
	close_worst_ns = close_worst_ns < spent_ns ? spent_ns : close_worst_ns;
	fed++;
}

static uint64_t slice_bytes(void)
{
	struct history_stats stats;
	uint64_t bytes = 0;

	history_stats(history, &stats);
	for (int level = 0; level < HISTORY_LEVELS; level++)
		bytes += stats.slice_bytes[level];
	return bytes;
}

/* A new history, which knows so many processes. The time. */
static uint64_t begin(uint32_t processes, uint64_t max_bytes)
{
	uint64_t now_ns = NS_PER_S;

	if (history_new(&history, &(struct history_options){.memory_max_bytes = max_bytes}))
		abort();
	facts = calloc(processes, sizeof(*facts));
	if (!facts)
		abort();
	define_symbols();
	for (uint32_t p = 0; p < processes; p++)
		define_process(p, now_ns);
	feed_ns = close_ns = close_worst_ns = fed = 0;
	return now_ns;
}

static void end(void)
{
	history_free(history);
	free(facts);
}

static double query_ms(uint64_t from_ns, bool merge)
{
	struct profile *profile;
	uint64_t start_ns = cpu_ns();

	if (history_profile(history, &(struct history_query){.from_ns = from_ns, .merge = merge}, &profile))
		abort();
	profile_free(profile);
	return (double)(cpu_ns() - start_ns) / (double)NS_PER_MS;
}

/* Bytes that a slice of each level takes, in a history so small that all levels are in use soon, and what the ends of slices cost there. */
static void measure_levels(uint32_t processes, uint64_t max_bytes)
{
	enum { SLICES = 2000 };
	uint64_t now_ns = begin(processes, max_bytes), oldest_ns, bytes[HISTORY_LEVELS] = {0};
	struct history_stats stats;

	for (int i = 0; i < SLICES; i++, now_ns += SLICE_NS) {
		run_slice(processes, now_ns);
		history_stats(history, &stats);
		for (int level = 0; level < HISTORY_LEVELS && i % 20 == 0; level++)
			if (stats.slices[level] > 1) /* a level may be empty at the end */
				bytes[level] = stats.slice_bytes[level] / stats.slices[level];
	}
	oldest_ns = stats.oldest_ns;
	printf("\"level_bytes\": [");
	for (int level = 0; level < HISTORY_LEVELS; level++)
		printf("%s%" PRIu64, level ? ", " : "", bytes[level]);
	printf("], \"level_slices\": [");
	for (int level = 0; level < HISTORY_LEVELS; level++)
		printf("%s%" PRIu64, level ? ", " : "", stats.slices[level]);
	printf("], \"bound_bytes\": %" PRIu64 ", \"used_bytes\": %" PRIu64
	       ", \"reached_h\": %.2f, \"dropped\": %" PRIu64 ", \"out_of_memory\": %" PRIu64
	       ", \"close_at_bound_ms\": %.3f, \"close_at_bound_worst_ms\": %.3f",
	       max_bytes, stats.used_bytes, (double)(now_ns - oldest_ns) / 3.6e12, stats.steps[HISTORY_DROPPED_SLICES],
	       stats.out_of_memory, (double)close_ns / (double)fed / (double)NS_PER_MS,
	       (double)close_worst_ns / (double)NS_PER_MS);
	end();
}

/* Bytes that a slice takes after some that make the trees, of an hour. *ret_fixed_bytes: all but slices. */
static uint64_t measure_fine(uint32_t processes, uint64_t *ret_fixed_bytes)
{
	enum { WARM = 40, SLICES = 360 };
	uint64_t now_ns = begin(processes, 0), before, each, start_ns, values[VALUE_COUNT];
	struct history_stats stats;

	for (int i = 0; i < WARM; i++, now_ns += SLICE_NS)
		run_slice(processes, now_ns);
	before = slice_bytes();
	for (int i = 0; i < SLICES; i++, now_ns += SLICE_NS)
		run_slice(processes, now_ns);
	each = (slice_bytes() - before) / SLICES;
	history_stats(history, &stats);
	*ret_fixed_bytes = stats.used_bytes - slice_bytes();
	start_ns = cpu_ns();
	if (history_sums(history, &(struct history_query){.from_ns = now_ns - 30 * NS_PER_S}, values))
		abort();
	printf("\"slice_bytes\": %" PRIu64 ", \"fixed_bytes\": %" PRIu64 ", \"nodes\": %" PRIu64
	       ", \"sums_30s_ms\": %.3f, \"feed_ms\": %.3f, "
	       "\"close_ms\": %.3f, \"close_worst_ms\": %.3f, ",
	       each, *ret_fixed_bytes, stats.nodes, (double)(cpu_ns() - start_ns) / (double)NS_PER_MS,
	       (double)feed_ns / (double)fed / (double)NS_PER_MS, (double)close_ns / (double)fed / (double)NS_PER_MS,
	       (double)close_worst_ns / (double)NS_PER_MS);
	printf("\"query_hour_ms\": %.2f, ", query_ms(now_ns - 3600 * NS_PER_S, false));
	printf("\"query_hour_merged_ms\": %.2f, ", query_ms(now_ns - 3600 * NS_PER_S, true));
	end();
	return each;
}

static void measure(uint32_t processes)
{
	uint64_t fixed_bytes, each;

	printf("{\"processes\": %" PRIu32 ", ", processes);
	each = measure_fine(processes, &fixed_bytes);
	measure_levels(processes, fixed_bytes * 3 / 2 + each * 60);
	printf("}");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const uint32_t counts[] = {10, 50, 500};

	printf("[");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		if (argc > 1 && strtoul(argv[1], NULL, 10) != counts[i])
			continue;
		printf("%s", i > 0 && argc == 1 ? ",\n " : "");
		measure(counts[i]);
	}
	printf("]\n");
	return 0;
}
