/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics that report and its browser show: of one or more files, read into one call graph. */
#ifndef SAMPLED_DAEMON_STATISTICS_H
#define SAMPLED_DAEMON_STATISTICS_H

#include <stdbool.h>

#include "base/buf.h"
#include "daemon/filters.h"
#include "exporters/callgraph.h"
#include "exporters/stats.h"

struct statistics {
	struct callgraph graph;
	struct stats stats; /* of graph */
	struct buf files;   /* what was read: its time and its name, a line each */
	bool has_on_cpu, has_gil;
};

/* Reads files, filtered; of profiles, with files by their last part when asked to. What went wrong is printed. Returns an exit status; nothing
 * is to be released unless it is EXIT_DONE. */
int statistics_read(struct statistics *ret_statistics, char *const *paths, int count, const struct filters *filters,
                    bool strip_dirs);
/* Adds another one. 0 or -ENOMEM; what is left then is of no use but to be released. */
int statistics_add(struct statistics *statistics, const struct statistics *other);
/* pstats' strip_dirs(). The same. */
int statistics_strip(struct statistics *statistics);
void statistics_release(struct statistics *statistics);

#endif
