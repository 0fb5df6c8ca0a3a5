/* SPDX-License-Identifier: Apache-2.0 */
/* What the writer does with a job. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tempfile.h"
#include "daemon/dumper_state.h"
#include "daemon/error.h"
#include "daemon/service_log.h"
#include "daemon/spool_files.h"

/* Of several processes: which they are. */
struct process_list {
	struct found_process {
		int32_t pid;
		uint64_t start_time;
		char *name; /* owned */
	} * items;          /* owned */
	size_t count, room;
};

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

static void note_dumps(struct dumper *d)
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
		note_dumps(d);
		pthread_mutex_unlock(&d->lock);
	}
	pthread_mutex_unlock(&d->places_lock);
	dumper_close_places(err ? &places : &before);
	return err;
}

/* The profile of a part of the history. 0 or -ENOMEM. */
static int take_profile(struct dumper *d, const struct history_query *query, struct profile **ret_profile)
{
	int err = history_profile(collector_lock(d->collector), query, ret_profile);

	collector_unlock(d->collector);
	return err;
}

/* --- files --- */

struct writing {
	const struct format *format;
	const struct profile *profile;
};

/* Embeds no source lines: a target's word on where its code is gets nobody to read a file. */
static int write_profile(const struct format *format, const struct profile *profile, int fd)
{
	const struct export_options options = {0};
	struct writer *to = malloc(sizeof(*to));
	struct fault fault;
	int err;

	if (!to)
		return -ENOMEM;
	writer_open_fd(to, fd);
	err = writer_finish(to, format_write(format, profile, &options, to), &fault);
	free(to);
	return err;
}

static int write_dump(void *context, int fd)
{
	const struct writing *writing = context;

	return write_profile(writing->format, writing->profile, fd);
}

static void count_dumps(struct dumper *d, bool failed)
{
	pthread_mutex_lock(&d->lock);
	d->counts.written += !failed;
	d->counts.failed += failed;
	note_dumps(d);
	pthread_mutex_unlock(&d->lock);
}

/* One profile in all formats. How many files it was. */
static size_t write_files(struct dumper *d, const struct profile *profile, pid_t pid, const char *name)
{
	const struct dump_subject subject = {.pid = pid, .name = name, .time = time(NULL), .host = d->host};
	size_t count = 0;

	pthread_mutex_lock(&d->places_lock);
	for (size_t i = 0; i < d->places.formats.count; i++) {
		struct writing writing = {.format = d->places.formats.items[i], .profile = profile};
		char written[DUMP_NAME_MAX_BYTES + 1];
		struct fault fault = {0};
		int err = retention_write(&d->places.retention, d->places.pattern, &subject, writing.format->suffix,
		                          write_dump, &writing, written, &fault);

		count_dumps(d, err != 0);
		if (err)
			service_log("cannot write a dump: %s", fault.why);
		count += err == 0;
	}
	pthread_mutex_unlock(&d->places_lock);
	return count;
}

/* The name of the directory goes with its configuration. */
static void say_count(struct dumper *d, size_t count)
{
	pthread_mutex_lock(&d->places_lock);
	service_log("dumped into %s: %zu files", d->places.directory, count);
	pthread_mutex_unlock(&d->places_lock);
}

static int note_process(void *context, const struct history_process *process)
{
	struct process_list *list = context;
	struct found_process *items;

	if (list->count == list->room) {
		list->room = list->room ? 2 * list->room : 64;
		items = realloc(list->items, list->room * sizeof(*items));
		if (!items)
			return -ENOMEM;
		list->items = items;
	}
	list->items[list->count] = (struct found_process){.pid = process->pid, .start_time = process->start_time};
	list->items[list->count].name = strdup(process->name);
	if (!list->items[list->count].name)
		return -ENOMEM;
	list->count++;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct found_process *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->start_time < y->start_time ? -1 : x->start_time > y->start_time;
}

/* One that was attached anew, as a reload does, is in the history twice, and one query finds both. Without the history's lock: they may be
 * thousands. */
static void drop_doubles(struct process_list *list)
{
	size_t kept = 0;

	if (list->count > 1)
		qsort(list->items, list->count, sizeof(*list->items), compare);
	for (size_t i = 0; i < list->count; i++) {
		if (kept > 0 && compare(&list->items[i], &list->items[kept - 1]) == 0)
			free(list->items[i].name);
		else
			list->items[kept++] = list->items[i];
	}
	list->count = kept;
}

/* The last part of the first word of a command line, as processes are called. */
static void short_name(char *line)
{
	char *end = line + strcspn(line, " "), *slash;

	*end = '\0';
	slash = strrchr(line, '/');
	if (slash && slash[1])
		memmove(line, slash + 1, strlen(slash + 1) + 1);
}

static int dump_one(struct dumper *d, const struct dump_job *job, struct found_process *process, size_t *ret_count)
{
	struct history_query query = job->query;
	struct profile *profile;
	int err;

	query.pid = process->pid;
	query.start_time = process->start_time;
	err = take_profile(d, &query, &profile);
	if (err)
		return err;
	if (profile_sum(profile, VALUE_SAMPLES) > 0) {
		short_name(process->name);
		*ret_count += write_files(d, profile, query.pid, process->name);
	}
	profile_free(profile);
	return 0;
}

static int dump_each(struct dumper *d, const struct dump_job *job, size_t *ret_count)
{
	struct process_list list = {0};
	size_t left_out = 0;
	int err = history_each_process(collector_lock(d->collector), note_process, &list);

	collector_unlock(d->collector);
	drop_doubles(&list);
	for (size_t i = 0; i < list.count; i++) {
		if (!err && dumper_is_late(d))
			left_out++;
		else if (!err)
			err = dump_one(d, job, &list.items[i], ret_count);
		free(list.items[i].name);
	}
	free(list.items);
	if (left_out)
		service_log("ended before %zu of %zu processes were dumped", left_out, list.count);
	return err;
}

static int dump_files(struct dumper *d, const struct dump_job *job)
{
	struct profile *profile;
	size_t count = 0;
	int err = job->by_process ? dump_each(d, job, &count) : take_profile(d, &job->query, &profile);

	if (!err && !job->by_process) {
		count = write_files(d, profile, job->query.pid, job->what ? job->what : "all");
		profile_free(profile);
	}
	if (count)
		say_count(d, count);
	return err;
}

/* --- a client --- */

static void answer(struct dumper *d, const struct dump_job *job)
{
	struct profile *profile = NULL;
	int fd = tempfile_open(NULL), err = fd < 0 ? fd : take_profile(d, &job->query, &profile);

	if (!err && profile->process_count == 0) {
		control_reply_error(job->reply, "nothing to dump: no sample is known of that");
		control_reply_end(job->reply, EXIT_NO_PYTHON);
		err = 1;
	}
	if (!err)
		err = write_profile(job->format, profile, fd);
	profile_free(profile);
	if (err < 0) {
		control_reply_error(job->reply, "cannot make the dump: %s", strerror(-err));
		control_reply_end(job->reply, EXIT_FAILED);
	}
	if (err && fd >= 0)
		close(fd);
	if (!err)
		(void)control_reply_take_file(job->reply, fd, EXIT_DONE); /* a client that has gone needs none */
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

static int spool(struct dumper *d, const struct dump_job *job)
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

		err = take_profile(d, &job->parts[i].query, &profile);
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
		note_dumps(d);
		pthread_mutex_unlock(&d->lock);
		pthread_mutex_unlock(&d->places_lock);
	}
	for (size_t i = 0; profiles && i < count; i++)
		profile_free(profiles[i]);
	free(profiles);
	free(items);
	return err == -ENOMEM ? err : 0;
}

/* The service ends: what is to be sent comes first, and nobody waits for the others for long. */
static bool is_left_out(struct dumper *d, const struct dump_job *job)
{
	if (job->target == DUMP_TO_SPOOL || !dumper_is_late(d))
		return false;
	if (job->target == DUMP_TO_FILES) {
		service_log("ended before a dump was made");
	} else {
		control_reply_error(job->reply, "cannot dump: the service ends");
		control_reply_end(job->reply, EXIT_FAILED);
	}
	return true;
}

void dumper_do(struct dumper *d, const struct dump_job *job)
{
	int err = 0;

	if (is_left_out(d, job))
		return;
	switch (job->target) {
	case DUMP_TO_FILES:
		err = dump_files(d, job);
		break;
	case DUMP_TO_CLIENT:
		answer(d, job);
		break;
	case DUMP_TO_SPOOL:
		err = spool(d, job);
		break;
	}
	if (err)
		service_log("cannot dump: %s", strerror(-err));
}

void dumper_sweep_now(struct dumper *d)
{
	pthread_mutex_lock(&d->places_lock);
	if (retention_sweep(&d->places.retention, time(NULL)) != 0)
		service_log("cannot remove old dumps from %s", d->places.directory);
	pthread_mutex_lock(&d->lock);
	note_dumps(d);
	pthread_mutex_unlock(&d->lock);
	pthread_mutex_unlock(&d->places_lock);
}
