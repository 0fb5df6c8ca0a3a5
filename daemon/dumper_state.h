/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's insides, shared by dumper.c (its queue), dumper_write.c (what is done with a job) and dumper_places.c (where it goes). */
#ifndef SAMPLED_DAEMON_DUMPER_STATE_H
#define SAMPLED_DAEMON_DUMPER_STATE_H

#include <pthread.h>

#include "daemon/dumper.h"
#include "daemon/retention.h"

enum {
	QUEUE_MAX = 32,
	QUEUE_CLIENTS_MAX = 16, /* of clients' jobs: they keep none of the service's own out */
};

/* Where things go: of the configuration in force. */
struct dump_places {
	struct retention retention;
	char *directory; /* owned, as all here */
	char *pattern;
	struct config_formats formats;
	int spool_fd; /* -1: there is no spool */
	char *spool;
	uint64_t spool_bytes;
};

struct dumper {
	struct collector *collector;
	pthread_t thread;
	char host[256];
	pthread_mutex_t
		places_lock; /* guards places: held while a file is written, and while the configuration changes */
	struct dump_places places;
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake;
	struct dump_job queue[QUEUE_MAX];
	size_t queued;
	uint64_t mark;
	bool ending, sweep;
	uint64_t end_ns; /* when ending: no file of a dump is begun after this */
	struct dumper_counts counts;
};

void dumper_close_places(struct dump_places *places);
/* What the directory of dumps holds goes into the counts. With both locks. */
void dumper_note_dumps(struct dumper *dumper);
/* The profile of a part of the history. 0 or -ENOMEM. */
int dumper_take_profile(struct dumper *dumper, const struct history_query *query, struct profile **ret_profile);
/* Puts a job's parts into the spool. 0 or -ENOMEM; what else fails is logged and counted. */
int dumper_spool(struct dumper *dumper, const struct dump_job *job);
/* The service ends, and has waited for long enough. */
bool dumper_is_late(struct dumper *dumper);
/* The writer's thread: does a job, and answers its client. */
void dumper_do(struct dumper *dumper, const struct dump_job *job);
void dumper_sweep_now(struct dumper *dumper);

#endif
