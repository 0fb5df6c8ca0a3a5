/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_directory(int32_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/%s", pid, name);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

int source_place_open(struct source_place *ret_place, int32_t pid)
{
	struct source_place place = {.root_fd = open_directory(pid, "root")};

	if (place.root_fd < 0)
		return place.root_fd;
	place.cwd_fd = open_directory(pid, "cwd");
	if (place.cwd_fd < 0) {
		close(place.root_fd);
		return place.cwd_fd;
	}
	*ret_place = place;
	return 0;
}

void source_place_close(const struct source_place *place)
{
	close(place->root_fd);
	close(place->cwd_fd);
}

/* As the target would open it: every link on the way, absolute ones too, is followed inside its own root (openat2(2)). A
 * relative path starts at its working directory and cannot leave that. */
static int open_as_target(const struct source_place *place, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, path[0] == '/' ? place->root_fd : place->cwd_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int read_all(struct buf *to, int fd, size_t max_bytes)
{
	while (to->bytes <= max_bytes) {
		void *room = buf_reserve(to, 65536);
		ssize_t got = room ? read(fd, room, 65536) : 0;

		if (!room)
			return to->err;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return 0;
		to->bytes += (size_t)got;
	}
	return -EFBIG;
}

int source_read(struct buf *to, const struct source_place *place, const char *path)
{
	struct stat st;
	int fd, err;

	to->bytes = 0;
	if (path[0] == '\0' || path[0] == '<') /* "<string>", "<frozen importlib._bootstrap>" */
		return -ENOENT;
	fd = open_as_target(place, path);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0)
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	else if (st.st_size > (off_t)SOURCE_BYTES_MAX)
		err = -EFBIG;
	else
		err = read_all(to, fd, SOURCE_BYTES_MAX); /* it may grow meanwhile */
	close(fd);
	if (err)
		to->bytes = 0;
	return err;
}

const char *source_line(const struct buf *source, uint32_t line, size_t *ret_bytes)
{
	const char *at = source->data, *end = source->data + source->bytes, *stop;

	if (line == 0 || source->bytes == 0)
		return NULL;
	for (; line > 1; line--) {
		at = memchr(at, '\n', (size_t)(end - at));
		if (!at || ++at == end)
			return NULL;
	}
	stop = memchr(at, '\n', (size_t)(end - at));
	if (!stop)
		stop = end;
	if (stop > at && stop[-1] == '\r')
		stop--;
	*ret_bytes = (size_t)(stop - at);
	return at;
}
