/* SPDX-License-Identifier: Apache-2.0 */
/* A credential that stands in a file: read when it is wanted, and again when the file has changed, so that it can be changed under way. */
#ifndef SAMPLED_DAEMON_PUSH_SECRET_H
#define SAMPLED_DAEMON_PUSH_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/fault.h"

enum { PUSH_SECRET_MAX = 16384 }; /* bytes */

struct push_secret {
	char *text;       /* owned; without the line's end; NULL: not read yet */
	struct stat seen; /* of what was read */
	bool is_open;     /* others may read the file: said once */
	bool was_said;
};

#define PUSH_SECRET_FOLDER "/etc/sampled/credentials"

/* Where the file is that the configuration names: a name without a slash is one of those that the service manager hands over
 * ($CREDENTIALS_DIRECTORY), or, where there is none, in PUSH_SECRET_FOLDER. */
void push_secret_path(char *to, size_t room, const char *name);
/* Brings it up to date. A regular file, of one line without control characters. 0 or -errno with *fault filled. */
int push_secret_read(struct push_secret *secret, const char *path, struct fault *fault);
/* Overwrites and frees it. */
void push_secret_release(struct push_secret *secret);

#endif
