/* SPDX-License-Identifier: Apache-2.0 */
/* process_vm_readv where it works; else /proc/PID/mem, which old kernels, some containers' seccomp filters and user
 * emulation leave as the only way. Which of the two is settled once, in remote_open(). */
#include "sampler/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sampler/core.h"

enum {
	REMOTE_PIECES_MAX = 1024, /* IOV_MAX of Linux */
	MEM_FILE_BEST = 4096,     /* bytes: /proc/PID/mem copies twice, by pages */
	BOUNCED_MAX = 512,        /* bytes: what lies elsewhere in a line than its source is copied once more (REMOTE_LINE) */
};

/* A kernel thread and a zombie have no memory, which the kernel reports as "no such process". */
static bool process_exists(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return access(path, F_OK) == 0;
}

int remote_open(struct remote *ret_remote, pid_t pid)
{
	struct remote r = {.pid = pid, .mem_fd = -1};
	struct iovec local, from;
	char path[32];
	char byte;
	int err;

	if (pid <= 0)
		return -ESRCH;
	/* Address 0 is never mapped in a Python, so EFAULT says "permitted"; a length of 0 would not be checked at all. */
	local = (struct iovec){.iov_base = &byte, .iov_len = 1};
	from = (struct iovec){.iov_base = NULL, .iov_len = 1};
	err = process_vm_readv(pid, &local, 1, &from, 1, 0) < 0 ? errno : 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	r.mem_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (err == 0 || err == EFAULT) {
		*ret_remote = r;
		return 0;
	}
	if (err == ESRCH) {
		/* It exists but has no memory: leave it to discover() to say what it is. */
		if (!process_exists(pid)) {
			remote_release(&r);
			return -ESRCH;
		}
		*ret_remote = r;
		return 0;
	}
	if (r.mem_fd < 0)
		return err == ENOSYS ? -EPERM : -err;
	r.use_mem_file = true;
	*ret_remote = r;
	return 0;
}

void remote_open_core(struct remote *ret_remote, struct core *core)
{
	*ret_remote = (struct remote){.pid = core_process(core)->pid, .mem_fd = -1, .use_mem_file = true, .core = core};
}

void remote_release(struct remote *r)
{
	if (r->mem_fd >= 0)
		close(r->mem_fd);
	r->mem_fd = -1;
}

/* As remote_read_some(), from a core, or by /proc/PID/mem. That reads 0 bytes once the process has no memory any more, EIO where nothing is
 * mapped. */
static ssize_t read_mem_file(const struct remote *r, raddr_t addr, void *to, size_t bytes)
{
	ssize_t got;

	if (r->core)
		return core_read_some(r->core, addr, to, bytes);
	if (addr > INT64_MAX)
		return -EFAULT;
	do
		got = pread(r->mem_fd, to, bytes, (off_t)addr);
	while (got < 0 && errno == EINTR);
	if (got > 0)
		return got;
	if (got == 0)
		return -ESRCH;
	return errno == EIO ? -EFAULT : -errno;
}

static ssize_t read_vm(const struct remote *r, raddr_t addr, void *to, size_t bytes)
{
	struct iovec local = {.iov_base = to, .iov_len = bytes};
	struct iovec from = {.iov_base = (void *)(uintptr_t)addr, .iov_len = bytes};
	ssize_t got = process_vm_readv(r->pid, &local, 1, &from, 1, 0);

	if (got > 0)
		return got;
	return got == 0 || errno == EINVAL ? -EFAULT : -errno;
}

ssize_t remote_read_some(const struct remote *r, raddr_t addr, void *to, size_t bytes)
{
	_Alignas(REMOTE_LINE) uint8_t lines[REMOTE_LINE + BOUNCED_MAX];
	size_t at = addr % REMOTE_LINE;
	ssize_t got;

	if (bytes == 0)
		return -EINVAL;
	if (r->use_mem_file)
		return read_mem_file(r, addr, to, bytes);
	if (bytes > BOUNCED_MAX || (uintptr_t)to % REMOTE_LINE == at)
		return read_vm(r, addr, to, bytes);
	got = read_vm(r, addr, lines + at, bytes);
	if (got > 0)
		memcpy(to, lines + at, (size_t)got);
	return got;
}

int remote_read(const struct remote *r, raddr_t addr, void *to, size_t bytes)
{
	size_t done = 0;

	/* /proc/PID/mem may return less than is there (a signal); a second call at the stop tells why it stopped. */
	while (done < bytes) {
		ssize_t got = remote_read_some(r, addr + done, (char *)to + done, bytes - done);

		if (got < 0)
			return (int)got;
		done += (size_t)got;
	}
	return 0;
}

int remote_read_u64(const struct remote *r, raddr_t addr, uint64_t *ret_value)
{
	uint64_t value;
	int err = remote_read(r, addr, &value, sizeof(value));

	if (err == 0)
		*ret_value = value;
	return err;
}

int remote_read_i32(const struct remote *r, raddr_t addr, int32_t *ret_value)
{
	int32_t value;
	int err = remote_read(r, addr, &value, sizeof(value));

	if (err == 0)
		*ret_value = value;
	return err;
}

int remote_check(const struct remote *r, raddr_t addr)
{
	char byte;

	if (r->core || r->mem_fd < 0 || read_mem_file(r, addr, &byte, 1) != -ESRCH)
		return 0;
	return r->use_mem_file || read_vm(r, addr, &byte, 1) == -ESRCH ? -ESRCH : -ESTALE;
}

int remote_readv(const struct remote *r, const struct iovec *local, const struct iovec *from, size_t count)
{
	size_t whole = 0;
	ssize_t got;

	if (count > REMOTE_PIECES_MAX)
		return -EINVAL;
	if (count == 0)
		return 0;
	/* One piece is read faster so. After exec the file shows the memory before it, which is empty: the call below tells. */
	if (count == 1 && r->mem_fd >= 0 && from->iov_len <= MEM_FILE_BEST &&
	    read_mem_file(r, (raddr_t)(uintptr_t)from->iov_base, local->iov_base, local->iov_len) ==
	            (ssize_t)local->iov_len)
		return 1;
	if (r->use_mem_file) {
		for (; whole < count; whole++) {
			int err = remote_read(r, (raddr_t)(uintptr_t)from[whole].iov_base, local[whole].iov_base,
			                      local[whole].iov_len);

			if (err == -EFAULT)
				break;
			if (err < 0)
				return err;
		}
		return (int)whole;
	}
	got = process_vm_readv(r->pid, local, count, from, count, 0);
	if (got < 0)
		return errno == EFAULT || errno == EINVAL ? 0 : -errno;
	while (whole < count && (size_t)got >= local[whole].iov_len) {
		got -= (ssize_t)local[whole].iov_len;
		whole++;
	}
	return (int)whole;
}
