/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/profile.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/named.h"

const struct value_type profile_value_types[VALUE_COUNT] = {
	[VALUE_SAMPLES] = {.name = "samples", .unit = "count"},
	[VALUE_WALL] = {.name = "wall", .unit = "nanoseconds"},
	[VALUE_RUNNABLE] = {.name = "runnable", .unit = "nanoseconds"},
	[VALUE_GIL] = {.name = "gil", .unit = "nanoseconds"},
	[VALUE_GIL_WAIT] = {.name = "gil_wait", .unit = "nanoseconds"},
	[VALUE_IDLE] = {.name = "idle", .unit = "nanoseconds"},
	[VALUE_UNKNOWN] = {.name = "unknown", .unit = "nanoseconds"},
	[VALUE_GC] = {.name = "gc", .unit = "nanoseconds"},
	[VALUE_EXCEPTION] = {.name = "exception", .unit = "nanoseconds"},
	[VALUE_CPU] = {.name = "cpu", .unit = "nanoseconds"},
	[VALUE_RUN_WAIT] = {.name = "run_wait", .unit = "nanoseconds"},
};

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	for (uint32_t i = 0; i < profile->thread_count; i++) {
		free(profile->threads[i].nodes);
		free(profile->threads[i].runs);
		free(profile->threads[i].name);
	}
	for (uint32_t i = 0; i < profile->process_count; i++)
		free(profile->processes[i].name);
	for (uint32_t i = 0; i < profile->note_count; i++)
		free(profile->notes[i].label);
	free(profile->notes);
	named_free(profile->named);
	free(profile->threads);
	free(profile->processes);
	free(profile->symbols);
	free(profile->strings);
	free(profile->value_strings);
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

bool profile_has(const struct profile *profile, enum value_index value)
{
	const struct value_type *have = &profile->values[value], *ours = &profile_value_types[value];

	return have->name && strcmp(have->name, ours->name) == 0 && strcmp(have->unit, ours->unit) == 0;
}

enum value_index profile_weight(const struct profile *profile)
{
	return profile->values[VALUE_WALL].name ? VALUE_WALL : VALUE_SAMPLES;
}

enum value_index profile_counted(const struct profile *profile)
{
	return profile->uncounted ? profile_weight(profile) : VALUE_SAMPLES;
}

void values_add(uint64_t values[VALUE_COUNT], uint64_t count, uint64_t weight_ns, unsigned status)
{
	static const uint8_t status_values[][2] = {
		{STATUS_RUNNABLE, VALUE_RUNNABLE},       {STATUS_GIL, VALUE_GIL},         {STATUS_GIL_WAIT, VALUE_GIL_WAIT},
		{STATUS_IDLE, VALUE_IDLE},           {STATUS_UNKNOWN, VALUE_UNKNOWN}, {STATUS_GC, VALUE_GC},
		{STATUS_EXCEPTION, VALUE_EXCEPTION},
	};

	values[VALUE_SAMPLES] += count;
	values[VALUE_WALL] += weight_ns;
	for (size_t i = 0; i < sizeof(status_values) / sizeof(status_values[0]); i++)
		if (status & status_values[i][0])
			values[status_values[i][1]] += weight_ns;
}

static uint64_t take_from(uint64_t *rest, uint64_t most)
{
	uint64_t taken = most < *rest ? most : *rest;

	*rest -= taken;
	return taken;
}

void values_states(const uint64_t values[VALUE_COUNT], uint64_t ret_states[STATE_COUNT])
{
	/* Bounded each by what is left: an import may know a thread that holds the GIL and asks for it. */
	uint64_t rest = values[VALUE_WALL];

	ret_states[STATE_GIL] = take_from(&rest, values[VALUE_GIL]);
	ret_states[STATE_GIL_WAIT] = take_from(&rest, values[VALUE_GIL_WAIT]);
	ret_states[STATE_IDLE] = take_from(&rest, values[VALUE_IDLE]);
	ret_states[STATE_UNKNOWN] = take_from(&rest, values[VALUE_UNKNOWN]);
	ret_states[STATE_RUNNABLE] = rest;
}

void node_add(struct node *node, uint64_t count, uint64_t weight_ns, unsigned status)
{
	values_add(node->self, count, weight_ns, status);
}

void left_out_add(struct left_out *left_out, const uint64_t values[VALUE_COUNT])
{
	left_out->wall += values[VALUE_WALL];
	left_out->cpu += values[VALUE_CPU];
	left_out->run_wait += values[VALUE_RUN_WAIT];
}

uint64_t profile_sum(const struct profile *profile, enum value_index value)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < profile->thread_count; i++)
		for (uint32_t j = 0; j < profile->threads[i].node_count; j++)
			sum += profile->threads[i].nodes[j].self[value];
	return sum;
}

void rec_facts_add(struct rec_facts *sum, const struct rec_facts *facts)
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
	sum->ticks_credited += facts->ticks_credited;
	sum->ticks_saved += facts->ticks_saved;
	sum->near += facts->near;
	sum->native += facts->native;
	sum->native_cut += facts->native_cut;
	sum->native_mismatched += facts->native_mismatched;
	sum->native_failed += facts->native_failed;
	sum->stops += facts->stops;
	sum->stops_given_up += facts->stops_given_up;
	sum->eintr_risk += facts->eintr_risk;
	sum->stop_ns += facts->stop_ns;
	if (sum->stop_max_ns < facts->stop_max_ns)
		sum->stop_max_ns = facts->stop_max_ns;
	for (int i = 0; i < STOP_BINS; i++)
		sum->stop_bins[i] += facts->stop_bins[i];
	for (int i = 0; i < LOSS_CAUSES; i++)
		sum->lost[i] += facts->lost[i];
	for (int i = 0; i < RETRY_CAUSES; i++)
		sum->retries[i] += facts->retries[i];
}

void profile_facts(const struct profile *profile, struct rec_facts *ret_facts)
{
	struct rec_facts sum = {0};

	/* A process that was just attached may have no facts yet, nor an interval. */
	for (uint32_t i = 0; i < profile->process_count; i++) {
		if (!sum.interval_ns)
			sum.interval_ns = profile->processes[i].facts.interval_ns;
		rec_facts_add(&sum, &profile->processes[i].facts);
	}
	*ret_facts = sum;
}
