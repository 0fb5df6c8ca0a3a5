/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the threads that -t asks for have come, while sampling goes on: threads may come at any time, so one that is missing soon after the start
 * is noted, and what is missing at the end is a failure. */
#ifndef SAMPLED_DAEMON_THREAD_WATCH_H
#define SAMPLED_DAEMON_THREAD_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/thread_names.h"
#include "sampler/record.h"

struct thread_watch {
	pthread_mutex_t lock;      /* guards names: the aggregator's thread writes them, the main thread reads */
	struct thread_names names; /* asked->count is 0: nothing is watched */
	uint64_t due_ns;           /* of the note; UINT64_MAX: it was said, or sampling has not begun */
};

void thread_watch_init(struct thread_watch *watch, const struct thread_list *asked);
void thread_watch_release(struct thread_watch *watch);

/* A record of the stream, in the aggregator's thread. */
void thread_watch_take(struct thread_watch *watch, const struct rec_head *record);

/* Sampling begins. */
void thread_watch_start(struct thread_watch *watch, uint64_t now_ns);
/* Says once what is missing, when that is due. Returns when to call again, UINT64_MAX for never. */
uint64_t thread_watch_step(struct thread_watch *watch, uint64_t now_ns);
/* At the end: says what never came. True: there was something. */
bool thread_watch_check(struct thread_watch *watch);

#endif
