/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLED_DAEMON_SUMMARY_H
#define SAMPLED_DAEMON_SUMMARY_H

#include <stdbool.h>

#include "aggregator/profile.h"
#include "sampler/ring.h"

/* Prints the closing summary, about ten lines, on standard error: what was sampled, what was lost, and the
 * functions with the largest share. With stats, also what reading the processes cost. */
void summary_print(const struct profile *profile, bool stats, const struct ring *ring);

#endif
