/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of profile formats: one file a format, one line in the table of format.c. */
#ifndef SAMPLED_EXPORTERS_FORMAT_H
#define SAMPLED_EXPORTERS_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "aggregator/builder.h"
#include "aggregator/profile.h"
#include "base/fault.h"
#include "exporters/callgraph.h"
#include "exporters/input.h"
#include "exporters/label.h"
#include "exporters/source.h"
#include "exporters/writer.h"

struct comparison;

enum collapsed_style { COLLAPSED_SAMPLED, COLLAPSED_TACHYON };

struct export_options {
	enum collapsed_style collapsed_style;
	const struct source_access *sources; /* source lines may be read through it and embedded; NULL: none are */
	bool color;                          /* text: to a terminal */
	unsigned columns;                    /* text: how wide; 0: 100 */
	const char *title;                   /* NULL: made from the profile */
	const struct comparison *
		comparison; /* the profile joins two (difference.h); NULL: it does not. For formats that say `compares` */
	struct labels labels; /* otlp: of the resources, and for their service's name */
	uint64_t
		history_interval_ns; /* dask: a history of trees, one for each such interval; 0: one tree. It wants runs */
};

/* What a format's write wants of a profile. */
enum format_needs {
	NEEDS_PROFILE,
	WANTS_RUNS, /* time order, profile.has_runs, where it can be had: what holds none is written all the same */
	NEEDS_RUNS, /* time order, or nothing is written */
};

/* So much of a file tells its format: JSON keeps its keys in any order, and names may come before them. */
enum { FORMAT_HEAD_BYTES = 65536 };

struct format {
	const char *name;   /* "flamegraph" */
	const char *suffix; /* ".html" */
	const char *mime;
	enum format_needs needs;
	/* Either of these writes it; both NULL: it is only read. Errors stick in the writer. 0 or the writer's error. */
	int (*write)(const struct profile *profile, const struct export_options *options, struct writer *to);
	int (*write_callgraph)(const struct callgraph *graph, const struct export_options *options, struct writer *to);
	/* Whether what begins so (up to FORMAT_HEAD_BYTES, unpacked) is in this format; NULL: it is not read. Formats are asked in the table's order. */
	bool (*detect)(const unsigned char *head, size_t bytes);
	/* One of these reads it. 0 or -errno with *fault filled: -EPROTO when it is malformed (fault says at which byte or line, and in what),
	 * -ENOMEM, -errno of reading. What could be read before stays in the builder. 0 with a text in *fault (which is empty before): it was
	 * read, and that is to be said of it. Hostile input. */
	int (*read)(struct input *from, struct builder *to, struct fault *fault);
	int (*read_callgraph)(struct input *from, struct callgraph *to, struct fault *fault);
	bool timed;    /* read tells time order: it adds runs (builder_run()) */
	bool states;   /* … and each sample's state: whether it ran, held the GIL, was idle */
	bool by_line;  /* write_callgraph wants the lines (callgraph.with_lines) */
	bool places;   /* write takes native frames as they are; else places in mappings get names first (native.h) */
	bool compares; /* write can show two profiles (options->comparison) */
};

/* NULL: no such format. */
const struct format *format_by_name(const char *name);
/* By a file name's suffix, one that can be written; NULL: none fits. */
const struct format *format_by_suffix(const char *path);
/* By content: each format by its own marks, and what takes any text (collapsed) last. NULL: none is known to look so. */
const struct format *format_by_content(struct input *input);
bool format_is_written(const struct format *format);
/* Names of those that can be written (or read), joined by a blank, for --help and messages. */
const char *format_names(void);
const char *format_read_names(void);

/* Writes a profile in any format, by way of its call graph where that is what the format holds. */
int format_write(const struct format *format, const struct profile *profile, const struct export_options *options,
                 struct writer *to);

#endif
