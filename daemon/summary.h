/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLED_DAEMON_SUMMARY_H
#define SAMPLED_DAEMON_SUMMARY_H

#include <stdbool.h>

#include "aggregator/profile.h"
#include "exporters/facts.h"
#include "sampler/ring.h"

struct summary_options {
	bool figures;             /* all of them */
	bool stats;               /* what reading the processes cost */
	const struct ring *ring;  /* for stats */
	const char *open_with;    /* a command that shows what was written, or where; NULL: nothing is said of it */
	const char *opened;       /* the file that it shows */
};

/* Prints the closing summary on standard error, about eight lines, fitted to the terminal: what was sampled, what the threads did, which
 * functions had the CPU, who waited, and what was lost. */
void summary_print(const struct profile *profile, const struct summary_options *options);

/* summary_figures.c */
void summary_print_figures(const struct profile *profile, const struct facts *facts);
void summary_print_stats(const struct facts *facts, const struct ring *ring);

#endif
