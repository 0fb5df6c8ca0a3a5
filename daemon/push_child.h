/* SPDX-License-Identifier: Apache-2.0 */
/* --push of attach and run: a process of its own sends, which is made before any target is opened, and has no capability and sees none of them. It is
 * fed through a directory of its own. */
#ifndef SAMPLED_DAEMON_PUSH_CHILD_H
#define SAMPLED_DAEMON_PUSH_CHILD_H

#include <sys/types.h>

#include "aggregator/profile.h"
#include "base/fault.h"
#include "exporters/push_request.h"

struct push_child {
	pid_t pid;
	int feed_fd; /* closed: nothing more comes */
	int dir_fd;  /* of its spool */
	char *url;   /* owned */
};

/* Forks it. To be called before there are other threads, with the signals blocked that the child is to take. 0 or -errno with *fault filled. */
int push_child_start(struct push_child **ret_child, enum push_type type, const char *url, struct fault *fault);
/* Hands over a profile: the final one, or a snapshot, which has its number as a label, for it holds what later ones hold too. 0 or -errno, after
 * it was reported. */
int push_child_send(struct push_child *child, const struct profile *profile);
/* Waits until all was sent or given up, at most for some 15 s a profile, and frees it; NULL is fine.
 * 0, or -EIO when something was not sent, which the child has said. */
int push_child_finish(struct push_child *child);

#endif
