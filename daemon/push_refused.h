/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that a destination refused for good, kept for whoever wants to know why: in refused/ of the spool, TIME-NUMBER.pb.gz, which any reader of
 * pprof takes, and TIME-NUMBER.txt with the server's words. Bounded; the oldest go. */
#ifndef SAMPLED_DAEMON_PUSH_REFUSED_H
#define SAMPLED_DAEMON_PUSH_REFUSED_H

#include <stdint.h>

#include "base/fault.h"
#include "daemon/push_config.h"
#include "daemon/spool_read.h"

#define PUSH_REFUSED_FOLDER "refused"

struct push_refused {
	uint64_t max_bytes;     /* 0: none are kept */
	uint64_t files, bytes;  /* there are, as of the latest that was kept */
	uint64_t dropped_files; /* removed for want of room */
	unsigned number;        /* of the next */
};

/* 0, or -errno with *fault filled when it could not be kept. */
int push_refused_keep(struct push_refused *refused, int spool_fd, const struct push_destination *to,
                      const struct spool_read_item *item, const char *why, struct fault *fault);

#endif
