/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/candidate.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/secrets.h"
#include "base/utf8.h"
#include "sampler/procfs.h"

enum {
	CGROUP_FILE_MAX_BYTES = 64 << 10,
	STATUS_FILE_MAX_BYTES = 16 << 10,
	ID_DIGITS = 64, /* of a container's, in the runtimes that number them */
};

/* Cuts to what fits, as valid UTF-8 without characters that steer terminals. */
static void copy_safe(char *to, size_t room, const char *text, size_t bytes)
{
	struct buf raw = {0}, safe = {0};
	size_t used;

	buf_add(&raw, text, bytes);
	utf8_add_safe(&safe, buf_text(&raw));
	used = safe.err ? 0 : safe.bytes;
	if (used >= room) {
		used = room - 1;
		while (used > 0 && ((unsigned char)safe.data[used] & 0xc0) == 0x80)
			used--; /* no half character */
	}
	if (used > 0)
		memcpy(to, safe.data, used);
	to[used] = '\0';
	buf_release(&raw);
	buf_release(&safe);
}

/* One directory's name in a path. */
struct part {
	const char *text;
	size_t bytes;
};

static bool part_ends(const struct part *part, const char *suffix)
{
	size_t bytes = strlen(suffix);

	return part->bytes > bytes && memcmp(part->text + part->bytes - bytes, suffix, bytes) == 0;
}

static bool part_begins(const struct part *part, const char *prefix)
{
	size_t bytes = strlen(prefix);

	return part->bytes > bytes && memcmp(part->text, prefix, bytes) == 0;
}

static bool part_is(const struct part *part, const char *text)
{
	return part->bytes == strlen(text) && memcmp(part->text, text, part->bytes) == 0;
}

static bool part_holds(const struct part *part, const char *text)
{
	return memmem(part->text, part->bytes, text, strlen(text)) != NULL;
}

/* "docker-ID.scope", "libpod-ID", "kubepods-podX.slice:cri-containerd:ID", or ID alone; not the monitor beside it ("crio-conmon-ID.scope"). */
static bool find_id(struct part *part)
{
	struct part id = *part;

	if (part_ends(&id, ".scope"))
		id.bytes -= strlen(".scope");
	if (id.bytes < ID_DIGITS || part_holds(part, "conmon"))
		return false;
	id.text += id.bytes - ID_DIGITS;
	id.bytes = ID_DIGITS;
	for (size_t i = 0; i < id.bytes; i++)
		if (!isxdigit((unsigned char)id.text[i]))
			return false;
	if (id.text > part->text && id.text[-1] != '-' && id.text[-1] != ':')
		return false;
	*part = id;
	return true;
}

/* "machine-NAME.scope" and "systemd-nspawn@NAME.service" of nspawn, "lxc.payload.NAME" or "NAME" in "lxc" or "lxc.payload". `above` is the directory it
 * is in. */
static bool find_name(struct part *part, const struct part *above)
{
	static const struct {
		const char *above, *before, *behind; /* NULL: any */
	} forms[] = {
		{"machine.slice", "machine-", ".scope"},
		{NULL, "systemd-nspawn@", ".service"},
		{NULL, "lxc.payload.", ""},
		{"lxc", "", ""},
		{"lxc.payload", "", ""},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t before = strlen(forms[i].before), behind = strlen(forms[i].behind);

		if ((forms[i].above && !part_is(above, forms[i].above)) || !part_begins(part, forms[i].before) ||
		    !part_ends(part, forms[i].behind) || part->bytes <= before + behind)
			continue;
		part->text += before;
		part->bytes -= before + behind;
		return true;
	}
	return false;
}

/* systemd writes what is not a letter as \x2d. */
static void unescape(char *text)
{
	char *to = text;

	while (*text) {
		unsigned code;

		if (text[0] == '\\' && text[1] == 'x' && isxdigit((unsigned char)text[2]) &&
		    isxdigit((unsigned char)text[3]) && sscanf(text + 2, "%2x", &code) == 1 && code >= 0x20 &&
		    code < 0x7f) {
			*to++ = (char)code;
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

/* The innermost unit and container that a path names. */
static void look_at_path(struct candidate *c, const char *path, size_t bytes)
{
	const char *end = path + bytes;
	struct part above = {"", 0}, part;

	for (; path < end; path += part.bytes + 1, above = part) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		struct part found;

		part = (struct part){path, (size_t)((slash ? slash : end) - path)};
		if (part_ends(&part, ".service") || part_ends(&part, ".scope"))
			copy_safe(c->unit, sizeof(c->unit), part.text, part.bytes);
		found = part;
		if (find_id(&found)) {
			copy_safe(c->container, sizeof(c->container), found.text, found.bytes);
		} else if (find_name(&found, &above)) {
			copy_safe(c->container, sizeof(c->container), found.text, found.bytes);
			unescape(c->container);
		}
	}
}

/* How much a hierarchy's path tells: systemd's own of version 1 (in a mixture, version 2's may be that of the container's runtime), version 2,
 * others; the root tells nothing. */
static int worth(const char *controllers, size_t controllers_bytes, size_t path_bytes)
{
	struct part names = {controllers, controllers_bytes};

	if (path_bytes <= 1)
		return 0;
	return part_is(&names, "name=systemd") ? 3 : controllers_bytes == 0 ? 2 : 1;
}

void candidate_parse_cgroup(struct candidate *c, const char *text, size_t bytes)
{
	const char *end = text + bytes;
	int best = 0;

	c->cgroup[0] = c->unit[0] = c->container[0] = '\0';
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		const char *names, *path = NULL;

		stop = stop ? stop : end;
		names = memchr(text, ':', (size_t)(stop - text));
		if (names)
			path = memchr(names + 1, ':', (size_t)(stop - names - 1));
		if (path && path + 1 < stop && path[1] == '/') {
			int this = worth(names + 1, (size_t)(path - names - 1), (size_t)(stop - path - 1));

			if (this > best || !c->cgroup[0]) {
				best = this;
				c->unit[0] = c->container[0] = '\0';
				copy_safe(c->cgroup, sizeof(c->cgroup), path + 1, (size_t)(stop - path - 1));
				look_at_path(c, path + 1, (size_t)(stop - path - 1));
			}
		}
		text = stop + 1;
	}
}

static int read_cgroup(struct candidate *c)
{
	struct buf text = {0};
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)c->pid);
	err = proc_read_file(path, &text, CGROUP_FILE_MAX_BYTES);
	if (!err && text.bytes > 0)
		candidate_parse_cgroup(c, text.data, text.bytes);
	buf_release(&text);
	return err == -ENOENT ? 0
	                      : err; /* a kernel without cgroups, or a process that is gone, which is found out later */
}

/* "Uid:\tREAL\tEFFECTIVE\t…" of /proc/PID/status. */
static int read_uid(struct candidate *c)
{
	struct buf text = {0};
	char path[64];
	const char *line;
	unsigned real, effective;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)c->pid);
	err = proc_read_file(path, &text, STATUS_FILE_MAX_BYTES);
	/* A name cannot hold a newline here: the kernel escapes it. */
	line = err ? NULL : strstr(buf_text(&text), "\nUid:");
	if (line && sscanf(line, "\nUid: %u %u", &real, &effective) == 2)
		c->uid = effective;
	else
		err = err ? err : -EPROTO;
	buf_release(&text);
	return err == -ENOENT ? -ESRCH : err;
}

/* A path that cannot be read (of a kernel thread; not permitted) is not known. */
static void read_executable(struct candidate *c)
{
	static const char deleted[] = " (deleted)";
	char path[64], link[PATH_MAX];
	ssize_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)c->pid);
	bytes = readlink(path, link, sizeof(link));
	if (bytes <= 0)
		return;
	if ((size_t)bytes > sizeof(deleted) &&
	    memcmp(link + bytes - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1) == 0)
		bytes -= (ssize_t)sizeof(deleted) - 1;
	copy_safe(c->executable, sizeof(c->executable), link, (size_t)bytes);
}

int candidate_read(pid_t pid, struct candidate *ret_candidate)
{
	struct candidate *c = calloc(1, sizeof(*c));
	struct proc_stat stat;
	struct buf comm = {0};
	int err;

	if (!c)
		return -ENOMEM;
	c->pid = pid;
	err = proc_stat_read(&stat, pid, 0);
	if (!err) {
		c->start_time = stat.start_time;
		err = read_uid(c);
	}
	if (!err)
		err = proc_command_line(pid, c->command_line, sizeof(c->command_line));
	if (!err)
		err = read_cgroup(c);
	if (!err) {
		read_executable(c);
		err = proc_stat_read(&stat, pid, 0);
	}
	if (!err && stat.start_time != c->start_time)
		err = -ESRCH;
	if (!err) {
		secrets_mask(&comm, stat.comm, strnlen(stat.comm, sizeof(stat.comm)));
		copy_safe(c->comm, sizeof(c->comm), comm.data ? comm.data : "", comm.bytes);
		buf_release(&comm);
		*ret_candidate = *c;
	}
	free(c);
	return err;
}
