/* SPDX-License-Identifier: Apache-2.0 */
/* The file-system credentials of a target's owner, so that a file the target names is opened with the rights its
 * owner has and no more. Only the calling thread is changed. */
#ifndef SAMPLED_DAEMON_CREDENTIALS_H
#define SAMPLED_DAEMON_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CREDENTIALS_GROUPS_MAX = 64 };

struct credentials {
	uid_t uid;
	gid_t gid;
	gid_t groups[CREDENTIALS_GROUPS_MAX];
	int group_count; /* more than fit are left out of a target's; of our own: -1, groups are not changed */
};

/* Those of a process. 0, -ESRCH or another -errno. */
int credentials_of(struct credentials *ret_credentials, pid_t pid);
bool credentials_equal(const struct credentials *a, const struct credentials *b);
/* Takes them for the calling thread; *ret_saved is for credentials_restore(). 0, or -EPERM: not permitted,
 * unchanged. */
int credentials_assume(const struct credentials *credentials, struct credentials *ret_saved);
void credentials_restore(const struct credentials *saved);

#endif
