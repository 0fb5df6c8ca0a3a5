/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct writer *memory_new(void)
{
	struct writer *writer = malloc(sizeof(*writer));
	int fd = writer ? memfd_create("sampled", MFD_CLOEXEC) : -1;

	if (fd < 0) {
		free(writer);
		return NULL;
	}
	writer_open_fd(writer, fd);
	return writer;
}

static int take(int fd, struct buf *to, size_t bytes)
{
	char *room = buf_reserve(to, bytes);
	size_t done = 0;

	if (!room)
		return to->err;
	while (done < bytes) {
		ssize_t got = pread(fd, room + done, bytes - done, (off_t)done);

		if (got <= 0 && errno != EINTR)
			return -EIO;
		done += got > 0 ? (size_t)got : 0;
	}
	to->bytes += bytes;
	return 0;
}

int memory_finish(struct writer *from, int err, struct buf *to)
{
	int fd, closed;

	if (!from)
		return -ENOMEM;
	fd = from->fd;
	closed = writer_close(from, NULL);
	err = err ? err : closed;
	if (!err)
		err = take(fd, to, (size_t)from->bytes);
	close(fd);
	free(from);
	return err;
}
