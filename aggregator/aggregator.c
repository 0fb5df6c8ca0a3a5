/* SPDX-License-Identifier: Apache-2.0 */
/* The aggregator's life, and the thread that drains the ring. */
#include "aggregator/aggregator.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state.h"
#include "base/clock.h"

/* How long the thread sleeps when nobody wakes it: a producer that only commits is heard this late. */
#define POLL_NS (50 * NS_PER_MS)

int aggregator_new(struct aggregator **ret_aggregator, const struct aggregator_options *options)
{
	struct aggregator *aggregator = calloc(1, sizeof(*aggregator));

	if (!aggregator)
		return -ENOMEM;
	aggregator->options = *options;
	if (options->threads) {
		struct thread_filter *copy = calloc(options->thread_filter_count + 1, sizeof(*copy));

		if (!copy) {
			free(aggregator);
			return -ENOMEM;
		}
		memcpy(copy, options->threads, options->thread_filter_count * sizeof(*copy));
		aggregator->options.threads = copy;
	}
	aggregator->budget.max_bytes = options->memory_max_bytes;
	symbols_init(&aggregator->symbols, &aggregator->budget, options->omit, options->stop);
	aggregator->realtime_offset_ns = clock_read_ns(CLOCK_REALTIME) - clock_now_ns();
	*ret_aggregator = aggregator;
	return 0;
}

void aggregator_free(struct aggregator *aggregator)
{
	if (!aggregator)
		return;
	for (uint32_t i = 0; i < aggregator->thread_count; i++)
		thread_free(aggregator->threads[i], &aggregator->symbols);
	free(aggregator->threads);
	lookup_release(&aggregator->thread_ids);
	for (uint32_t i = 0; i < aggregator->process_count; i++) {
		if (aggregator->processes[i].ended.nodes)
			tree_release(&aggregator->processes[i].ended, &aggregator->symbols);
		free(aggregator->processes[i].process.name);
	}
	free(aggregator->processes);
	lookup_release(&aggregator->target_ids);
	symbols_release(&aggregator->symbols);
	free((void *)aggregator->options.threads);
	free(aggregator);
}

uint64_t aggregator_samples(const struct aggregator *aggregator)
{
	/* Relaxed: a figure to show, nothing hangs on it. */
	return atomic_load_explicit(&aggregator->samples, memory_order_relaxed);
}

void aggregator_tally(const struct aggregator *aggregator, struct tally *ret_tally)
{
	*ret_tally = aggregator->tally;
}

uint64_t aggregator_realtime_offset_ns(const struct aggregator *aggregator)
{
	return aggregator->realtime_offset_ns;
}

static void hand_out_mark(struct aggregator *aggregator)
{
	uint64_t sequence = aggregator->mark_sequence;
	struct profile *profile = NULL;

	if (!aggregator->on_mark)
		return;
	if (aggregator_profile(aggregator, &profile) != 0)
		profile = NULL;
	aggregator->on_mark(aggregator->context, sequence, profile);
}

static void *run(void *context)
{
	struct aggregator *aggregator = context;

	for (;;) {
		const struct rec_head *record = ring_peek(aggregator->ring);
		bool mark;
		int err;

		if (!record) {
			if (ring_at_end(aggregator->ring))
				break;
			if (aggregator->options.on_record)
				aggregator->options.on_record(aggregator->options.on_record_context, NULL, NULL);
			ring_wait(aggregator->ring, POLL_NS);
			continue;
		}
		mark = record->type == REC_MARK;
		err = aggregator_feed(aggregator, record); /* errors are counted there */
		ring_release(aggregator->ring);
		if (mark && err == 0)
			hand_out_mark(aggregator);
	}
	return NULL;
}

int aggregator_start(struct aggregator *aggregator, struct ring *ring,
                     void (*on_mark)(void *context, uint64_t sequence, struct profile *profile), void *context)
{
	sigset_t all, before;
	int err;

	aggregator->ring = ring;
	aggregator->on_mark = on_mark;
	aggregator->context = context;
	/* A thread inherits the mask: signals are the main thread's. */
	sigfillset(&all);
	err = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (err)
		return -err;
	err = pthread_create(&aggregator->worker, NULL, run, aggregator);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

void aggregator_join(struct aggregator *aggregator)
{
	pthread_join(aggregator->worker, NULL);
}
