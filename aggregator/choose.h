/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a profile's values its shares are of. */
#ifndef SAMPLED_AGGREGATOR_CHOOSE_H
#define SAMPLED_AGGREGATOR_CHOOSE_H

#include "aggregator/profile.h"

/* The place of the value of this name, in whatever case; VALUE_COUNT: it has none. */
enum value_index profile_find_value(const struct profile *profile, const char *name);
/* The value at this place becomes the weight, and what was it goes to a place behind, where one is left; beside samples none is kept. States of
 * ours, which are parts of wall time, are left out, and so are runs, since their weights are of the former weight. */
void profile_choose_value(struct profile *profile, enum value_index value);
/* Where the weight is zero in every sample, and another value is not: the first of these. VALUE_COUNT: there is nothing to choose. */
enum value_index profile_value_instead(const struct profile *profile);

#endif
