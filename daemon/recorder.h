/* SPDX-License-Identifier: Apache-2.0 */
/* The recording of a session: the file of --record, or, where only formats with time order need one, a file without a name. */
#ifndef SAMPLED_DAEMON_RECORDER_H
#define SAMPLED_DAEMON_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/aggregator.h"
#include "base/fault.h"
#include "daemon/options.h"
#include "exporters/recording.h"

struct recorder {
	const char *path;                /* the caller's; NULL: it has no name */
	const char *beside;              /* the caller's: a file in whose directory one without a name is made */
	int fd;                          /* -1: there is no recording */
	struct recording_writer *writer; /* owned; the aggregator's thread writes it */
	struct aggregator *aggregator;   /* the caller's */
	bool failed;                     /* an error was reported */
};

/* Whether PATH can be a recording; leaves nothing behind. 0 or -errno with *fault filled. */
int recorder_check(const char *path, struct fault *fault);
/* Makes the file and its head. Before the aggregator's thread starts. 0, or -errno after it was reported. */
int recorder_start(struct recorder *recorder, struct aggregator *aggregator, const struct options *options);
/* Fits struct aggregator_options, on_record. */
void recorder_take(void *recorder, const struct rec_head *record, const struct record_fate *fate);
/* Before the end: what native frames are called, of the whole profile before it got names (recording_writer_names()). After the aggregator's thread
 * has ended. */
void recorder_names(struct recorder *recorder, const struct profile *profile, named_frames *frames, void *context);
/* Ends the recording. After the aggregator's thread has ended. 0 or the first error of all writing, which was reported. */
int recorder_finish(struct recorder *recorder);
/* What is recorded, with its runs, up to the mark with this number (0: all). Any thread, while it is being written. 0 or -errno with *fault
 * filled. */
int recorder_read(const struct recorder *recorder, uint64_t sequence, struct profile **ret_profile,
                  struct fault *fault);
void recorder_release(struct recorder *recorder);

#endif
