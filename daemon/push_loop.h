/* SPDX-License-Identifier: Apache-2.0 */
/* The sender at work: its destinations, the spool, its metrics and signals, in one thread and one event loop. */
#ifndef SAMPLED_DAEMON_PUSH_LOOP_H
#define SAMPLED_DAEMON_PUSH_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "daemon/push_config.h"
#include "daemon/push_send.h"

struct push_loop_options {
	bool once;           /* end when all was sent that there is */
	int feed_fd;         /* … and this descriptor is at its end: nothing more comes; -1: none */
	uint64_t give_up_ns; /* how long each request is tried; 0: for ever */
};

/* Blocks the signals that end it (SIGTERM, SIGINT); they must be so before. Returns 0 when it was asked to end or all was sent; -EIO when something could
 * not be sent (which was said); -errno with *fault filled when it could not begin. *ret_counts (NULL: not asked): of all destinations. */
int push_loop(const struct push_config *config, const struct push_loop_options *options, struct push_counts *ret_counts,
              struct fault *fault);
/* Blocks the signals that end it, and no others: before any thread is made. */
void push_loop_take_signals(void);

#endif
