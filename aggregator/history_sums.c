/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/history_sums.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define OF(field) offsetof(struct rec_facts, field)

/* Where each fact lies in a record; 0: it is not in there. */
static const size_t offsets[FACT_COUNT] = {
	[FACT_TICKS] = OF(ticks),
	[FACT_SAMPLES] = OF(samples),
	[FACT_ATTEMPTS] = OF(attempts),
	[FACT_RUNS] = OF(runs),
	[FACT_UNSAMPLED] = OF(unsampled_ns),
	[FACT_READS] = OF(reads),
	[FACT_READ_SEGMENTS] = OF(read_segments),
	[FACT_READ_BYTES] = OF(read_bytes),
	[FACT_READ_NS] = OF(read_ns),
	[FACT_LATE] = OF(ticks_late),
	[FACT_MISSED] = OF(ticks_missed),
	[FACT_CONFIRMS] = OF(confirms),
	[FACT_DEFERRED] = OF(deferred),
	[FACT_TRUNCATED] = OF(truncated),
	[FACT_SYMBOLS] = OF(symbols),
	[FACT_CREDITED] = OF(ticks_credited),
	[FACT_SAVED] = OF(ticks_saved),
	[FACT_NATIVE] = OF(native),
	[FACT_NATIVE_CUT] = OF(native_cut),
	[FACT_NATIVE_MISMATCHED] = OF(native_mismatched),
	[FACT_NATIVE_FAILED] = OF(native_failed),
	[FACT_STOPS] = OF(stops),
	[FACT_STOPS_GIVEN_UP] = OF(stops_given_up),
	[FACT_EINTR_RISK] = OF(eintr_risk),
	[FACT_STOP_NS] = OF(stop_ns),
	[FACT_NEAR] = OF(near),
};

static uint64_t *field(struct rec_facts *record, int fact)
{
	if (fact >= FACT_LOST && fact < FACT_LOST + LOSS_CAUSES)
		return &record->lost[fact - FACT_LOST];
	if (fact >= FACT_RETRIES && fact < FACT_RETRIES + RETRY_CAUSES)
		return &record->retries[fact - FACT_RETRIES];
	return offsets[fact] ? (uint64_t *)((char *)record + offsets[fact]) : NULL;
}

void facts_add_difference(uint64_t facts[FACT_COUNT], const struct rec_facts *now, const struct rec_facts *before)
{
	struct rec_facts to = *now, from = *before;

	for (int i = 0; i < FACT_COUNT; i++)
		if (field(&to, i))
			facts[i] += *field(&to, i) - *field(&from, i);
}

void facts_to_record(const uint64_t facts[FACT_COUNT], struct rec_facts *record)
{
	for (int i = 0; i < FACT_COUNT; i++)
		if (field(record, i))
			*field(record, i) = facts[i];
	/* Of the target's whole life, and not of what the counts are of. */
	record->stop_max_ns = 0;
	memset(record->stop_bins, 0, sizeof(record->stop_bins));
}

static void charge(const struct sums *sums, uint64_t bytes)
{
	if (sums->budget)
		budget_charge(sums->budget, bytes);
}

void sums_release(struct sums *sums)
{
	if (sums->budget)
		budget_give(sums->budget, sums->room * sizeof(*sums->items) + sums->place_room * sizeof(*sums->places));
	free(sums->items);
	free(sums->places);
	*sums = (struct sums){.budget = sums->budget};
}

void sums_clear(struct sums *sums)
{
	for (uint32_t i = 0; i < sums->count; i++)
		sums->places[sums->items[i].node] = 0;
	sums->count = 0;
	memset(sums->facts, 0, sizeof(sums->facts));
}

static bool make_place(struct sums *sums, uint32_t node)
{
	uint32_t room = node + node / 4 + 8;
	uint32_t *places;

	if (node < sums->place_room)
		return true;
	places = node < UINT32_MAX / 2 ? realloc(sums->places, room * sizeof(*places)) : NULL;
	if (!places)
		return false;
	memset(places + sums->place_room, 0, (room - sums->place_room) * sizeof(*places));
	charge(sums, (room - sums->place_room) * sizeof(*places));
	sums->places = places;
	sums->place_room = room;
	return true;
}

static bool make_item(struct sums *sums)
{
	uint32_t room = sums->room + sums->room / 2 + 4;
	struct node_values *items;

	if (sums->count < sums->room)
		return true;
	items = realloc(sums->items, room * sizeof(*items));
	if (!items)
		return false;
	charge(sums, (room - sums->room) * sizeof(*items));
	sums->items = items;
	sums->room = room;
	return true;
}

uint64_t *sums_at(struct sums *sums, uint32_t node)
{
	struct node_values *item;

	if (!make_place(sums, node))
		return NULL;
	if (sums->places[node])
		return sums->items[sums->places[node] - 1].values;
	if (!make_item(sums))
		return NULL;
	item = &sums->items[sums->count++];
	*item = (struct node_values){.node = node};
	sums->places[node] = sums->count;
	return item->values;
}

static int by_node(const void *a, const void *b)
{
	uint32_t first = ((const struct node_values *)a)->node, second = ((const struct node_values *)b)->node;

	return first < second ? -1 : first > second;
}

void sums_sort(struct sums *sums)
{
	if (sums->count < 2)
		return;
	qsort(sums->items, sums->count, sizeof(*sums->items), by_node);
	for (uint32_t i = 0; i < sums->count; i++)
		sums->places[sums->items[i].node] = i + 1;
}

void sums_renumber(struct sums *sums, const uint32_t *map)
{
	for (uint32_t i = 0; i < sums->count; i++)
		sums->places[sums->items[i].node] = 0;
	for (uint32_t i = 0; i < sums->count; i++) {
		sums->items[i].node = map[sums->items[i].node];
		sums->places[sums->items[i].node] = i + 1;
	}
}

bool sums_is_empty(const struct sums *sums)
{
	uint64_t any = sums->count;

	for (int i = 0; i < FACT_COUNT; i++)
		any |= sums->facts[i];
	return any == 0;
}

uint64_t sums_samples(const struct sums *sums)
{
	uint64_t samples = 0;

	for (uint32_t i = 0; i < sums->count; i++)
		samples += sums->items[i].values[VALUE_SAMPLES];
	return samples;
}
