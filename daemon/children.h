/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLED_DAEMON_CHILDREN_H
#define SAMPLED_DAEMON_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/targets.h"

/* Adds the children of all members, and theirs, that are not members yet. Where a process has many threads, those of
 * other threads than the main one are looked for only when `thorough`. */
void children_scan(struct targets *targets, bool thorough);

/* The children of a process that are Pythons, and not ended: no more than `room`. */
size_t children_pythons(pid_t pid, pid_t *ret_pids, size_t room);
/* Where the command has ended, and what it left behind is sampled still: says so, in a line, once. */
void children_say_left_behind(struct targets *targets);
/* Without --subprocesses: notes how many of those of a process that is sampled are not sampled. */
void children_note_missed(struct targets *targets);
/* Says so, in a line. */
void children_say_missed(pid_t pid, size_t count);

#endif
