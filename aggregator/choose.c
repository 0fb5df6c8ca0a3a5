/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/choose.h"

#include <stdlib.h>
#include <strings.h>

enum value_index profile_find_value(const struct profile *profile, const char *name)
{
	enum value_index value = 0;

	if (strcasecmp(name, "samples") == 0) /* whatever else a file calls them */
		return VALUE_SAMPLES;
	while (value < VALUE_COUNT &&
	       !(profile->values[value].name && strcasecmp(profile->values[value].name, name) == 0))
		value++;
	return value;
}

/* Moves all that one place holds to another, which loses what it held. */
static void move(struct profile *profile, enum value_index from, enum value_index to)
{
	for (uint32_t i = 0; i < profile->thread_count; i++)
		for (uint32_t n = 0; n < profile->threads[i].node_count; n++) {
			uint64_t *self = profile->threads[i].nodes[n].self;

			if (to < VALUE_COUNT)
				self[to] = self[from];
			self[from] = 0;
		}
	if (to < VALUE_COUNT)
		profile->values[to] = profile->values[from];
	profile->values[from] = (struct value_type){0};
}

static void leave_runs_out(struct profile *profile)
{
	for (uint32_t i = 0; i < profile->thread_count; i++) {
		free(profile->threads[i].runs);
		profile->threads[i].runs = NULL;
		profile->threads[i].run_count = 0;
	}
	profile->has_runs = false;
}

void profile_choose_value(struct profile *profile, enum value_index value)
{
	enum value_index free_place = VALUE_RUNNABLE;

	if (value == profile_weight(profile)) {
		profile->uncounted |= value != VALUE_SAMPLES;
		return;
	}
	for (enum value_index v = VALUE_RUNNABLE; v <= VALUE_EXCEPTION; v++)
		if (v != value && profile_has(profile, v))
			move(profile, v, VALUE_COUNT);
	while (free_place < VALUE_COUNT && profile->values[free_place].name)
		free_place++;
	if (value == VALUE_SAMPLES && profile_has(profile, VALUE_WALL)) /* which has no place any more */
		profile->left_out.wall += profile_sum(profile, VALUE_WALL);
	if (profile->values[VALUE_WALL].name)
		move(profile, VALUE_WALL, value == VALUE_SAMPLES ? VALUE_COUNT : free_place);
	if (value != VALUE_SAMPLES)
		move(profile, value, VALUE_WALL);
	profile->uncounted = value != VALUE_SAMPLES;
	leave_runs_out(profile);
}

enum value_index profile_value_instead(const struct profile *profile)
{
	enum value_index weight = profile_weight(profile);

	if (profile_sum(profile, weight) > 0)
		return VALUE_COUNT;
	for (enum value_index v = VALUE_WALL; v < VALUE_COUNT; v++)
		if (v != weight && profile->values[v].name && profile_sum(profile, v) > 0)
			return v;
	return weight != VALUE_SAMPLES && profile_sum(profile, VALUE_SAMPLES) > 0 ? VALUE_SAMPLES : VALUE_COUNT;
}
