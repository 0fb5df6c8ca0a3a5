/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tempfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char default_folder[] = "/var/tmp";

const char *tempfile_folder(void)
{
	const char *chosen = secure_getenv("TMPDIR");

	return chosen && chosen[0] == '/' ? chosen : default_folder;
}

static int open_nameless(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* Where the file system has no nameless ones, it has a name until it is open. */
static int open_named(const char *folder)
{
	char *name;
	int fd;

	if (asprintf(&name, "%s/sampled-XXXXXX", folder) < 0)
		return -ENOMEM;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	else
		unlink(name);
	free(name);
	return fd;
}

static int open_in_memory(void)
{
	int fd = memfd_create("sampled", MFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int tempfile_open(const char *folder)
{
	int fd = folder ? open_nameless(folder) : -ENOENT;

	if (fd < 0)
		fd = open_nameless(tempfile_folder());
	if (fd < 0)
		fd = open_named(tempfile_folder());
	/* A container whose root is read-only has no such folder. One that was asked for is not replaced. */
	if ((fd == -ENOENT || fd == -EROFS || fd == -EACCES) && strcmp(tempfile_folder(), default_folder) == 0)
		fd = open_in_memory();
	return fd;
}

int write_all(int fd, const void *data, size_t bytes)
{
	for (const char *at = data; bytes > 0;) {
		ssize_t done = write(fd, at, bytes);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		at += done;
		bytes -= (size_t)done;
	}
	return 0;
}
