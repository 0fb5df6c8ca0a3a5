/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tempfile.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect_nameless(int fd)
{
	struct stat stat;
	char back[4] = "";

	cr_assert_geq(fd, 0);
	cr_assert_eq(fstat(fd, &stat), 0);
	cr_assert_eq(stat.st_nlink, 0);
	cr_assert_eq(stat.st_mode & 0777, 0600);
	cr_assert_eq(write_all(fd, "abc", 3), 0);
	cr_assert_eq(pread(fd, back, 3, 0), 3);
	cr_assert_str_eq(back, "abc");
	close(fd);
}

Test(tempfile, the_folder_is_an_absolute_one)
{
	unsetenv("TMPDIR");
	cr_assert_str_eq(tempfile_folder(), "/var/tmp");
	setenv("TMPDIR", "here", 1);
	cr_assert_str_eq(tempfile_folder(), "/var/tmp");
	setenv("TMPDIR", "/dev/shm", 1);
	cr_assert_str_eq(tempfile_folder(), "/dev/shm");
}

Test(tempfile, has_no_name)
{
	expect_nameless(tempfile_open("/var/tmp"));
	expect_nameless(tempfile_open(NULL));
	expect_nameless(tempfile_open("/proc")); /* which will have none */
	setenv("TMPDIR", "/nowhere", 1);
	cr_assert_lt(tempfile_open(NULL), 0);
}

Test(tempfile, what_cannot_be_written_is_told)
{
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	cr_assert_lt(write_all(fds[0], "abc", 3), 0);
}
