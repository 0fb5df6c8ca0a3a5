/* SPDX-License-Identifier: Apache-2.0 */
/* Names of dumps, and the directory they are in: what goes, what stays, and a disk that is full. */
#include "daemon/retention.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

static const struct dump_subject app = {.pid = 12, .name = "app", .time = 1700000000, .host = "web1"};

static void expect_name(const char *pattern, const struct dump_subject *subject, unsigned sequence, const char *suffix,
                        const char *expected)
{
	char name[DUMP_NAME_MAX_BYTES + 1];

	cr_assert_eq(dump_name_check(pattern, NULL), 0, "%s", pattern);
	dump_name_make(name, pattern, subject, sequence, suffix);
	cr_assert_str_eq(name, expected);
}

Test(dump_name, patterns)
{
	expect_name(DUMP_NAME_DEFAULT, &app, 1, ".html", "sampled-app-12-20231114T221320Z.html");
	expect_name("%h%%%n", &app, 3, ".txt", "web1%app.3.txt");
	expect_name("x", &(struct dump_subject){.name = "", .host = ""}, 0, "", "x");
	expect_name("%p-%n-%h", &(struct dump_subject){.name = "", .host = ""}, 0, "", "all-unnamed-unnamed");
	cr_assert_eq(dump_name_check("", NULL), -EINVAL);
	cr_assert_eq(dump_name_check("a/b", NULL), -EINVAL);
	cr_assert_eq(dump_name_check(".a", NULL), -EINVAL);
	cr_assert_eq(dump_name_check("%", NULL), -EINVAL);
	cr_assert_eq(dump_name_check("%s", NULL), -EINVAL);
	cr_assert_eq(dump_name_check("a\nb", NULL), -EINVAL);
}

Test(dump_name, what_processes_call_themselves)
{
	char name[DUMP_NAME_MAX_BYTES + 1], pattern[DUMP_PATTERN_MAX_BYTES + 1] = "", foreign[512];

	expect_name("%n", &(struct dump_subject){.name = "../../etc/passwd", .host = ""}, 1, ".html",
	            "_._.._etc_passwd.html");
	expect_name("%n", &(struct dump_subject){.name = "a b\n\x1b[2J\xff.c", .host = ""}, 1, "", "a_b___2J_.c");
	expect_name("%n", &(struct dump_subject){.name = ".sampled-dumps", .host = ""}, 1, "", "_sampled-dumps");
	memset(foreign, 'x', sizeof(foreign) - 1);
	foreign[sizeof(foreign) - 1] = '\0';
	while (strlen(pattern) + 2 <= DUMP_PATTERN_MAX_BYTES)
		strcat(pattern, "%n");
	dump_name_make(name, pattern, &(struct dump_subject){.name = foreign, .host = foreign}, 7, ".html");
	cr_assert_eq(strlen(name), DUMP_NAME_MAX_BYTES);
	cr_assert_str_eq(name + strlen(name) - 7, ".7.html");
}

static char folder[64];
static struct retention kept;
static char last_name[DUMP_NAME_MAX_BYTES + 1];

static void open_folder(const struct retention_limits *limits)
{
	struct fault fault = {0};

	if (!folder[0]) {
		strcpy(folder, "/tmp/test_retention.XXXXXX");
		cr_assert(mkdtemp(folder));
	}
	cr_assert_eq(retention_open(&kept, folder, limits, &fault), 0, "%s", fault.why);
}

static void remove_folder(void)
{
	char command[96];

	retention_close(&kept);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	cr_assert_eq(system(command), 0);
}

struct writing {
	size_t bytes;
	unsigned calls;
	int err; /* returned instead */
};

static int write_bytes(void *context, int fd)
{
	struct writing *w = context;
	static const char block[4096];

	w->calls++;
	for (size_t done = 0; done < w->bytes && !w->err;) {
		size_t ask = w->bytes - done < sizeof(block) ? w->bytes - done : sizeof(block);
		ssize_t got = write(fd, block, ask);

		if (got < 0)
			return -errno;
		done += (size_t)got;
	}
	return w->err;
}

static int dump(const char *pattern, size_t bytes)
{
	struct writing w = {.bytes = bytes};
	struct fault fault;

	usleep(2000); /* another time of change */
	return retention_write(&kept, pattern, &app, ".txt", write_bytes, &w, last_name, &fault);
}

static bool is_there(const char *name)
{
	return faccessat(kept.fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Test(retention, whole_files_and_a_sequence)
{
	struct writing failing = {.bytes = 10, .err = -EIO};
	struct fault fault;
	struct stat stat;

	open_folder(&(struct retention_limits){0});
	cr_assert_eq(dump("%n", 10), 0);
	cr_assert_str_eq(last_name, "app.txt");
	cr_assert_eq(fstatat(kept.fd, "app.txt", &stat, 0), 0);
	cr_assert_eq(stat.st_mode & 07777, 0640);
	cr_assert_eq(stat.st_size, 10);
	cr_assert_eq(stat.st_nlink, 1);
	cr_assert_eq(symlinkat("/tmp/elsewhere", kept.fd, "app.2.txt"), 0, "a name that is taken, whatever by");
	cr_assert_eq(dump("%n", 20), 0);
	cr_assert_str_eq(last_name, "app.3.txt");
	cr_assert_eq(retention_write(&kept, "%n", &app, ".txt", write_bytes, &failing, last_name, &fault), -EIO);
	cr_assert_eq(failing.calls, 1);
	cr_assert_eq(kept.count, 2);
	cr_assert(!is_there("app.4.txt") && !is_there(".sampled-unfinished"));
	remove_folder();
}

Test(retention, count_size_and_age)
{
	open_folder(&(struct retention_limits){.count = 3});
	for (int i = 0; i < 5; i++)
		cr_assert_eq(dump("%n", 1000), 0);
	cr_assert_eq(kept.count, 3);
	cr_assert_eq(kept.removed.by_count, 2);
	retention_close(&kept);
	open_folder(&(struct retention_limits){.bytes = 2500});
	cr_assert_eq(kept.count, 3, "the list was read again");
	cr_assert_eq(dump("big", 2400), 0);
	cr_assert_eq(kept.count, 1);
	cr_assert_eq(kept.removed.by_bytes, 3);
	cr_assert_eq(dump("bigger", 5000), 0);
	cr_assert_eq(kept.count, 1, "the newest stays");
	cr_assert(is_there("bigger.txt") && !is_there("big.txt"));
	kept.limits = (struct retention_limits){.age_ns = 60 * NS_PER_S};
	cr_assert_eq(retention_sweep(&kept, time(NULL)), 0);
	cr_assert_eq(kept.count, 1);
	cr_assert_eq(retention_sweep(&kept, time(NULL) + 120), 0);
	cr_assert_eq(kept.count, 0);
	cr_assert_eq(kept.removed.by_age, 1);
	remove_folder();
}

Test(retention, foreign_files_stay)
{
	int fd;

	open_folder(&(struct retention_limits){0});
	cr_assert_eq(dump("a", 10), 0);
	cr_assert_eq(dump("b", 10), 0);
	cr_assert_eq(dump("c", 10), 0);
	fd = openat(kept.fd, "foreign.txt", O_WRONLY | O_CREAT, 0600);
	close(fd);
	cr_assert_eq(unlinkat(kept.fd, "a.txt", 0), 0);
	cr_assert_eq(symlinkat("foreign.txt", kept.fd, "a.txt"), 0, "one of ours became a link");
	fd = openat(kept.fd, "b.txt", O_WRONLY | O_APPEND);
	cr_assert_eq(write(fd, "more", 4), 4, "or was changed");
	close(fd);
	kept.limits.count = 1;
	cr_assert_eq(retention_sweep(&kept, time(NULL)), 0);
	cr_assert(is_there("a.txt") && is_there("b.txt") && is_there("c.txt") && is_there("foreign.txt"));
	cr_assert_eq(kept.count, 1);
	cr_assert_eq(kept.removed.by_count, 0);
	remove_folder();
}

Test(retention, lists_that_are_false)
{
	static const char text[] =
		"1 2 3 ../../etc/passwd\n1 2 3 foreign.txt\nrubbish\n1 2 3 \n-1 x\n1 2 3 .sampled-dumps\n";
	struct fault fault;
	int fd;

	open_folder(&(struct retention_limits){.count = 1});
	cr_assert_eq(dump("a", 10), 0);
	fd = openat(kept.fd, ".sampled-dumps", O_WRONLY | O_APPEND);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	fd = openat(kept.fd, "foreign.txt", O_WRONLY | O_CREAT, 0600);
	close(fd);
	fd = openat(kept.fd, ".sampled-unfinished", O_WRONLY | O_CREAT, 0600);
	close(fd);
	retention_close(&kept);
	open_folder(&(struct retention_limits){.count = 1});
	cr_assert_eq(kept.count, 1);
	cr_assert(!is_there(".sampled-unfinished"), "what an end by force left");
	cr_assert_eq(unlinkat(kept.fd, ".sampled-dumps", 0), 0);
	cr_assert_eq(symlinkat("/etc/passwd", kept.fd, ".sampled-dumps"), 0);
	retention_close(&kept);
	cr_assert_eq(retention_open(&kept, folder, &(struct retention_limits){0}, &fault), -ELOOP);
	cr_assert_eq(retention_open(&kept, "/etc/passwd", &(struct retention_limits){0}, &fault), -ENOTDIR);
	kept.fd = open(folder, O_RDONLY | O_DIRECTORY);
	remove_folder();
}

Test(retention, what_is_listed_twice_counts_once)
{
	char text[256];
	ssize_t bytes;
	int fd;

	open_folder(&(struct retention_limits){0});
	cr_assert_eq(dump("a", 10), 0);
	cr_assert_eq(dump("b", 20), 0);
	fd = openat(kept.fd, ".sampled-dumps", O_RDWR | O_APPEND);
	bytes = read(fd, text, sizeof(text));
	cr_assert_eq(write(fd, text, (size_t)bytes), bytes);
	close(fd);
	retention_close(&kept);
	open_folder(&(struct retention_limits){0});
	cr_assert_eq(kept.count, 2);
	cr_assert_eq(kept.bytes, 30);
	cr_assert_str_eq(kept.files[0].name, "a.txt", "the oldest first");
	remove_folder();
}

Test(retention, dumps_give_way_to_others_that_need_the_disk)
{
	open_folder(&(struct retention_limits){0});
	cr_assert(!retention_give_way(&kept), "there is none");
	for (int i = 0; i < 4; i++)
		cr_assert_eq(dump("%n", 100000), 0);
	cr_assert(retention_give_way(&kept));
	cr_assert_eq(kept.count, 3, "a quarter of all bytes, here one dump, is made room for");
	cr_assert_eq(kept.removed.by_full_disk, 1);
	cr_assert(!is_there("app.txt") && is_there("app.4.txt"), "the oldest went");
	retention_close(&kept);
	open_folder(&(struct retention_limits){0});
	cr_assert_eq(kept.count, 3, "and the list says so");
	remove_folder();
}

Test(retention, a_full_disk)
{
	strcpy(folder, "/tmp/test_retention.XXXXXX");
	cr_assert(mkdtemp(folder));
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", folder, "tmpfs", 0, "size=1m")) {
		rmdir(folder);
		cr_skip_test("no file system can be mounted here");
	}
	open_folder(&(struct retention_limits){0});
	for (int i = 0; i < 12; i++)
		cr_assert_eq(dump("%n", 200000), 0, "dump %d", i);
	cr_assert_geq(kept.count, 1);
	cr_assert_eq(kept.removed.by_full_disk + kept.count, 12);
	cr_assert(is_there(last_name));
	cr_assert_eq(dump("%n", 2 << 20), -ENOSPC, "which never fits");
	cr_assert_geq(kept.count, 1, "and not all others went for it");
	cr_assert_eq(dump("%n", 1000), 0, "and it goes on");
	retention_close(&kept);
	umount(folder);
	rmdir(folder);
}
