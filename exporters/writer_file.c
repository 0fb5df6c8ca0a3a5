/* SPDX-License-Identifier: Apache-2.0 */
/* Where a writer's bytes go: files that appear whole or not at all, and streams. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporters/writer.h"

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
		return fault_set(fault, -EINVAL, "", "it is neither a file nor a stream");
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

	writer_flush(w);
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
	} else if (w->path && close(w->fd) != 0 && !w->err) {
		w->err = -errno;
	}
	/* Who reads a stream and goes away has read enough: "| head". */
	if (!w->tmp_path && w->err == -EPIPE)
		w->err = 0;
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
	if (w->path && w->fd >= 0)
		close(w->fd);
	if (w->tmp_path)
		unlink(w->tmp_path);
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

/* Which of our descriptors a path stands for: /dev/stdout, /dev/fd/63 (what a shell makes of >(…)); -1: none. Told by the name alone: these are
 * links, and links of others are not followed. */
static int own_descriptor(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

	if (strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *digits = path + strlen(folders[i]);

		if (strncmp(path, folders[i], strlen(folders[i])) == 0 && *digits &&
		    digits[strspn(digits, "0123456789")] == '\0' && strlen(digits) < 9)
			return atoi(digits);
	}
	return -1;
}

bool writer_is_stdout(const char *path)
{
	return strcmp(path, "-") == 0 || own_descriptor(path) == STDOUT_FILENO;
}

static bool is_stream_mode(mode_t mode)
{
	return S_ISFIFO(mode) || S_ISCHR(mode);
}

bool writer_is_stream(const char *path)
{
	struct stat st;

	return writer_is_stdout(path) || own_descriptor(path) >= 0 ||
	       (lstat(path, &st) == 0 && is_stream_mode(st.st_mode));
}

/* Whether it was handed to us, open for writing. What we opened ourselves is closed on exec. */
static int check_descriptor(int fd, struct fault *fault)
{
	int flags = fcntl(fd, F_GETFL), kind = fcntl(fd, F_GETFD);

	if (flags < 0 || (fd > STDERR_FILENO && kind & FD_CLOEXEC))
		return fault_set(fault, -EBADF, "", "it is not open");
	if ((flags & O_ACCMODE) == O_RDONLY)
		return fault_set(fault, -EBADF, "", "it is closed, or not open for writing");
	return 0;
}

/* Opens a FIFO or a device. A FIFO that nobody reads is not waited for here, where no signal could end the wait. */
static int open_path(const char *path)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC), flags;
	struct stat st;

	if (fd < 0)
		return errno == ENXIO && lstat(path, &st) == 0 && S_ISFIFO(st.st_mode) ? -EAGAIN : -errno;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) {
		close(fd);
		return -EIO;
	}
	return fd;
}

/* Opens what writer_is_stream(). */
static int open_stream(struct writer *w, const char *path, struct fault *fault)
{
	int own = strcmp(path, "-") == 0 ? STDOUT_FILENO : own_descriptor(path), err = 0;
	struct stat st;

	writer_reset(w, -1);
	if (own >= 0)
		err = check_descriptor(own, fault);
	if (err)
		return w->err = err;
	w->fd = own < 0 ? open_path(path) : fcntl(own, F_DUPFD_CLOEXEC, 0);
	if (w->fd < 0) {
		err = own < 0 ? w->fd : -errno;
		w->fd = -1;
		return w->err = fault_set(fault, err, "", "%s", err == -EAGAIN ? "nobody reads it" : strerror(-err));
	}
	w->path = strdup(path);
	if (own < 0 && (fstat(w->fd, &st) != 0 || !is_stream_mode(st.st_mode)))
		w->err = fault_set(fault, -EINVAL, "", "it has become something else");
	else if (!w->path)
		w->err = fault_set(fault, -ENOMEM, "", "out of memory");
	if (!w->err)
		return 0;
	err = w->err;
	writer_abort(w);
	return w->err = err;
}

int writer_open(struct writer *w, const char *path, struct fault *fault)
{
	static const char pattern[] = ".sampled-XXXXXX";
	size_t directory = directory_bytes(path);
	struct stat old;
	int found;

	if (writer_is_stream(path))
		return open_stream(w, path, fault);
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

int writer_check(struct writer *w, const char *path, struct fault *fault)
{
	int own = writer_is_stdout(path) ? STDOUT_FILENO : own_descriptor(path), err;

	if (own >= 0)
		return check_descriptor(own, fault);
	/* A FIFO is not opened twice: who reads it would see an end. */
	if (writer_is_stream(path))
		return access(path, W_OK) == 0 ? 0 : fault_set(fault, -errno, "", "%s", strerror(errno));
	err = writer_open(w, path, fault);
	if (!err)
		writer_abort(w);
	return err;
}
