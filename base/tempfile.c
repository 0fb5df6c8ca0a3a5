/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tempfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *tempfile_folder(void)
{
	const char *chosen = secure_getenv("TMPDIR");

	return chosen && chosen[0] == '/' ? chosen : "/var/tmp";
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

int tempfile_open(const char *folder)
{
	int fd = folder ? open_nameless(folder) : -ENOENT;

	if (fd < 0)
		fd = open_nameless(tempfile_folder());
	return fd < 0 ? open_named(tempfile_folder()) : fd;
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
