/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a recording of a known number of samples, the same on each run: make_recording OUT [SAMPLES [SAMPLES_A_RUN]].
 * A program of eight threads that walk through four thousand stacks, up to forty frames deep, at 1 kHz. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/recording.h"

enum { THREADS = 8, SYMBOLS = 1500, STACKS = 4000, DEPTH = 40, INTERVAL_NS = 1000000 };

static struct recording_writer *writer;
static struct tally tally;
static uint32_t seed = 12345;

static uint32_t next_random(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)seed * below >> 32);
}

static union {
	struct rec_head head;
	struct rec_target target;
	struct rec_thread thread;
	struct rec_symbol symbol;
	struct rec_stack stack;
	struct rec_facts facts;
	char room[4096];
} record;

static void take(uint32_t type, size_t bytes)
{
	record.head = (struct rec_head){.type = type, .bytes = rec_round(bytes)};
	recording_writer_take(writer, &record.head, &(struct record_fate){.counted = true}, &tally);
	memset(&record, 0, sizeof(record));
}

static void define_all(void)
{
	record.target = (struct rec_target){.id = 1,
	                                    .event = TARGET_ATTACHED,
	                                    .t_ns = NS_PER_S,
	                                    .pid = 4711,
	                                    .version = 0x030c01,
	                                    .name_bytes = 17};
	memcpy(record.target.text, "python3 synthetic", 17);
	take(REC_TARGET, sizeof(record.target) + 17);
	for (uint32_t i = 1; i <= THREADS; i++) {
		record.thread =
			(struct rec_thread){.id = i, .target = 1, .tid = 4710 + i, .flags = i == 1 ? THREAD_MAIN : 0};
		record.thread.name_bytes = (uint32_t)sprintf(record.thread.text, "worker-%" PRIu32, i);
		take(REC_THREAD, sizeof(record.thread) + record.thread.name_bytes);
	}
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

/* The stacks there are: neighbours share all but their last few frames. */
static struct pool_stack {
	struct frame frames[DEPTH];
	uint32_t depth;
} pool[STACKS];

static void make_pool(void)
{
	for (uint32_t at = 0; at < STACKS; at++) {
		struct pool_stack *stack = &pool[at];
		uint32_t kept;

		if (at > 0)
			*stack = pool[at - 1];
		kept = stack->depth - next_random(stack->depth < 6 ? stack->depth + 1 : 6);
		kept = kept > DEPTH - 6 ? DEPTH - 6 : kept;
		stack->depth = kept + 1 + next_random(5);
		for (uint32_t i = kept; i < stack->depth; i++) {
			uint32_t symbol = next_random(SYMBOLS) + 1;

			stack->frames[i] = frame_make(FRAME_PYTHON, symbol, symbol % 900 + 2 + next_random(20));
		}
	}
}

/* Nine times in ten to a stack nearby, else anywhere. */
static void write_run(uint32_t thread, uint32_t count, uint64_t t_first_ns)
{
	static uint32_t places[THREADS + 1];
	static bool started[THREADS + 1];
	uint32_t before = places[thread], now = next_random(10) ? before + next_random(16) : next_random(STACKS),
		 shared = 0, depth;
	const struct frame *frames;

	now %= STACKS;
	places[thread] = now;
	frames = pool[now].frames;
	depth = pool[now].depth;
	while (shared < depth && shared < pool[before].depth &&
	       memcmp(&frames[shared], &pool[before].frames[shared], sizeof(*frames)) == 0)
		shared++;
	if (!started[thread])
		shared = 0;
	started[thread] = true;
	record.stack = (struct rec_stack){
		.thread = thread,
		.count = count,
		.t_first_ns = t_first_ns,
		.t_last_ns = t_first_ns + (count - 1) * (uint64_t)INTERVAL_NS,
		.weight_ns = (uint64_t)count * INTERVAL_NS,
		.status = (uint16_t)(next_random(8) ? STATUS_RUNNABLE | STATUS_GIL : STATUS_GIL_WAIT),
		.depth = depth,
		.shared = shared,
	};
	memcpy(record.stack.frames, frames + shared, (depth - shared) * sizeof(struct frame));
	take(REC_STACK, sizeof(record.stack) + (depth - shared) * sizeof(struct frame));
}

static void write_facts(uint64_t samples, uint64_t runs, uint64_t now_ns)
{
	record.facts = (struct rec_facts){
		.target = 1,
		.interval_ns = INTERVAL_NS,
		.t_start_ns = 2 * NS_PER_S,
		.t_last_ns = now_ns,
		.ticks = samples / THREADS,
		.attempts = samples,
		.samples = samples,
		.runs = runs,
		.symbols = SYMBOLS,
	};
	tally.first_ns = 2 * NS_PER_S;
	tally.last_ns = now_ns;
	take(REC_FACTS, sizeof(record.facts));
}

int main(int argc, char **argv)
{
	uint64_t samples = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000000,
		 a_run = argc > 3 ? strtoull(argv[3], NULL, 10) : 2;
	uint64_t times_ns[THREADS + 1], done = 0, runs = 0, now_ns = 2 * NS_PER_S;
	struct recording_options options = {
		.interval_ns = INTERVAL_NS, .realtime_offset_ns = 1700000000 * NS_PER_S, .pack = true};
	struct fault fault = {0};
	int fd, err;

	/* A name with a dash before it is an option that somebody hoped for: ./-name is still a file. */
	if (argc < 2 || argv[1][0] == '-' || samples == 0 || a_run == 0 || a_run > 1000) {
		fprintf(stderr, "usage: make_recording OUT [SAMPLES [SAMPLES_A_RUN]]\n");
		return 2;
	}
	err = recording_open(&fd, argv[1], &fault);
	if (!err)
		err = recording_writer_new(&writer, fd, &options);
	if (err) {
		fprintf(stderr, "make_recording: cannot write %s: %s\n", argv[1], fault.why);
		return 1;
	}
	make_pool();
	define_all();
	for (uint32_t i = 0; i <= THREADS; i++)
		times_ns[i] = now_ns;
	for (; done < samples; runs++) {
		uint32_t thread = (uint32_t)(runs % THREADS) + 1;
		/* From 1 to twice the mean less 1. */
		uint64_t count = 1 + next_random((uint32_t)(2 * a_run - 1)),
			 t_ns = times_ns[thread] + next_random(INTERVAL_NS / 4);

		count = count > samples - done ? samples - done : count;
		write_run(thread, (uint32_t)count, t_ns);
		done += count;
		times_ns[thread] += count * INTERVAL_NS;
		now_ns = now_ns < t_ns + count * INTERVAL_NS ? t_ns + count * INTERVAL_NS : now_ns;
		if (runs % 4096 == 0)
			write_facts(done, runs + 1, now_ns);
	}
	write_facts(done, runs, now_ns);
	err = recording_writer_finish(writer, &tally);
	printf("%" PRIu64 " samples, %" PRIu64 " runs, %" PRIu64 " bytes\n", done, runs,
	       recording_writer_bytes(writer));
	recording_writer_free(writer);
	close(fd);
	return err != 0;
}
