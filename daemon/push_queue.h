/* SPDX-License-Identifier: Apache-2.0 */
/* The spool as its reader sees it: which files there are, how far each destination is with each, and when a file is done with. What was sent stands
 * beside a file, in NAME.sent, so that a sender that starts anew sends it once only (what was under way when it died may be sent twice). */
#ifndef SAMPLED_DAEMON_PUSH_QUEUE_H
#define SAMPLED_DAEMON_PUSH_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "daemon/push_config.h"
#include "daemon/push_refused.h"
#include "daemon/spool_files.h"
#include "daemon/spool_read.h"

struct push_entry {
	struct spool_name name;
	uint32_t done;                        /* by destination, a bit: through with it */
	uint32_t aside;                       /* … others have their turn first */
	uint32_t sent[PUSH_DESTINATIONS_MAX]; /* items of it that are done with */
	bool seen;                            /* in the scan that goes on */
};

struct push_queue {
	int dir_fd;
	const struct push_config *config; /* not owned */
	uint64_t max_bytes;
	struct push_entry *entries; /* owned; from old to new */
	size_t count;
	uint64_t bytes;
	uint64_t dropped_files, dropped_bytes; /* unsent: beyond the bound, or removed by who writes them */
	uint64_t bad_files;                    /* malformed, and removed */
	struct push_refused refused;
};

/* 0 or -errno with *fault filled. */
int push_queue_open(struct push_queue *ret_queue, const struct push_config *config, struct fault *fault);
void push_queue_close(struct push_queue *queue);

/* Looks which files there are. 0 or -errno. */
int push_queue_scan(struct push_queue *queue);
/* Whether there is a file that a destination is not through with. */
bool push_queue_has(const struct push_queue *queue, unsigned destination);
/* The oldest such file, of those that were not put aside; those are next when there are no others. NULL: none. Until the next scan, or until a file is
 * done with. */
struct push_entry *push_queue_oldest(struct push_queue *queue, unsigned destination);
/* The other files of the destination have their turn before this one is tried again. */
void push_queue_put_aside(struct push_queue *queue, const char *name, unsigned destination);
/* Puts one item of a file, the next that is to be sent, aside: into a file of its own, so that those behind it have their turn. 0 or -errno. */
int push_queue_part(struct push_queue *queue, const char *name, unsigned destination,
                    const struct spool_read_item *item);

/* How many items of a file a destination is done with. */
uint32_t push_queue_sent_items(const struct push_queue *queue, const char *name, unsigned destination);
/* One more item of a file is done with, for a destination. A file that is gone is passed over, here and below. */
void push_queue_sent(struct push_queue *queue, const char *name, unsigned destination);
/* A destination is through with a file: when all are, it is removed. */
void push_queue_done(struct push_queue *queue, const char *name, unsigned destination);
/* A file that makes no sense: it is removed and counted. */
void push_queue_bad(struct push_queue *queue, const char *name);

#endif
