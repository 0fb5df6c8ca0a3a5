/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/publish.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/error.h"

enum { QUEUE_MAX = 4 }; /* the session asks for one snapshot at a time, and for one more at the end */

struct request {
	uint64_t sequence;
	struct profile *profile; /* owned; NULL: there was no memory for it */
};

struct publisher {
	struct sampler *sampler;
	struct aggregator *aggregator;
	struct outputs *outputs;
	pthread_t thread;
	int event_fd;
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake;
	struct request queue[QUEUE_MAX];
	size_t queued;
	bool finish, ended;
	uint64_t snapshots;
	struct profile *final;
	int err;
};

static void note_error(struct publisher *p, int err)
{
	pthread_mutex_lock(&p->lock);
	p->err = p->err ? p->err : err;
	pthread_mutex_unlock(&p->lock);
}

static int write_snapshot(struct publisher *p, struct request *request)
{
	if (request->profile)
		return outputs_write(p->outputs, &request->profile);
	error_note("cannot write snapshot %" PRIu64 ": out of memory", request->sequence);
	return -ENOMEM;
}

/* Writes what is in the queue, in order; called and returns with the lock held. */
static void write_snapshots(struct publisher *p)
{
	while (p->queued > 0) {
		struct request request = p->queue[0];

		p->queued--;
		for (size_t i = 0; i < p->queued; i++)
			p->queue[i] = p->queue[i + 1];
		pthread_mutex_unlock(&p->lock);
		note_error(p, write_snapshot(p, &request));
		profile_free(request.profile);
		pthread_mutex_lock(&p->lock);
		p->snapshots++; /* one that failed is done with as well */
		(void)eventfd_write(p->event_fd, 1);
	}
}

/* The final profile, after everything sampled has gone through the aggregator. */
static void write_final(struct publisher *p)
{
	struct profile *profile = NULL;
	int err;

	err = aggregator_profile(p->aggregator, &profile);
	note_error(p, outputs_finish_recording(p->outputs, profile));
	if (err)
		error_note("cannot write the profile: out of memory");
	else
		err = outputs_write(p->outputs, &profile);
	note_error(p, err);
	note_error(p, outputs_finish_push(p->outputs));
	pthread_mutex_lock(&p->lock);
	p->final = profile;
	p->ended = true;
	pthread_mutex_unlock(&p->lock);
	(void)eventfd_write(p->event_fd, 1);
}

static void *publish(void *context)
{
	struct publisher *p = context;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		write_snapshots(p);
		if (p->finish)
			break;
		pthread_cond_wait(&p->wake, &p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	sampler_stop(p->sampler);
	aggregator_join(p->aggregator);
	/* Marks that were under way came by while the aggregator drained the ring. */
	pthread_mutex_lock(&p->lock);
	write_snapshots(p);
	pthread_mutex_unlock(&p->lock);
	write_final(p);
	return NULL;
}

int publisher_new(struct publisher **ret_publisher, struct sampler *sampler, struct aggregator *aggregator,
                  struct outputs *outputs)
{
	struct publisher *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	*p = (struct publisher){.sampler = sampler, .aggregator = aggregator, .outputs = outputs};
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	p->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->event_fd < 0) {
		err = -errno;
		free(p);
		return err;
	}
	err = -pthread_create(&p->thread, NULL, publish, p);
	if (err) {
		close(p->event_fd);
		free(p);
		return err;
	}
	*ret_publisher = p;
	return 0;
}

void publisher_free(struct publisher *publisher)
{
	if (!publisher)
		return;
	pthread_join(publisher->thread, NULL);
	close(publisher->event_fd);
	profile_free(publisher->final);
	pthread_cond_destroy(&publisher->wake);
	pthread_mutex_destroy(&publisher->lock);
	free(publisher);
}

void publisher_snapshot(void *publisher, uint64_t sequence, struct profile *profile)
{
	struct publisher *p = publisher;

	pthread_mutex_lock(&p->lock);
	if (p->queued < QUEUE_MAX) {
		p->queue[p->queued++] = (struct request){.sequence = sequence, .profile = profile};
		profile = NULL;
	}
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	profile_free(profile);
}

void publisher_finish(struct publisher *publisher)
{
	pthread_mutex_lock(&publisher->lock);
	publisher->finish = true;
	pthread_cond_signal(&publisher->wake);
	pthread_mutex_unlock(&publisher->lock);
}

int publisher_event_fd(const struct publisher *publisher)
{
	return publisher->event_fd;
}

uint64_t publisher_snapshots(struct publisher *publisher)
{
	uint64_t snapshots;

	pthread_mutex_lock(&publisher->lock);
	snapshots = publisher->snapshots;
	pthread_mutex_unlock(&publisher->lock);
	return snapshots;
}

const struct profile *publisher_final(struct publisher *publisher, int *ret_err)
{
	const struct profile *profile;

	pthread_mutex_lock(&publisher->lock);
	profile = publisher->final;
	*ret_err = publisher->err;
	pthread_mutex_unlock(&publisher->lock);
	return profile;
}

bool publisher_ended(struct publisher *publisher)
{
	bool ended;

	pthread_mutex_lock(&publisher->lock);
	ended = publisher->ended;
	pthread_mutex_unlock(&publisher->lock);
	return ended;
}
