/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/limits.h"

#include <dirent.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

static struct rlimit files_before;
static bool files_raised;

void limits_raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files_before = files;
	files.rlim_cur = files.rlim_max;
	files_raised = setrlimit(RLIMIT_NOFILE, &files) == 0;
}

void limits_restore_files(void)
{
	if (files_raised)
		(void)setrlimit(RLIMIT_NOFILE, &files_before);
}

static int kept[LIMITS_KEPT];
static unsigned kept_count;

static void close_files(const int *files, unsigned count)
{
	while (count > 0)
		close(files[--count]);
}

/* As many as there are. */
static unsigned open_files(int *ret_files, unsigned count)
{
	unsigned opened = 0;

	while (opened < count && (ret_files[opened] = eventfd(0, EFD_CLOEXEC)) >= 0)
		opened++;
	return opened;
}

void limits_keep_files(void)
{
	struct rlimit files;
	unsigned want = LIMITS_KEPT;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 8 < want)
		want = (unsigned)(files.rlim_cur / 8);
	if (kept_count < want)
		kept_count += open_files(kept + kept_count, want - kept_count);
}

void limits_free_files(void)
{
	close_files(kept, kept_count);
	kept_count = 0;
}

bool limits_have_files(unsigned count)
{
	int files[LIMITS_ASKED_MAX];
	unsigned opened = open_files(files, count < LIMITS_ASKED_MAX ? count : LIMITS_ASKED_MAX);

	close_files(files, opened);
	return opened >= count;
}

void limits_count_files(uint64_t *ret_open, uint64_t *ret_max)
{
	DIR *folder = opendir("/proc/self/fd");
	struct rlimit files;
	uint64_t count = 0;

	*ret_max = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 0;
	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	/* ".", ".." and the folder itself */
	*ret_open = count > 3 + kept_count ? count - 3 - kept_count : 0;
}
