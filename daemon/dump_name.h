/* SPDX-License-Identifier: Apache-2.0 */
/* Names of dumps: a pattern with %p the process' number, %n its name, %t the time (UTC), %h the host's name, %% a %. Whatever a process calls
 * itself, what comes out is a file name of harmless letters in one directory. */
#ifndef SAMPLED_DAEMON_DUMP_NAME_H
#define SAMPLED_DAEMON_DUMP_NAME_H

#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "base/fault.h"

#define DUMP_NAME_DEFAULT "sampled-%n-%p-%t"
enum {
	DUMP_PATTERN_MAX_BYTES = 100,
	DUMP_PART_MAX_BYTES = 64, /* of a process' or a host's name */
	DUMP_NAME_MAX_BYTES = 240,
};

/* What a dump is of. */
struct dump_subject {
	pid_t pid;        /* 0: several, which shows as "all" */
	const char *name; /* of the process (its comm), or of what else is dumped; hostile */
	time_t time;
	const char *host;
};

/* Whether a pattern can be one: no '/', no dot in front, no other letter behind a %. 0, or -EINVAL with *fault filled. */
int dump_name_check(const char *pattern, struct fault *fault);
/* Fills to[0 … DUMP_NAME_MAX_BYTES], as a text: what a checked pattern makes of the subject, ".SEQUENCE" for a sequence above 1, and the suffix (".html",
 * which may be ""). What is too long is cut in front of those two. */
void dump_name_make(char *to, const char *pattern, const struct dump_subject *subject, unsigned sequence,
                    const char *suffix);

#endif
