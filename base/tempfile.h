/* SPDX-License-Identifier: Apache-2.0 */
/* Files without a name: nobody else can open them, and they are gone with their descriptor, however we end. */
#ifndef SAMPLED_BASE_TEMPFILE_H
#define SAMPLED_BASE_TEMPFILE_H

#include <stddef.h>

/* Where they are: $TMPDIR where that is an absolute path (and not where we have more rights than our caller), or else /var/tmp. Not owned. */
const char *tempfile_folder(void);
/* In `folder`, or, where that is NULL or will not have one, in tempfile_folder(), or, where /var/tmp is not there or not to be written, in
 * memory. A descriptor, to read and write; -errno. */
int tempfile_open(const char *folder);
/* All of it, whatever interrupts. 0 or -errno. */
int write_all(int fd, const void *data, size_t bytes);

#endif
