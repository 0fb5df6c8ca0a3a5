/* SPDX-License-Identifier: Apache-2.0 */
/* The table of processes, and its passing through /proc. What becomes of one is in watch_look.c. */
#include "daemon/watch.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "daemon/limits.h"
#include "daemon/watch_state.h"
#include "sampler/procfs.h"

enum {
	SCAN_MS = 900,
	SCAN_FULL_MS = 10000, /* though no process was made since the last time: for those that have gone */
	SCAN_REST = 50,       /* times the CPU time of a scan: it gets a fiftieth of one CPU at most */
	STAT_BYTES_MAX = 1 << 20,
	STEP_MS = 20, /* then others have their turn */
};

int watch_new(struct watch **ret_watch, const struct watch_options *options)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->options = *options;
	w->self = getpid();
	*ret_watch = w;
	return 0;
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	for (size_t i = 0; i < watch->count; i++)
		watched_release(&watch->items[i]);
	free(watch->items);
	lookup_release(&watch->pids);
	free(watch);
}

const struct watched *watch_find(const struct watch *watch, pid_t pid)
{
	uint32_t index = lookup_id(&watch->pids, (uint32_t)pid);

	return index == LOOKUP_NONE ? NULL : &watch->items[index];
}

struct watched *watch_find_own(struct watch *watch, pid_t pid)
{
	uint32_t index = lookup_id(&watch->pids, (uint32_t)pid);

	return index == LOOKUP_NONE ? NULL : &watch->items[index];
}

size_t watch_count(const struct watch *watch)
{
	return watch->count;
}

const struct watched *watch_at(const struct watch *watch, size_t index)
{
	return &watch->items[index];
}

/* A new one, at the end of the table; NULL: no memory, or the bound is reached. */
static struct watched *add(struct watch *w, pid_t pid, uint64_t ino)
{
	struct watched *item;

	if (w->count == WATCHED_MAX) {
		w->left_out++;
		return NULL;
	}
	if (w->count == w->room) {
		size_t room = w->room ? 2 * w->room : 256;
		struct watched *items = realloc(w->items, room * sizeof(*items));

		if (!items)
			return NULL;
		w->items = items;
		w->room = room;
	}
	if (lookup_add(&w->pids, lookup_hash_id((uint32_t)pid), (uint32_t)w->count) != 0)
		return NULL;
	item = &w->items[w->count++];
	*item = (struct watched){.pid = pid, .ino = ino, .uid = UID_UNKNOWN, .pidfd = -1};
	return item;
}

static void drop(struct watch *w, size_t index)
{
	size_t last = w->count - 1;

	watched_release(&w->items[index]);
	lookup_remove(&w->pids, lookup_hash_id((uint32_t)w->items[index].pid), (uint32_t)index);
	if (index != last) {
		lookup_remove(&w->pids, lookup_hash_id((uint32_t)w->items[last].pid), (uint32_t)last);
		w->items[index] = w->items[last];
		/* Cannot fail: an entry has just been removed. */
		lookup_add(&w->pids, lookup_hash_id((uint32_t)w->items[index].pid), (uint32_t)index);
	}
	w->count--;
}

/* A number in /proc: 0 for what is none. */
static pid_t pid_of(const char *name)
{
	char *end;
	long pid = *name >= '1' && *name <= '9' ? strtol(name, &end, 10) : 0;

	return pid > 0 && pid <= INT32_MAX && *end == '\0' ? (pid_t)pid : 0;
}

/* All processes are in the table afterwards, and no others. */
static int scan(struct watch *w)
{
	struct dirent *entry;
	DIR *all = opendir("/proc");
	int err;

	if (!all)
		return -errno;
	for (size_t i = 0; i < w->count; i++)
		w->items[i].seen = false;
	w->left_out = 0;
	while (errno = 0, (entry = readdir(all))) {
		pid_t pid = pid_of(entry->d_name);
		struct watched *item;

		if (pid == 0 || pid == w->self)
			continue;
		item = watch_find_own(w, pid);
		/* The directory's number is as old as the process, or as the kernel's last need for memory. */
		if (item && item->ino != entry->d_ino) {
			item->ino = entry->d_ino;
			watch_look_soon(item);
		} else if (!item) {
			item = add(w, pid, entry->d_ino);
			if (item)
				watch_look_soon(item);
		}
		if (item)
			item->seen = true;
	}
	err = -errno;
	closedir(all);
	if (err) /* of the others nothing is known */
		return err;
	/* What is sampled is the sampler's to give back. */
	for (size_t i = w->items ? w->count : 0; i-- > 0;)
		if (!w->items[i].seen && w->items[i].state != WATCH_SAMPLED)
			drop(w, i);
	return 0;
}

/* The number of the process or thread that was made last, in which /proc/loadavg ends; 0: not to be had. */
static pid_t last_made(void)
{
	struct buf text = {0};
	const char *last = NULL;
	pid_t pid = 0;

	if (proc_read_file("/proc/loadavg", &text, 256) == 0)
		last = strrchr(buf_text(&text), ' ');
	if (last)
		pid = (pid_t)strtol(last, NULL, 10);
	buf_release(&text);
	return pid;
}

/* How many were ever made, as /proc/stat says; 0: not to be had. On a host of many CPUs it takes milliseconds. */
static uint64_t count_made(void)
{
	struct buf text = {0};
	const char *line = NULL;
	uint64_t count = 0;

	if (proc_read_file("/proc/stat", &text, STAT_BYTES_MAX) == 0)
		line = strstr(buf_text(&text), "\nprocesses ");
	if (line)
		count = strtoull(line + strlen("\nprocesses "), NULL, 10);
	buf_release(&text);
	return count;
}

/* Whether no process was made since this was asked the last time. The youngest one's number tells, where it is another; where it is the same, it may
 * have been used again, and the kernel's count is asked. */
static bool is_quiet(struct watch *w)
{
	pid_t last = last_made();
	bool same = last != 0 && last == w->last_made;
	uint64_t made = same ? count_made() : 0, made_before = w->made;

	w->last_made = last;
	w->made = made;
	return same && made != 0 && made == made_before;
}

/* A scan is most of what a host costs on which nothing happens, so there is none as long as no process was made. */
static void scan_if_due(struct watch *w, uint64_t now_ns)
{
	uint64_t used_ns, rest_ns;

	if (now_ns < w->next_scan_ns)
		return;
	if (is_quiet(w) && now_ns < w->next_full_scan_ns) {
		w->next_scan_ns = now_ns + SCAN_MS * NS_PER_MS;
		return;
	}
	w->next_full_scan_ns = now_ns + SCAN_FULL_MS * NS_PER_MS;
	used_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID); /* waiting for a CPU costs nobody anything */
	limits_free_files();
	(void)scan(w);
	limits_keep_files();
	rest_ns = (clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns) * SCAN_REST;
	if (rest_ns < SCAN_MS * NS_PER_MS)
		rest_ns = SCAN_MS * NS_PER_MS;
	w->next_scan_ns = now_ns + rest_ns;
}

uint64_t watch_step(struct watch *watch)
{
	uint64_t now_ns = clock_now_ns(), due_ns, begun_ns = now_ns;

	scan_if_due(watch, now_ns);
	due_ns = watch->next_scan_ns;
	for (size_t i = watch->count; i-- > 0;) {
		struct watched *item = &watch->items[i];

		if (item->next_ns > now_ns) {
			due_ns = item->next_ns < due_ns ? item->next_ns : due_ns;
			continue;
		}
		if (now_ns - begun_ns > STEP_MS * NS_PER_MS)
			return now_ns;
		if (watch_look(watch, item) == -ESRCH) {
			drop(watch, i);
			continue;
		}
		due_ns = item->next_ns < due_ns ? item->next_ns : due_ns;
		now_ns = clock_now_ns();
	}
	return due_ns;
}

void watch_collect(struct watch *watch)
{
	struct target *target;

	while ((target = sampler_take_ended(watch->options.sampler))) {
		const struct pyproc *proc = target_proc(target);
		struct watched *item = watch_find_own(watch, proc->pid);

		if (item && item->start_time == proc->start_time && item->state == WATCH_SAMPLED) {
			if (watch->options.ended)
				watch->options.ended(watch->options.context, item);
			watch_look_again(watch, item, target_is_execed(target));
		}
		target_free(target);
	}
}

/* A pidfd is readable when its process has ended. */
static bool is_over(int pidfd)
{
	struct pollfd end = {.fd = pidfd, .events = POLLIN};

	return pidfd >= 0 && poll(&end, 1, 0) == 1;
}

void watch_exited(struct watch *watch, pid_t pid)
{
	struct watched *item = watch_find_own(watch, pid);

	if (!item || !is_over(item->pidfd)) /* that was another one's, which had the number before */
		return;
	watched_close(item);
	if (item->state != WATCH_SAMPLED)
		drop(watch, (size_t)(item - watch->items));
	else /* a parked one would be found out a little later */
		(void)sampler_detach(watch->options.sampler, item->pid, item->start_time);
}

void watch_reconfigure(struct watch *watch, const struct config *config)
{
	const struct config *before = watch->options.config;

	watch->options.config = config;
	for (size_t i = 0; i < watch->count; i++)
		if (watch->items[i].state != WATCH_KERNEL)
			watch_match_anew(watch, &watch->items[i], before);
}
