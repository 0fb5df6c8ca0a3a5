/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spool_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static const char suffix[] = ".spool", sent_suffix[] = ".sent", temporary_suffix[] = ".tmp";

void spool_name_make(char to[SPOOL_NAME_ROOM], uint64_t wall_ns, unsigned number, bool temporary)
{
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	char when[24] = "";
	struct tm utc;

	if (gmtime_r(&seconds, &utc))
		strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &utc);
	snprintf(to, SPOOL_NAME_ROOM, "%s%s-%06u%s", temporary ? "." : "", when, number % 1000000,
	         temporary ? temporary_suffix : suffix);
}

static bool ends_with(const char *name, const char *end)
{
	size_t bytes = strlen(name), end_bytes = strlen(end);

	return bytes > end_bytes && strcmp(name + bytes - end_bytes, end) == 0;
}

/* Whether the part in front of a suffix is what spool_name_make() makes. */
static bool is_stem(const char *name, size_t bytes)
{
	static const char pattern[] = "dddddddd"
				      "T"
				      "dddddd"
				      "Z-"
				      "dddddd";

	if (bytes != sizeof(pattern) - 1)
		return false;
	for (size_t i = 0; i < bytes; i++)
		if (pattern[i] == 'd' ? name[i] < '0' || name[i] > '9' : name[i] != pattern[i])
			return false;
	return true;
}

bool spool_name_is_valid(const char *name)
{
	return ends_with(name, suffix) && is_stem(name, strlen(name) - strlen(suffix));
}

void spool_name_sent(char to[SPOOL_NAME_ROOM], const char *name)
{
	snprintf(to, SPOOL_NAME_ROOM, "%.*s%s", (int)(strlen(name) - strlen(suffix)), name, sent_suffix);
}

/* A directory stream of its own, which leaves dir_fd where it is. */
static DIR *open_directory(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;

	if (!directory && fd >= 0)
		close(fd);
	return directory;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct spool_name *)a)->text, ((const struct spool_name *)b)->text);
}

static int add_name(int dir_fd, struct spool_names *names, size_t *room, const char *text)
{
	struct spool_name *items;
	struct stat status;
	uint64_t bytes, blocks;

	if (fstatat(dir_fd, text, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
		return 0;
	if (names->count == *room) {
		*room = *room ? 2 * *room : 64;
		items = reallocarray(names->items, *room, sizeof(*items));
		if (!items)
			return -ENOMEM;
		names->items = items;
	}
	bytes = (uint64_t)status.st_size;
	blocks = (uint64_t)status.st_blocks * 512;
	bytes = blocks > bytes ? blocks : bytes;
	names->items[names->count].bytes = bytes;
	memcpy(names->items[names->count++].text, text, strlen(text) + 1); /* spool_name_is_valid() */
	names->bytes += bytes;
	return 0;
}

int spool_list(int dir_fd, struct spool_names *ret_names)
{
	DIR *directory = open_directory(dir_fd);
	struct spool_names names = {0};
	struct dirent *entry;
	size_t room = 0;
	int err = 0;

	if (!directory)
		return -errno;
	while (!err && names.count < SPOOL_FILES_MAX && (entry = readdir(directory)))
		if (spool_name_is_valid(entry->d_name))
			err = add_name(dir_fd, &names, &room, entry->d_name);
	closedir(directory);
	if (err) {
		spool_names_release(&names);
		return err;
	}
	if (names.count > 0)
		qsort(names.items, names.count, sizeof(*names.items), compare);
	*ret_names = names;
	return 0;
}

void spool_names_release(struct spool_names *names)
{
	free(names->items);
	*names = (struct spool_names){0};
}

int spool_remove(int dir_fd, const char *name)
{
	char sent[SPOOL_NAME_ROOM];
	int err = unlinkat(dir_fd, name, 0) == 0 ? 0 : -errno;

	spool_name_sent(sent, name);
	unlinkat(dir_fd, sent, 0);
	return err;
}

void spool_sweep(int dir_fd)
{
	DIR *directory = open_directory(dir_fd);
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		const char *name = entry->d_name;
		size_t bytes = strlen(name);

		if (name[0] == '.' && ends_with(name, temporary_suffix) &&
		    is_stem(name + 1, bytes - strlen(temporary_suffix) - 1))
			unlinkat(dir_fd, name, 0);
	}
	if (directory)
		closedir(directory);
}
