/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/maps, and the files behind the mappings. A path in it is a hint only: the target may have made, moved,
 * replaced or removed the file, or live under another root; the file that is opened must be the very one mapped. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sampler/procfs.h"

enum { MAPS_BYTES_MAX = 64 * 1024 * 1024 }; /* 65,530 mappings, the kernel's default bound, at 1 KB each */

/* One number of a maps line followed by the character `stop`. Moves *at behind it. */
static int take_number(const char **at, const char *line_end, int base, char stop, uint64_t *ret_value)
{
	uint64_t value = 0;
	const char *p = *at;

	for (; p < line_end && *p != stop; p++) {
		unsigned digit;

		if (*p >= '0' && *p <= '9')
			digit = (unsigned)(*p - '0');
		else if (base == 16 && *p >= 'a' && *p <= 'f')
			digit = (unsigned)(*p - 'a') + 10;
		else
			return -EPROTO;
		if (value > (UINT64_MAX - digit) / (unsigned)base)
			return -EPROTO;
		value = value * (unsigned)base + digit;
	}
	/* The inode may end the line where there is no path. */
	if (p == *at || (p == line_end && stop != ' '))
		return -EPROTO;
	*at = p < line_end ? p + 1 : p;
	*ret_value = value;
	return 0;
}

/* Copies the path, newlines unescaped, " (deleted)" cut off. The kernel escapes newlines only, so that a path that really
 * holds "\012" reads the same: it then fails the comparison of inodes later. */
static int take_path(const char *from, const char *end, char *to, size_t room, bool *ret_deleted)
{
	static const char mark[] = " (deleted)";
	size_t bytes = 0;

	*ret_deleted = (size_t)(end - from) >= strlen(mark) && memcmp(end - strlen(mark), mark, strlen(mark)) == 0;
	if (*ret_deleted)
		end -= strlen(mark);
	while (from < end) {
		if (bytes + 1 >= room)
			return -EPROTO;
		if (end - from >= 4 && memcmp(from, "\\012", 4) == 0) {
			to[bytes++] = '\n';
			from += 4;
		} else {
			to[bytes++] = *from++;
		}
	}
	to[bytes] = '\0';
	return 0;
}

static int parse_line(const char *at, const char *end, struct proc_map *map, char *path, size_t path_room)
{
	uint64_t major_number, minor_number;

	if (take_number(&at, end, 16, '-', &map->start) || take_number(&at, end, 16, ' ', &map->end) || end - at < 5 ||
	    at[4] != ' ')
		return -EPROTO;
	map->readable = at[0] == 'r';
	map->writable = at[1] == 'w';
	map->executable = at[2] == 'x';
	at += 5;
	if (take_number(&at, end, 16, ' ', &map->file_off) || take_number(&at, end, 16, ':', &major_number) ||
	    take_number(&at, end, 16, ' ', &minor_number) || take_number(&at, end, 10, ' ', &map->inode))
		return -EPROTO;
	if (map->start >= map->end || major_number > UINT32_MAX || minor_number > UINT32_MAX)
		return -EPROTO;
	map->dev_major = (uint32_t)major_number;
	map->dev_minor = (uint32_t)minor_number;
	while (at < end && *at == ' ')
		at++;
	map->path = path;
	return take_path(at, end, path, path_room, &map->deleted);
}

int proc_maps_parse(const char *text, size_t bytes, int (*fn)(void *context, const struct proc_map *map), void *context)
{
	const char *end = text + bytes;
	char path[PATH_MAX + 1];

	while (text < end) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));
		struct proc_map map = {0};
		int stop;

		if (!line_end)
			line_end = end;
		if (parse_line(text, line_end, &map, path, sizeof(path)) == 0) {
			stop = fn(context, &map);
			if (stop)
				return stop;
		}
		text = line_end < end ? line_end + 1 : end;
	}
	return 0;
}

int proc_maps_each(pid_t pid, int (*fn)(void *context, const struct proc_map *map), void *context)
{
	struct buf text = {0};
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	err = proc_read_file(path, &text, MAPS_BYTES_MAX);
	if (err == 0 || err == -EFBIG) /* of an absurd number of mappings, the first ones */
		err = proc_maps_parse(text.data ? text.data : "", text.bytes, fn, context);
	buf_release(&text);
	return err == -ENOENT ? -ESRCH : err;
}

/* maps shows the superblock's device, stat a subvolume's or layer's own: on btrfs and overlayfs they differ, both with the
 * major number 0 of anonymous devices. */
static bool is_mapped_file(const struct stat *st, const struct proc_map *map)
{
	if (!S_ISREG(st->st_mode) || st->st_ino != map->inode)
		return false;
	if (major(st->st_dev) == map->dev_major && minor(st->st_dev) == map->dev_minor)
		return true;
	return major(st->st_dev) == 0 && map->dev_major == 0;
}

/* Looks before it opens: O_PATH has no effect on what it names, be it a device or a FIFO. `sure`: the path is the mapping's
 * own link, no comparison needed. */
static int open_if_mapped(const char *path, int flags, const struct proc_map *map, bool sure)
{
	char self[64];
	struct stat st;
	int fd, err;
	int look_fd = open(path, O_PATH | O_CLOEXEC | flags);

	if (look_fd < 0)
		return -errno;
	if (fstat(look_fd, &st) < 0) {
		err = -errno;
		close(look_fd);
		return err;
	}
	if (!S_ISREG(st.st_mode) || (!sure && !is_mapped_file(&st, map))) {
		close(look_fd);
		return -ENOENT;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", look_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	err = fd < 0 ? -errno : fd;
	close(look_fd);
	return err;
}

int proc_open_mapped(pid_t pid, const struct proc_map *map)
{
	char path[PATH_MAX + 64];
	int fd, first_err;

	if (map->inode == 0)
		return -ENOENT;
	/* Following these links takes CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE. */
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, map->start, map->end);
	fd = open_if_mapped(path, 0, map, true);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = open_if_mapped(path, 0, map, false);
	if (fd >= 0)
		return fd;
	first_err = fd;
	if (map->path[0] != '/')
		return first_err;
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, map->path);
	fd = open_if_mapped(path, O_NOFOLLOW, map, false);
	if (fd >= 0)
		return fd;
	/* The kernel writes the path as seen from the reader's root where the two share a mount namespace (chroot). */
	fd = open_if_mapped(map->path, O_NOFOLLOW, map, false);
	return fd;
}
