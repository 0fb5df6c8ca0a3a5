/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tempfile.h"
#include "exporters/unpack.h"

/* Brings more into data; what is there is moved to its start first. */
static void refill(struct input *in)
{
	ssize_t got;

	if (in->over || in->err)
		return;
	if (in->at > 0) {
		memmove(in->data, in->data + in->at, in->end - in->at);
		in->end -= in->at;
		in->at = 0;
	}
	if (in->end == sizeof(in->data))
		return;
	if (in->packing)
		got = packing_read(in->packing, in->fd, in->data + in->end, sizeof(in->data) - in->end);
	else
		got = read_some(in->fd, in->data + in->end, sizeof(in->data) - in->end);
	if (got < 0)
		in->err = (int)got;
	else if (got == 0)
		in->over = true;
	else
		in->end += (size_t)got;
}

static void look_at_packing(struct input *in)
{
	const unsigned char *head;
	size_t bytes = input_peek(in, &head, 4);
	enum packed as = packed_as(head, bytes);
	int err;

	if (in->err || as == PACKED_NOT)
		return;
	err = packing_new(&in->packing, as, in->data + in->at, in->end - in->at, in->over);
	if (err) {
		in->err = err;
		return;
	}
	in->at = in->end = 0;
	in->over = false;
	in->is_file = false;
}

/* A text that came from Windows may begin with a byte order mark, which is no part of it. */
static void skip_byte_order_mark(struct input *in)
{
	const unsigned char *head;

	if (input_peek(in, &head, 3) == 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
		input_skip(in, 3);
}

/* At the first byte of fd. */
static void start(struct input *in)
{
	in->err = 0;
	in->bytes = 0;
	in->at = in->end = 0;
	in->over = false;
	in->packing = NULL;
}

static void input_begin(struct input *in, const char *path, int fd)
{
	struct stat stat;
	bool is_regular = fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode);

	in->path = path;
	in->fd = fd;
	in->kept = false;
	in->is_file = strcmp(path, "-") != 0 && is_regular;
	in->start_off = is_regular ? lseek(fd, 0, SEEK_CUR) : -1;
	start(in);
	look_at_packing(in);
	skip_byte_order_mark(in);
}

int input_rewind(struct input *in)
{
	if (in->start_off < 0 || lseek(in->fd, in->start_off, SEEK_SET) < 0)
		return in->err = in->start_off < 0 ? -ESPIPE : -errno;
	packing_free(in->packing);
	start(in);
	if (!in->kept)
		look_at_packing(in);
	skip_byte_order_mark(in);
	return in->err;
}

int input_keep(struct input *in, uint64_t max_bytes)
{
	int fd, err = 0;

	if (in->start_off >= 0)
		return 0;
	fd = tempfile_open(NULL);
	if (fd < 0)
		return in->err = fd;
	while (!err) {
		const unsigned char *data;
		size_t got = input_next(in, &data, sizeof(in->data));

		if (got == 0)
			break;
		err = in->bytes > max_bytes ? -EFBIG : write_all(fd, data, got);
	}
	err = err ? err : in->err;
	if (err) {
		close(fd);
		return in->err = err;
	}
	packing_free(in->packing);
	close(in->fd);
	in->fd = fd;
	in->start_off = 0;
	in->kept = true;
	start(in);
	return lseek(fd, 0, SEEK_SET) < 0 ? (in->err = -errno) : 0;
}

int input_open(struct input *in, const char *path, struct fault *fault)
{
	struct stat stat;
	int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
	                                : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return fault_set(fault, -errno, "", "%s", strerror(errno));
	if (fstat(fd, &stat) == 0 && S_ISDIR(stat.st_mode)) {
		close(fd);
		return fault_set(fault, -EISDIR, "", "it is a directory");
	}
	input_begin(in, path, fd);
	return 0;
}

int input_open_bytes(struct input *in, const void *data, size_t bytes)
{
	int fd = memfd_create("input", MFD_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	if (pwrite(fd, data, bytes, 0) != (ssize_t)bytes) {
		err = -EIO;
		close(fd);
		return err;
	}
	input_begin(in, "-", fd);
	return 0;
}

void input_close(struct input *in)
{
	packing_free(in->packing);
	in->packing = NULL;
	close(in->fd);
	in->fd = -1;
}

size_t input_peek(struct input *in, const unsigned char **ret_data, size_t bytes)
{
	bytes = bytes > sizeof(in->data) ? sizeof(in->data) : bytes;
	while (in->end - in->at < bytes && !in->over && !in->err)
		refill(in);
	*ret_data = in->data + in->at;
	return in->end - in->at < bytes ? in->end - in->at : bytes;
}

size_t input_next(struct input *in, const unsigned char **ret_data, size_t bytes)
{
	size_t have;

	if (in->at == in->end)
		refill(in);
	have = in->end - in->at < bytes ? in->end - in->at : bytes;
	*ret_data = in->data + in->at;
	in->at += have;
	in->bytes += have;
	return have;
}

bool input_read(struct input *in, void *to, size_t bytes)
{
	unsigned char *out = to;

	while (bytes > 0) {
		const unsigned char *data;
		size_t got = input_next(in, &data, bytes);

		if (got == 0)
			return false;
		memcpy(out, data, got);
		out += got;
		bytes -= got;
	}
	return true;
}

bool input_skip(struct input *in, uint64_t bytes)
{
	while (bytes > 0) {
		const unsigned char *data;
		size_t got = input_next(in, &data, bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes);

		if (got == 0)
			return false;
		bytes -= got;
	}
	return true;
}

bool input_line(struct input *in, struct buf *line, size_t max_bytes, bool *ret_cut)
{
	bool any = false, ended = false;
	uint64_t length = 0; /* of the whole line, with what is passed over */
	unsigned char last = 0;

	line->bytes = 0;
	while (!ended) {
		const unsigned char *data, *newline;
		size_t got, room;

		if (in->at == in->end)
			refill(in);
		data = in->data + in->at;
		got = in->end - in->at;
		if (got == 0)
			break;
		any = true;
		newline = memchr(data, '\n', got);
		if (newline)
			got = (size_t)(newline - data);
		room = max_bytes - line->bytes;
		buf_add(line, data, got < room ? got : room);
		length += got;
		last = got > 0 ? data[got - 1] : last;
		ended = newline != NULL;
		got += ended;
		in->at += got;
		in->bytes += got;
	}
	if (last == '\r')
		length--;
	if (line->bytes > length)
		line->bytes = (size_t)length;
	if (ret_cut)
		*ret_cut = length > max_bytes;
	if (line->err)
		in->err = line->err;
	return any && !in->err;
}

int input_fault(int err, struct fault *fault)
{
	return fault_set(fault, err, "", "%s", err == -EPROTO ? "its compressed data is damaged" : strerror(-err));
}

int input_rest(struct input *in, struct buf *to, size_t max_bytes)
{
	for (;;) {
		const unsigned char *data;
		size_t got = input_next(in, &data, sizeof(in->data));

		if (got == 0)
			return in->err ? in->err : to->err;
		if (got > max_bytes - to->bytes || to->bytes > max_bytes)
			return -EFBIG;
		buf_add(to, data, got);
	}
}
