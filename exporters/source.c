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

/* As the target would open it: every link on the way, absolute ones too, is followed inside its own root (openat2(2)). A
 * relative path starts at its working directory and cannot leave that. */
static int open_as_target(int32_t pid, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	char base[64];
	int root_fd;
	long fd;

	snprintf(base, sizeof(base), "/proc/%" PRId32 "/%s", pid, path[0] == '/' ? "root" : "cwd");
	root_fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd < 0)
		fd = -errno;
	close(root_fd);
	return (int)fd;
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

int source_read(struct buf *to, int32_t pid, const char *path)
{
	struct stat st;
	int fd, err;

	to->bytes = 0;
	if (path[0] == '\0' || path[0] == '<' || pid <= 0) /* "<string>", "<frozen importlib._bootstrap>" */
		return -ENOENT;
	fd = open_as_target(pid, path);
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
