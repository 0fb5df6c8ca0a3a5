/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a session writes: which format goes where, how they are named, and the writing itself. */
#ifndef SAMPLED_DAEMON_OUTPUT_H
#define SAMPLED_DAEMON_OUTPUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "aggregator/profile.h"
#include "base/fault.h"
#include "daemon/naming.h"
#include "daemon/options.h"
#include "daemon/push_child.h"
#include "daemon/recorder.h"
#include "exporters/format.h"

struct output {
	const struct format *format;
	char *path;         /* owned; NULL: standard output */
	char *stem;         /* owned; what snapshots are named after, without .NNNN and suffix */
	const char *suffix; /* of snapshots: into path, or the format's */
	bool svg;           /* it passes through Graphviz */
};

struct outputs {
	struct output *items; /* owned */
	size_t count;
	struct export_options options;
	struct recorder recorder; /* used where outputs_record() */
	struct naming *naming;    /* owned; NULL: native frames are not asked for */
	struct push_child *push;  /* owned; NULL: nothing is pushed */
	struct writer *writer;    /* owned; one file is written at a time */
	pthread_mutex_t lock;     /* guards the two below, so that another thread can give up */
	bool waiting;             /* for a FIFO's reader */
	char *tmp_path;           /* of the file being written, owned; NULL: none */
};

/* The format of -f (NULL: not given), or of an output's name (NULL: not given). 0 or -EINVAL with *fault filled. */
int output_choose_format(const char *name, const char *path, const struct format **ret_format, struct fault *fault);

/* That what is to be written is none of the files that are read, by whatever name. 0 or -EINVAL with *fault filled. */
int output_check_inputs(const char *path, char *const *inputs, int count, struct fault *fault);

/* What shows files of a format, to stand before a file's name; NULL: nothing that everybody has. */
const char *output_open_with(const struct format *format);

/* Pairs -f with -o. pid and now name what -o does not. 0, -EINVAL (usage) or -ENOMEM, with *fault filled. */
int outputs_plan(struct outputs *ret_outputs, const struct options *options, pid_t pid, time_t now,
                 struct fault *fault);
void outputs_release(struct outputs *outputs);

/* Makes the process that pushes, where that is asked for; before there are other threads, and before any target is opened. 0 or -errno, after it was
 * reported. */
int outputs_start_push(struct outputs *outputs, const struct options *options);
/* Waits until all was pushed, or could not be. 0 or -errno, after it was reported. */
int outputs_finish_push(struct outputs *outputs);

/* Tries whether every output can be opened, before time is spent on sampling. Leaves nothing behind. 0 or -errno,
 * after it has said what is wrong. */
int outputs_check(struct outputs *outputs);
/* Whether the session is to be recorded: for --record, or for a format that needs time order. */
bool outputs_record(const struct outputs *outputs);
bool outputs_use_stdout(const struct outputs *outputs);

/* Starts what names native frames, where they are asked for; before there are other threads, and before any target is opened. */
void outputs_start_naming(struct outputs *outputs, const struct options *options);
/* Fits struct aggregator_options, on_record: records and mappings go where they are needed. */
void outputs_take(void *outputs, const struct rec_head *record, const struct record_fate *fate);

/* Ends the recording, with the names of what is in the profile (as it was sampled; NULL: there is none), and, where it has a name, prints it as
 * that of a file. 0 or -errno, after it was reported. */
int outputs_finish_recording(struct outputs *outputs, const struct profile *profile);
/* Writes a profile in every format: the final one, or, when its sequence number is not 0, a snapshot. Each file's
 * name is printed on standard output when the file is whole. An output that fails is reported and does not keep
 * the others from being written. Native frames get their names before: *profile is replaced. 0 or the first -errno. */
int outputs_write(struct outputs *outputs, struct profile **profile);

/* From another thread, while outputs_write() runs: whether it waits until somebody reads a FIFO. */
bool outputs_wait_for_reader(struct outputs *outputs);
/* From another thread, while outputs_write() runs: removes the temporary file. No more are made: the caller must
 * exit. */
void outputs_give_up(struct outputs *outputs);

#endif
