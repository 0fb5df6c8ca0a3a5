/* SPDX-License-Identifier: Apache-2.0 */
/* The service's writer: a thread that makes profiles of the history, one at a time, and writes them: into the directory of dumps, as the answer to a
 * client, into the spool. A slow disk delays neither signals nor sampling. */
#ifndef SAMPLED_DAEMON_DUMPER_H
#define SAMPLED_DAEMON_DUMPER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/collector.h"
#include "daemon/config.h"
#include "daemon/control.h"
#include "daemon/spool_write.h"

struct dumper;

enum dump_target { DUMP_TO_FILES, DUMP_TO_CLIENT, DUMP_TO_SPOOL };

/* Labels of one process, or of a rule; all texts owned. */
struct dump_labels {
	struct label *items;
	size_t count;
};

/* What a part of the history is labelled with in the spool. */
struct dump_labelled {
	struct history_query query;
	struct dump_labels labels;
};

struct dump_job {
	enum dump_target target;
	uint64_t
		mark; /* to be done when this one has come by: what was sampled before it was asked for is in the history then */
	struct history_query query;  /* to_ns 0: to the mark */
	char *what;                  /* files: what is dumped when it is not one process; owned, or NULL */
	bool by_process;             /* files: one for each process, else one of them all */
	const struct format *format; /* client */
	struct control_reply *reply; /* client; the job's reference */
	struct dump_labelled *parts; /* spool; owned */
	size_t part_count;
};

/* Totals since the start, and what there is. */
struct dumper_counts {
	uint64_t written, removed, failed, files, bytes; /* dumps */
	struct spool_counts spool;
};

/* The collector stays the caller's and must outlive it. Opens the directories. 0 or -errno with *fault filled. */
int dumper_start(struct dumper **ret_dumper, const struct config *config, struct collector *collector,
                 struct fault *fault);
/* Does what is queued, and ends; after a second, what is not begun is left out, but for the spool's. NULL is fine. */
void dumper_free(struct dumper *dumper);

/* Queues a job, which is the dumper's then, texts and reply too. -ENOBUFS: so much is queued already (of clients' jobs: half of it); it was dropped, and its client told. */
int dumper_ask(struct dumper *dumper, struct dump_job *job);
/* A mark has come by: what waited for it may go on. */
void dumper_mark(struct dumper *dumper, uint64_t mark);
/* Whether a dump into files is waiting for its mark, so that another one need not be. */
bool dumper_has_waiting(struct dumper *dumper);
/* Directories, names and limits are another configuration's from now on. 0 or -errno with *fault filled; then all is as before. */
int dumper_reconfigure(struct dumper *dumper, const struct config *config, struct fault *fault);
void dumper_counts(struct dumper *dumper, struct dumper_counts *ret_counts);
/* Removes dumps that have become too old. */
void dumper_sweep(struct dumper *dumper);

void dump_labels_release(struct dump_labels *labels);
/* Adds one; texts are copied. Empty values are left out. 0 or -ENOMEM. */
int dump_labels_add(struct dump_labels *labels, const char *name, const char *value);

#endif
