/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/places.h"
#include "sampler/procfs.h"

/* A child that has moved to `folder` and waits to be killed. */
static pid_t start_in(const char *folder, uint64_t *ret_start_time)
{
	struct proc_stat stat;
	int ready[2];
	char byte;
	pid_t pid;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (chdir(folder) == 0)
			(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	cr_assert_eq(proc_stat_read(&stat, pid, 0), 0);
	*ret_start_time = stat.start_time;
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static int read_through(const struct source_access *access, pid_t pid, uint64_t start_time, const char *path, struct buf *to)
{
	const struct source_place *place = access->enter(access->context, (int32_t)pid, start_time);
	int err;

	if (!place)
		return -ENOKEY;
	err = source_read(to, place, path);
	access->leave(access->context);
	return err;
}

Test(places, a_file_is_found_after_its_process_ended)
{
	char folder[] = "/tmp/sampled-places-XXXXXX", path[64];
	struct places *places;
	const struct source_access *access;
	struct buf text = {0};
	uint64_t start_time;
	pid_t pid;
	int fd;

	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/a.py", folder);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	cr_assert_eq(write(fd, "first\n", 6), 6);
	close(fd);
	cr_assert_eq(places_new(&places), 0);
	access = places_access(places);
	pid = start_in(folder, &start_time);
	places_note(places, pid, start_time);
	end(pid);
	cr_assert_eq(read_through(access, pid, start_time, path, &text), 0);
	cr_assert_eq(read_through(access, pid, start_time, "a.py", &text), 0, "a relative name begins at its own directory");
	cr_assert_eq(text.bytes, 6);
	cr_assert_eq(read_through(access, pid, start_time, "../etc/passwd", &text), -ENOENT, "and cannot leave it");
	cr_assert_eq(read_through(access, pid, start_time + 1, path, &text), -ENOKEY, "another process of that number");
	cr_assert_eq(read_through(access, getpid(), 1, path, &text), -ENOKEY);
	places_free(places);
	buf_release(&text);
	unlink(path);
	rmdir(folder);
}

Test(places, many_processes_share_descriptors)
{
	struct places *places;
	int before;

	cr_assert_eq(places_new(&places), 0);
	before = open_descriptors();
	for (int i = 0; i < 300; i++) {
		uint64_t start_time;
		pid_t pid = start_in("/", &start_time);

		places_note(places, pid, start_time);
		end(pid);
	}
	cr_assert_leq(open_descriptors(), before + 2);
	places_free(places);
	cr_assert_leq(open_descriptors(), before);
}

Test(places, the_owners_rights_are_taken_and_given_back)
{
	char path[] = "/tmp/sampled-places-XXXXXX";
	struct places *places;
	struct buf text = {0};
	struct proc_stat stat;
	int ready[2], fd = mkstemp(path);
	char byte;
	pid_t pid;

	close(fd);
	if (getuid() != 0)
		cr_skip_test("only root can become another user");
	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(65534) == 0 && setuid(65534) == 0)
			(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	cr_assert_eq(proc_stat_read(&stat, pid, 0), 0);
	cr_assert_eq(places_new(&places), 0);
	places_note(places, pid, stat.start_time);
	end(pid);
	cr_assert_eq(read_through(places_access(places), pid, stat.start_time, path, &text), -EACCES, "mode 0600, of root");
	cr_assert_eq(setfsuid((uid_t)-1), 0, "we are ourselves again");
	cr_assert_eq(chmod(path, 0644), 0);
	cr_assert_eq(read_through(places_access(places), pid, stat.start_time, path, &text), 0);
	places_free(places);
	buf_release(&text);
	unlink(path);
}
