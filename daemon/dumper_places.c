/* SPDX-License-Identifier: Apache-2.0 */
/* Where the writer writes: the directories of the configuration in force, and what goes into the spool. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/dumper_state.h"
#include "daemon/service_log.h"
#include "daemon/spool_files.h"

void dumper_close_places(struct dump_places *places)
{
	if (places->retention.fd >= 0)
		retention_close(&places->retention);
	if (places->spool_fd >= 0)
		close(places->spool_fd);
	free(places->directory);
	free(places->pattern);
	free(places->spool);
	*places = (struct dump_places){.spool_fd = -1, .retention.fd = -1};
}

static int open_spool(struct dump_places *places, const struct config_push *push, struct fault *fault)
{
	if (!push->spool)
		return 0;
	places->spool_bytes = push->spool_bytes;
	places->spool = strdup(push->spool);
	places->spool_fd = open(push->spool, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (places->spool_fd < 0)
		return fault_set(fault, -errno, "systemd-tmpfiles makes it", "%s: %s", push->spool, strerror(errno));
	if (!places->spool)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	spool_sweep(places->spool_fd); /* what one that was killed left unfinished */
	return 0;
}

void dumper_note_dumps(struct dumper *d)
{
	const struct retention *r = &d->places.retention;

	d->counts.files = r->count;
	d->counts.bytes = r->bytes;
	d->counts.removed = r->removed.by_count + r->removed.by_bytes + r->removed.by_age + r->removed.by_full_disk;
}

/* With the places locked: what is unfinished is removed, and the list of dumps read, so that nothing may be written meanwhile. */
static int open_places(struct dump_places *places, const struct config *config, struct fault *fault)
{
	const struct config_dump *dump = &config->dump;
	const struct retention_limits limits = {
		.count = dump->keep_count, .bytes = dump->keep_bytes, .age_ns = dump->keep_age_ns};
	int err = retention_open(&places->retention, dump->directory, &limits, fault);

	if (err)
		places->retention.fd = -1;
	if (!err)
		err = open_spool(places, &config->push, fault);
	places->directory = strdup(dump->directory);
	places->pattern = strdup(dump->name);
	if (!err && (!places->directory || !places->pattern))
		err = fault_set(fault, -ENOMEM, "", "out of memory");
	return err;
}

int dumper_reconfigure(struct dumper *d, const struct config *config, struct fault *fault)
{
	struct dump_places places = {.spool_fd = -1, .retention.fd = -1, .formats = config->dump.formats}, before;
	int err;

	pthread_mutex_lock(&d->places_lock);
	err = open_places(&places, config, fault);
	if (!err) {
		before = d->places;
		places.retention.removed = before.retention.removed;
		d->places = places;
		pthread_mutex_lock(&d->lock);
		dumper_note_dumps(d);
		pthread_mutex_unlock(&d->lock);
	}
	pthread_mutex_unlock(&d->places_lock);
	dumper_close_places(err ? &places : &before);
	return err;
}

void dumper_sweep_now(struct dumper *d)
{
	pthread_mutex_lock(&d->places_lock);
	if (retention_sweep(&d->places.retention, time(NULL)) != 0)
		service_log("cannot remove old dumps from %s", d->places.directory);
	pthread_mutex_lock(&d->lock);
	dumper_note_dumps(d);
	pthread_mutex_unlock(&d->lock);
	pthread_mutex_unlock(&d->places_lock);
}

/* --- the spool --- */

static bool is_same_disk(int one_fd, int other_fd)
{
	struct stat one, other;

	return fstat(one_fd, &one) == 0 && fstat(other_fd, &other) == 0 && one.st_dev == other.st_dev;
}

/* On a full disk that they share, dumps give way, once the spool has nothing left to drop. With the places locked. */
static int put_in_spool(struct dump_places *places, const struct spool_item *items, size_t count,
                        struct spool_counts *counts, struct fault *fault)
{
	const struct spool_counts before = *counts;
	int err;

	if (places->spool_fd < 0)
		return 0;
	err = spool_write(places->spool_fd, items, count, places->spool_bytes, counts, fault);
	if ((err != -ENOSPC && err != -EDQUOT) || !is_same_disk(places->spool_fd, places->retention.fd) ||
	    !retention_give_way(&places->retention))
		return err;
	counts->failed_items = before.failed_items; /* these have another chance */
	counts->pruned_items = before.pruned_items;
	*fault = (struct fault){0};
	return spool_write(places->spool_fd, items, count, places->spool_bytes, counts, fault);
}

int dumper_spool(struct dumper *d, const struct dump_job *job)
{
	uint64_t offset_ns = clock_read_ns(CLOCK_REALTIME) - clock_now_ns();
	struct spool_item *items = calloc(job->part_count + 1, sizeof(*items));
	struct profile **profiles = calloc(job->part_count + 1, sizeof(struct profile *));
	struct spool_counts counts = {0};
	struct fault fault = {0};
	size_t count = 0;
	int err = items && profiles ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < job->part_count; i++) {
		struct profile *profile;

		err = dumper_take_profile(d, &job->parts[i].query, &profile);
		if (err)
			break;
		profiles[count] = profile;
		items[count] = (struct spool_item){
			.labels = {.items = job->parts[i].labels.items, .count = job->parts[i].labels.count},
			.from_ns = profile->t_start_ns + offset_ns,
			.until_ns = profile->t_end_ns + offset_ns,
			.profile = profile,
		};
		if (profile_sum(profile, VALUE_SAMPLES) > 0)
			count++;
		else
			profile_free(profile);
	}
	if (!err && count > 0) {
		pthread_mutex_lock(&d->places_lock);
		pthread_mutex_lock(&d->lock);
		counts = d->counts.spool;
		pthread_mutex_unlock(&d->lock);
		err = put_in_spool(&d->places, items, count, &counts, &fault);
		if (err || fault.why[0])
			service_log("cannot write to the spool: %s", fault.why);
		pthread_mutex_lock(&d->lock);
		d->counts.spool = counts;
		dumper_note_dumps(d);
		pthread_mutex_unlock(&d->lock);
		pthread_mutex_unlock(&d->places_lock);
	}
	for (size_t i = 0; profiles && i < count; i++)
		profile_free(profiles[i]);
	free(profiles);
	free(items);
	return err == -ENOMEM ? err : 0;
}
