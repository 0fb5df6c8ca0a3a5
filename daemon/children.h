/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLED_DAEMON_CHILDREN_H
#define SAMPLED_DAEMON_CHILDREN_H

#include <stdbool.h>

#include "daemon/targets.h"

/* Adds the children of all members, and theirs, that are not members yet. Where a process has many threads, those of
 * other threads than the main one are looked for only when `thorough`. */
void children_scan(struct targets *targets, bool thorough);

#endif
