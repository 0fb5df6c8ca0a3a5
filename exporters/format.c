/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/format.h"

#include <string.h>
#include <strings.h>

#include "exporters/formats.h"

/* The registry: one line a format. The first is the default. */
static const struct format formats[] = {
	{.name = "flamegraph", .suffix = ".html", .mime = "text/html", .write = flamegraph_write},
	{.name = "collapsed", .suffix = ".collapsed", .mime = "text/plain", .write = collapsed_write},
	{.name = "text", .suffix = ".txt", .mime = "text/plain", .write = text_write},
};

/* Other suffixes that people use for a format. */
static const struct {
	const char *suffix, *name;
} suffixes[] = {
	{".htm", "flamegraph"},
	{".folded", "collapsed"},
	{".text", "text"},
};

enum { FORMAT_COUNT = sizeof(formats) / sizeof(formats[0]) };

const struct format *format_by_name(const char *name)
{
	for (size_t i = 0; i < FORMAT_COUNT; i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

static bool ends_with(const char *path, const char *suffix)
{
	size_t path_bytes = strlen(path), suffix_bytes = strlen(suffix);

	return path_bytes > suffix_bytes && strcasecmp(path + path_bytes - suffix_bytes, suffix) == 0;
}

const struct format *format_by_suffix(const char *path)
{
	for (size_t i = 0; i < FORMAT_COUNT; i++)
		if (ends_with(path, formats[i].suffix))
			return &formats[i];
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (ends_with(path, suffixes[i].suffix))
			return format_by_name(suffixes[i].name);
	return NULL;
}

const char *format_names(void)
{
	static char names[FORMAT_COUNT * 16];

	/* The same text whoever writes it, so a race between first callers does no harm. */
	if (names[0] == '\0')
		for (size_t i = 0; i < FORMAT_COUNT; i++) {
			if (i > 0)
				strcat(names, " ");
			strcat(names, formats[i].name);
		}
	return names;
}
