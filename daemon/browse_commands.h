/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the statistics browser: those of pstats' ProfileBrowser, with its messages. */
#ifndef SAMPLED_DAEMON_BROWSE_COMMANDS_H
#define SAMPLED_DAEMON_BROWSE_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/statistics.h"
#include "exporters/stats_sort.h"
#include "exporters/writer.h"

struct browser {
	struct statistics statistics; /* where has_statistics is set */
	bool has_statistics;
	bool accounted; /* what sampling asked for and lost was said of them */
	struct stats_order order; /* what the listing was sorted by; none: it is as the file had it */
	char *path;               /* of the prompt; NULL: none was read */
	char *last;               /* the last command, which an empty line repeats */
	const struct filters *filters;
	struct writer *to;
	bool is_over;
};

struct command {
	const char *name;
	void (*run)(struct browser *b, const char *arguments);
	const char *help;
	bool takes_limits;
};

/* In the order of their names; NULL: there are no more. */
const struct command *browse_command(size_t index);
/* NULL: there is none of this name. */
const struct command *browse_find_command(const char *name, size_t bytes);
/* Whether the statistics hold what one of our own sort keys sorts by. */
bool browse_has_key(const struct browser *b, const char *word);

#endif
