/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of the service, shared by the files that make it up: service.c (its life), service_events.c (its event loop), service_answer.c (what clients ask)
 * and service_dump.c (what is dumped when). All of it is the main thread's. */
#ifndef SAMPLED_DAEMON_SERVICE_STATE_H
#define SAMPLED_DAEMON_SERVICE_STATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/collector.h"
#include "daemon/config.h"
#include "daemon/control.h"
#include "daemon/dumper.h"
#include "daemon/governor.h"
#include "daemon/service.h"
#include "daemon/triggers.h"
#include "daemon/watch.h"

enum service_event { EVENT_SIGNAL, EVENT_TICK, EVENT_ENDED, EVENT_MARK, EVENT_CONTROL, EVENT_PROCESS };

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
	struct dumper *dumper;
	struct control *control;
	struct triggers *triggers;
	struct groups groups;
	struct governor governor;
	int epoll_fd, signal_fd, tick_fd;
	char host[256];
	uint64_t started_ns, started_realtime_ns;
	uint64_t mark;          /* sequence of the latest that was asked for */
	uint64_t next_slice_ns; /* when the next is to be asked for */
	uint64_t slice_from_ns; /* when the slice began that triggers are told of next */
	uint64_t next_spool_ns, spooled_ns;
	uint64_t next_sweep_ns;
	uint64_t beats;         /* of the sampler, at the latest sign of life */
	uint64_t watchdog_ns, next_watchdog_ns; /* between signs of life; 0: nobody wants any */
	uint64_t reloads, reloads_failed;
	bool stopping;
};

/* service_events.c: until it is told to end. */
void service_serve(struct service *service);
/* The history counts what the rules say. */
void service_set_modes(struct service *service, const struct config *config);
/* Asks for what is under way to be written; the sequence number of the mark behind it. */
uint64_t service_ask_mark(struct service *service);
/* 0, or -errno when the configuration has mistakes, which were logged: the one before stays in force then. */
int service_reload(struct service *service);
/* service_answer.c: the control_handler. */
void service_answer(void *service, const struct control_request *request, struct control_reply *reply);
/* service_dump.c: all of it, as SIGUSR1 asks for. */
void service_dump_all(struct service *service);
/* A mark has come by: a slice may have been closed, of which triggers are told. */
void service_take_mark(struct service *service);
/* Puts what was sampled since the last time into the spool. */
void service_spool(struct service *service);
/* The number that a rule's targets have as their group. */
uint32_t service_group(void *groups, const struct config_rule *rule);

#endif
