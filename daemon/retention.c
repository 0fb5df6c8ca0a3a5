/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/retention.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/retention_list.h"

enum {
	SEQUENCE_MAX = 10000,     /* dumps of one name */
	FREE_AT_LEAST = 64 << 10, /* bytes, on a full disk */
};

static int no_directory(const char *directory, struct fault *fault)
{
	int err = -errno;
	char hint[160] = "";

	if (err == -ENOENT)
		snprintf(hint, sizeof(hint), "mkdir -p %.80s, or name another with directory = DIR in [dump]", directory);
	return fault_set(fault, err, hint, "%s: %s", directory, strerror(-err));
}

int retention_open(struct retention *ret_retention, const char *directory, const struct retention_limits *limits,
                   struct fault *fault)
{
	struct retention r = {.limits = *limits};
	int err;

	r.fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r.fd < 0)
		return no_directory(directory, fault);
	unlinkat(r.fd, UNFINISHED, 0);
	unlinkat(r.fd, LIST_NEXT_NAME, 0);
	err = retention_list_read(&r);
	if (err) {
		retention_close(&r);
		return fault_set(fault, err, "move it away: what it lists is then kept", "%s/%s: %s", directory,
		                 LIST_NAME, strerror(-err));
	}
	*ret_retention = r;
	return 0;
}

void retention_close(struct retention *r)
{
	while (r->count > 0)
		retention_list_drop(r, r->count - 1);
	free(r->files);
	close(r->fd);
	*r = (struct retention){.fd = -1};
}

/* The oldest goes, if it is still the one that we wrote; else it is only forgotten. Its bytes, or 0, or -errno. */
static int64_t remove_oldest(struct retention *r, uint64_t *counter)
{
	struct retention_file *file = &r->files[0];
	int64_t freed = (int64_t)file->bytes;

	if (!retention_list_is_true(r, file))
		freed = 0;
	else if (unlinkat(r->fd, file->name, 0))
		return -errno;
	else
		++*counter;
	retention_list_drop(r, 0);
	return freed;
}

/* Which limit the oldest is beyond; NULL: none. The newest stays, whatever it is. */
static uint64_t *beyond(struct retention *r, time_t now)
{
	const struct retention_limits *limits = &r->limits;
	int64_t age_ns;

	if (r->count < 1)
		return NULL;
	age_ns = (int64_t)now * (int64_t)NS_PER_S - r->files[0].changed_ns;
	if (limits->age_ns && age_ns > 0 && (uint64_t)age_ns > limits->age_ns)
		return &r->removed.by_age;
	if (r->count < 2)
		return NULL;
	if ((limits->count && r->count > limits->count) || r->count > RETENTION_FILES_MAX)
		return &r->removed.by_count;
	return limits->bytes && r->bytes > limits->bytes ? &r->removed.by_bytes : NULL;
}

int retention_sweep(struct retention *r, time_t now)
{
	uint64_t *counter;
	bool any = false;
	int64_t freed = 0;
	int err;

	while (freed >= 0 && (counter = beyond(r, now)) != NULL) {
		freed = remove_oldest(r, counter);
		any = true;
	}
	err = any ? retention_list_write(r) : 0;
	return freed < 0 ? (int)freed : err;
}

/* Room on a full disk: the oldest go until so many bytes are free, or none is left. Whether any was. */
static bool make_room(struct retention *r, uint64_t bytes)
{
	uint64_t freed_bytes = 0;

	while (r->count > 0 && freed_bytes < bytes) {
		int64_t freed = remove_oldest(r, &r->removed.by_full_disk);

		if (freed < 0)
			break;
		freed_bytes += (uint64_t)freed;
	}
	return freed_bytes > 0;
}

static uint64_t room_wanted(const struct retention *r, uint64_t written_bytes)
{
	uint64_t twice = 2 * written_bytes + FREE_AT_LEAST, quarter = r->bytes / 4;

	return twice > quarter ? twice : quarter;
}

bool retention_give_way(struct retention *r)
{
	bool any = make_room(r, room_wanted(r, 0));

	if (any)
		(void)retention_list_write(r); /* best effort, as in retention_write() */
	return any;
}

static bool is_full(int err)
{
	return err == -ENOSPC || err == -EDQUOT;
}

/* Gives the file of a descriptor its name, the first that is free, and puts it on the list before. 0 or -errno. */
static int publish(struct retention *r, int fd, const char *pattern, const struct dump_subject *subject,
                   const char *suffix, char *ret_name)
{
	struct stat stat;
	int err = fstat(fd, &stat) ? -errno : -EEXIST;

	for (unsigned sequence = 1; err == -EEXIST && sequence <= SEQUENCE_MAX; sequence++) {
		dump_name_make(ret_name, pattern, subject, sequence, suffix);
		if (faccessat(r->fd, ret_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		err = retention_list_add(r, ret_name, stat.st_ino, (uint64_t)stat.st_size,
		                         (int64_t)stat.st_mtim.tv_sec * (int64_t)NS_PER_S + stat.st_mtim.tv_nsec);
		if (err)
			return err;
		err = retention_list_write(r);
		/* linkat() refuses a name that was taken meanwhile, on every file system. */
		if (!err && linkat(r->fd, UNFINISHED, r->fd, ret_name, 0))
			err = -errno;
		if (err)
			retention_list_drop(r, r->count - 1);
	}
	return err;
}

/* One attempt, into the unfinished file. *ret_bytes: how far it came. 0 or -errno. */
static int try_write(struct retention *r, const char *pattern, const struct dump_subject *subject, const char *suffix,
                     int (*write)(void *context, int fd), void *context, char *ret_name, uint64_t *ret_bytes)
{
	struct stat stat;
	int fd, err;

	unlinkat(r->fd, UNFINISHED, 0);
	fd = openat(r->fd, UNFINISHED, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = write(context, fd);
	*ret_bytes = fstat(fd, &stat) == 0 ? (uint64_t)stat.st_size : 0;
	if (!err && (fchmod(fd, 0640) || fsync(fd)))
		err = -errno;
	if (!err)
		err = publish(r, fd, pattern, subject, suffix, ret_name);
	close(fd);
	unlinkat(r->fd, UNFINISHED, 0);
	if (!err && fsync(r->fd))
		err = -errno;
	return err;
}

int retention_write(struct retention *r, const char *pattern, const struct dump_subject *subject, const char *suffix,
                    int (*write)(void *context, int fd), void *context, char *ret_name, struct fault *fault)
{
	uint64_t bytes = 0;
	int err = try_write(r, pattern, subject, suffix, write, context, ret_name, &bytes);

	/* How long it would have become nobody knows: twice what there was room for, or a quarter of all dumps, so that one that never fits does
	 * not cost all the others. */
	if (is_full(err) && make_room(r, room_wanted(r, bytes))) {
		err = try_write(r, pattern, subject, suffix, write, context, ret_name, &bytes);
		if (err)
			(void)retention_list_write(
				r); /* best effort: what it has too much is forgotten when it is read */
	}
	if (err)
		return fault_set(fault, err, "", "cannot write a dump: %s", strerror(-err));
	err = retention_sweep(r, time(NULL));
	return err ? fault_set(fault, err, "", "cannot remove old dumps: %s", strerror(-err)) : 0;
}
