/* SPDX-License-Identifier: Apache-2.0 */
/* What the sender counts, in Prometheus' text format, and what the daemon counts, asked for at its socket. */
#ifndef SAMPLED_DAEMON_PUSH_METRICS_H
#define SAMPLED_DAEMON_PUSH_METRICS_H

#include <stddef.h>

#include "base/buf.h"
#include "daemon/push_queue.h"
#include "daemon/push_send.h"

#define PUSH_METRICS_MIME "text/plain; version=0.0.4; charset=utf-8"

struct push_metrics {
	const struct push_sender *senders; /* not owned */
	size_t sender_count;
	const struct push_queue *queue; /* not owned */
	const char *control;            /* the daemon's socket; NULL: it is not asked */
};

/* Appends both. Takes a second at most, if the daemon does not answer. */
void push_metrics_write(const struct push_metrics *metrics, struct buf *to);

#endif
