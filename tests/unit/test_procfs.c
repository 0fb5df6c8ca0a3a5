/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says, in friendly and hostile wording, and of this very process. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/procfs.h"

#define TAIL                                                                                                           \
	" S 77 4711 4711 0 -1 4194560 2 0 0 0 1 2 0 0 20 0 1 0 987654 100 200 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 3 99 5 0\n"

static void expect_stat(const char *text, const char *comm)
{
	struct proc_stat stat = {0};

	cr_assert_eq(proc_stat_parse(&stat, text, strlen(text)), 0, "%s", text);
	cr_expect_str_eq(stat.comm, comm);
	cr_expect_eq(stat.state, 'S');
	cr_expect_eq(stat.parent_pid, 77);
	cr_expect_eq(stat.flags, 4194560u);
	cr_expect_eq(stat.start_time, 987654u);
	cr_expect_eq(stat.cpu, 3u);
	cr_expect_eq(stat.policy, 5u);
}

Test(procfs, stat_of_any_name)
{
	expect_stat("4711 (python3)" TAIL, "python3");
	expect_stat("4711 (a) R 1 (b)" TAIL, "a) R 1 (b");
	expect_stat("4711 (one\ntwo) Z)" TAIL, "one\ntwo) Z");
	expect_stat("4711 ()" TAIL, "");
}

Test(procfs, stat_that_is_cut_or_nonsense)
{
	static const char good[] = "4711 (python3)" TAIL;
	static const char *const bad[] = {"", ")", "(", ")(", "1 (a)", "1 (a) ", "1 (a) S", "1 (a) S x y z", "1 (a) S -1 2 3 4 5 6"};
	struct proc_stat stat;
	size_t enough = (size_t)(strstr(good, " 99 5") + 4 - good);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(proc_stat_parse(&stat, bad[i], strlen(bad[i])), -EPROTO, "%s", bad[i]);
	for (size_t bytes = 0; bytes <= enough; bytes++)
		cr_expect_eq(proc_stat_parse(&stat, good, bytes), -EPROTO, "%zu bytes", bytes);
}

Test(procfs, stat_of_a_real_process_with_an_ugly_name)
{
	struct proc_stat stat = {0};

	cr_assert_eq(prctl(PR_SET_NAME, "x) Z 1\n(y"), 0);
	cr_assert_eq(proc_stat_read(&stat, getpid(), gettid()), 0);
	cr_expect_str_eq(stat.comm, "x) Z 1\n(y");
	cr_expect_eq(stat.state, 'R');
	cr_expect_eq(stat.parent_pid, getppid());
	cr_expect_gt(stat.start_time, 0u);
	cr_expect_eq(proc_stat_read(&stat, 0x3fffffff, 0), -ESRCH);
}

Test(procfs, a_file_longer_than_allowed)
{
	struct buf text = {0};

	cr_expect_eq(proc_read_file("/proc/self/status", &text, 10), -EFBIG);
	cr_expect_eq(text.bytes, 10u);
	buf_release(&text);
	cr_expect_eq(proc_read_file("/proc/self/no such file", &text, 10), -ENOENT);
	buf_release(&text);
}

/* As long as what is read at once, a byte less and more, and of several such pieces. */
Test(procfs, a_file_of_any_length)
{
	static const size_t lengths[] = {0, 1, 4095, 4096, 4097, 36863, 36864, 36865, 200000};
	char path[] = "/tmp/sampled-procfs-XXXXXX";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	unlink(path);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct buf text = {0};

		cr_assert_eq(ftruncate(fd, (off_t)lengths[i]), 0);
		cr_expect_eq(proc_read_file(path, &text, lengths[i]), 0);
		cr_expect_eq(text.bytes, lengths[i]);
		buf_release(&text);
		if (lengths[i] > 0)
			cr_expect_eq(proc_read_file(path, &text, lengths[i] - 1), -EFBIG);
		buf_release(&text);
	}
	close(fd);
}

static const char maps_text[] =
	"00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/dbus daemon\n"
	"7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
	"7f0000001000-7f0000002000 rw-p 00000000 00:00 0\n"
	"garbage\n"
	"7f0000003000-7f0000002000 rw-p 00000000 00:00 0\n"
	"fffffffffffffffff-7f0000002000 rw-p 00000000 00:00 0\n"
	"7f0000004000-7f0000005000 ---p 0000f000 fe:1f 18446744073709551615 /a\\012b (deleted)\n"
	"7fff00000000-7fff00001000 rw-p 00000000 00:00 0                          [stack]\n";

struct seen {
	unsigned count;
	char paths[8][64];
	struct proc_map maps[8];
};

static int see(void *context, const struct proc_map *map)
{
	struct seen *seen = context;

	if (seen->count < 8) {
		seen->maps[seen->count] = *map;
		snprintf(seen->paths[seen->count], sizeof(seen->paths[0]), "%s", map->path);
	}
	seen->count++;
	return 0;
}

Test(procfs, maps_with_all_kinds_of_paths)
{
	struct seen seen = {0};

	cr_assert_eq(proc_maps_parse(maps_text, strlen(maps_text), see, &seen), 0);
	cr_assert_eq(seen.count, 5u);
	cr_expect_str_eq(seen.paths[0], "/usr/bin/dbus daemon");
	cr_expect(seen.maps[0].readable && !seen.maps[0].writable && seen.maps[0].executable && !seen.maps[0].deleted);
	cr_expect_eq(seen.maps[0].start, 0x400000u);
	cr_expect_eq(seen.maps[0].file_off, 0x1000u);
	cr_expect_eq(seen.maps[0].dev_major, 8u);
	cr_expect_eq(seen.maps[0].dev_minor, 2u);
	cr_expect_eq(seen.maps[0].inode, 173521u);
	cr_expect_str_eq(seen.paths[1], "");
	cr_expect_str_eq(seen.paths[2], "");
	cr_expect_str_eq(seen.paths[3], "/a\nb");
	cr_expect(seen.maps[3].deleted && !seen.maps[3].readable);
	cr_expect_eq(seen.maps[3].inode, UINT64_MAX);
	cr_expect_eq(seen.maps[3].dev_minor, 0x1fu);
	cr_expect_str_eq(seen.paths[4], "[stack]");
}

/* Cut anywhere, or with any one byte spoilt, it never gives more mappings than lines, and never reads beyond the end. */
Test(procfs, maps_that_are_cut_or_spoilt)
{
	size_t bytes = strlen(maps_text);

	for (size_t cut = 0; cut <= bytes; cut++) {
		char *copy = malloc(cut ? cut : 1);
		struct seen seen = {0};

		memcpy(copy, maps_text, cut);
		proc_maps_parse(copy, cut, see, &seen);
		cr_expect_leq(seen.count, 5u);
		if (cut)
			copy[cut - 1] = (char)0xff;
		seen = (struct seen){0};
		proc_maps_parse(copy, cut, see, &seen);
		cr_expect_leq(seen.count, 5u);
		free(copy);
	}
}

static int open_each(void *context, const struct proc_map *map)
{
	unsigned *opened = context;
	struct stat st;
	int fd = proc_open_mapped(getpid(), map);

	if (map->path[0] != '/') {
		cr_expect_lt(fd, 0, "%s", map->path);
		return 0;
	}
	cr_assert_geq(fd, 0, "%s: %s", map->path, strerror(-fd));
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_ino, map->inode);
	close(fd);
	++*opened;
	return 0;
}

Test(procfs, mapped_files_are_opened)
{
	unsigned opened = 0;

	cr_assert_eq(proc_maps_each(getpid(), open_each, &opened), 0);
	cr_expect_gt(opened, 3u);
	cr_expect_eq(proc_maps_each(0x3fffffff, open_each, &opened), -ESRCH);
}

Test(procfs, another_file_at_the_path_is_not_opened)
{
	/* No mapping has these addresses, and /etc/passwd is not inode 1. */
	struct proc_map map = {.start = 0x1000, .end = 0x2000, .inode = 1, .path = "/etc/passwd"};
	struct proc_map device = {.start = 0x1000, .end = 0x2000, .path = "/dev/zero"};
	struct stat st;

	cr_expect_lt(proc_open_mapped(getpid(), &map), 0);
	cr_assert_eq(stat("/dev/zero", &st), 0);
	device.inode = st.st_ino;
	cr_expect_lt(proc_open_mapped(getpid(), &device), 0);
}

Test(procfs, command_line)
{
	char text[256], tiny[5];
	pid_t child = fork();
	int status;

	cr_assert_geq(child, 0);
	if (child == 0) {
		execl("/bin/sh", "sh\n1", "-c", "read x; exit", "\xff\xc3\xa9", (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 200; i++) {
		usleep(5000);
		cr_assert_eq(proc_command_line(child, text, sizeof(text)), 0);
		if (strncmp(text, "sh 1", 4) == 0)
			break;
	}
	cr_expect_str_eq(text, "sh 1 -c read x; exit \xef\xbf\xbd\xc3\xa9");
	cr_assert_eq(proc_command_line(child, tiny, sizeof(tiny)), 0);
	cr_expect_str_eq(tiny, "sh 1");
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	cr_expect_eq(proc_command_line(child, text, sizeof(text)), -ESRCH);
}

Test(procfs, children_and_ids)
{
	pid_t found[64] = {0};
	pid_t id = 0, child = fork();
	bool seen = false;
	int count, status;

	cr_assert_geq(child, 0);
	if (child == 0) {
		pause();
		_exit(0);
	}
	count = proc_children(getpid(), SIZE_MAX, found, 64);
	for (int i = 0; i < count && i < 64; i++)
		seen |= found[i] == child;
	cr_expect(seen);
	cr_expect_eq(proc_children(getpid(), SIZE_MAX, found, 0), count, "the count does not depend on the room");
	cr_expect_eq(proc_ns_pid(child, &id), 0);
	cr_expect_gt(id, 0);
	cr_expect_eq(proc_ns_tid(child, id, &id), 0);
	cr_expect_eq(id, child);
	cr_expect_eq(proc_ns_tid(child, 0x3fffffff, &id), -ESRCH);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
}

/* A thread that has made a child and waits until it is told to end. */
struct parent {
	pthread_t thread;
	pthread_barrier_t made;
	int end_fd[2];
	pid_t child;
};

static void *make_child(void *context)
{
	struct parent *parent = context;
	char byte;

	parent->child = fork();
	if (parent->child == 0) {
		pause();
		_exit(0);
	}
	pthread_barrier_wait(&parent->made);
	(void)!read(parent->end_fd[0], &byte, 1);
	return NULL;
}

/* The test framework may have threads of its own. */
static size_t count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	size_t count = 0;

	cr_assert_not_null(tasks);
	while ((entry = readdir(tasks)))
		count += entry->d_name[0] != '.';
	closedir(tasks);
	return count;
}

Test(procfs, children_of_other_threads_are_passed_over_where_there_are_many)
{
	struct parent parent = {.child = -1};
	pid_t found[64] = {0};
	int status;

	cr_assert_eq(pipe(parent.end_fd), 0);
	pthread_barrier_init(&parent.made, NULL, 2);
	cr_assert_eq(pthread_create(&parent.thread, NULL, make_child, &parent), 0);
	pthread_barrier_wait(&parent.made);
	cr_expect_eq(proc_children(getpid(), count_threads() - 1, found, 64), 0);
	cr_expect_eq(proc_children(getpid(), count_threads(), found, 64), 1);
	cr_expect_eq(found[0], parent.child);
	found[0] = 0;
	cr_expect_eq(proc_children(getpid(), SIZE_MAX, found, 64), 1);
	cr_expect_eq(found[0], parent.child);
	kill(parent.child, SIGKILL);
	close(parent.end_fd[1]);
	pthread_join(parent.thread, NULL);
	waitpid(parent.child, &status, 0);
}
