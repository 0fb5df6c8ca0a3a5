/* SPDX-License-Identifier: Apache-2.0 */
/* The spool: how profiles go from who samples, and has no network, to who sends them, and sees no process. A directory of files, each of one interval
 * of time, which appear whole or not at all and are bounded in bytes together: the oldest go first, and are counted.
 *
 * A file is the line SPOOL_HEAD and items: a line of JSON, {"labels":{NAME:VALUE,…},"from_ns":"N","until_ns":"N","bytes":N} (nanoseconds as
 * texts, since JSON's numbers are doubles to many), and behind it that many bytes: a pprof profile, packed with gzip, within the limits of the
 * servers that take such. Names are TIME-NUMBER.spool, by which they sort from old to new; a file in the making is .TIME-NUMBER.tmp. */
#ifndef SAMPLED_DAEMON_SPOOL_WRITE_H
#define SAMPLED_DAEMON_SPOOL_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "aggregator/profile.h"
#include "base/fault.h"
#include "daemon/spool_files.h"
#include "daemon/spool_read.h"
#include "exporters/label.h"

#define SPOOL_HEAD "sampled-spool 1\n"

/* What Pyroscope takes of one profile, and so the bounds of each item. */
enum { SPOOL_SAMPLES_MAX = 16000, SPOOL_UNPACKED_MAX_BYTES = 4 << 20 };

struct spool_item {
	struct labels labels;
	uint64_t from_ns, until_ns; /* CLOCK_REALTIME */
	const struct profile *profile;
};

/* What was done, added up over calls: the caller's, zeroed once. */
struct spool_counts {
	uint64_t files, items, bytes; /* written */
	uint64_t dropped_files;       /* removed unsent, for want of room */
	uint64_t dropped_bytes;
	uint64_t pruned_items; /* had more stacks than servers take: small ones are together as "(other)" */
	uint64_t failed_items; /* could not be made, or written */
};

/* Writes the items into one new file of the directory dir_fd, mode 0660; max_bytes is for all of its files together. *counts is added to. Items that
 * cannot be made (no memory; more threads than a server takes) are left out, counted as failed, and the first's reason is in *fault, while
 * the others are written and 0 is returned; no item left: no file. 0, or -errno with *fault filled when the file could not be written. */
int spool_write(int dir_fd, const struct spool_item *items, size_t count, uint64_t max_bytes,
                struct spool_counts *counts, struct fault *fault);
/* One item that is packed already, into a file of its own, whatever the bound. 0, with its name, or -errno. */
int spool_write_packed(int dir_fd, const struct spool_read_item *item, char ret_name[SPOOL_NAME_ROOM]);

#endif
