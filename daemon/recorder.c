/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tempfile.h"
#include "daemon/error.h"
#include "daemon/load.h"
#include "exporters/writer.h"

int recorder_check(const char *path, struct fault *fault)
{
	struct writer *w = malloc(sizeof(*w));
	int fd, err;

	if (!w)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	if (writer_is_stream(path)) {
		free(w);
		return fault_set(fault, -EINVAL, "it grows while sampling goes on", "a recording is a regular file");
	}
	err = writer_check(w, path, fault); /* looks at what is there, and whether the directory takes a file */
	free(w);
	if (err)
		return err;
	fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		return fault_set(fault, -errno, "", "%s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return 0;
}

/* A file without a name in the folder of the first output, where there is room for it. */
static int open_beside(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	int fd = folder ? tempfile_open(folder) : -ENOMEM;

	free(folder);
	return fd;
}

static void complain(struct recorder *r, const struct fault *fault)
{
	r->failed = true;
	error_fault(fault, "cannot write %s", r->path ? r->path : "the recording that time order needs");
}

int recorder_start(struct recorder *r, struct aggregator *aggregator, const struct options *options)
{
	struct recording_options how = {
		.interval_ns = options->interval_ns,
		.mode = options->mode,
		.realtime_offset_ns = aggregator_realtime_offset_ns(aggregator),
		.pack = true,
	};
	struct fault fault = {0};
	int err = 0;

	if (r->path)
		err = recording_open(&r->fd, r->path, &fault);
	else if ((r->fd = open_beside(r->beside)) < 0)
		err = fault_set(&fault, r->fd, "TMPDIR names a directory for it", "%s", strerror(-r->fd));
	if (!err) {
		r->aggregator = aggregator;
		err = recording_writer_new(&r->writer, r->fd, &how);
		if (err)
			fault_set(&fault, err, "", "%s", strerror(-err));
	}
	if (err)
		complain(r, &fault);
	return err;
}

static void report(struct recorder *r)
{
	int err = recording_writer_error(r->writer);
	struct fault fault;

	if (!err || r->failed)
		return;
	fault_set(&fault, err, "what was recorded before stays readable", "%s", strerror(-err));
	complain(r, &fault);
}

void recorder_take(void *recorder, const struct rec_head *record, const struct record_fate *fate)
{
	struct recorder *r = recorder;
	struct tally tally;

	if (!r->writer || r->failed)
		return;
	if (record && (record->type == REC_FACTS || record->type == REC_MARK))
		aggregator_tally(r->aggregator, &tally);
	recording_writer_take(r->writer, record, fate, &tally);
	report(r);
}

void recorder_names(struct recorder *r, const struct profile *profile, named_frames *frames, void *context)
{
	if (!r->writer || r->failed)
		return;
	recording_writer_names(r->writer, profile, frames, context);
	report(r);
}

int recorder_finish(struct recorder *r)
{
	struct tally tally;

	if (!r->writer)
		return 0;
	aggregator_tally(r->aggregator, &tally);
	recording_writer_finish(r->writer, &tally);
	report(r);
	return recording_writer_error(r->writer);
}

int recorder_read(const struct recorder *r, uint64_t sequence, struct profile **ret_profile, struct fault *fault)
{
	struct builder_options options = {
		.memory_max_bytes = LOAD_TREES_MAX_BYTES, .runs = true, .runs_max = LOAD_RUNS_MAX};
	struct input *in = malloc(sizeof(*in));
	struct builder *builder = NULL;
	char path[64];
	int err = in ? builder_new(&builder, &options) : -ENOMEM;

	if (err) {
		free(in);
		return fault_set(fault, err, "", "out of memory");
	}
	/* Opened anew: it is read at a place of its own, while it is being written. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->fd);
	err = input_open(in, path, fault);
	if (!err) {
		err = recording_read_to_mark(in, builder, sequence, fault);
		input_close(in);
	}
	if (!err) {
		err = builder_finish(builder, ret_profile);
		if (err)
			fault_set(fault, err, "", "%s", strerror(-err));
	}
	if (err == -E2BIG)
		fault_set(fault, err, "--record, then sampled convert with --from and --to",
		          "there are more samples than fit into this format");
	builder_free(builder);
	free(in);
	return err;
}

void recorder_release(struct recorder *r)
{
	recording_writer_free(r->writer);
	r->writer = NULL;
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}
