/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tempfile.h"

static int make_path(char path[PATH_MAX])
{
	uint64_t number[2];
	int length;

	if (getrandom(number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	length = snprintf(path, PATH_MAX, "%s/sampled-%016" PRIx64 "%016" PRIx64, tempfile_folder(), number[0],
	                  number[1]);
	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* A file without a name, so that nothing is left of it however we end; where the file system has no such thing, it has a name
 * until it is open. (Not tempfile_open(): one that lost its name there can be given none again.) */
static int open_nameless(struct spool *spool)
{
	int err;

	spool->fd = open(tempfile_folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (spool->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return -errno;
	err = make_path(spool->path);
	if (err)
		return err;
	spool->fd = open(spool->path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (spool->fd < 0)
		return -errno;
	return 0;
}

static int too_large(struct fault *fault, uint64_t max_bytes)
{
	return fault_set(fault, -EFBIG, "", "it is larger than %" PRIu64 " MiB, which is the most that is read",
	                 max_bytes >> 20);
}

static int copy(struct spool *spool, struct input *in, uint64_t max_bytes, struct fault *fault)
{
	const unsigned char *data;
	size_t got;

	while ((got = input_next(in, &data, sizeof(in->data))) > 0) {
		int err = write_all(spool->fd, data, got);

		if (err)
			return fault_set(fault, err, "TMPDIR names another folder",
			                 "cannot copy it to a temporary file in %s: %s", tempfile_folder(),
			                 strerror(-err));
		spool->bytes += got;
		if (spool->bytes > max_bytes)
			return too_large(fault, max_bytes);
	}
	if (in->err)
		return input_fault(in->err, fault);
	return 0;
}

int spool_open(struct spool *spool, struct input *in, uint64_t max_bytes, struct fault *fault)
{
	struct stat stat;
	int err;

	*spool = (struct spool){.fd = in->fd};
	if (in->is_file) {
		if (fstat(in->fd, &stat))
			return fault_set(fault, -errno, "", "%s", strerror(errno));
		spool->bytes = (uint64_t)stat.st_size;
		return spool->bytes > max_bytes ? too_large(fault, max_bytes) : 0;
	}
	err = open_nameless(spool);
	if (err)
		return fault_set(fault, err, "TMPDIR names another folder", "cannot make a temporary file in %s: %s",
		                 tempfile_folder(), strerror(-err));
	spool->copied = true;
	err = copy(spool, in, max_bytes, fault);
	if (err)
		spool_close(spool);
	return err;
}

int spool_name(struct spool *spool, struct fault *fault)
{
	char self[64];
	int err;

	if (!spool->copied || spool->path[0] != '\0')
		return 0;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", spool->fd);
	err = make_path(spool->path);
	if (!err && linkat(AT_FDCWD, self, AT_FDCWD, spool->path, AT_SYMLINK_FOLLOW))
		err = -errno;
	if (!err)
		return 0;
	spool->path[0] = '\0';
	return fault_set(fault, err, "TMPDIR names another folder", "cannot name a temporary file in %s: %s",
	                 tempfile_folder(), strerror(-err));
}

void spool_forget_name(struct spool *spool)
{
	if (spool->path[0] != '\0')
		unlink(spool->path);
	spool->path[0] = '\0';
}

void spool_close(struct spool *spool)
{
	spool_forget_name(spool);
	if (spool->copied)
		close(spool->fd);
	spool->fd = -1;
}

int64_t spool_read_at(const struct spool *spool, void *to, uint64_t bytes, uint64_t off)
{
	unsigned char *out = to;
	uint64_t done = 0;

	while (done < bytes) {
		ssize_t got = pread(spool->fd, out + done, bytes - done, (off_t)(off + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		done += (uint64_t)got;
	}
	return (int64_t)done;
}
