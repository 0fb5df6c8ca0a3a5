/* SPDX-License-Identifier: Apache-2.0 */
/* What can be wrong with the sender's configuration besides its words. */
#ifndef SAMPLED_DAEMON_PUSH_CHECK_H
#define SAMPLED_DAEMON_PUSH_CHECK_H

#include "base/fault.h"
#include "daemon/push_config.h"

/* Says what is allowed and unwise: a credential that goes over plain http to another host. */
void push_check_warn(const struct push_config *config);
/* Whether the files that are named, and the spool, can be used. As root it becomes, for good, a user without rights in the spool's group, as
 * sampled-push.service has; credentials without a path are read before, as the service manager does. 0 or -errno with *fault filled. */
int push_check_files(const struct push_config *config, struct fault *fault);

#endif
