/* SPDX-License-Identifier: Apache-2.0 */
/* The aggregator's thread: profiles at marks, while the stream goes on. */
#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "sampler/ring.h"
#include "tests/unit/stream.h"

enum { MARKS = 50, RUNS_PER_MARK = 400 };

struct marks {
	unsigned count;
	uint64_t samples; /* of the latest */
};

/* Runs in the aggregator's thread. A failed check is seen after the join. */
static void on_mark(void *context, uint64_t sequence, struct profile *profile)
{
	struct marks *marks = context;

	cr_assert_not_null(profile);
	cr_assert_eq(sequence, marks->count + 1);
	cr_assert_eq(profile->sequence, sequence);
	cr_assert_eq(profile_sum(profile, VALUE_SAMPLES), sequence * RUNS_PER_MARK * 2, "exactly what came before the mark");
	cr_assert_eq(profile->processes[0].facts.samples, sequence * RUNS_PER_MARK * 2);
	cr_assert_gt(profile->t_end_ns, profile->t_start_ns);
	marks->samples = profile_sum(profile, VALUE_SAMPLES);
	marks->count++;
	profile_free(profile);
}

static void make_stream(struct stream *s)
{
	struct frame frames[10];

	stream_target(s, 1, 100, "python3");
	stream_symbol(s, 1, "f", "f.py", 1);
	stream_thread(s, 1, 1, 100, THREAD_MAIN, NULL);
	for (uint64_t mark = 1; mark <= MARKS; mark++) {
		for (uint32_t run = 0; run < RUNS_PER_MARK; run++) {
			for (uint32_t i = 0; i < 10; i++)
				frames[i] = stream_frame(1, i + run % 7);
			s->now_ns += 2 * NS_PER_MS;
			stream_stack(s, 1, STATUS_RUNNABLE, 2, frames, 1 + run % 10);
		}
		stream_facts(s, 1, NULL);
		stream_mark(s, mark);
	}
}

Test(aggregator_thread, a_mark_yields_the_profile_at_exactly_that_record)
{
	const struct aggregator_options options = {.idle = true};
	const struct rec_head *record;
	struct aggregator *aggregator;
	struct profile *last;
	struct marks marks = {0};
	struct stream s = {0};
	struct ring *ring;
	size_t at = 0;

	make_stream(&s);
	cr_assert_eq(ring_new(&ring, 16384), 0);
	cr_assert_eq(aggregator_new(&aggregator, &options), 0);
	cr_assert_eq(aggregator_start(aggregator, ring, on_mark, &marks), 0);
	while ((record = stream_next(&s, &at))) {
		void *room = ring_reserve(ring, record->bytes, record->type);

		while (!room) {
			ring_wake(ring);
			sched_yield();
			room = ring_reserve(ring, record->bytes, record->type);
		}
		memcpy(room, record, record->bytes);
		ring_commit(ring);
		if (record->type == REC_MARK)
			ring_wake(ring);
	}
	ring_close(ring);
	aggregator_join(aggregator);
	cr_assert_eq(marks.count, MARKS);
	cr_assert_eq(aggregator_samples(aggregator), MARKS * RUNS_PER_MARK * 2);
	cr_assert_eq(aggregator_profile(aggregator, &last), 0);
	cr_assert_eq(profile_sum(last, VALUE_SAMPLES), marks.samples);
	profile_free(last);
	aggregator_free(aggregator);
	ring_free(ring);
	stream_release(&s);
}

/* A producer that never wakes anybody is heard nonetheless. */
Test(aggregator_thread, needs_no_wake)
{
	const struct aggregator_options options = {.idle = true};
	struct aggregator *aggregator;
	struct rec_target *record;
	struct ring *ring;
	uint64_t start_ns;

	cr_assert_eq(ring_new(&ring, 4096), 0);
	cr_assert_eq(aggregator_new(&aggregator, &options), 0);
	cr_assert_eq(aggregator_start(aggregator, ring, NULL, NULL), 0);
	sched_yield();
	record = ring_reserve(ring, sizeof(*record), REC_TARGET);
	cr_assert_not_null(record);
	memset((char *)record + sizeof(record->head), 0, sizeof(*record) - sizeof(record->head));
	ring_commit(ring);
	start_ns = clock_now_ns();
	while (ring_used_bytes(ring) && clock_now_ns() - start_ns < 30 * NS_PER_S)
		sched_yield();
	cr_assert_eq(ring_used_bytes(ring), 0);
	ring_close(ring);
	aggregator_join(aggregator);
	aggregator_free(aggregator);
	ring_free(ring);
}
