/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/push_refused.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/secrets.h"
#include "base/tempfile.h"
#include "base/utf8.h"
#include "daemon/spool_files.h"

enum { FILES_MAX = 2000, NAME_ROOM = 64, NAMES_MAX = 1000 };

struct kept {
	char name[NAME_ROOM];
	uint64_t bytes;
};

struct kept_list {
	struct kept items[FILES_MAX + 2]; /* more are of somebody else */
	size_t count;
	uint64_t bytes;
};

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct kept *)a)->name, ((const struct kept *)b)->name);
}

/* Files of ours: "20261122T054512Z-000017.…". */
static bool is_ours(const char *name)
{
	const char *dot = strchr(name, '.');
	char stem[SPOOL_NAME_ROOM];

	if (!dot || strlen(name) >= NAME_ROOM || (strcmp(dot, ".pb.gz") != 0 && strcmp(dot, ".txt") != 0))
		return false;
	snprintf(stem, sizeof(stem), "%.*s.spool", (int)(dot - name < 32 ? dot - name : 32), name);
	return spool_name_is_valid(stem);
}

static int list(int fd, struct kept_list *l)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;

	if (!folder) {
		int err = -errno;

		if (copy >= 0)
			close(copy);
		return err;
	}
	l->count = 0;
	l->bytes = 0;
	while (l->count < FILES_MAX + 2 && (entry = readdir(folder))) {
		struct stat status;

		if (!is_ours(entry->d_name) || fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		snprintf(l->items[l->count].name, NAME_ROOM, "%s", entry->d_name);
		l->items[l->count].bytes = (uint64_t)status.st_size;
		l->bytes += (uint64_t)status.st_size;
		l->count++;
	}
	closedir(folder);
	qsort(l->items, l->count, sizeof(l->items[0]), compare);
	return 0;
}

/* The oldest go until two more files of together `bytes` have room. */
static int make_room(struct push_refused *r, int fd, uint64_t bytes)
{
	struct kept_list *l = malloc(sizeof(*l));
	size_t first = 0;
	int err = l ? list(fd, l) : -ENOMEM;

	while (!err && first < l->count && (l->bytes + bytes > r->max_bytes || l->count - first + 2 > FILES_MAX)) {
		l->bytes -= l->items[first].bytes;
		if (unlinkat(fd, l->items[first++].name, 0) == 0)
			r->dropped_files++;
	}
	if (!err) {
		r->files = l->count - first;
		r->bytes = l->bytes;
	}
	free(l);
	return err;
}

/* As the spool itself it is the group's, whoever is the sender next. */
static int open_folder(int spool_fd)
{
	mode_t before = umask(007);
	int err = mkdirat(spool_fd, PUSH_REFUSED_FOLDER, 0770) == 0 || errno == EEXIST ? 0 : -errno, fd;

	umask(before);
	if (err)
		return err;
	fd = openat(spool_fd, PUSH_REFUSED_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

/* Under a name that no other file has. */
static int write_one(int fd, const char *name, const void *data, size_t bytes)
{
	int file = openat(fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0660), err;

	if (file < 0)
		return -errno;
	err = fchmod(file, 0660) == 0 ? write_all(file, data, bytes) : -errno;
	if (close(file) != 0 && !err)
		err = -errno;
	if (err)
		unlinkat(fd, name, 0);
	return err;
}

static void describe(struct buf *to, const struct push_destination *d, const struct spool_read_item *item,
                     const char *why)
{
	struct buf masked = {0};

	secrets_mask(&masked, why, strlen(why));
	buf_printf(to, "destination %s, type %s, at %s\n", d->name, push_type_name(d->type), d->url);
	utf8_add_safe(to, buf_text(&masked));
	buf_printf(to, "\nfrom %" PRIu64 " to %" PRIu64 " (s since 1970)\n", item->from_ns / NS_PER_S,
	           item->until_ns / NS_PER_S);
	for (size_t i = 0; i < item->labels.count; i++) {
		utf8_add_safe(to, item->labels.items[i].name);
		buf_puts(to, " = ");
		utf8_add_safe(to, item->labels.items[i].value);
		buf_putc(to, '\n');
	}
	buf_release(&masked);
}

/* The words first: a profile without them would tell nothing. */
static int write_both(struct push_refused *r, int fd, const struct buf *words, const struct spool_read_item *item)
{
	int err = -EEXIST;

	for (unsigned tries = 0; err == -EEXIST && tries < NAMES_MAX; tries++) {
		char stem[SPOOL_NAME_ROOM], name[NAME_ROOM];

		spool_name_make(stem, clock_read_ns(CLOCK_REALTIME), r->number++, false);
		*strchr(stem, '.') = '\0';
		snprintf(name, sizeof(name), "%s.txt", stem);
		err = write_one(fd, name, words->data, words->bytes);
		if (err)
			continue;
		r->files++;
		r->bytes += words->bytes;
		if (words->bytes + item->packed_bytes > r->max_bytes)
			break; /* too large to be kept */
		snprintf(name, sizeof(name), "%s.pb.gz", stem);
		err = write_one(fd, name, item->packed, item->packed_bytes);
		r->files += !err;
		r->bytes += err ? 0 : item->packed_bytes;
	}
	return err;
}

int push_refused_keep(struct push_refused *refused, int spool_fd, const struct push_destination *to,
                      const struct spool_read_item *item, const char *why, struct fault *fault)
{
	struct buf words = {0};
	int fd, err;

	if (refused->max_bytes == 0)
		return 0;
	describe(&words, to, item, why);
	fd = words.err ? words.err : open_folder(spool_fd);
	err = fd < 0 ? fd : make_room(refused, fd, words.bytes + item->packed_bytes);
	if (!err)
		err = write_both(refused, fd, &words, item);
	if (fd >= 0)
		close(fd);
	buf_release(&words);
	return err ? fault_set(fault, err, "", "cannot keep what was refused: %s", strerror(-err)) : 0;
}
