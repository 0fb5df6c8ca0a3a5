/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLED_DAEMON_LIMITS_H
#define SAMPLED_DAEMON_LIMITS_H

/* Raises the soft limit on open files to the hard one: two descriptors a thread of the targets are kept open, and the
 * usual soft limit of 1,024 is there for programs that call select(2), which we do not. Where it cannot be raised it
 * stays as it was. Once, at the start. */
void limits_raise_files(void);
/* Puts it back, in a process that is about to become another program, which may call select(2). */
void limits_restore_files(void);

#endif
