/* SPDX-License-Identifier: Apache-2.0 */
/* Files of /proc that describe a process: stat and cmdline. A process chooses its own name and arguments, so that any
 * byte may stand in them. */
#include "sampler/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	STAT_BYTES_MAX = 4096,
	CMDLINE_BYTES_MAX = 64 * 1024,
	READ_FIRST = 4096, /* holds nearly all of them, and is no mapping of its own for malloc() */
	READ_CHUNK = 32 * 1024,
};

int proc_read_file(const char *path, struct buf *to, size_t max_bytes)
{
	size_t done = 0;
	int err = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	for (;;) {
		size_t chunk = done < READ_FIRST ? READ_FIRST : READ_CHUNK;
		size_t ask = max_bytes - done < chunk ? max_bytes - done : chunk;
		char *at = buf_reserve(to, chunk);
		ssize_t got;

		if (!at) {
			err = to->err;
			break;
		}
		/* At the bound, one byte more tells "just fits" from "too long". */
		got = read(fd, at, ask ? ask : 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			err = -errno;
			break;
		}
		if (got == 0)
			break;
		if (!ask) {
			err = -EFBIG;
			break;
		}
		to->bytes += (size_t)got;
		done += (size_t)got;
	}
	close(fd);
	return err;
}

/* The n-th (from 1) blank-separated field after `at`, as a number; 0 or -EPROTO. */
static int field_number(const char *at, unsigned n, uint64_t *ret_value)
{
	char *end;
	uint64_t value;

	for (unsigned i = 1; i < n; i++) {
		at = strchr(at, ' ');
		if (!at)
			return -EPROTO;
		at++;
	}
	if (*at < '0' || *at > '9')
		return -EPROTO;
	errno = 0;
	value = strtoull(at, &end, 10);
	if (errno || (*end != ' ' && *end != '\n' && *end != '\0'))
		return -EPROTO;
	*ret_value = value;
	return 0;
}

int proc_stat_parse(struct proc_stat *ret_stat, const char *text, size_t bytes)
{
	struct proc_stat stat = {0};
	const char *open_at = bytes ? memchr(text, '(', bytes) : NULL;
	const char *close_at = bytes ? memrchr(text, ')', bytes) : NULL;
	uint64_t parent, flags, start, cpu, policy;
	char rest[1024];
	size_t name_bytes, rest_bytes;

	if (!open_at || !close_at || close_at < open_at)
		return -EPROTO;
	name_bytes = (size_t)(close_at - open_at - 1);
	if (name_bytes >= sizeof(stat.comm))
		name_bytes = sizeof(stat.comm) - 1;
	memcpy(stat.comm, open_at + 1, name_bytes);
	rest_bytes = bytes - (size_t)(close_at + 1 - text);
	if (rest_bytes < 4 || rest_bytes >= sizeof(rest) || close_at[1] != ' ' || close_at[3] != ' ')
		return -EPROTO;
	memcpy(rest, close_at + 1, rest_bytes);
	rest[rest_bytes] = '\0';
	stat.state = rest[1];
	/* proc(5) numbers the fields from 1 and calls the state the 3rd, which is the 1st of the rest. */
	if (field_number(rest + 1, 4 - 2, &parent) || field_number(rest + 1, 9 - 2, &flags) ||
	    field_number(rest + 1, 22 - 2, &start) || field_number(rest + 1, 39 - 2, &cpu) ||
	    field_number(rest + 1, 41 - 2, &policy) || parent > INT32_MAX || cpu > INT32_MAX || policy > INT32_MAX)
		return -EPROTO;
	stat.parent_pid = (pid_t)parent;
	stat.flags = flags;
	stat.start_time = start;
	stat.cpu = (uint32_t)cpu;
	stat.policy = (uint32_t)policy;
	*ret_stat = stat;
	return 0;
}

int proc_stat_read(struct proc_stat *ret_stat, pid_t pid, pid_t tid)
{
	struct buf text = {0};
	char path[64];
	int err;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	err = proc_read_file(path, &text, STAT_BYTES_MAX);
	if (err == 0)
		err = proc_stat_parse(ret_stat, text.data, text.bytes);
	buf_release(&text);
	return err == -ENOENT ? -ESRCH : err;
}

/* The length of the well-formed UTF-8 sequence at p (1 to 4), or 0. Table 3-7 of the Unicode Standard. */
static size_t utf8_length(const unsigned char *p, size_t bytes)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t length;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	length = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (length > bytes)
		return 0;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return length;
}

size_t proc_clean_text(char *to, size_t room, const char *from, size_t bytes)
{
	static const char replacement[] = "\xef\xbf\xbd";
	size_t done = 0;

	for (size_t i = 0; i < bytes;) {
		const unsigned char *p = (const unsigned char *)from + i;
		size_t length = utf8_length(p, bytes - i);
		const char *piece = from + i;
		size_t piece_bytes = length;

		if (length == 0) {
			piece = replacement;
			piece_bytes = 3;
		} else if (p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0)) {
			piece = " ";
			piece_bytes = 1;
		}
		if (done + piece_bytes >= room)
			break;
		memcpy(to + done, piece, piece_bytes);
		done += piece_bytes;
		i += length ? length : 1;
	}
	to[done] = '\0';
	return done;
}

int proc_arguments(pid_t pid, struct buf *to)
{
	struct proc_stat stat;
	size_t before = to->bytes;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	err = proc_read_file(path, to, CMDLINE_BYTES_MAX);
	if (err == -EFBIG)
		err = 0; /* a cut command line still names the process */
	while (err == 0 && to->bytes > before && to->data[to->bytes - 1] == '\0')
		to->bytes--;
	if (err == 0 && to->bytes == before) {
		err = proc_stat_read(&stat, pid, 0);
		if (err == 0)
			buf_printf(to, "[%s]", stat.comm);
	}
	return err == -ENOENT ? -ESRCH : err ? err : to->err;
}

int proc_command_line(pid_t pid, char *to, size_t room)
{
	struct buf text = {0};
	int err = room ? proc_arguments(pid, &text) : -EINVAL;

	if (!err)
		proc_clean_text(to, room, text.data, text.bytes); /* the NULs between arguments become blanks */
	buf_release(&text);
	return err;
}
