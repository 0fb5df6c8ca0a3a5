/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/history_entry.h"

#include <errno.h>
#include <stdlib.h>

#include "aggregator/varint.h"
#include "base/hash.h"

enum {
	HEAD_PATTERN = 1,
	HEAD_FACTS = 2,
	HEAD_GAP_SHIFT = 2,
	HEAD_GAP_MAX = 63,
	TAG_SAME = 1,
	TAG_PLAIN = 2, /* every value is 0 or the weight */
	TAG_SHIFT = 2,
	STATES = HISTORY_VALUES - VALUE_RUNNABLE,
	PATTERN_NODES_MAX = 256,
	PATTERNS_MAX = 4096,
	NODE_BYTES_MAX = (5 + STATES) * VARINT_BYTES_MAX,
	ENTRY_BYTES_MAX = (8 + FACT_COUNT) * VARINT_BYTES_MAX, /* besides the nodes */
};

#define PATTERN_NONE UINT32_MAX

void patterns_release(struct patterns *patterns, struct budget *budget)
{
	for (uint32_t i = 0; i < patterns->count; i++)
		free(patterns->items[i]);
	free(patterns->items);
	budget_give(budget, patterns->bytes);
	*patterns = (struct patterns){0};
}

/* Which states of a node are not 0, and whether all of them are the weight. */
static uint32_t states_present(const uint64_t values[HISTORY_VALUES], bool *ret_plain)
{
	uint32_t present = 0;

	*ret_plain = true;
	for (int v = 0; v < STATES; v++) {
		uint64_t value = values[VALUE_RUNNABLE + v];

		if (value == 0)
			continue;
		present |= 1u << v;
		*ret_plain &= value == values[VALUE_WALL];
	}
	return present;
}

/* A hash of the sums' shape, never 0; 0: they are none that a pattern could have. */
static uint32_t shape_hash(const struct sums *sums)
{
	uint64_t hash = sums->count;

	if (sums->count == 0 || sums->count > PATTERN_NODES_MAX)
		return 0;
	for (uint32_t i = 0; i < sums->count; i++) {
		const struct node_values *item = &sums->items[i];
		bool plain;
		uint32_t present = states_present(item->values, &plain);

		if (!plain || item->values[VALUE_SAMPLES] != sums->items[0].values[VALUE_SAMPLES] ||
		    item->values[VALUE_WALL] != sums->items[0].values[VALUE_WALL])
			return 0;
		hash = hash_combine(hash, (uint64_t)item->node << STATES | present);
	}
	return (uint32_t)hash | 1;
}

static bool has_shape(const struct pattern *pattern, const struct sums *sums)
{
	for (uint32_t i = 0; i < sums->count; i++) {
		bool plain;

		if (pattern->nodes[i].node != sums->items[i].node ||
		    pattern->nodes[i].present != states_present(sums->items[i].values, &plain))
			return false;
	}
	return true;
}

static uint32_t add_pattern(struct patterns *patterns, struct budget *budget, const struct sums *sums, uint32_t hash)
{
	uint64_t bytes = sizeof(struct pattern) + sums->count * sizeof(struct pattern_node) + 2 * sizeof(void *);
	struct pattern *pattern, **items;

	if (patterns->count == patterns->room) {
		uint32_t room = patterns->room ? patterns->room * 2 : 2;

		items = realloc(patterns->items, room * sizeof(struct pattern *));
		if (!items)
			return PATTERN_NONE;
		patterns->items = items;
		patterns->room = room;
	}
	pattern = calloc(1, sizeof(*pattern) + sums->count * sizeof(*pattern->nodes));
	if (!pattern)
		return PATTERN_NONE;
	pattern->hash = hash;
	pattern->count = sums->count;
	pattern->samples = sums->items[0].values[VALUE_SAMPLES];
	pattern->weight_ns = sums->items[0].values[VALUE_WALL];
	for (uint32_t i = 0; i < sums->count; i++) {
		bool plain;

		pattern->nodes[i].node = sums->items[i].node;
		pattern->nodes[i].present = states_present(sums->items[i].values, &plain);
	}
	budget_charge(budget, bytes);
	patterns->bytes += bytes;
	patterns->items[patterns->count] = pattern;
	return patterns->count++;
}

/* The pattern of the sums' shape, or PATTERN_NONE. What is seen the second time becomes one. */
static uint32_t find_pattern(struct patterns *patterns, struct budget *budget, const struct sums *sums)
{
	uint32_t hash = shape_hash(sums), last = patterns->last_hash;

	patterns->last_hash = hash;
	if (!hash)
		return PATTERN_NONE;
	for (uint32_t i = patterns->count; i-- > 0;)
		if (patterns->items[i]->hash == hash && patterns->items[i]->count == sums->count &&
		    has_shape(patterns->items[i], sums))
			return i;
	if (hash != last || patterns->count == PATTERNS_MAX)
		return PATTERN_NONE;
	return add_pattern(patterns, budget, sums, hash);
}

static void foretell(uint64_t facts[FACT_COUNT], uint64_t nodes, uint64_t samples, uint64_t most)
{
	for (int i = 0; i < FACT_COUNT; i++)
		facts[i] = 0;
	facts[FACT_TICKS] = most;
	facts[FACT_SAMPLES] = samples; /* and attempts: relative_to() */
	facts[FACT_RUNS] = nodes;
}

/* What is foretold of a fact, given `facts`: those that it hangs on are right already. */
static uint64_t foretold(const uint64_t base[FACT_COUNT], const uint64_t facts[FACT_COUNT], int fact)
{
	uint64_t sum = base[fact];

	if (fact == FACT_SAMPLES)
		return sum + facts[FACT_OUT_OF_MEMORY] + facts[FACT_MALFORMED] + facts[FACT_FILTERED];
	if (fact == FACT_CREDITED &&
	    facts[FACT_READS] < facts[FACT_TICKS]) /* a process that is not read all the time is parked */
		return facts[FACT_TICKS] - facts[FACT_READS];
	if (fact == FACT_ATTEMPTS) {
		sum = facts[FACT_SAMPLES];
		for (int i = 0; i < LOSS_CAUSES; i++)
			sum += facts[FACT_LOST + i];
	}
	return sum;
}

static uint8_t *put_facts(uint8_t *at, const struct sums *sums, const uint64_t base[FACT_COUNT], uint64_t differ)
{
	at = varint_put(at, differ);
	for (int i = 0; i < FACT_COUNT; i++)
		if (differ >> i & 1)
			at = varint_put(at, varint_zigzag(sums->facts[i] - foretold(base, sums->facts, i)));
	return at;
}

/* NULL before: there is none. */
static uint8_t *put_node(uint8_t *at, const struct node_values *item, const struct node_values *before)
{
	const uint64_t *values = item->values;
	bool plain, same = before && before->values[VALUE_SAMPLES] == values[VALUE_SAMPLES] &&
	                   before->values[VALUE_WALL] == values[VALUE_WALL];
	uint32_t present = states_present(values, &plain), equal = 0;

	at = varint_put(at, item->node - (before ? before->node : 0));
	at = varint_put(at, present << TAG_SHIFT | (same ? TAG_SAME : 0) | (plain ? TAG_PLAIN : 0));
	if (!same) {
		at = varint_put(at, values[VALUE_SAMPLES]);
		at = varint_put(at, values[VALUE_WALL]);
	}
	if (plain)
		return at;
	for (int v = 0; v < STATES; v++)
		if (present >> v & 1 && values[VALUE_RUNNABLE + v] == values[VALUE_WALL])
			equal |= 1u << v;
	at = varint_put(at, equal);
	for (int v = 0; v < STATES; v++)
		if ((present & ~equal) >> v & 1)
			at = varint_put(at, values[VALUE_RUNNABLE + v]);
	return at;
}

/* The bytes of the nodes behind their length, of which the room is kept so that it need not be known before. */
static uint8_t *put_nodes(uint8_t *at, const struct sums *sums)
{
	uint8_t *start = at + VARINT_BYTES_MAX, *end = start, *body;

	for (uint32_t i = 0; i < sums->count; i++)
		end = put_node(end, &sums->items[i], i > 0 ? &sums->items[i - 1] : NULL);
	body = varint_put(at, (uint64_t)(end - start));
	for (const uint8_t *from = start; from < end;)
		*body++ = *from++;
	return body;
}

int entry_write(struct buf *to, struct patterns *patterns, struct budget *budget, const struct sums *sums, uint64_t gap)
{
	uint8_t *start = buf_reserve(to, ENTRY_BYTES_MAX + (size_t)sums->count * NODE_BYTES_MAX), *at = start;
	uint32_t pattern = find_pattern(patterns, budget, sums);
	uint64_t base[FACT_COUNT], nodes = 0, most = 0, differ = 0;

	if (!start)
		return -ENOMEM;
	for (uint32_t i = 0; i < sums->count; i++) {
		nodes += sums->items[i].values[VALUE_SAMPLES] > 0;
		if (most < sums->items[i].values[VALUE_SAMPLES])
			most = sums->items[i].values[VALUE_SAMPLES];
	}
	foretell(base, nodes, sums_samples(sums), most);
	for (int i = 0; i < FACT_COUNT; i++)
		if (sums->facts[i] != foretold(base, sums->facts, i))
			differ |= UINT64_C(1) << i;
	*at++ = (uint8_t)((gap < HEAD_GAP_MAX ? gap : HEAD_GAP_MAX) << HEAD_GAP_SHIFT | (differ ? HEAD_FACTS : 0) |
	                  (pattern != PATTERN_NONE ? HEAD_PATTERN : 0));
	if (gap >= HEAD_GAP_MAX)
		at = varint_put(at, gap - HEAD_GAP_MAX);
	if (pattern != PATTERN_NONE) {
		const uint64_t *values = sums->items[0].values;

		at = varint_put(at, pattern);
		at = varint_put(at, varint_zigzag(values[VALUE_SAMPLES] - patterns->items[pattern]->samples));
		at = varint_put(at, varint_zigzag(values[VALUE_WALL] - patterns->items[pattern]->weight_ns));
	} else {
		at = put_nodes(at, sums);
	}
	if (differ)
		at = put_facts(at, sums, base, differ);
	to->bytes += (size_t)(at - start);
	return 0;
}

struct entry entry_read(const uint8_t *at)
{
	uint8_t head = *at++;
	struct entry entry = {
		.gap = head >> HEAD_GAP_SHIFT, .by_pattern = head & HEAD_PATTERN, .has_facts = head & HEAD_FACTS};

	if (entry.gap == HEAD_GAP_MAX)
		entry.gap += varint_get(&at);
	if (entry.by_pattern) {
		entry.pattern = (uint32_t)varint_get(&at);
		entry.more_samples = varint_unzigzag(varint_get(&at));
		entry.more_ns = varint_unzigzag(varint_get(&at));
	} else {
		uint64_t bytes = varint_get(&at);

		entry.nodes = at;
		entry.nodes_end = at += bytes;
	}
	entry.facts = at;
	if (entry.has_facts)
		for (uint64_t differ = varint_get(&at); differ; differ &= differ - 1)
			varint_get(&at);
	entry.end = at;
	return entry;
}

static void get_facts(const struct entry *entry, const uint64_t base[FACT_COUNT], uint64_t ret_facts[FACT_COUNT])
{
	const uint8_t *at = entry->facts;
	uint64_t differ = entry->has_facts ? varint_get(&at) : 0;
	uint64_t differences[FACT_COUNT] = {0};

	for (int i = 0; i < FACT_COUNT; i++)
		if (differ >> i & 1)
			differences[i] = varint_unzigzag(varint_get(&at));
	for (int i = 0; i < FACT_COUNT; i++)
		ret_facts[i] =
			i == FACT_SAMPLES || i == FACT_ATTEMPTS || i == FACT_CREDITED ? 0 : base[i] + differences[i];
	ret_facts[FACT_CREDITED] = foretold(base, ret_facts, FACT_CREDITED) + differences[FACT_CREDITED];
	ret_facts[FACT_SAMPLES] = foretold(base, ret_facts, FACT_SAMPLES) + differences[FACT_SAMPLES];
	ret_facts[FACT_ATTEMPTS] = foretold(base, ret_facts, FACT_ATTEMPTS) + differences[FACT_ATTEMPTS];
}

/* The node at *at, which is moved on; *item is the one before, or zeros. */
static void get_node(const uint8_t **at, struct node_values *item)
{
	uint64_t *values = item->values;
	uint32_t tag, present, equal;

	item->node += (uint32_t)varint_get(at);
	tag = (uint32_t)varint_get(at);
	present = tag >> TAG_SHIFT;
	if (!(tag & TAG_SAME)) {
		values[VALUE_SAMPLES] = varint_get(at);
		values[VALUE_WALL] = varint_get(at);
	}
	equal = tag & TAG_PLAIN ? present : (uint32_t)varint_get(at);
	for (int v = 0; v < STATES; v++) {
		uint64_t value = present >> v & 1 ? values[VALUE_WALL] : 0;

		if ((present & ~equal) >> v & 1)
			value = varint_get(at);
		values[VALUE_RUNNABLE + v] = value;
	}
}

/* Walks over the entry's nodes, one a call, from an *item of zeros and *place = 0 on. */
static bool next_node(const struct entry *entry, const struct patterns *patterns, const uint8_t **at, uint32_t *place,
                      struct node_values *item)
{
	const struct pattern *pattern;

	if (!entry->by_pattern) {
		if (*at >= entry->nodes_end)
			return false;
		get_node(at, item);
		return true;
	}
	pattern = patterns->items[entry->pattern];
	if (*place == pattern->count)
		return false;
	item->node = pattern->nodes[*place].node;
	item->values[VALUE_SAMPLES] = pattern->samples + entry->more_samples;
	item->values[VALUE_WALL] = pattern->weight_ns + entry->more_ns;
	for (int v = 0; v < STATES; v++)
		item->values[VALUE_RUNNABLE + v] = pattern->nodes[*place].present >> v & 1 ? item->values[VALUE_WALL] : 0;
	(*place)++;
	return true;
}

uint64_t entry_add(const struct entry *entry, const struct patterns *patterns, const uint32_t *map, struct sums *to)
{
	uint64_t base[FACT_COUNT], facts[FACT_COUNT], nodes = 0, samples = 0, most = 0, lost = 0;
	struct node_values item = {0};
	const uint8_t *at = entry->nodes;
	uint32_t place = 0;

	while (next_node(entry, patterns, &at, &place, &item)) {
		uint64_t *values = sums_at(to, map ? map[item.node] : item.node);

		nodes += item.values[VALUE_SAMPLES] > 0;
		samples += item.values[VALUE_SAMPLES];
		most = most < item.values[VALUE_SAMPLES] ? item.values[VALUE_SAMPLES] : most;
		if (!values)
			lost += item.values[VALUE_SAMPLES];
		for (int v = 0; v < HISTORY_VALUES && values; v++)
			values[v] += item.values[v];
	}
	foretell(base, nodes, samples, most);
	get_facts(entry, base, facts);
	for (int i = 0; i < FACT_COUNT; i++)
		to->facts[i] += facts[i];
	to->facts[FACT_OUT_OF_MEMORY] += lost;
	return lost;
}

void entry_mark(const struct entry *entry, const struct patterns *patterns, uint32_t *marks)
{
	struct node_values item = {0};
	const uint8_t *at = entry->nodes;
	uint32_t place = 0;

	while (next_node(entry, patterns, &at, &place, &item))
		marks[item.node] = 1;
}
