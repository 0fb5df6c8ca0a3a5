/* SPDX-License-Identifier: Apache-2.0 */
/* A credential that stands in a file: read when it is wanted, and again when the file has changed, so that it can be changed under way. */
#ifndef SAMPLED_DAEMON_PUSH_SECRET_H
#define SAMPLED_DAEMON_PUSH_SECRET_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/fault.h"

enum { PUSH_SECRET_MAX = 16384 }; /* bytes */

struct push_secret {
	char *text;       /* owned; without the line's end; NULL: not read yet */
	struct stat seen; /* of what was read */
	bool is_open;     /* others may read the file: said once */
	bool was_said;
};

/* Brings it up to date. A regular file, of one line without control characters. 0 or -errno with *fault filled. */
int push_secret_read(struct push_secret *secret, const char *path, struct fault *fault);
/* Overwrites and frees it. */
void push_secret_release(struct push_secret *secret);

#endif
