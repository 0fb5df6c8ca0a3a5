/* SPDX-License-Identifier: Apache-2.0 */
/* What the service says of itself, as plain numbers: filled by it, and printed as text, JSON (`ctl status`, `ctl list`) or metrics. Texts and arrays
 * are its own, and are left alone while the struct is printed. Counts are totals since the start, and never fall. */
#ifndef SAMPLED_DAEMON_SERVICE_STATUS_H
#define SAMPLED_DAEMON_SERVICE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "aggregator/history.h"
#include "base/buf.h"
#include "sampler/record.h"

enum target_state { TARGET_SAMPLED, TARGET_WAITING, TARGET_FAILED, TARGET_EXCLUDED, TARGET_STATES };

struct target_status {
	pid_t pid;
	uint64_t start_time; /* clock ticks since boot */
	uid_t uid;
	const char *name; /* of the process: hostile text, as all of these but the rule's */
	const char *rule; /* "" or NULL, here and below: none, not known */
	const char *unit, *container;
	uint32_t version; /* of its Python, as in REC_TARGET; 0: not known */
	enum target_state state;
	const char *why; /* of what is not sampled */
	uint64_t interval_asked_ns, interval_now_ns;
	double parked; /* share of the time that was credited unread, 0 to 1; below 0: not known */
	struct rec_facts facts;
};

struct trigger_status {
	const char *name;
	uint64_t fired, suppressed;
};

struct service_status {
	const char *version;
	uint64_t started_realtime_ns; /* CLOCK_REALTIME */
	uint64_t started_ns, now_ns;  /* CLOCK_MONOTONIC */
	const struct target_status *targets;
	size_t target_count;
	const char *const *rules; /* of the configuration, each once: what is counted by rule */
	size_t rule_count;
	uint64_t processes, not_python; /* known now; those of them that are none */
	uint64_t open_files, max_files; /* descriptors of the service; 0: not known */
	uint64_t starved;               /* processes that were not looked at, for want of descriptors */
	struct rec_facts total;         /* of all targets, those that have ended too; without target and times */
	uint64_t ring_dropped;          /* records */
	double cpu_budget, cpu_share;   /* of one core; budget 0: none. The share is of the last 10 s */
	uint64_t cpu_ns;                /* used, ever */
	uint32_t slowdown;              /* each so manieth tick is kept; 1: all */
	uint64_t memory_budget_bytes, resident_bytes;
	struct history_stats history;
	uint64_t disk_budget_bytes; /* 0: none */
	uint64_t dumps_written, dumps_removed, dumps_failed, dump_files, dump_bytes;
	uint64_t spool_files, spool_bytes, spool_dropped; /* dropped: files that went unread */
	const struct trigger_status *triggers;
	size_t trigger_count;
	uint64_t triggers_unfollowed; /* slices above a bound that were not followed, for their number */
	uint64_t reloads, reloads_failed, log_suppressed;
};

/* Who looks: the targets of others are not shown, nor counted. */
struct status_view {
	bool all;
	uid_t uid;
};

extern const char *const target_state_names[TARGET_STATES]; /* "sampled", … */
extern const char *const loss_names[LOSS_CAUSES];           /* "torn", … */

/* `ctl status` and `ctl list`; text is safe for a terminal. */
void status_print(const struct service_status *status, const struct status_view *view, struct buf *to);
void status_print_list(const struct service_status *status, const struct status_view *view, struct buf *to);
void status_print_json(const struct service_status *status, const struct status_view *view, struct buf *to);
void status_print_list_json(const struct service_status *status, const struct status_view *view, struct buf *to);

/* GET /metrics: Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats). Says nothing of single processes, so anybody may
 * read it, and the number of its lines is bounded by rules and triggers. */
void metrics_print(const struct service_status *status, struct buf *to);

#endif
