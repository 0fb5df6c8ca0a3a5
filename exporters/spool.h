/* SPDX-License-Identifier: Apache-2.0 */
/* An input that has to be read out of order, as a regular file: itself where it is one, or else (standard input, pipes, packed files) a copy of it
 * in a temporary file, in $TMPDIR or /var/tmp, which no one else can open and which has no name once it is open. */
#ifndef SAMPLED_EXPORTERS_SPOOL_H
#define SAMPLED_EXPORTERS_SPOOL_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "exporters/input.h"

struct spool {
	int fd;         /* to pread() from; the input's own, or the copy's */
	uint64_t bytes; /* of the file */
	bool copied;
	char path[PATH_MAX]; /* the copy's, while it has a name; "" */
};

/* The input must stand at its beginning (input_peek() is no move). At most max_bytes (-EFBIG). 0 or -errno with *fault filled. */
int spool_open(struct spool *spool, struct input *in, uint64_t max_bytes, struct fault *fault);
/* For libraries that open files by name: gives a copy a name. 0 or -errno with *fault filled. */
int spool_name(struct spool *spool, struct fault *fault);
/* Takes that name away again. */
void spool_forget_name(struct spool *spool);
void spool_close(struct spool *spool);

/* Fewer than `bytes` only at the end. The count or -errno. */
int64_t spool_read_at(const struct spool *spool, void *to, uint64_t bytes, uint64_t off);

#endif
