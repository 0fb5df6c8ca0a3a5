/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/credentials.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "sampler/procfs.h"

enum { STATUS_BYTES_MAX = 64 * 1024 };

/* The numbers of one line of /proc/PID/status ("\nUid:"), at most room; how many were read. */
static int read_numbers(const char *status, const char *key, unsigned *to, int room)
{
	const char *at = strstr(status, key);
	int count = 0;

	if (!at)
		return 0;
	at += strlen(key);
	while (count < room) {
		char *end;

		while (*at == '\t' || *at == ' ')
			at++;
		if (*at < '0' || *at > '9')
			break;
		to[count++] = (unsigned)strtoul(at, &end, 10);
		at = end;
	}
	return count;
}

int credentials_of(struct credentials *ret_credentials, pid_t pid)
{
	struct credentials c = {0};
	unsigned uids[4], gids[4], groups[CREDENTIALS_GROUPS_MAX];
	struct buf status = {0};
	const char *text;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	err = proc_read_file(path, &status, STATUS_BYTES_MAX);
	text = buf_text(&status);
	if (err || status.err)
		err = err ? err : status.err;
	else if (read_numbers(text, "\nUid:", uids, 4) < 4 || read_numbers(text, "\nGid:", gids, 4) < 4)
		err = -EPROTO;
	else
		c.group_count = read_numbers(text, "\nGroups:", groups, CREDENTIALS_GROUPS_MAX);
	buf_release(&status);
	if (err)
		return err == -ENOENT ? -ESRCH : err;
	/* Real, effective, saved, file system. */
	c.uid = uids[3];
	c.gid = gids[3];
	for (int i = 0; i < c.group_count; i++)
		c.groups[i] = groups[i];
	*ret_credentials = c;
	return 0;
}

bool credentials_equal(const struct credentials *a, const struct credentials *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->group_count == b->group_count &&
	       memcmp(a->groups, b->groups, sizeof(a->groups[0]) * (size_t)a->group_count) == 0;
}

/* glibc's setgroups() changes all threads; the system call changes the caller alone. */
static int set_thread_groups(int count, const gid_t *groups)
{
	return syscall(SYS_setgroups, (size_t)count, groups) == 0 ? 0 : -errno;
}

/* These return the previous id whether or not they worked: asking for an impossible one tells the present. */
static uid_t current_fsuid(void)
{
	return (uid_t)setfsuid((uid_t)-1);
}

static gid_t current_fsgid(void)
{
	return (gid_t)setfsgid((gid_t)-1);
}

int credentials_assume(const struct credentials *credentials, struct credentials *ret_saved)
{
	struct credentials own = {.uid = current_fsuid(), .gid = current_fsgid(), .group_count = -1};

	if (own.uid == credentials->uid) {
		/* Who runs as us can do what we can. */
		*ret_saved = own;
		return 0;
	}
	own.group_count = getgroups(CREDENTIALS_GROUPS_MAX, own.groups);
	if (own.group_count < 0 || set_thread_groups(credentials->group_count, credentials->groups))
		return -EPERM;
	setfsgid(credentials->gid);
	setfsuid(credentials->uid);
	*ret_saved = own;
	if (current_fsuid() == credentials->uid && current_fsgid() == credentials->gid)
		return 0;
	credentials_restore(&own);
	return -EPERM;
}

void credentials_restore(const struct credentials *saved)
{
	setfsuid(saved->uid);
	setfsgid(saved->gid);
	if (saved->group_count >= 0)
		(void)set_thread_groups(saved->group_count, saved->groups);
}
