/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/collector.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampler/record.h"

enum { BATCH = 256 }; /* records fed before others get the lock */

#define WAIT_NS (1 * NS_PER_S) /* the sampler wakes it when there is much, or a mark */

struct collector {
	struct ring *ring;
	struct history *history;
	pthread_t thread;
	bool joined;
	pthread_mutex_t lock; /* guards the history */
	int event_fd;
	_Atomic uint64_t slice_ns, mark;
	_Atomic uint64_t closed_ns; /* when the latest slice was closed */
};

static void close_slice(struct collector *c, uint64_t t_ns)
{
	(void)history_close_slice(c->history, t_ns); /* what finds no memory is counted there */
	atomic_store_explicit(&c->closed_ns, t_ns, memory_order_release); /* pairs with collector_closed_ns */
}

static void take_mark(struct collector *c, const struct rec_mark *record)
{
	/* relaxed: a number that nothing hangs on */
	uint64_t slice_ns = atomic_load_explicit(&c->slice_ns, memory_order_relaxed);

	if (record->t_ns - collector_closed_ns(c) >= slice_ns - slice_ns / 10)
		close_slice(c, record->t_ns);
	atomic_store_explicit(&c->mark, record->sequence, memory_order_release); /* pairs with collector_mark */
}

/* Feeds what there is, a batch at most. How many records it was. */
static int feed(struct collector *c)
{
	bool marked = false;
	int count = 0;

	pthread_mutex_lock(&c->lock);
	for (const struct rec_head *record; count < BATCH && (record = ring_peek(c->ring)); count++) {
		bool mark = history_feed(c->history, record) == 0 && record->type == REC_MARK;

		if (mark)
			take_mark(c, (const struct rec_mark *)record);
		marked |= mark;
		ring_release(c->ring);
	}
	pthread_mutex_unlock(&c->lock);
	if (marked)
		(void)eventfd_write(c->event_fd, 1);
	return count;
}

static void *collect(void *context)
{
	struct collector *c = context;

	prctl(PR_SET_NAME, "sampled-collect");
	for (;;) {
		if (feed(c) > 0)
			continue;
		if (ring_at_end(c->ring)) {
			collector_lock(c);
			close_slice(c, clock_now_ns());
			collector_unlock(c);
			return NULL;
		}
		ring_wait(c->ring, WAIT_NS);
	}
}

int collector_start(struct collector **ret_collector, struct ring *ring, struct history *history, uint64_t slice_ns)
{
	struct collector *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	*c = (struct collector){.ring = ring, .history = history};
	atomic_init(&c->slice_ns, slice_ns);
	atomic_init(&c->closed_ns, clock_now_ns());
	c->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->event_fd < 0) {
		err = -errno;
		free(c);
		return err;
	}
	pthread_mutex_init(&c->lock, NULL);
	err = -pthread_create(&c->thread, NULL, collect, c);
	if (err) {
		pthread_mutex_destroy(&c->lock);
		close(c->event_fd);
		free(c);
		return err;
	}
	*ret_collector = c;
	return 0;
}

void collector_join(struct collector *c)
{
	pthread_join(c->thread, NULL);
	c->joined = true;
}

void collector_free(struct collector *c)
{
	if (!c)
		return;
	if (!c->joined)
		collector_join(c);
	pthread_mutex_destroy(&c->lock);
	close(c->event_fd);
	free(c);
}

int collector_event_fd(const struct collector *c)
{
	return c->event_fd;
}

uint64_t collector_mark(const struct collector *c)
{
	return atomic_load_explicit(&c->mark, memory_order_acquire); /* pairs with take_mark */
}

uint64_t collector_closed_ns(const struct collector *c)
{
	return atomic_load_explicit(&c->closed_ns, memory_order_acquire); /* pairs with close_slice */
}

void collector_set_slice(struct collector *c, uint64_t slice_ns)
{
	atomic_store_explicit(&c->slice_ns, slice_ns, memory_order_relaxed);
}

struct history *collector_lock(struct collector *c)
{
	pthread_mutex_lock(&c->lock);
	return c->history;
}

void collector_unlock(struct collector *c)
{
	pthread_mutex_unlock(&c->lock);
}
