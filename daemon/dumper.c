/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's queue and its thread. What is done with a job is in dumper_write.c. */
#include "daemon/dumper.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/dumper_state.h"
#include "daemon/service_log.h"

#define PATIENCE_NS (1 * NS_PER_S)

void dump_labels_release(struct dump_labels *labels)
{
	for (size_t i = 0; i < labels->count; i++) {
		free((char *)labels->items[i].name);
		free((char *)labels->items[i].value);
	}
	free(labels->items);
	*labels = (struct dump_labels){0};
}

int dump_labels_add(struct dump_labels *labels, const char *name, const char *value)
{
	struct label *items;
	struct label item;

	if (!value || !value[0])
		return 0;
	items = realloc(labels->items, (labels->count + 1) * sizeof(*items));
	if (!items)
		return -ENOMEM;
	labels->items = items;
	item = (struct label){.name = strdup(name), .value = strdup(value)};
	if (!item.name || !item.value) {
		free((char *)item.name);
		free((char *)item.value);
		return -ENOMEM;
	}
	items[labels->count++] = item;
	return 0;
}

static void job_release(struct dump_job *job)
{
	for (size_t i = 0; i < job->part_count; i++)
		dump_labels_release(&job->parts[i].labels);
	free(job->parts);
	free(job->what);
	control_reply_unref(job->reply);
	*job = (struct dump_job){0};
}

/* The first job whose mark has come by; QUEUE_MAX: none. With the lock held. */
static size_t ready(const struct dumper *d)
{
	for (size_t i = 0; i < d->queued; i++)
		if (d->queue[i].mark <= d->mark || d->ending)
			return i;
	return QUEUE_MAX;
}

static void *work(void *context)
{
	struct dumper *d = context;

	prctl(PR_SET_NAME, "sampled-dumper");
	pthread_mutex_lock(&d->lock);
	for (;;) {
		size_t next = ready(d);
		struct dump_job job;

		if (next == QUEUE_MAX && d->sweep) {
			d->sweep = false;
			pthread_mutex_unlock(&d->lock);
			dumper_sweep_now(d);
			pthread_mutex_lock(&d->lock);
			continue;
		}
		if (next == QUEUE_MAX && d->ending)
			break;
		if (next == QUEUE_MAX) {
			pthread_cond_wait(&d->wake, &d->lock);
			continue;
		}
		job = d->queue[next];
		d->queued--;
		for (size_t i = next; i < d->queued; i++)
			d->queue[i] = d->queue[i + 1];
		pthread_mutex_unlock(&d->lock);
		dumper_do(d, &job);
		job_release(&job);
		pthread_mutex_lock(&d->lock);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

int dumper_start(struct dumper **ret_dumper, const struct config *config, struct collector *collector,
                 struct fault *fault)
{
	struct dumper *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	d->collector = collector;
	d->places.spool_fd = -1;
	d->places.retention.fd = -1;
	if (gethostname(d->host, sizeof(d->host) - 1) != 0)
		strcpy(d->host, "unknown");
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_init(&d->places_lock, NULL);
	pthread_cond_init(&d->wake, NULL);
	err = dumper_reconfigure(d, config, fault);
	if (!err) {
		err = -pthread_create(&d->thread, NULL, work, d);
		if (err)
			fault_set(fault, err, "", "%s", strerror(-err));
	}
	if (err) {
		dumper_close_places(&d->places);
		free(d);
		return err;
	}
	*ret_dumper = d;
	return 0;
}

void dumper_free(struct dumper *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->ending = true;
	d->end_ns = clock_now_ns() + PATIENCE_NS;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	dumper_close_places(&d->places);
	pthread_cond_destroy(&d->wake);
	pthread_mutex_destroy(&d->places_lock);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

bool dumper_is_late(struct dumper *d)
{
	bool late;

	pthread_mutex_lock(&d->lock);
	late = d->ending && clock_now_ns() > d->end_ns;
	pthread_mutex_unlock(&d->lock);
	return late;
}

/* With the lock held. */
static bool has_room(const struct dumper *d, enum dump_target target)
{
	size_t clients = 0;

	for (size_t i = 0; i < d->queued; i++)
		clients += d->queue[i].target == DUMP_TO_CLIENT;
	return d->queued < QUEUE_MAX && (target != DUMP_TO_CLIENT || clients < QUEUE_CLIENTS_MAX);
}

int dumper_ask(struct dumper *d, struct dump_job *job)
{
	int err = 0;

	pthread_mutex_lock(&d->lock);
	if (!has_room(d, job->target) || d->ending)
		err = -ENOBUFS;
	else
		d->queue[d->queued++] = *job;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
	if (!err)
		return 0;
	if (job->reply) {
		control_reply_error(job->reply, "cannot dump: too many dumps are under way");
		control_reply_end(job->reply, 1);
	}
	job_release(job);
	return err;
}

void dumper_mark(struct dumper *d, uint64_t mark)
{
	pthread_mutex_lock(&d->lock);
	d->mark = mark;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
}

bool dumper_has_waiting(struct dumper *d)
{
	bool waiting = false;

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->queued; i++)
		waiting |= d->queue[i].target == DUMP_TO_FILES && !d->queue[i].what;
	pthread_mutex_unlock(&d->lock);
	return waiting;
}

void dumper_sweep(struct dumper *d)
{
	pthread_mutex_lock(&d->lock);
	d->sweep = true;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
}

void dumper_counts(struct dumper *d, struct dumper_counts *ret_counts)
{
	pthread_mutex_lock(&d->lock);
	*ret_counts = d->counts;
	pthread_mutex_unlock(&d->lock);
}
