/* SPDX-License-Identifier: Apache-2.0 */
/* What the writer does with a job: dumps into files, and for clients. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tempfile.h"
#include "daemon/dumper_state.h"
#include "daemon/error.h"
#include "daemon/service_log.h"

/* Of several processes: which they are. */
struct process_list {
	struct found_process {
		int32_t pid;
		uint64_t start_time;
		char *name; /* owned */
	} * items;          /* owned */
	size_t count, room;
};

int dumper_take_profile(struct dumper *d, const struct history_query *query, struct profile **ret_profile)
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
	dumper_note_dumps(d);
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
	err = dumper_take_profile(d, &query, &profile);
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
	int err = job->by_process ? dump_each(d, job, &count) : dumper_take_profile(d, &job->query, &profile);

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
	int fd = tempfile_open(NULL), err = fd < 0 ? fd : dumper_take_profile(d, &job->query, &profile);

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
		err = dumper_spool(d, job);
		break;
	}
	if (err)
		service_log("cannot dump: %s", strerror(-err));
}
