/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CACHE_BYTES_MAX (INT64_C(8) << 30)

enum {
	MISSING_SECONDS = 24 * 3600,
	UNFINISHED_SECONDS = 3600,
	FILES_MAX = 4096,
};

static const char missing_suffix[] = ".missing", unfinished_suffix[] = ".unfinished";

struct cached {
	char name[NAME_MAX + 1];
	int64_t bytes;
	time_t used;
};

/* The last used first. */
static int compare(const void *left, const void *right)
{
	const struct cached *a = left, *b = right;

	return a->used > b->used ? -1 : a->used < b->used;
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t bytes = strlen(name), own = strlen(suffix);

	return bytes >= own && strcmp(name + bytes - own, suffix) == 0;
}

static bool is_over(const struct cached *file, int64_t sum, time_t now)
{
	if (has_suffix(file->name, unfinished_suffix))
		return now - file->used > UNFINISHED_SECONDS;
	if (has_suffix(file->name, missing_suffix))
		return now - file->used > MISSING_SECONDS;
	return sum > CACHE_BYTES_MAX;
}

/* What has aged goes, and the files that were used longest ago, where there are too many. */
static void prune(int cache_fd)
{
	struct cached *files = calloc(FILES_MAX, sizeof(*files));
	int fd = openat(cache_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	size_t count = 0;
	int64_t sum = 0;
	struct stat st;

	while (files && folder && count < FILES_MAX && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.' || fstatat(cache_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		snprintf(files[count].name, sizeof(files[count].name), "%s", entry->d_name);
		files[count].bytes = st.st_size;
		files[count++].used = st.st_mtime;
	}
	if (files && count)
		qsort(files, count, sizeof(*files), compare);
	for (size_t i = 0; files && i < count; i++) {
		sum += files[i].bytes;
		if (is_over(&files[i], sum, time(NULL)))
			(void)unlinkat(cache_fd, files[i].name, 0);
	}
	if (folder)
		closedir(folder);
	else if (fd >= 0)
		close(fd);
	free(files);
}

static int make_below(int at_fd, const char *name)
{
	int fd;

	if (mkdirat(at_fd, name, 0700) != 0 && errno != EEXIST)
		fd = -1;
	else
		fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (at_fd >= 0)
		close(at_fd);
	return fd;
}

int cache_open(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	struct stat st;
	int fd = -1;

	if (cache && cache[0] == '/') {
		(void)mkdir(cache, 0700);
		fd = open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	} else if (home && home[0] == '/') {
		fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd = fd >= 0 ? make_below(fd, ".cache") : -1;
	}
	fd = fd >= 0 ? make_below(fd, "sampled") : -1;
	fd = fd >= 0 ? make_below(fd, "debuginfod") : -1;
	if (fd < 0)
		return -1;
	/* Another's folder would say what our debug data is. */
	if (fstat(fd, &st) != 0 || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH)) {
		close(fd);
		return -1;
	}
	prune(fd);
	return fd;
}

int cache_find(int cache_fd, const char *key, bool *ret_missing)
{
	char name[NAME_MAX];
	struct stat st;
	int fd;

	*ret_missing = false;
	if (cache_fd < 0)
		return -1;
	fd = openat(cache_fd, key, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		(void)futimens(fd, NULL); /* used now */
		return fd;
	}
	snprintf(name, sizeof(name), "%s%s", key, missing_suffix);
	*ret_missing =
		fstatat(cache_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && time(NULL) - st.st_mtime < MISSING_SECONDS;
	return -1;
}

void cache_note_missing(int cache_fd, const char *key)
{
	char name[NAME_MAX];
	int fd;

	if (cache_fd < 0)
		return;
	snprintf(name, sizeof(name), "%s%s", key, missing_suffix);
	fd = openat(cache_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	(void)futimens(fd, NULL);
	close(fd);
}

static void unfinished_name(char name[NAME_MAX], const char *key)
{
	snprintf(name, NAME_MAX, "%s.%d%s", key, (int)getpid(), unfinished_suffix);
}

int cache_begin(int cache_fd, const char *key)
{
	char name[NAME_MAX];

	if (cache_fd < 0)
		return memfd_create("sampled-debuginfod", MFD_CLOEXEC);
	unfinished_name(name, key);
	return openat(cache_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
}

int cache_end(int cache_fd, const char *key, int fd, bool whole)
{
	char name[NAME_MAX];

	if (cache_fd < 0 && whole)
		return fd;
	close(fd);
	if (cache_fd < 0)
		return -1;
	unfinished_name(name, key);
	if (whole && renameat(cache_fd, name, cache_fd, key) == 0)
		return openat(cache_fd, key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	(void)unlinkat(cache_fd, name, 0);
	return -1;
}
