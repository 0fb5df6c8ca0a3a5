/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/naming.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "aggregator/records.h"
#include "daemon/error.h"
#include "exporters/names.h"
#include "sampler/procfs.h"

#define PERF_MAP_BYTES_MAX (INT64_C(1) << 30)

enum { TARGETS_MAX = 1 << 20, LATE_MAX = 64 };

/* Where a process' perf map is, or will be. */
struct perf_place {
	int root_fd;
	uid_t owner;
	char name[48];
};

/* Memory that was met before its process had a perf map. */
struct late_memory {
	struct perf_place place;
	uint64_t start;
	uint32_t flags, key;
};

struct naming {
	struct names *names;
	pthread_mutex_t lock; /* guards late */
	struct late_memory late[LATE_MAX];
	unsigned late_count;
	pid_t *pids; /* by the targets' ids; 0: not known. The taking thread's own */
	uint32_t pid_room;
	pid_t only;      /* of all others; 0: not known */
	struct core *core; /* all is this one's, not a process'; NULL */
	bool complained; /* the writing thread's own */
};

struct naming *naming_new(enum native_frames show, bool debuginfod)
{
	struct names_options options = {.show = show, .debuginfod = debuginfod, .urls = getenv("DEBUGINFOD_URLS")};
	struct naming *n;
	int err;

	if (show == NATIVE_OFF || show == NATIVE_MARKS)
		return NULL;
	n = calloc(1, sizeof(*n));
	err = n ? names_new(&n->names, &options) : -ENOMEM;
	if (err) {
		error_note("native frames have no names: %s", strerror(-err));
		free(n);
		return NULL;
	}
	if (debuginfod && (!options.urls || !options.urls[0]))
		error_note("--debuginfod: DEBUGINFOD_URLS names no server");
	pthread_mutex_init(&n->lock, NULL);
	return n;
}

void naming_free(struct naming *naming)
{
	if (!naming)
		return;
	for (unsigned i = 0; i < naming->late_count; i++)
		close(naming->late[i].place.root_fd);
	pthread_mutex_destroy(&naming->lock);
	names_free(naming->names);
	free(naming->pids);
	free(naming);
}

/* --- files --- */

static void note_target(struct naming *n, const struct rec_target *target)
{
	if (target->id >= TARGETS_MAX)
		return;
	if (target->id >= n->pid_room) {
		uint32_t room = n->pid_room ? n->pid_room : 16;
		pid_t *pids;

		while (room <= target->id)
			room *= 2;
		pids = realloc(n->pids, room * sizeof(*pids));
		if (!pids)
			return;
		memset(pids + n->pid_room, 0, (room - n->pid_room) * sizeof(*pids));
		n->pids = pids;
		n->pid_room = room;
	}
	n->pids[target->id] = target->pid;
}

/* The process' root directory where it is another than ours, which the child finds by itself. A descriptor or -1. */
static int open_root(pid_t pid, bool even_ours)
{
	struct stat theirs, ours;
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && !even_ours && fstat(fd, &theirs) == 0 && stat("/", &ours) == 0 && theirs.st_dev == ours.st_dev &&
	    theirs.st_ino == ours.st_ino) {
		close(fd);
		return -1;
	}
	return fd;
}

/* /tmp/perf-PID.map in the process' root, by the number it has itself. 0 or -errno; root_fd becomes the caller's. */
static int find_perf_map(struct perf_place *ret_place, pid_t pid)
{
	struct perf_place place;
	char process[32];
	struct stat owner;
	pid_t ns_pid;
	int err = proc_ns_pid(pid, &ns_pid);

	if (err)
		return err;
	snprintf(process, sizeof(process), "/proc/%d", (int)pid);
	if (stat(process, &owner) != 0)
		return -ESRCH;
	place.owner = owner.st_uid;
	place.root_fd = open_root(pid, true);
	if (place.root_fd < 0)
		return -ESRCH;
	snprintf(place.name, sizeof(place.name), "tmp/perf-%d.map", (int)ns_pid);
	*ret_place = place;
	return 0;
}

/* Its owner's regular file. A descriptor or -1: there is none, or none yet. */
static int open_perf_map(const struct perf_place *place)
{
	struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
	                       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, place->root_fd, place->name, &how, sizeof(how));
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == place->owner && st.st_size <= PERF_MAP_BYTES_MAX)
		return fd;
	close(fd);
	return -1;
}

/* A program may write its map long after it has made the code: it is looked for again before names are asked for, also where the process has
 * ended by then. */
static void keep_for_later(struct naming *n, const struct perf_place *place, const struct names_module *module)
{
	bool kept = false;

	pthread_mutex_lock(&n->lock);
	for (unsigned i = 0; i < n->late_count && !kept; i++)
		kept = n->late[i].key == module->key;
	if (!kept && n->late_count < LATE_MAX)
		n->late[n->late_count++] = (struct late_memory){
			.place = *place, .start = module->start, .flags = module->flags, .key = module->key};
	else
		close(place->root_fd);
	pthread_mutex_unlock(&n->lock);
}

static void add_late(struct naming *n)
{
	unsigned kept = 0;

	pthread_mutex_lock(&n->lock);
	for (unsigned i = 0; i < n->late_count; i++) {
		const struct late_memory late = n->late[i];
		struct names_module module = {.path = "",
		                              .flags = late.flags,
		                              .key = late.key,
		                              .start = late.start,
		                              .fd = -1,
		                              .root_fd = -1,
		                              .perf_map_fd = open_perf_map(&late.place)};

		if (module.perf_map_fd < 0) {
			n->late[kept++] = late;
			continue;
		}
		names_add(n->names, &module);
		close(late.place.root_fd);
	}
	n->late_count = kept;
	pthread_mutex_unlock(&n->lock);
}

static int open_file(const struct naming *n, pid_t pid, const struct rec_mapping *record, const char *path)
{
	struct proc_map map = {.start = record->start,
	                       .end = record->end,
	                       .file_off = record->file_off,
	                       .executable = true,
	                       .readable = true,
	                       .inode = record->inode,
	                       .dev_major = record->dev_major,
	                       .dev_minor = record->dev_minor,
	                       .path = path};
	int fd = -1;

	if (n->core)
		fd = core_open_mapped(n->core, &map);
	else if (path[0] == '/')
		fd = proc_open_mapped(pid, &map);
	return fd >= 0 ? fd : -1;
}

static void note_memory(struct naming *n, pid_t pid, struct names_module *module)
{
	struct perf_place place;

	if (!pid || module->path[0] || find_perf_map(&place, pid))
		return;
	module->perf_map_fd = open_perf_map(&place);
	if (module->perf_map_fd < 0) {
		keep_for_later(n, &place, module);
		return;
	}
	close(place.root_fd);
	names_add(n->names, module);
}

static void note_mapping(struct naming *n, const struct rec_mapping *record)
{
	pid_t pid = record->target < n->pid_room ? n->pids[record->target] : n->only;
	char path[REC_TEXT_MAX + 1];
	struct names_module module = {.path = path,
	                              .build_id = (const uint8_t *)record->text + record->path_bytes,
	                              .build_id_bytes = record->build_id_bytes,
	                              .flags = record->flags,
	                              .key = record_mapping_key(record),
	                              .start = record->start,
	                              .fd = -1,
	                              .root_fd = -1,
	                              .perf_map_fd = -1};

	if (record->path_bytes > REC_TEXT_MAX)
		return;
	memcpy(path, record->text, record->path_bytes);
	path[record->path_bytes] = '\0';
	if (names_has(n->names, &module))
		return;
	if (record->flags & MAPPING_MEMORY) {
		note_memory(n, pid, &module);
		return;
	}
	if (pid || n->core)
		module.fd = open_file(n, pid, record, path);
	if (pid)
		module.root_fd = open_root(pid, false);
	names_add(n->names, &module);
}

void naming_set_pid(struct naming *naming, pid_t pid)
{
	if (naming)
		naming->only = pid;
}

void naming_set_core(struct naming *naming, struct core *core)
{
	if (naming)
		naming->core = core;
}

void naming_take(struct naming *naming, const struct rec_head *record)
{
	if (!naming || !record)
		return;
	if (record->type == REC_TARGET)
		note_target(naming, (const struct rec_target *)record);
	else if (record->type == REC_MAPPING)
		note_mapping(naming, (const struct rec_mapping *)record);
}

/* --- profiles --- */

static void complain(struct naming *n, int err)
{
	if (!err || n->complained)
		return;
	n->complained = true;
	error_note("not all native frames have names: %s", err == -ETIMEDOUT ? "it took too long"
	                                                   : err == -ECHILD  ? "who reads their files has ended"
	                                                                     : strerror(-err));
}

void naming_apply(struct naming *naming, struct profile **profile)
{
	if (!naming)
		return;
	add_late(naming);
	complain(naming, names_apply(naming->names, profile));
}

struct names *naming_prepare(struct naming *naming, const struct profile *profile)
{
	if (!naming)
		return NULL;
	add_late(naming);
	complain(naming, names_prepare(naming->names, profile));
	return naming->names;
}

static bool has_places(const struct profile *profile)
{
	for (uint32_t i = 0; i < profile->symbol_count; i++)
		if (profile->symbols[i].mapped)
			return true;
	return false;
}

void naming_of_host(struct profile **profile)
{
	struct naming *n = has_places(*profile) ? naming_new(NATIVE_CALLS, false) : NULL;

	naming_apply(n, profile);
	naming_free(n);
}
