/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of the service, shared by the files that make it up: service.c (its life and its event loop), service_answer.c (what clients ask),
 * service_dump.c (what is dumped when), service_watchdog.c (its budget, its sign of life). All of it is the main thread's. */
#ifndef SAMPLED_DAEMON_SERVICE_STATE_H
#define SAMPLED_DAEMON_SERVICE_STATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/collector.h"
#include "daemon/config.h"
#include "daemon/governor.h"
#include "daemon/service.h"
#include "daemon/watch.h"

enum service_event { EVENT_SIGNAL, EVENT_TICK, EVENT_ENDED, EVENT_MARK, EVENT_CONTROL, EVENT_WRITTEN, EVENT_PROCESS };

/* What epoll gives back: which event, and for EVENT_PROCESS the pid. */
#define EVENT_DATA(event) ((uint64_t)(event) << 32)

/* Groups are rules, by name, so that they stay what they are when the configuration changes. */
struct groups {
	char **names; /* owned; a group's number is its index plus 1 */
	uint32_t count;
};

struct service {
	const struct service_options *options;
	const struct config *config;
	struct config *own_config; /* what was read since the start; NULL: nothing */
	struct ring *ring;
	struct sampler *sampler;
	struct history *history;
	struct collector *collector;
	struct watch *watch;
	struct groups groups;
	struct governor governor;
	int epoll_fd, signal_fd, tick_fd;
	uint64_t started_ns, started_realtime_ns;
	uint64_t mark;          /* sequence of the latest that was asked for */
	uint64_t next_slice_ns; /* when the next is to be asked for */
	uint64_t beats;         /* of the sampler, at the latest sign of life */
	uint64_t reloads;
	bool stopping;
};

#endif
