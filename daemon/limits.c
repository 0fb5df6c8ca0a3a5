/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/limits.h"

#include <stdbool.h>
#include <sys/resource.h>

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
