/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the dumps that are ours, as a file: a part of retention.h. */
#ifndef SAMPLED_DAEMON_RETENTION_LIST_H
#define SAMPLED_DAEMON_RETENTION_LIST_H

#include "daemon/retention.h"

#define LIST_NAME      ".sampled-dumps"
#define UNFINISHED     ".sampled-unfinished"       /* a dump that is being written */
#define LIST_NEXT_NAME ".sampled-dumps-unfinished" /* the list that is being written */

/* Takes up the list, as far as it is true; none: an empty one. Hostile: it may be anything. 0 or -errno. */
int retention_list_read(struct retention *r);
/* Replaces the list. 0 or -errno. */
int retention_list_write(struct retention *r);
/* Adds a file at the end; its name is copied. 0 or -ENOMEM. */
int retention_list_add(struct retention *r, const char *name, uint64_t inode, uint64_t bytes, int64_t changed_ns);
/* Takes files[at] out; the file itself stays. */
void retention_list_drop(struct retention *r, size_t at);
/* Whether the directory holds this very file still. */
bool retention_list_is_true(const struct retention *r, const struct retention_file *file);

#endif
