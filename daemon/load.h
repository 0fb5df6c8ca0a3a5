/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles from files of any format that can be read: for convert, report and diff. */
#ifndef SAMPLED_DAEMON_LOAD_H
#define SAMPLED_DAEMON_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "daemon/filters.h"
#include "exporters/format.h"

/* Bounds of what is read: of trees and symbols, and how many runs (24 bytes each). */
#define LOAD_TREES_MAX_BYTES (UINT64_C(4) << 30)
#define LOAD_RUNS_MAX        (UINT64_C(1) << 25)

/* One input: its profile, or, where the format has no more than that, its call graph. */
struct loaded {
	const struct format *format;
	struct profile *profile; /* owned; NULL: it is a call graph */
	struct callgraph graph;  /* owned; empty where there is a profile */
	bool is_empty;           /* of load_all(): with these filters nothing is left, which was said */
};

/* Reads a file ("-": standard input), by its content, in the filters' window of time; with its runs where these are needed, or wanted and in it. 0 or -errno with
 * *fault filled: -EINVAL what was asked for is not in such a file (usage), -ENOTSUP it is no format that is known, -EPROTO it is malformed.
 * 0 with a text in *fault: it was read, and that is to be said of it (a recording that is cut off). */
int load_file(struct loaded *ret_loaded, const char *path, const struct filters *filters, enum format_needs needs,
              struct fault *fault);
void loaded_release(struct loaded *loaded);

/* Several files as one, filtered; they must all be profiles, or all be call graphs (-EINVAL; filters do not work on these). What went wrong is
 * printed. Returns an exit status. */
int load_all(struct loaded *ret_loaded, char *const *paths, int count, const struct filters *filters, enum format_needs needs);

#endif
