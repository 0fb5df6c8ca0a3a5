/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/ranking.h"

#include <ctype.h>
#include <string.h>

struct ranking ranking_of(const struct profile *profile)
{
	uint64_t wall_ns = profile_sum(profile, VALUE_WALL);

	if (profile_has(profile, VALUE_CPU) && profile_sum(profile, VALUE_CPU) > 0)
		return (struct ranking){.by = VALUE_CPU, .label = "on CPU"};
	if (profile_has(profile, VALUE_IDLE) && profile_has(profile, VALUE_WALL) &&
	    profile_sum(profile, VALUE_IDLE) < wall_ns)
		return (struct ranking){.by = VALUE_WALL, .less_idle = true, .label = "running"};
	return (struct ranking){.by = wall_ns ? profile_weight(profile) : VALUE_SAMPLES, .label = "self"};
}

bool ranking_is_part(const struct ranking *ranking)
{
	return ranking->by == VALUE_CPU || ranking->less_idle;
}

uint64_t ranking_amount(const struct ranking *ranking, const uint64_t values[VALUE_COUNT])
{
	uint64_t idle = ranking->less_idle ? values[VALUE_IDLE] : 0;

	return values[ranking->by] > idle ? values[ranking->by] - idle : 0;
}

uint64_t ranking_thread_sum(const struct thread_tree *tree, enum value_index value)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < tree->node_count; i++)
		sum += tree->nodes[i].self[value];
	return sum;
}

/* Behind "/python3.11/", where that is a folder of the path: 0 where there is none. */
static const char *below_library(const char *file)
{
	static const char name[] = "/python";

	for (const char *at = strstr(file, name); at; at = strstr(at + 1, name)) {
		const char *version = at + strlen(name), *end = version + strspn(version, "0123456789.t");

		if (isdigit((unsigned char)*version) && *end == '/' && end[1])
			return end + 1;
	}
	return NULL;
}

const char *ranking_short_file(const char *file)
{
	static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
	const char *found;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		found = strstr(file, folders[i]);
		if (found && found[strlen(folders[i])])
			return found + strlen(folders[i]);
	}
	found = below_library(file);
	return found ? found : file;
}
