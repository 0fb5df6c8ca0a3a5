/* SPDX-License-Identifier: Apache-2.0 */
/* What a dump of the service is to hold, as words say it: those of `sampled ctl dump`, and those that it sends, which the service reads again as
 * hostile input. */
#ifndef SAMPLED_DAEMON_CONTROL_OPTIONS_H
#define SAMPLED_DAEMON_CONTROL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/fault.h"
#include "daemon/option_table.h"
#include "exporters/format.h"

enum { DUMP_RULE_BYTES = 128, DUMP_ROWS = 8 };

/* Complete in itself: it may go to another thread. */
struct dump_request {
	pid_t pid;                   /* 0: not of one process */
	char rule[DUMP_RULE_BYTES];  /* "": not of one rule. Where both are not given, all that who asks may see */
	bool all;                    /* said so */
	bool merge;                  /* the processes become one */
	uint64_t last_ns;            /* so much up to now; 0: not given */
	uint64_t from_ns, to_ns;     /* CLOCK_REALTIME; 0: not given */
	const struct format *format; /* as -f says; NULL: it does not (never by dump_request_parse()) */
	uint64_t now_ns;             /* CLOCK_REALTIME: what moments are relative to. Set before its options are read */
};

/* Its options, as the second table of a command. */
void dump_request_rows(struct dump_request *request, struct option_row rows[DUMP_ROWS]);
/* What else there is to say once they are read: the operands, and whether all fits together. 0 or -EINVAL with *fault filled. */
int dump_request_finish(struct dump_request *request, char *const *operands, int count, struct fault *fault);

/* All of it from the words of a request, argv[0] being "dump". The format is a flame graph where none is named. 0 or -EINVAL with *fault filled. */
int dump_request_parse(struct dump_request *ret_request, int argc, char **argv, uint64_t now_ns, struct fault *fault);
/* The other way: words, each ended by a NUL, that are parsed to the same whatever the time zone and the time. */
void dump_request_words(const struct dump_request *request, struct buf *to);

#endif
