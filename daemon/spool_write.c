/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spool_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/tempfile.h"
#include "daemon/spool_files.h"
#include "daemon/spool_pack.h"
#include "exporters/writer.h"

/* Names of one second: more are not tried. */
enum { NAMES_MAX = 1000 };

static void add_head(struct buf *to, const struct spool_item *item, size_t bytes)
{
	buf_puts(to, "{\"labels\":{");
	for (size_t i = 0; i < item->labels.count; i++) {
		if (i > 0)
			buf_putc(to, ',');
		json_add_string(to, item->labels.items[i].name);
		buf_putc(to, ':');
		json_add_string(to, item->labels.items[i].value);
	}
	buf_printf(to, "},\"from_ns\":\"%" PRIu64 "\",\"until_ns\":\"%" PRIu64 "\",\"bytes\":%zu}\n", item->from_ns,
	           item->until_ns, bytes);
}

/* Into *to, which stays as it was where the item cannot be made. */
static int add_item(struct buf *to, const struct spool_item *item, struct spool_counts *counts, struct fault *fault)
{
	struct buf packed = {0};
	bool pruned = false;
	int err = spool_pack(item->profile, &packed, &pruned, fault);

	if (!err) {
		add_head(to, item, packed.bytes);
		buf_add(to, packed.data, packed.bytes);
		counts->pruned_items += pruned;
		err = to->err ? fault_set(fault, to->err, "", "out of memory") : 0;
	}
	buf_release(&packed);
	return err;
}

static bool drop_oldest(int dir_fd, const struct spool_names *names, size_t index, struct spool_counts *counts)
{
	if (index >= names->count)
		return false;
	if (spool_remove(dir_fd, names->items[index].text) == 0) {
		counts->dropped_files++;
		counts->dropped_bytes += names->items[index].bytes;
	}
	return true;
}

/* Makes room for `bytes`; *ret_next is the oldest file that is left. */
static int make_room(int dir_fd, const struct spool_names *names, uint64_t bytes, uint64_t max_bytes,
                     struct spool_counts *counts, size_t *ret_next, struct fault *fault)
{
	uint64_t there = names->bytes;
	size_t next = 0;

	if (bytes > max_bytes)
		return fault_set(fault, -EFBIG, "raise the bound of the spool",
		                 "one interval is %" PRIu64 " bytes, more than all of the spool may have", bytes);
	while (there + bytes > max_bytes && next < names->count) {
		there -= names->items[next].bytes;
		drop_oldest(dir_fd, names, next++, counts);
	}
	*ret_next = next;
	return 0;
}

/* A new file, whole on disk under its temporary name. 0 or -errno, and then it is gone. */
static int write_temporary(int dir_fd, const char *name, const struct buf *content)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0660);
	int err;

	if (fd < 0)
		return -errno;
	/* Whatever the umask is: who sends is of the directory's group. */
	err = fchmod(fd, 0660) == 0 ? write_all(fd, content->data, content->bytes) : -errno;
	if (!err && fsync(fd) != 0)
		err = -errno;
	if (close(fd) != 0 && !err)
		err = -errno;
	if (err)
		unlinkat(dir_fd, name, 0);
	return err;
}

/* Gives it its name, which must not be there yet: another file of the same second has it. */
static int publish(int dir_fd, uint64_t wall_ns, const char *temporary, char name[SPOOL_NAME_ROOM])
{
	int err = -EEXIST;

	for (unsigned number = 0; err == -EEXIST && number < NAMES_MAX; number++) {
		spool_name_make(name, wall_ns, number, false);
		err = renameat2(dir_fd, temporary, dir_fd, name, RENAME_NOREPLACE) == 0 ? 0 : -errno;
	}
	if (err)
		unlinkat(dir_fd, temporary, 0);
	return err;
}

static int write_file(int dir_fd, const struct buf *content, uint64_t max_bytes, struct spool_counts *counts,
                      struct fault *fault)
{
	uint64_t wall_ns = clock_read_ns(CLOCK_REALTIME);
	char temporary[SPOOL_NAME_ROOM], name[SPOOL_NAME_ROOM];
	struct spool_names names;
	size_t next = 0;
	int err;

	spool_sweep(dir_fd);
	err = spool_list(dir_fd, &names);
	if (err)
		return fault_set(fault, err, "", "%s", strerror(-err));
	err = make_room(dir_fd, &names, content->bytes, max_bytes, counts, &next, fault);
	if (err)
		goto out;
	spool_name_make(temporary, wall_ns, (unsigned)getpid(), true);
	do /* a disk that is full before the bound is reached: the oldest go first, too */
		err = write_temporary(dir_fd, temporary, content);
	while ((err == -ENOSPC || err == -EDQUOT) && drop_oldest(dir_fd, &names, next++, counts));
	if (!err)
		err = publish(dir_fd, wall_ns, temporary, name);
	if (err)
		fault_set(fault, err, "", "%s", strerror(-err));
out:
	spool_names_release(&names);
	return err;
}

int spool_write(int dir_fd, const struct spool_item *items, size_t count, uint64_t max_bytes,
                struct spool_counts *counts, struct fault *fault)
{
	struct buf content = {0};
	size_t made = 0;
	int err = 0;

	buf_puts(&content, SPOOL_HEAD);
	for (size_t i = 0; i < count; i++) {
		struct fault why = {0};

		if (add_item(&content, &items[i], counts, &why) == 0) {
			made++;
			continue;
		}
		counts->failed_items++;
		if (fault && !fault->err)
			*fault = why;
	}
	if (content.err)
		err = fault_set(fault, content.err, "", "out of memory");
	else if (made > 0)
		err = write_file(dir_fd, &content, max_bytes, counts, fault);
	if (err) {
		counts->failed_items += made;
	} else if (made > 0) {
		counts->files++;
		counts->items += made;
		counts->bytes += content.bytes;
	}
	buf_release(&content);
	return err;
}

int spool_write_packed(int dir_fd, const struct spool_read_item *item, char ret_name[SPOOL_NAME_ROOM])
{
	const struct spool_item head = {.labels = item->labels, .from_ns = item->from_ns, .until_ns = item->until_ns};
	uint64_t wall_ns = clock_read_ns(CLOCK_REALTIME);
	char temporary[SPOOL_NAME_ROOM];
	struct buf content = {0};
	int err;

	buf_puts(&content, SPOOL_HEAD);
	add_head(&content, &head, item->packed_bytes);
	buf_add(&content, item->packed, item->packed_bytes);
	spool_name_make(temporary, wall_ns, (unsigned)getpid(), true);
	err = content.err ? content.err : write_temporary(dir_fd, temporary, &content);
	if (!err)
		err = publish(dir_fd, wall_ns, temporary, ret_name);
	buf_release(&content);
	return err;
}
