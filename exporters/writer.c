/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"

static void writer_reset(struct writer *w, int fd)
{
	w->fd = fd;
	w->err = 0;
	w->bytes = 0;
	w->path = NULL;
	w->tmp_path = NULL;
	w->used = 0;
}

void writer_open_fd(struct writer *w, int fd)
{
	writer_reset(w, fd);
}

/* How many bytes of path are its directory, with the slash; 0: the current one. */
static size_t directory_bytes(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

/* What stands at path now: 1 a regular file (in *ret_stat), 0 nothing, or why it must not be replaced. */
static int look_at(const char *path, struct stat *ret_stat, struct fault *fault)
{
	if (lstat(path, ret_stat) != 0) {
		if (errno == ENOENT)
			return 0;
		return fault_set(fault, -errno, "", "%s", strerror(errno));
	}
	if (S_ISLNK(ret_stat->st_mode))
		return fault_set(fault, -ELOOP, "name the file itself", "it is a symbolic link");
	if (S_ISDIR(ret_stat->st_mode))
		return fault_set(fault, -EISDIR, "", "it is a directory");
	if (!S_ISREG(ret_stat->st_mode))
		return fault_set(fault, -EINVAL, "use -o - to write to a stream", "it is not a regular file");
	return 1;
}

/* The file that is replaced keeps its owner and mode. Where the owner cannot be kept, mode 0600 stands: a file that
 * changes hands must not be open to more people than it was. */
static void keep_owner(int fd, const struct stat *old)
{
	struct stat new;

	if (fstat(fd, &new) != 0)
		return;
	if ((new.st_uid != old->st_uid || new.st_gid != old->st_gid) && fchown(fd, old->st_uid, old->st_gid) != 0)
		return;
	/* A mode that cannot be kept leaves the stricter one, which is no reason to fail. */
	(void)fchmod(fd, old->st_mode & 0777);
}

int writer_open(struct writer *w, const char *path, struct fault *fault)
{
	static const char pattern[] = ".sampled-XXXXXX";
	size_t directory = directory_bytes(path);
	struct stat old;
	int found;

	writer_reset(w, -1);
	if (path[directory] == '\0')
		return w->err = fault_set(fault, -EISDIR, "", "it names no file");
	found = look_at(path, &old, fault);
	if (found < 0)
		return w->err = found;
	w->path = strdup(path);
	w->tmp_path = malloc(directory + sizeof(pattern));
	if (!w->path || !w->tmp_path) {
		w->err = fault_set(fault, -ENOMEM, "", "out of memory");
		goto fail;
	}
	memcpy(w->tmp_path, path, directory);
	memcpy(w->tmp_path + directory, pattern, sizeof(pattern));
	w->fd = mkostemp(w->tmp_path, O_CLOEXEC);
	if (w->fd < 0) {
		w->err = fault_set(fault, -errno, "", "%s", strerror(errno));
		goto fail;
	}
	if (found)
		keep_owner(w->fd, &old);
	return 0;
fail:
	free(w->path);
	free(w->tmp_path);
	w->path = NULL;
	w->tmp_path = NULL;
	return w->err;
}

int writer_fail(struct writer *w, int err)
{
	if (!w->err)
		w->err = err;
	return w->err;
}

static void write_out(struct writer *w, const char *data, size_t bytes)
{
	while (bytes > 0 && !w->err) {
		ssize_t done = write(w->fd, data, bytes);

		if (done >= 0) {
			data += done;
			bytes -= (size_t)done;
		} else if (errno == EAGAIN) { /* a stream that somebody made non-blocking */
			struct pollfd ready = {.fd = w->fd, .events = POLLOUT};

			if (poll(&ready, 1, -1) < 0 && errno != EINTR)
				w->err = -errno;
		} else if (errno != EINTR) {
			w->err = -errno;
		}
	}
}

static void flush(struct writer *w)
{
	write_out(w, w->buffer, w->used);
	w->used = 0;
}

/* A rename is only lasting once the directory is on disk. Some file systems cannot do it: then it is as good as it gets. */
static void sync_directory(const char *path)
{
	size_t bytes = directory_bytes(path);
	char *name = bytes ? strndup(path, bytes) : strdup(".");
	int fd = name ? open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		(void)fsync(fd);
		close(fd);
	}
	free(name);
}

int writer_close(struct writer *w, struct fault *fault)
{
	int err;

	flush(w);
	if (w->tmp_path) {
		if (!w->err && fsync(w->fd) != 0)
			w->err = -errno;
		if (close(w->fd) != 0 && !w->err)
			w->err = -errno;
		w->fd = -1;
		if (!w->err && rename(w->tmp_path, w->path) != 0)
			w->err = -errno;
		if (w->err)
			unlink(w->tmp_path);
		else
			sync_directory(w->path);
	}
	err = w->err;
	if (err)
		fault_set(fault, err, "", "%s", strerror(-err));
	free(w->path);
	free(w->tmp_path);
	w->path = NULL;
	w->tmp_path = NULL;
	return err;
}

void writer_abort(struct writer *w)
{
	if (w->tmp_path) {
		if (w->fd >= 0)
			close(w->fd);
		unlink(w->tmp_path);
	}
	free(w->path);
	free(w->tmp_path);
	writer_reset(w, -1);
	w->err = -ECANCELED;
}

int writer_finish(struct writer *w, int err, struct fault *fault)
{
	if (!err || w->err)
		return writer_close(w, fault);
	if (!fault->err)
		fault_set(fault, err, "", "%s", strerror(-err));
	writer_abort(w);
	return err;
}

void writer_add(struct writer *w, const void *data, size_t bytes)
{
	if (w->err)
		return;
	w->bytes += bytes;
	if (bytes > sizeof(w->buffer) - w->used)
		flush(w);
	if (bytes >= sizeof(w->buffer)) {
		write_out(w, data, bytes);
		return;
	}
	memcpy(w->buffer + w->used, data, bytes);
	w->used += bytes;
}

void writer_puts(struct writer *w, const char *text)
{
	writer_add(w, text, strlen(text));
}

void writer_putc(struct writer *w, char c)
{
	if (w->err)
		return;
	if (w->used == sizeof(w->buffer))
		flush(w);
	w->buffer[w->used++] = c;
	w->bytes++;
}

void writer_printf(struct writer *w, const char *format, ...)
{
	char line[512], *text = line;
	va_list args;
	int bytes;

	if (w->err)
		return;
	va_start(args, format);
	bytes = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (bytes >= (int)sizeof(line)) {
		va_start(args, format);
		bytes = vasprintf(&text, format, args);
		va_end(args);
	}
	if (bytes < 0) {
		w->err = -ENOMEM;
		return;
	}
	writer_add(w, text, (size_t)bytes);
	if (text != line)
		free(text);
}

static size_t digit_count(uint64_t value)
{
	size_t count = 1;

	for (; value >= 10000; value /= 10000)
		count += 4;
	return count + (value >= 10) + (value >= 100) + (value >= 1000);
}

/* Into the buffer itself: numbers are most of what many formats are made of. */
void writer_u64(struct writer *w, uint64_t value)
{
	size_t count = digit_count(value);

	if (w->err)
		return;
	if (count > sizeof(w->buffer) - w->used)
		flush(w);
	for (char *at = w->buffer + w->used + count; at > w->buffer + w->used; value /= 10)
		*--at = (char)('0' + value % 10);
	w->used += count;
	w->bytes += count;
}

/* How many bytes stand for themselves in a JSON string, without a look at what they mean. */
static size_t plain_bytes(const char *text, size_t bytes)
{
	size_t at = 0;

	while (at < bytes && text[at] >= ' ' && text[at] < 0x7f && text[at] != '"' && text[at] != '\\' &&
	       text[at] != '<' && text[at] != '>' && text[at] != '&')
		at++;
	return at;
}

/* A text on its way into a JSON string, piece by piece. */
struct json_text {
	const char *text; /* the rest */
	size_t left;
	const char *piece; /* the next piece, of the text or in `escape` */
	size_t bytes;
	char escape[8];
};

static struct json_text json_begin(const char *text)
{
	return (struct json_text){.text = text, .left = strlen(text)};
}

/* Finds the next piece; false: there is none. */
static bool json_next(struct json_text *t)
{
	size_t length = plain_bytes(t->text, t->left);
	uint32_t c;

	if (t->left == 0)
		return false;
	t->piece = t->text;
	t->bytes = length;
	if (length == 0) {
		t->bytes = length = utf8_next(t->text, t->left, &c);
		if (c == '"' || c == '\\') {
			t->escape[0] = '\\';
			t->escape[1] = (char)c;
			t->piece = t->escape;
			t->bytes = 2;
		} else if (c == '<' || c == '>' || c == '&' || c == 0xfffd || utf8_is_unsafe(c)) {
			t->piece = t->escape;
			t->bytes = (size_t)snprintf(t->escape, sizeof(t->escape), "\\u%04" PRIx32, c & 0xffff);
		}
	}
	t->text += length;
	t->left -= length;
	return true;
}

void writer_json_string(struct writer *w, const char *text)
{
	struct json_text t = json_begin(text);

	writer_putc(w, '"');
	while (json_next(&t))
		writer_add(w, t.piece, t.bytes);
	writer_putc(w, '"');
}

void json_add_string(struct buf *to, const char *text)
{
	struct json_text t = json_begin(text);

	buf_putc(to, '"');
	while (json_next(&t))
		buf_add(to, t.piece, t.bytes);
	buf_putc(to, '"');
}
