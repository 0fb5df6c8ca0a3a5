/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/error.h"
#include "daemon/graphviz.h"
#include "daemon/result.h"
#include "daemon/terminal.h"
#include "exporters/names.h"
#include "exporters/writer.h"

void outputs_release(struct outputs *outputs)
{
	/* Where planning failed there may be none. */
	for (size_t i = 0; outputs->items && i < outputs->count; i++) {
		free(outputs->items[i].path);
		free(outputs->items[i].stem);
	}
	(void)outputs_finish_push(outputs);
	recorder_release(&outputs->recorder);
	free(outputs->items);
	free(outputs->writer);
	outputs->items = NULL;
	outputs->writer = NULL;
	outputs->count = 0;
	naming_free(outputs->naming);
}

int outputs_start_push(struct outputs *outputs, const struct options *options)
{
	struct fault fault = {0};
	int err = options->push ? push_child_start(&outputs->push, options->push_type, options->push, &fault) : 0;

	if (err)
		error_fault(&fault, "cannot push to %s", options->push);
	return err;
}

int outputs_finish_push(struct outputs *outputs)
{
	int err = push_child_finish(outputs->push);

	outputs->push = NULL;
	return err;
}

static bool needs_runs(const struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->count; i++)
		if (outputs->items[i].format->needs != NEEDS_PROFILE)
			return true;
	return false;
}

bool outputs_record(const struct outputs *outputs)
{
	return outputs->recorder.path || needs_runs(outputs);
}

bool outputs_use_stdout(const struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->count; i++)
		if (!outputs->items[i].path)
			return true;
	return false;
}

/* path: NULL is standard output. */
static int cannot_write(const char *path, int err, struct fault *fault)
{
	if (path && (err == -EACCES || err == -EROFS) && !fault->hint[0])
		snprintf(fault->hint, sizeof(fault->hint), "name a place where you may write by -o");
	error_fault(fault, "cannot write %s", path ? path : "standard output");
	return err;
}

static int check_record(const char *path)
{
	struct fault fault = {0};
	int err = path ? recorder_check(path, &fault) : 0;

	return err ? cannot_write(path, err, &fault) : 0;
}

int outputs_check(struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->count; i++) {
		const char *path = outputs->items[i].path;
		struct fault fault = {0};
		int err = writer_check(outputs->writer, path ? path : "-", &fault);

		if (!err && path && outputs->items[i].svg)
			err = graphviz_check(&fault);
		if (err)
			return cannot_write(path, err, &fault);
	}
	return check_record(outputs->recorder.path);
}

/* Says which file is being made, for outputs_give_up(). */
static void note_tmp_path(struct outputs *outputs)
{
	char *name = outputs->writer->tmp_path ? strdup(outputs->writer->tmp_path) : NULL;

	pthread_mutex_lock(&outputs->lock);
	free(outputs->tmp_path);
	outputs->tmp_path = name;
	pthread_mutex_unlock(&outputs->lock);
}

/* A FIFO is waited for until somebody reads it, or the main thread, which takes the signals, gives up. */
static int open_path(struct outputs *outputs, const char *path, struct fault *fault)
{
	unsigned tries = 0;
	int err;

	do {
		err = writer_open(outputs->writer, path, fault);
		pthread_mutex_lock(&outputs->lock);
		outputs->waiting = err == -EAGAIN;
		pthread_mutex_unlock(&outputs->lock);
	} while (result_waits_for_reader(err, path, &tries));
	return err;
}

bool outputs_wait_for_reader(struct outputs *outputs)
{
	bool waiting;

	pthread_mutex_lock(&outputs->lock);
	waiting = outputs->waiting;
	pthread_mutex_unlock(&outputs->lock);
	return waiting;
}

void outputs_give_up(struct outputs *outputs)
{
	/* Kept locked: the writing thread stops before its next file. */
	pthread_mutex_lock(&outputs->lock);
	if (outputs->tmp_path)
		unlink(outputs->tmp_path);
}

/* Prints the name of a file that is whole. Where a profile itself goes to standard output the name must not be in
 * it. */
static int announce(const struct outputs *outputs, const char *path)
{
	if (!outputs_use_stdout(outputs))
		return result_announce(path);
	terminal_line(path);
	return 0;
}

static int write_to(struct outputs *outputs, const struct output *o, const char *path, const struct profile *profile)
{
	struct writer *w = outputs->writer;
	struct fault fault = {0};
	int err = 0;

	if (path)
		err = open_path(outputs, path, &fault);
	else
		writer_open_fd(w, STDOUT_FILENO);
	if (!err) {
		note_tmp_path(outputs);
		if (o->svg)
			err = graphviz_write_profile(profile, &outputs->options, w, &fault);
		else
			err = format_write(o->format, profile, &outputs->options, w);
		err = writer_finish(w, err, &fault);
		note_tmp_path(outputs);
	}
	if (err)
		error_fault(&fault, "cannot write %s", path ? path : "standard output");
	else if (path)
		err = announce(outputs, path);
	return err;
}

void outputs_start_naming(struct outputs *outputs, const struct options *options)
{
	outputs->naming = naming_new(options->native, options->debuginfod);
}

void outputs_take(void *outputs, const struct rec_head *record, const struct record_fate *fate)
{
	struct outputs *o = outputs;

	naming_take(o->naming, record);
	recorder_take(&o->recorder, record, fate);
}

/* So that the recording says as much on another machine. */
static void add_names(struct outputs *outputs, const struct profile *profile)
{
	struct names *names = naming_prepare(outputs->naming, profile);

	if (names)
		recorder_names(&outputs->recorder, profile, names_frames, names);
}

int outputs_finish_recording(struct outputs *outputs, const struct profile *profile)
{
	const struct recorder *recorder = &outputs->recorder;
	int err;

	if (recorder->path && profile)
		add_names(outputs, profile);
	err = recorder_finish(&outputs->recorder);
	return err || !recorder->writer || !recorder->path ? err : announce(outputs, recorder->path);
}

/* Writes one format, of the profile or, where time order is wanted, of the same as it was recorded, which is read at its first use. */
static int write_one(struct outputs *outputs, const struct output *o, const char *path, const struct profile *profile,
                     struct profile **timed)
{
	struct fault fault = {0};
	int err;

	if (o->format->needs == NEEDS_PROFILE)
		return write_to(outputs, o, path, profile);
	err = 0;
	if (!*timed) {
		err = recorder_read(&outputs->recorder, profile->sequence, timed, &fault);
		if (!err)
			naming_apply(outputs->naming, timed);
	}
	if (!err)
		return write_to(outputs, o, path, *timed);
	error_fault(&fault, "cannot write %s", path ? path : "standard output");
	return err;
}

int outputs_write(struct outputs *outputs, struct profile **sampled)
{
	const struct profile *profile;
	struct profile *timed = NULL;
	int first = 0;

	naming_apply(outputs->naming, sampled);
	profile = *sampled;
	for (size_t i = 0; i < outputs->count; i++) {
		const struct output *o = &outputs->items[i];
		char *snapshot = NULL;
		int err;

		if (profile->sequence == 0) {
			err = write_one(outputs, o, o->path, profile, &timed);
		} else if (asprintf(&snapshot, "%s.%04" PRIu64 "%s", o->stem, profile->sequence, o->suffix) < 0) {
			snapshot = NULL;
			err = -ENOMEM;
			error_note("cannot write snapshot %" PRIu64 ": out of memory", profile->sequence);
		} else {
			err = write_one(outputs, o, snapshot, profile, &timed);
		}
		free(snapshot);
		first = first ? first : err;
	}
	profile_free(timed);
	if (outputs->push) {
		int err = push_child_send(outputs->push, profile);

		first = first ? first : err;
	}
	return first;
}
