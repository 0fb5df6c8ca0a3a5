/* SPDX-License-Identifier: Apache-2.0 */
/* Most processes of a session share root, directory and owner, so each of these is kept once, and a process is an entry of
 * numbers: a thousand children cost no descriptors.
 *
 * A file that a process names is opened with the rights that its owner has, as seen last. They only ever shrink: a process
 * that was seen as an ordinary user's and then as root's (exec of a set-user-ID program) is not trusted any more, as the
 * names it gave before would now be opened as root. */
#include "daemon/places.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/credentials.h"
#include "sampler/procfs.h"

enum {
	FOLDERS_MAX = 64, /* two descriptors each */
	OWNERS_MAX = 64,
	ENTRIES_MAX = 16384,
	NONE = 0xff, /* instead of an index: not known, or not to be used */
};

/* A directory's identity. The mount tells apart what different mount namespaces show at the same inode. */
struct directory {
	uint64_t mount, inode;
	uint32_t dev_major, dev_minor;
};

struct folder {
	struct source_place place;
	struct directory root, cwd;
};

struct entry {
	uint64_t start_time;
	pid_t pid;
	uint8_t folder, owner; /* indices, or NONE */
	bool distrusted;
};

struct places {
	pthread_mutex_t lock; /* guards all but what follows `access` */
	struct folder folders[FOLDERS_MAX];
	size_t folder_count;
	struct credentials owners[OWNERS_MAX];
	size_t owner_count;
	struct entry *entries; /* owned; by pid, then start time */
	size_t entry_count, entry_room;
	struct source_access access;
	struct source_place entered; /* the exporting thread's own */
	struct credentials saved;
};

static int identify(int fd, struct directory *ret_directory)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &st) != 0)
		return -errno;
	if (!(st.stx_mask & STATX_MNT_ID))
		return -ENOTSUP; /* before Linux 5.8; openat2() is as old */
	*ret_directory = (struct directory){
		.mount = st.stx_mnt_id, .inode = st.stx_ino, .dev_major = st.stx_dev_major, .dev_minor = st.stx_dev_minor};
	return 0;
}

static bool is_same(const struct directory *a, const struct directory *b)
{
	return a->mount == b->mount && a->inode == b->inode && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor;
}

/* The folder's index, or NONE. Takes the descriptors over. */
static uint8_t keep_folder(struct places *p, const struct source_place *place)
{
	struct folder folder = {.place = *place};
	size_t i = 0;

	if (identify(place->root_fd, &folder.root) || identify(place->cwd_fd, &folder.cwd)) {
		source_place_close(place);
		return NONE;
	}
	while (i < p->folder_count &&
	       !(is_same(&p->folders[i].root, &folder.root) && is_same(&p->folders[i].cwd, &folder.cwd)))
		i++;
	if (i < p->folder_count || i == FOLDERS_MAX) {
		source_place_close(place);
		return i < p->folder_count ? (uint8_t)i : NONE;
	}
	p->folders[p->folder_count++] = folder;
	return (uint8_t)i;
}

static uint8_t keep_owner(struct places *p, const struct credentials *owner)
{
	size_t i = 0;

	while (i < p->owner_count && !credentials_equal(&p->owners[i], owner))
		i++;
	if (i == OWNERS_MAX)
		return NONE;
	if (i == p->owner_count)
		p->owners[p->owner_count++] = *owner;
	return (uint8_t)i;
}

/* Where the process' entry is or belongs. */
static size_t find(const struct places *p, pid_t pid, uint64_t start_time)
{
	size_t low = 0, high = p->entry_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct entry *entry = &p->entries[middle];

		if (entry->pid < pid || (entry->pid == pid && entry->start_time < start_time))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_entry_of(const struct places *p, size_t at, pid_t pid, uint64_t start_time)
{
	return at < p->entry_count && p->entries[at].pid == pid && p->entries[at].start_time == start_time;
}

/* The process' entry, made where there is none; NULL at the bound or without memory. */
static struct entry *take_entry(struct places *p, pid_t pid, uint64_t start_time)
{
	size_t at = find(p, pid, start_time);

	if (is_entry_of(p, at, pid, start_time))
		return &p->entries[at];
	if (p->entry_count == p->entry_room) {
		size_t room = p->entry_room ? p->entry_room * 2 : 16;
		struct entry *entries = room <= ENTRIES_MAX ? realloc(p->entries, room * sizeof(*entries)) : NULL;

		if (!entries)
			return NULL;
		p->entries = entries;
		p->entry_room = room;
	}
	memmove(&p->entries[at + 1], &p->entries[at], (p->entry_count - at) * sizeof(p->entries[0]));
	p->entries[at] = (struct entry){.pid = pid, .start_time = start_time, .folder = NONE, .owner = NONE};
	p->entry_count++;
	return &p->entries[at];
}

static void note_owner(struct places *p, struct entry *entry, const struct credentials *owner)
{
	if (entry->owner != NONE && p->owners[entry->owner].uid != 0 && owner->uid == 0)
		entry->distrusted = true;
	entry->owner = keep_owner(p, owner);
	if (entry->owner == NONE) /* too many: what it may become could not be compared */
		entry->distrusted = true;
}

void places_note(struct places *places, pid_t pid, uint64_t start_time)
{
	struct places *p = places;
	struct source_place place;
	struct credentials owner;
	struct proc_stat stat;
	struct entry *entry;
	/* One that waits to be reaped has no directories any more, but still an owner. */
	bool has_place = source_place_open(&place, (int32_t)pid) == 0;
	bool has_owner = credentials_of(&owner, pid) == 0;

	/* Looked at last: what the pid stood for until now is this process. */
	if (!has_owner || proc_stat_read(&stat, pid, 0) || stat.start_time != start_time) {
		if (has_place)
			source_place_close(&place);
		return;
	}
	pthread_mutex_lock(&p->lock);
	entry = take_entry(p, pid, start_time);
	if (entry)
		note_owner(p, entry, &owner);
	if (entry && has_place)
		entry->folder = keep_folder(p, &place);
	else if (has_place)
		source_place_close(&place);
	pthread_mutex_unlock(&p->lock);
}

/* Copies what is needed, so that the main thread never waits for a file to be read. */
static bool look_up(struct places *p, pid_t pid, uint64_t start_time, struct source_place *ret_place,
                    struct credentials *ret_owner)
{
	struct source_place place = {.root_fd = -1, .cwd_fd = -1};
	size_t at;

	pthread_mutex_lock(&p->lock);
	at = find(p, pid, start_time);
	if (is_entry_of(p, at, pid, start_time)) {
		const struct entry *entry = &p->entries[at];

		if (!entry->distrusted && entry->folder != NONE && entry->owner != NONE) {
			*ret_owner = p->owners[entry->owner];
			place.root_fd = fcntl(p->folders[entry->folder].place.root_fd, F_DUPFD_CLOEXEC, 3);
			place.cwd_fd = fcntl(p->folders[entry->folder].place.cwd_fd, F_DUPFD_CLOEXEC, 3);
		}
	}
	pthread_mutex_unlock(&p->lock);
	if (place.root_fd >= 0 && place.cwd_fd >= 0) {
		*ret_place = place;
		return true;
	}
	if (place.root_fd >= 0)
		close(place.root_fd);
	if (place.cwd_fd >= 0)
		close(place.cwd_fd);
	return false;
}

static const struct source_place *enter(void *context, int32_t pid, uint64_t start_time)
{
	struct places *p = context;
	struct credentials owner;

	places_note(p, pid, start_time); /* where it still lives */
	if (!look_up(p, pid, start_time, &p->entered, &owner))
		return NULL;
	if (credentials_assume(&owner, &p->saved)) {
		source_place_close(&p->entered);
		return NULL;
	}
	return &p->entered;
}

static void leave(void *context)
{
	struct places *p = context;

	credentials_restore(&p->saved);
	source_place_close(&p->entered);
}

int places_new(struct places **ret_places)
{
	struct places *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	p->access = (struct source_access){.enter = enter, .leave = leave, .context = p};
	*ret_places = p;
	return 0;
}

void places_free(struct places *places)
{
	if (!places)
		return;
	for (size_t i = 0; i < places->folder_count; i++)
		source_place_close(&places->folders[i].place);
	pthread_mutex_destroy(&places->lock);
	free(places->entries);
	free(places);
}

const struct source_access *places_access(const struct places *places)
{
	return &places->access;
}
