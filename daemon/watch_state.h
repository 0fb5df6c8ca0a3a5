/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of struct watch, shared by watch.c (which processes there are) and watch_look.c (what becomes of each). */
#ifndef SAMPLED_DAEMON_WATCH_STATE_H
#define SAMPLED_DAEMON_WATCH_STATE_H

#include "aggregator/lookup.h"
#include "daemon/watch.h"

enum { WATCHED_MAX = 65536 };

struct watch {
	struct watch_options options;
	struct watched *items; /* owned */
	size_t count, room;
	struct lookup pids; /* pid → index */
	pid_t self;
	uint64_t next_scan_ns, next_full_scan_ns;
	pid_t last_made;          /* the youngest process or thread of the host, when that was asked last */
	uint64_t made;            /* how many were ever made, then; 0: not asked */
	uint64_t starved_said_ns; /* when it was last said that descriptors are short */
	uint64_t left_out;        /* processes beyond the bound, at the latest scan */
};

struct watched *watch_find_own(struct watch *watch, pid_t pid);
/* Frees what it holds. */
void watched_release(struct watched *item);
/* Closes its pidfd. */
void watched_close(struct watched *item);

/* Looks at it in the next step, and quickly from then on. */
void watch_look_soon(struct watched *item);
/* Looks at what is due: sets its state, and when it is due again. -ESRCH: it is gone, and to be dropped. */
int watch_look(struct watch *watch, struct watched *item);
/* It came back from the sampler. */
void watch_look_again(struct watch *watch, struct watched *item, bool execed);
/* The configuration is another. */
void watch_match_anew(struct watch *watch, struct watched *item, const struct config *before);

#endif
