/* SPDX-License-Identifier: Apache-2.0 */
/* Names, checks and writing: one walk over the same list of outputs, a little over 400 lines. */
#include "daemon/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/error.h"
#include "daemon/graphviz.h"
#include "daemon/result.h"
#include "daemon/terminal.h"
#include "exporters/writer.h"

static int find_format(const char *name, const struct format **ret_format, struct fault *fault)
{
	const struct format *format = format_by_name(name);
	char hint[256];

	if (format && format_is_written(format)) {
		*ret_format = format;
		return 0;
	}
	snprintf(hint, sizeof(hint), "formats: %s", format_names());
	fault_set(fault, -EINVAL, hint, format ? "-f %s: it can only be read" : "-f %s: no such format", name);
	return -EINVAL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A name without any suffix, and standard output, get the default format. */
static int guess_format(const char *path, const struct format **ret_format, struct fault *fault)
{
	char hint[256];

	*ret_format = format_by_suffix(path);
	if (*ret_format)
		return 0;
	if (strcmp(path, "-") == 0 || !strchr(base_name(path), '.'))
		return find_format("flamegraph", ret_format, fault);
	snprintf(hint, sizeof(hint), "give -f; formats: %s", format_names());
	fault_set(fault, -EINVAL, hint, "-o %s: its suffix tells no format", path);
	return -EINVAL;
}

int output_choose_format(const char *name, const char *path, const struct format **ret_format, struct fault *fault)
{
	return name ? find_format(name, ret_format, fault) : guess_format(path ? path : "-", ret_format, fault);
}

/* Names one output. path: as given with -o, "-", or NULL for the default; is_stem: the format's suffix is added. */
static int name_output(struct output *o, const char *path, bool is_stem, const char *default_stem)
{
	const char *dot = path ? strrchr(base_name(path), '.') : NULL;

	o->suffix = o->format->suffix;
	o->svg = !is_stem && graphviz_is_meant(o->format, path);
	if (!path || strcmp(path, "-") == 0) {
		o->stem = strdup(default_stem);
		if (o->stem && !path && asprintf(&o->path, "%s%s", default_stem, o->suffix) < 0)
			o->path = NULL;
		return o->stem && (path || o->path) ? 0 : -ENOMEM;
	}
	if (is_stem) {
		o->stem = strdup(path);
		if (asprintf(&o->path, "%s%s", path, o->suffix) < 0)
			o->path = NULL;
	} else {
		size_t bytes = strlen(path), suffix_bytes = strlen(o->suffix);

		o->path = strdup(path);
		if (!o->path)
			return -ENOMEM;
		/* A suffix of several parts is taken whole; another name's last part; a name without keeps its
		 * stem whole. */
		if (bytes > suffix_bytes && strcasecmp(path + bytes - suffix_bytes, o->suffix) == 0)
			dot = path + bytes - suffix_bytes;
		if (dot && dot > base_name(path))
			o->suffix = o->path + (dot - path);
		else
			dot = path + bytes;
		o->stem = strndup(path, (size_t)(dot - path));
	}
	return o->stem && o->path ? 0 : -ENOMEM;
}

static bool is_format(const struct output *o, const char *name)
{
	return o->format && strcmp(o->format->name, name) == 0;
}

static int check_pairs(const struct outputs *outputs, struct fault *fault)
{
	const char *record = outputs->recorder.path;

	for (size_t i = 0; i < outputs->count && record; i++)
		if (outputs->items[i].path && strcmp(outputs->items[i].path, record) == 0)
			return fault_set(fault, -EINVAL, "", "%s: named for two files", record);
	for (size_t i = 0; i < outputs->count; i++) {
		/* One that grows while sampling goes on survives whatever ends us. */
		if (is_format(&outputs->items[i], "recording"))
			return fault_set(fault, -EINVAL, "--record FILE writes one while sampling goes on",
			                 "a recording is no output of -f and -o here");
		for (size_t j = i + 1; j < outputs->count; j++) {
			const struct output *a = &outputs->items[i], *b = &outputs->items[j];

			if (!a->path || !b->path)
				return fault_set(fault, -EINVAL, "", "-o -: standard output takes one format only");
			if (strcmp(a->path, b->path) == 0)
				return fault_set(fault, -EINVAL, "give each format its own -o",
				                 "-o %s: named for two formats", a->path);
		}
	}
	return 0;
}

/* --svg: a call graph beside each pstats file, named as that is. There is room for as many again. */
static int add_svg(struct outputs *outputs, struct fault *fault)
{
	size_t count = outputs->count;

	for (size_t i = 0; i < count; i++) {
		const struct output *beside = &outputs->items[i];
		struct output *o = &outputs->items[outputs->count];

		if (!is_format(beside, "pstats"))
			continue;
		if (!beside->path)
			return fault_set(fault, -EINVAL, "name the pstats file with -o",
			                 "--svg: there is no place beside standard output");
		*o = (struct output){.format = format_by_name("dot"), .suffix = ".svg", .svg = true};
		outputs->count++;
		o->stem = strdup(beside->stem);
		if (asprintf(&o->path, "%s.svg", beside->stem) < 0)
			o->path = NULL;
		if (!o->stem || !o->path)
			return -ENOMEM;
	}
	if (outputs->count == count)
		return fault_set(fault, -EINVAL, "-f dot -o NAME.svg writes the call graph alone",
		                 "--svg: goes with -f pstats");
	return 0;
}

int outputs_plan(struct outputs *ret_outputs, const struct options *options, pid_t pid, time_t now, struct fault *fault)
{
	size_t formats = options->formats.count, paths = options->outputs.count;
	size_t count = formats > paths ? formats : paths;
	bool is_stem = paths == 1 && formats > 1;
	char stem[64], time_text[32];
	struct tm local;
	int err = 0;

	*ret_outputs =
		(struct outputs){.lock = PTHREAD_MUTEX_INITIALIZER, .recorder = {.fd = -1, .path = options->record}};
	if (formats && paths && formats != paths && !is_stem)
		return fault_set(fault, -EINVAL, "as many -o as -f, or one -o as the stem of all",
		                 "%zu -f and %zu -o do not pair", formats, paths);
	if (is_stem && strcmp(options->outputs.items[0], "-") == 0)
		return fault_set(fault, -EINVAL, "", "-o -: standard output takes one format only");
	if (count == 0 && !options->record && !options->push)
		count = 1;
	ret_outputs->items = calloc(2 * count + 1, sizeof(*ret_outputs->items));
	ret_outputs->writer = calloc(1, sizeof(*ret_outputs->writer));
	if (!ret_outputs->items || !ret_outputs->writer) {
		err = -ENOMEM;
		goto fail;
	}
	localtime_r(&now, &local);
	strftime(time_text, sizeof(time_text), "%Y%m%d-%H%M%S", &local);
	snprintf(stem, sizeof(stem), "sampled-%d-%s", (int)pid, time_text);
	for (size_t i = 0; i < count; i++) {
		struct output *o = &ret_outputs->items[ret_outputs->count++];
		const char *path = is_stem ? options->outputs.items[0] : i < paths ? options->outputs.items[i] : NULL;

		err = output_choose_format(i < formats ? options->formats.items[i] : NULL, path, &o->format, fault);
		if (!err)
			err = name_output(o, path, is_stem, stem);
		if (err)
			goto fail;
	}
	if (options->svg)
		err = add_svg(ret_outputs, fault);
	if (!err)
		err = check_pairs(ret_outputs, fault);
	if (err)
		goto fail;
	if (count > 0)
		ret_outputs->recorder.beside = ret_outputs->items[0].path;
	ret_outputs->options = (struct export_options){.collapsed_style = options->collapsed_style};
	ret_outputs->options.color = terminal_color(STDOUT_FILENO) && outputs_use_stdout(ret_outputs);
	return 0;
fail:
	outputs_release(ret_outputs);
	return err == -ENOMEM ? fault_set(fault, err, "", "out of memory") : err;
}

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
		if (outputs->items[i].format->needs == NEEDS_RUNS)
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

static int check_record(const char *path)
{
	struct fault fault = {0};
	int err = path ? recorder_check(path, &fault) : 0;

	if (err)
		error_fault(&fault, "cannot write %s", path);
	return err;
}

int outputs_check(struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->count; i++) {
		const char *path = outputs->items[i].path;
		struct fault fault = {0};
		int flags, err = 0;

		if (path) {
			err = writer_open(outputs->writer, path, &fault);
			if (!err)
				writer_abort(outputs->writer);
			if (!err && outputs->items[i].svg)
				err = graphviz_check(&fault);
		} else {
			flags = fcntl(STDOUT_FILENO, F_GETFL);
			if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
				err = fault_set(&fault, -EBADF, "", "it is closed");
		}
		if (err) {
			error_fault(&fault, "cannot write %s", path ? path : "standard output");
			return err;
		}
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
		err = writer_open(w, path, &fault);
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

int outputs_finish_recording(struct outputs *outputs)
{
	const struct recorder *recorder = &outputs->recorder;
	int err = recorder_finish(&outputs->recorder);

	return err || !recorder->writer || !recorder->path ? err : announce(outputs, recorder->path);
}

/* Writes one format, of the profile or, where time order is needed, of the same as it was recorded, which is read at its first use. */
static int write_one(struct outputs *outputs, const struct output *o, const char *path, const struct profile *profile,
                     struct profile **timed)
{
	struct fault fault = {0};
	int err;

	if (o->format->needs != NEEDS_RUNS)
		return write_to(outputs, o, path, profile);
	err = *timed ? 0 : recorder_read(&outputs->recorder, profile->sequence, timed, &fault);
	if (!err)
		return write_to(outputs, o, path, *timed);
	error_fault(&fault, "cannot write %s", path ? path : "standard output");
	return err;
}

int outputs_write(struct outputs *outputs, const struct profile *profile)
{
	struct profile *timed = NULL;
	int first = 0;

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
