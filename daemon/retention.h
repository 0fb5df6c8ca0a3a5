/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of dumps: new ones are written whole under names of dump_name.h; the oldest go when there are too many, too much, or too old ones,
 * or when the disk is full.
 *
 * Only what we wrote is ever removed. A list beside the dumps (LIST_NAME) has each one's name, inode, size and time of last change; a file of the
 * directory that is not in it, or that is another one or was changed since, is somebody's own: it stays, and does not count. The list is written
 * before a dump gets its name, and replaced whole; so however we end, a dump that is there is in it, and what is in it without a file is forgotten.
 * All is done through one descriptor of the directory; symbolic links are never followed in it. One thread uses it. */
#ifndef SAMPLED_DAEMON_RETENTION_H
#define SAMPLED_DAEMON_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/fault.h"
#include "daemon/dump_name.h"

enum { RETENTION_FILES_MAX = 100000 }; /* more are never kept */

struct retention_limits {
	uint64_t count;  /* 0: no bound but RETENTION_FILES_MAX */
	uint64_t bytes;  /* 0: no bound */
	uint64_t age_ns; /* 0: no bound */
};

/* Dumps removed since the start, by what for. */
struct retention_removed {
	uint64_t by_count, by_bytes, by_age, by_full_disk;
};

struct retention_file {
	char *name; /* owned */
	uint64_t inode;
	uint64_t bytes;
	int64_t changed_ns; /* CLOCK_REALTIME */
};

struct retention {
	int fd; /* of the directory */
	struct retention_limits limits;
	struct retention_removed removed;
	struct retention_file *files; /* owned; oldest first */
	size_t count;
	uint64_t bytes; /* of all */
};

/* Opens the directory, which must be one and no symbolic link, takes up its list, and removes what an earlier end left unfinished. 0 or -errno with
 * *fault filled; then there is nothing to close. */
int retention_open(struct retention *ret_retention, const char *directory, const struct retention_limits *limits,
                   struct fault *fault);
void retention_close(struct retention *r);

/* Writes a dump: calls write() with a new file's descriptor, which stays ours, and gives the file, mode 0640, its name. On -ENOSPC and -EDQUOT the
 * oldest dumps are removed and write() is called once more, with an empty file. Then the limits are seen to. 0 with the name in ret_name (room for
 * DUMP_NAME_MAX_BYTES and a NUL), or -errno, and no file, with *fault filled. */
int retention_write(struct retention *r, const char *pattern, const struct dump_subject *subject, const char *suffix,
                    int (*write)(void *context, int fd), void *context, char *ret_name, struct fault *fault);

/* Removes what the limits leave no room for, the newest excepted: at any time, for those that became too old. 0 or -errno of what could not be removed
 * or listed. */
int retention_sweep(struct retention *r, time_t now);

/* Something else on this file system finds the disk full: the oldest go, a quarter of all bytes and 64 KiB at least. Whether any went. */
bool retention_give_way(struct retention *r);

#endif
