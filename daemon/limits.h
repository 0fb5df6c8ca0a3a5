/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLED_DAEMON_LIMITS_H
#define SAMPLED_DAEMON_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* Raises the soft limit on open files to the hard one: two descriptors a thread of the targets are kept open, and the
 * usual soft limit of 1,024 is there for programs that call select(2), which we do not. Where it cannot be raised it
 * stays as it was. Once, at the start. */
void limits_raise_files(void);
/* Puts it back, in a process that is about to become another program, which may call select(2). */
void limits_restore_files(void);

/* Of the service's main thread: a few descriptors are kept back, so that the sampler's thread, which opens files of the targets' threads, cannot
 * have the last. They are free for what must go on whatever is short: clients, and the look at /proc. */
void limits_keep_files(void);
void limits_free_files(void);
/* Whether so many more files can be opened, besides those that are kept back; at most LIMITS_ASKED_MAX. */
bool limits_have_files(unsigned count);
/* How many files are open, without those that are kept back, and how many may be. 0: not known. */
void limits_count_files(uint64_t *ret_open, uint64_t *ret_max);

enum { LIMITS_KEPT = 8, LIMITS_ASKED_MAX = 16 };

#endif
