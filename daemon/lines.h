/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines: edited, completed and recalled on a terminal, with libedit; otherwise read as they come. One such reader a process: libedit
 * has one. */
#ifndef SAMPLED_DAEMON_LINES_H
#define SAMPLED_DAEMON_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "exporters/writer.h"

struct lines {
	/* For completion: the index-th word that may stand behind `before`, the line up to the word that is typed; lines_files: names of
	 * files; NULL: there are no more. */
	const char *(*word)(const void *context, const char *before, size_t index);
	const void *context;
	bool edited;
};

extern const char lines_files[];

/* The struct is used until the last line. */
void lines_open(struct lines *lines);
/* The next line, freed by the caller, after the prompt, which is written to `to` where libedit does not show it. NULL: there is none, or the
 * prompt could not be written (to->err). */
char *lines_next(const struct lines *lines, const char *prompt, struct writer *to);

#endif
