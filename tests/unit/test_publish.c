/* SPDX-License-Identifier: Apache-2.0 */
/* The publisher at a snapshot that could not be made: it says so, and the session goes on. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "daemon/publish.h"

static void pass_on(void *publisher, uint64_t sequence, struct profile *profile)
{
	publisher_snapshot(publisher, sequence, profile);
}

Test(publish, a_snapshot_without_memory_is_reported_and_counted, .init = cr_redirect_stderr, .timeout = 30)
{
	const struct sampler_options sampling = {.interval_ns = NS_PER_MS};
	const struct aggregator_options aggregation = {.idle = true};
	struct outputs outputs = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct pollfd event = {.events = POLLIN};
	struct aggregator *aggregator;
	struct publisher *publisher;
	struct sampler *sampler;
	struct ring *ring;
	int err = 0;

	cr_assert_eq(ring_new(&ring, 65536), 0);
	cr_assert_eq(sampler_new(&sampler, &sampling, ring), 0);
	cr_assert_eq(aggregator_new(&aggregator, &aggregation), 0);
	cr_assert_eq(publisher_new(&publisher, sampler, aggregator, &outputs), 0);
	cr_assert_eq(aggregator_start(aggregator, ring, pass_on, publisher), 0);
	pass_on(publisher, 7, NULL);
	event.fd = publisher_event_fd(publisher);
	cr_assert_eq(poll(&event, 1, 20000), 1, "the session waits for this");
	cr_assert_eq(publisher_snapshots(publisher), 1);
	cr_assert_not(publisher_ended(publisher));
	ring_close(ring);
	publisher_finish(publisher);
	while (!publisher_ended(publisher))
		poll(NULL, 0, 1);
	cr_assert_not_null(publisher_final(publisher, &err), "the final profile is made all the same");
	cr_assert_eq(err, -ENOMEM, "and the exit status tells of the one that is missing");
	publisher_free(publisher);
	sampler_free(sampler);
	aggregator_free(aggregator);
	ring_free(ring);
	cr_assert_stderr_eq_str("sampled: cannot write snapshot 7: out of memory\n");
}
