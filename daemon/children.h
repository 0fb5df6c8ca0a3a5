/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLED_DAEMON_CHILDREN_H
#define SAMPLED_DAEMON_CHILDREN_H

#include "daemon/targets.h"

/* Adds the children of all members, and theirs, that are not members yet. */
void children_scan(struct targets *targets);

#endif
