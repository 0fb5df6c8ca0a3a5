/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a spool directory: their names, the list of them, and the bound on their bytes. */
#ifndef SAMPLED_DAEMON_SPOOL_FILES_H
#define SAMPLED_DAEMON_SPOOL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPOOL_NAME_ROOM = 48, SPOOL_FILES_MAX = 65536 };

struct spool_name {
	char text[SPOOL_NAME_ROOM];
	uint64_t bytes; /* on disk: what the file takes there, or its length where that is more */
};

/* From old to new. */
struct spool_names {
	struct spool_name *items; /* owned */
	size_t count;
	uint64_t bytes; /* of all */
};

/* "20261122T054512Z-000017.spool", from CLOCK_REALTIME; with temporary its name while it is being made. */
void spool_name_make(char to[SPOOL_NAME_ROOM], uint64_t wall_ns, unsigned number, bool temporary);
bool spool_name_is_valid(const char *name);

/* Regular files with such a name; a directory with more than SPOOL_FILES_MAX is listed in part. 0 or -errno. */
int spool_list(int dir_fd, struct spool_names *ret_names);
void spool_names_release(struct spool_names *names);

/* Removes a file and what was noted beside it. 0 or -errno; -ENOENT: it was gone already. */
int spool_remove(int dir_fd, const char *name);
/* Removes temporary files: those of writers that did not live to rename them. */
void spool_sweep(int dir_fd);

/* What was sent of a file already: "NAME.sent" beside it, by which a sender that starts anew goes on where it was. */
void spool_name_sent(char to[SPOOL_NAME_ROOM], const char *name);

#endif
