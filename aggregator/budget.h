/* SPDX-License-Identifier: Apache-2.0 */
/* The bound on the aggregator's memory: what is kept of trees and symbols is charged here. */
#ifndef SAMPLED_AGGREGATOR_BUDGET_H
#define SAMPLED_AGGREGATOR_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct budget {
	uint64_t used_bytes;
	uint64_t max_bytes; /* 0: none */
};

/* Whether `bytes` more still fit; charges them if so. */
static inline bool budget_take(struct budget *budget, uint64_t bytes)
{
	if (budget->max_bytes && budget->used_bytes + bytes > budget->max_bytes)
		return false;
	budget->used_bytes += bytes;
	return true;
}

/* Charges what cannot be refused without losing track of the stream: it leaves less for trees. */
static inline void budget_charge(struct budget *budget, uint64_t bytes)
{
	budget->used_bytes += bytes;
}

static inline void budget_give(struct budget *budget, uint64_t bytes)
{
	budget->used_bytes -= bytes;
}

#endif
