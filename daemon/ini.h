/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files as systemd's are: [section] or [section name], key = value, lines that begin with # or ; are comments, and a backslash at a
 * line's end joins the next one to it with a blank. There are no comments behind a value and no quotes. Files are believed in nothing: their size,
 * the length of a line and the characters in it are checked first. */
#ifndef SAMPLED_DAEMON_INI_H
#define SAMPLED_DAEMON_INI_H

#include <stddef.h>

#include "base/fault.h"

enum {
	INI_FILE_MAX_BYTES = 1 << 20,
	INI_LINE_MAX_BYTES = 16 << 10, /* with the lines that a backslash joins to it */
};

/* One assignment. The texts are valid during the call only, have no blanks at either end and no control characters, and are UTF-8. */
struct ini_entry {
	const char *section;
	const char *name; /* what stands behind the section's first word; "": nothing */
	const char *key;
	const char *value; /* "": there is none */
	const char *file;
	unsigned line; /* from 1; of a joined one the first */
};

/* Who is told what. *fault is filled without the place, which is put in front of it: "FILE:LINE: WHY". */
struct ini_handler {
	void *context;
	/* An assignment. 0, or -errno with *fault filled, which is a mistake as one of the text is. */
	int (*entry)(void *context, const struct ini_entry *entry, struct fault *fault);
	/* A section's head: key and value are NULL. May be NULL. What a section assigns whose head is refused is passed over. */
	int (*section)(void *context, const struct ini_entry *head, struct fault *fault);
	/* A mistake; reading goes on behind it. NULL: the first one ends it. */
	void (*mistake)(void *context, const struct fault *fault);
};

/* Calls entry() for each assignment of a file, in order, until one does not return 0. 0, -errno (a file that cannot be read, is none, is too long,
 * a line that makes no sense) or what entry() returned, with *fault filled: why names file and line. */
int ini_read(const char *path, int (*entry)(void *context, const struct ini_entry *entry, struct fault *fault),
             void *context, struct fault *fault);
/* The same with all that a handler hears. 0, or the first mistake's -errno with *fault filled; a file that cannot be read is one, too. */
int ini_read_all(const char *path, const struct ini_handler *handler, struct fault *fault);
/* The same of a text in memory, which is called `file` in what is told of it. */
int ini_parse(const char *file, const char *text, size_t bytes, const struct ini_handler *handler, struct fault *fault);

#endif
