/* SPDX-License-Identifier: Apache-2.0 */
/* Which format is meant: by -f, or by the name of what is written. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/output.h"

static int find_format(const char *name, const struct format **ret_format, struct fault *fault)
{
	const struct format *format = format_by_name(name);
	char hint[256];

	if (format && format_is_written(format)) {
		*ret_format = format;
		return 0;
	}
	snprintf(hint, sizeof(hint), "formats: %s", format_names());
	fault_set(fault, -EINVAL, hint, format ? "-f %s: it can only be read" : "-f %s: no such format", name);
	return -EINVAL;
}

/* A name without any suffix, and standard output, get the default format. */
static int guess_format(const char *path, const struct format **ret_format, struct fault *fault)
{
	const char *slash = strrchr(path, '/');
	char hint[256];

	*ret_format = format_by_suffix(path);
	if (*ret_format)
		return 0;
	if (strcmp(path, "-") == 0 || !strchr(slash ? slash : path, '.'))
		return find_format("flamegraph", ret_format, fault);
	snprintf(hint, sizeof(hint), "give -f; formats: %s", format_names());
	fault_set(fault, -EINVAL, hint, "-o %s: its suffix tells no format", path);
	return -EINVAL;
}

int output_choose_format(const char *name, const char *path, const struct format **ret_format, struct fault *fault)
{
	return name ? find_format(name, ret_format, fault) : guess_format(path ? path : "-", ret_format, fault);
}
