/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/retention_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/tempfile.h"

enum { LIST_MAX_BYTES = 64 << 20 }; /* of RETENTION_FILES_MAX with room to spare */

int retention_list_add(struct retention *r, const char *name, uint64_t inode, uint64_t bytes, int64_t changed_ns)
{
	struct retention_file *more = reallocarray(r->files, r->count + 1, sizeof(*more));
	char *copy = strdup(name);

	if (more)
		r->files = more;
	if (!more || !copy) {
		free(copy);
		return -ENOMEM;
	}
	r->files[r->count++] =
		(struct retention_file){.name = copy, .inode = inode, .bytes = bytes, .changed_ns = changed_ns};
	r->bytes += bytes;
	return 0;
}

void retention_list_drop(struct retention *r, size_t at)
{
	r->bytes -= r->files[at].bytes;
	free(r->files[at].name);
	r->count--;
	memmove(&r->files[at], &r->files[at + 1], (r->count - at) * sizeof(*r->files));
}

bool retention_list_is_true(const struct retention *r, const struct retention_file *file)
{
	struct stat stat;

	return fstatat(r->fd, file->name, &stat, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(stat.st_mode) &&
	       stat.st_ino == file->inode && (uint64_t)stat.st_size == file->bytes &&
	       (int64_t)stat.st_mtim.tv_sec * (int64_t)NS_PER_S + stat.st_mtim.tv_nsec == file->changed_ns;
}

/* "INODE BYTES CHANGED_NS NAME": taken if it is a name in this directory and the file is the one. */
static int take_line(struct retention *r, const char *line)
{
	struct retention_file file = {0};
	int name_at = 0;

	if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNd64 " %n", &file.inode, &file.bytes, &file.changed_ns,
	           &name_at) != 3 ||
	    name_at == 0)
		return 0;
	file.name = (char *)line + name_at;
	if (!*file.name || *file.name == '.' || strchr(file.name, '/') || strlen(file.name) > DUMP_NAME_MAX_BYTES ||
	    r->count >= RETENTION_FILES_MAX || !retention_list_is_true(r, &file))
		return 0;
	return retention_list_add(r, file.name, file.inode, file.bytes, file.changed_ns);
}

static int by_age(const void *a, const void *b)
{
	const struct retention_file *x = a, *y = b;

	if (x->changed_ns != y->changed_ns)
		return x->changed_ns < y->changed_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* The same file may stand in a list that somebody wrote twice. */
static void drop_doubles(struct retention *r)
{
	for (size_t i = 1; i < r->count;)
		if (strcmp(r->files[i].name, r->files[i - 1].name) == 0)
			retention_list_drop(r, i);
		else
			i++;
}

int retention_list_read(struct retention *r)
{
	int fd = openat(r->fd, LIST_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), err = 0;
	struct stat stat;
	char *line = NULL;
	size_t room = 0;
	FILE *from;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode) || stat.st_size > LIST_MAX_BYTES) {
		close(fd);
		return -EINVAL;
	}
	from = fdopen(fd, "r");
	if (!from) {
		close(fd);
		return -ENOMEM;
	}
	while (!err && getline(&line, &room, from) > 0) {
		line[strcspn(line, "\n")] = '\0';
		err = take_line(r, line);
	}
	free(line);
	fclose(from);
	if (r->count > 1)
		qsort(r->files, r->count, sizeof(*r->files), by_age);
	drop_doubles(r);
	return err;
}

int retention_list_write(struct retention *r)
{
	struct buf text = {0};
	int fd, err;

	for (size_t i = 0; i < r->count; i++)
		buf_printf(&text, "%" PRIu64 " %" PRIu64 " %" PRId64 " %s\n", r->files[i].inode, r->files[i].bytes,
		           r->files[i].changed_ns, r->files[i].name);
	unlinkat(r->fd, LIST_NEXT_NAME, 0);
	fd = openat(r->fd, LIST_NEXT_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	err = text.err ? text.err : fd < 0 ? -errno : write_all(fd, text.data, text.bytes);
	if (!err && fsync(fd))
		err = -errno;
	if (fd >= 0)
		close(fd);
	if (!err && renameat(r->fd, LIST_NEXT_NAME, r->fd, LIST_NAME))
		err = -errno;
	if (err)
		unlinkat(r->fd, LIST_NEXT_NAME, 0);
	buf_release(&text);
	return err;
}
