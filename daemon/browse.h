/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics browser of sampled report --interactive: the commands of `python -m pstats`. */
#ifndef SAMPLED_DAEMON_BROWSE_H
#define SAMPLED_DAEMON_BROWSE_H

#include "daemon/statistics.h"

/* Reads commands from standard input to its end or "quit". path: the file of the statistics, which it takes over; NULL: none is read yet.
 * Returns an exit status. */
int browse(const char *path, struct statistics *statistics, const struct filters *filters);

#endif
