/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/profile.h"

#include <stdlib.h>

const struct value_type profile_value_types[VALUE_COUNT] = {
	[VALUE_SAMPLES] = {.name = "samples", .unit = "count"},
	[VALUE_WALL] = {.name = "wall", .unit = "nanoseconds"},
	[VALUE_ON_CPU] = {.name = "on_cpu", .unit = "nanoseconds"},
	[VALUE_GIL] = {.name = "gil", .unit = "nanoseconds"},
	[VALUE_GIL_WAIT] = {.name = "gil_wait", .unit = "nanoseconds"},
	[VALUE_IDLE] = {.name = "idle", .unit = "nanoseconds"},
	[VALUE_UNKNOWN] = {.name = "unknown", .unit = "nanoseconds"},
	[VALUE_GC] = {.name = "gc", .unit = "nanoseconds"},
	[VALUE_EXCEPTION] = {.name = "exception", .unit = "nanoseconds"},
};

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	for (uint32_t i = 0; i < profile->thread_count; i++) {
		free(profile->threads[i].nodes);
		free(profile->threads[i].name);
	}
	for (uint32_t i = 0; i < profile->process_count; i++)
		free(profile->processes[i].name);
	free(profile->threads);
	free(profile->processes);
	free(profile->symbols);
	free(profile->strings);
	free(profile);
}

uint64_t *profile_totals(const struct thread_tree *tree)
{
	uint64_t *totals = calloc((size_t)tree->node_count * VALUE_COUNT, sizeof(*totals));

	if (!totals)
		return NULL;
	/* Children come after their parents, so that from the end on each node is complete when it is added to its own. */
	for (uint32_t i = tree->node_count; i-- > 0;) {
		const struct node *node = &tree->nodes[i];
		uint64_t *own = totals + (size_t)i * VALUE_COUNT;
		uint64_t *parent = totals + (size_t)node->parent * VALUE_COUNT;

		for (int v = 0; v < VALUE_COUNT; v++) {
			own[v] += node->self[v];
			if (i > 0)
				parent[v] += own[v];
		}
	}
	return totals;
}

uint64_t profile_sum(const struct profile *profile, enum value_index value)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < profile->thread_count; i++)
		for (uint32_t j = 0; j < profile->threads[i].node_count; j++)
			sum += profile->threads[i].nodes[j].self[value];
	return sum;
}

static void facts_add(struct rec_facts *sum, const struct rec_facts *facts)
{
	if (facts->t_start_ns && (sum->t_start_ns == 0 || facts->t_start_ns < sum->t_start_ns))
		sum->t_start_ns = facts->t_start_ns;
	if (sum->t_last_ns < facts->t_last_ns)
		sum->t_last_ns = facts->t_last_ns;
	sum->ticks += facts->ticks;
	sum->ticks_late += facts->ticks_late;
	sum->ticks_missed += facts->ticks_missed;
	sum->attempts += facts->attempts;
	sum->samples += facts->samples;
	sum->runs += facts->runs;
	sum->confirms += facts->confirms;
	sum->deferred += facts->deferred;
	sum->truncated += facts->truncated;
	sum->unsampled_ns += facts->unsampled_ns;
	sum->reads += facts->reads;
	sum->read_segments += facts->read_segments;
	sum->read_bytes += facts->read_bytes;
	sum->read_ns += facts->read_ns;
	sum->symbols += facts->symbols;
	for (int i = 0; i < LOSS_CAUSES; i++)
		sum->lost[i] += facts->lost[i];
	for (int i = 0; i < RETRY_CAUSES; i++)
		sum->retries[i] += facts->retries[i];
}

void profile_facts(const struct profile *profile, struct rec_facts *ret_facts)
{
	struct rec_facts sum = {0};

	if (profile->process_count)
		sum.interval_ns = profile->processes[0].facts.interval_ns;
	for (uint32_t i = 0; i < profile->process_count; i++)
		facts_add(&sum, &profile->processes[i].facts);
	*ret_facts = sum;
}
