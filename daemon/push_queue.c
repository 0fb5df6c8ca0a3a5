/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/push_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tempfile.h"
#include "daemon/spool_write.h"

enum { NOTES_MAX_BYTES = 1 << 20, NOTE_MAX_BYTES = 128 };

int push_queue_open(struct push_queue *ret_queue, const struct push_config *config, struct fault *fault)
{
	int fd = open(config->spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return fault_set(fault, -errno, "the directory that the service spools to", "%s", strerror(errno));
	if (faccessat(fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
		int err = -errno;

		close(fd);
		return fault_set(fault, err, "files are removed from it when they are sent", "%s", strerror(-err));
	}
	*ret_queue = (struct push_queue){.dir_fd = fd,
	                                 .config = config,
	                                 .max_bytes = config->spool_bytes,
	                                 .refused = {.max_bytes = config->refused_bytes}};
	return 0;
}

void push_queue_close(struct push_queue *queue)
{
	close(queue->dir_fd);
	free(queue->entries);
	queue->entries = NULL;
	queue->count = 0;
}

/* --- what was sent --- */

/* "DESTINATION N" or "DESTINATION done". Of those that are not configured any more nothing is taken. */
static void take_note(const struct push_queue *q, struct push_entry *entry, const char *line)
{
	const char *blank = strchr(line, ' ');

	for (unsigned i = 0; blank && i < q->config->destination_count; i++) {
		const char *name = q->config->destinations[i].name;
		size_t bytes = strlen(name);

		if ((size_t)(blank - line) != bytes || memcmp(name, line, bytes) != 0)
			continue;
		if (strcmp(blank + 1, "done") == 0)
			entry->done |= 1u << i;
		else
			entry->sent[i] = (uint32_t)strtoul(blank + 1, NULL, 10);
	}
}

static void read_notes(const struct push_queue *q, struct push_entry *entry)
{
	char name[SPOOL_NAME_ROOM], bytes[4096], line[NOTE_MAX_BYTES];
	size_t used = 0, all = 0;
	ssize_t got;
	int fd;

	spool_name_sent(name, entry->name.text);
	fd = openat(q->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	while (all < NOTES_MAX_BYTES && (got = read(fd, bytes, sizeof(bytes))) > 0) {
		all += (size_t)got;
		for (ssize_t i = 0; i < got; i++) {
			if (bytes[i] == '\n') {
				line[used] = '\0';
				take_note(q, entry, line);
				used = 0;
			} else if (used < sizeof(line) - 1) {
				line[used++] = bytes[i];
			}
		}
	}
	close(fd);
}

/* A note that cannot be written costs no more than sending twice after a restart. */
static void add_note(const struct push_queue *q, const struct push_entry *entry, unsigned destination)
{
	char name[SPOOL_NAME_ROOM], number[16], line[NOTE_MAX_BYTES];
	int fd, bytes;

	spool_name_sent(name, entry->name.text);
	snprintf(number, sizeof(number), "%" PRIu32, entry->sent[destination]);
	bytes = snprintf(line, sizeof(line), "%s %s\n", q->config->destinations[destination].name,
	                 entry->done & 1u << destination ? "done" : number);
	fd = openat(q->dir_fd, name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0660);
	if (fd < 0)
		return;
	/* Whoever is the sender next reads it: users of services come and go, the group stays. */
	(void)fchmod(fd, 0660);
	(void)write_all(fd, line, (size_t)bytes);
	close(fd);
}

/* --- the list --- */

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct push_entry *)a)->name.text, ((const struct push_entry *)b)->name.text);
}

static struct push_entry *find(const struct push_queue *q, const char *name)
{
	struct push_entry key = {0};

	snprintf(key.name.text, sizeof(key.name.text), "%s", name);
	return q->count ? bsearch(&key, q->entries, q->count, sizeof(key), compare) : NULL;
}

static bool is_through(const struct push_queue *q, const struct push_entry *entry)
{
	return entry->done == (1u << q->config->destination_count) - 1;
}

static void forget(struct push_queue *q, struct push_entry *entry)
{
	size_t index = (size_t)(entry - q->entries);

	q->bytes -= entry->name.bytes;
	q->count--;
	memmove(entry, entry + 1, (q->count - index) * sizeof(*entry));
}

/* The oldest go beyond the bound, whether sent or not. */
static void keep_bound(struct push_queue *q)
{
	while (q->count > 0 && q->bytes > q->max_bytes) {
		if (spool_remove(q->dir_fd, q->entries[0].name.text) == 0) {
			q->dropped_files++;
			q->dropped_bytes += q->entries[0].name.bytes;
		}
		forget(q, &q->entries[0]);
	}
}

int push_queue_scan(struct push_queue *queue)
{
	struct push_queue *q = queue;
	struct push_entry *entries;
	struct spool_names names;
	int err = spool_list(q->dir_fd, &names);

	if (err)
		return err;
	entries = calloc(names.count + 1, sizeof(*entries));
	if (!entries) {
		spool_names_release(&names);
		return -ENOMEM;
	}
	for (size_t i = 0; i < names.count; i++) {
		struct push_entry *known = find(q, names.items[i].text);

		entries[i] = known ? *known : (struct push_entry){0};
		entries[i].name = names.items[i];
		if (known)
			known->seen = true;
		else
			read_notes(q, &entries[i]);
	}
	for (size_t i = 0; i < q->count; i++)
		if (!q->entries[i].seen) {
			q->dropped_files++;
			q->dropped_bytes += q->entries[i].name.bytes;
		}
	free(q->entries);
	q->entries = entries;
	q->count = names.count;
	q->bytes = names.bytes;
	spool_names_release(&names);
	for (size_t i = q->count; i-- > 0;) /* one that was removed a moment too late */
		if (is_through(q, &q->entries[i]))
			push_queue_done(q, q->entries[i].name.text, 0);
	keep_bound(q);
	return 0;
}

bool push_queue_has(const struct push_queue *queue, unsigned destination)
{
	for (size_t i = 0; i < queue->count; i++)
		if (!(queue->entries[i].done & 1u << destination))
			return true;
	return false;
}

struct push_entry *push_queue_oldest(struct push_queue *queue, unsigned destination)
{
	uint32_t bit = 1u << destination;
	struct push_entry *first = NULL;

	for (size_t i = 0; i < queue->count; i++)
		if (!((queue->entries[i].done | queue->entries[i].aside) & bit))
			return &queue->entries[i];
	for (size_t i = queue->count; i-- > 0;) {
		queue->entries[i].aside &= ~bit;
		if (!(queue->entries[i].done & bit))
			first = &queue->entries[i];
	}
	return first;
}

void push_queue_put_aside(struct push_queue *queue, const char *name, unsigned destination)
{
	struct push_entry *entry = find(queue, name);

	if (entry)
		entry->aside |= 1u << destination;
}

/* The new file is this destination's alone: the others have had the item, or will have it of the old one. */
int push_queue_part(struct push_queue *queue, const char *name, unsigned destination,
                    const struct spool_read_item *item)
{
	struct push_entry parted = {0};
	int err = find(queue, name) ? spool_write_packed(queue->dir_fd, item, parted.name.text) : -ENOENT;

	if (err)
		return err;
	for (unsigned i = 0; i < queue->config->destination_count; i++) {
		parted.done = 1u << i;
		if (i != destination)
			add_note(queue, &parted, i);
	}
	push_queue_sent(queue, name, destination);
	return push_queue_scan(queue);
}

uint32_t push_queue_sent_items(const struct push_queue *queue, const char *name, unsigned destination)
{
	const struct push_entry *entry = find(queue, name);

	return entry ? entry->sent[destination] : 0;
}

void push_queue_sent(struct push_queue *queue, const char *name, unsigned destination)
{
	struct push_entry *entry = find(queue, name);

	if (!entry)
		return;
	entry->sent[destination]++;
	add_note(queue, entry, destination);
}

void push_queue_done(struct push_queue *queue, const char *name, unsigned destination)
{
	struct push_entry *entry = find(queue, name);

	if (!entry)
		return;
	entry->done |= 1u << destination;
	if (!is_through(queue, entry)) {
		add_note(queue, entry, destination);
		return;
	}
	spool_remove(queue->dir_fd, entry->name.text);
	forget(queue, entry);
}

void push_queue_bad(struct push_queue *queue, const char *name)
{
	struct push_entry *entry = find(queue, name);

	spool_remove(queue->dir_fd, name);
	if (!entry)
		return;
	queue->bad_files++;
	forget(queue, entry);
}
