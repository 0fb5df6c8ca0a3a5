/* SPDX-License-Identifier: Apache-2.0 */
/* One run of attach or run: targets, ring, sampler, aggregator and outputs, and the event loop that holds them
 * together. Main thread only. */
#ifndef SAMPLED_DAEMON_SESSION_H
#define SAMPLED_DAEMON_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "aggregator/aggregator.h"
#include "daemon/options.h"
#include "daemon/output.h"
#include "daemon/places.h"
#include "daemon/publish.h"
#include "daemon/targets.h"
#include "daemon/thread_watch.h"
#include "sampler/ring.h"
#include "sampler/sampler.h"

struct session {
	const struct options *options; /* not owned */
	struct outputs outputs;
	struct ring *ring;
	struct sampler *sampler;
	struct aggregator *aggregator;
	struct publisher *publisher; /* NULL until the first target is sampled */
	struct targets targets;
	struct places *places;
	struct thread_watch threads; /* those that -t asks for */
	int signal_fd;
	int timer_fd;        /* fires when -d is over */
	uint64_t start_ns;   /* of sampling; 0: not yet */
	bool stopping;       /* the end was asked for */
	unsigned interrupts; /* SIGINTs that were for us */
	uint64_t snapshots;  /* asked for so far */
	bool again;          /* one more, when the one being written is done */
	pid_t command;       /* run: the child; 0: attach */
	bool command_ended;
	bool waiting_noted; /* that it is waited for was said */
	int command_status; /* of waitpid(), once ended */
};

/* Whether threads of targets will be stopped. */
bool session_stops(const struct options *options);
/* Blocks the signals that the event loop takes, and no others. Before any thread is made. */
void session_take_signals(const struct options *options);

/* 0, or -errno after it was reported. outputs become the session's in either case. */
int session_open(struct session *ret_session, const struct options *options, struct outputs *outputs);
/* Samples until the end and writes everything. Returns the exit status: of the failures to attach and to write. */
enum exit_status session_run(struct session *session);
void session_release(struct session *session);

#endif
