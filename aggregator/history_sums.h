/* SPDX-License-Identifier: Apache-2.0 */
/* Values by node, and differences of facts, added up: of a slice that is open, of several that become one, of a window. */
#ifndef SAMPLED_AGGREGATOR_HISTORY_SUMS_H
#define SAMPLED_AGGREGATOR_HISTORY_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/budget.h"
#include "aggregator/profile.h"
#include "sampler/record.h"

/* What is kept of a slice besides its nodes: how far the counts of rec_facts rose in it, and our own losses. Those that differ most often from
 * what can be foretold come first (history_entry.c). */
enum history_fact {
	FACT_TICKS,
	FACT_SAMPLES,
	FACT_ATTEMPTS,
	FACT_RUNS,
	FACT_UNSAMPLED,
	FACT_OUT_OF_MEMORY, /* samples that found no memory here */
	FACT_READS,
	FACT_MALFORMED, /* samples in records that made no sense */
	FACT_FILTERED,  /* samples that the mode leaves out */
	FACT_READ_SEGMENTS,
	FACT_READ_BYTES,
	FACT_READ_NS,
	FACT_LATE,
	FACT_MISSED,
	FACT_CONFIRMS,
	FACT_DEFERRED,
	FACT_TRUNCATED,
	FACT_SYMBOLS,
	FACT_CREDITED,
	FACT_SAVED,
	FACT_RETRIES,
	FACT_LOST = FACT_RETRIES + RETRY_CAUSES,
	FACT_NATIVE = FACT_LOST + LOSS_CAUSES,
	FACT_NATIVE_CUT,
	FACT_NATIVE_MISMATCHED,
	FACT_NATIVE_FAILED,
	FACT_STOPS, /* how long each was is not kept, only the sum */
	FACT_STOPS_GIVEN_UP,
	FACT_EINTR_RISK,
	FACT_STOP_NS,
	FACT_NEAR,
	FACT_LEFT_WALL, /* time that the mode leaves out, or that found no memory */
	FACT_LEFT_CPU,
	FACT_LEFT_RUN_WAIT,
	FACT_COUNT /* at most 64: history_entry.c has a bit for each */
};

/* Adds how far `now` is from `before`. */
void facts_add_difference(uint64_t facts[FACT_COUNT], const struct rec_facts *now, const struct rec_facts *before);
/* Writes the counts; other fields are left as they are. */
void facts_to_record(const uint64_t facts[FACT_COUNT], struct rec_facts *record);

/* CPU time as the kernel counts it is equal to nothing else, and would not pack: only the nodes of threads have it, and a profile spreads it over what the
 * thread was at (history_profile.c). */
enum { HISTORY_VALUES = VALUE_COUNT };

struct node_values {
	uint32_t node;
	uint64_t values[HISTORY_VALUES];
};

/* All zeros is an empty one, whose memory nobody asks after. */
struct sums {
	struct budget *budget;     /* what its memory is charged to, never refused; NULL: none */
	struct node_values *items; /* owned; each node once, in no order before sums_sort() */
	uint32_t count, room;
	uint32_t *places; /* owned; of each node: its index in items + 1; 0: it has none */
	uint32_t place_room;
	uint64_t facts[FACT_COUNT];
};

void sums_release(struct sums *sums);
/* Empty again, with its memory. */
void sums_clear(struct sums *sums);
/* The values of a node, zeros when it is new; NULL: no memory. */
uint64_t *sums_at(struct sums *sums, uint32_t node);
/* Puts the items in the order of their nodes. */
void sums_sort(struct sums *sums);
/* The nodes have other numbers now, none above what it was, in the same order. */
void sums_renumber(struct sums *sums, const uint32_t *map);
bool sums_is_empty(const struct sums *sums);
/* Of VALUE_SAMPLES. */
uint64_t sums_samples(const struct sums *sums);

#endif
