/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of profile formats: one file a format, one line in the table of format.c. */
#ifndef SAMPLED_EXPORTERS_FORMAT_H
#define SAMPLED_EXPORTERS_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "aggregator/profile.h"
#include "base/fault.h"
#include "exporters/source.h"
#include "exporters/writer.h"

enum collapsed_style { COLLAPSED_SAMPLED, COLLAPSED_TACHYON };

struct export_options {
	enum collapsed_style collapsed_style;
	const struct source_access *sources; /* source lines may be read through it and embedded; NULL: none are */
	bool color;                          /* text: to a terminal */
	const char *title;                   /* NULL: made from the profile */
};

struct format {
	const char *name;   /* "flamegraph" */
	const char *suffix; /* ".html" */
	const char *mime;
	/* Writes the profile; errors stick in the writer. Returns 0 or the writer's error. */
	int (*write)(const struct profile *profile, const struct export_options *options, struct writer *to);
};

/* NULL: no such format. */
const struct format *format_by_name(const char *name);
/* By a file name's suffix; NULL: none fits. */
const struct format *format_by_suffix(const char *path);
/* Names joined by a blank, for --help and messages. */
const char *format_names(void);

#endif
