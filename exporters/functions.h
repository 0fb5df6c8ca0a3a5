/* SPDX-License-Identifier: Apache-2.0 */
/* A profile folded by function: self and total values, recursion counted once in the total. */
#ifndef SAMPLED_EXPORTERS_FUNCTIONS_H
#define SAMPLED_EXPORTERS_FUNCTIONS_H

#include <stdint.h>

#include "aggregator/profile.h"
#include "exporters/ranking.h"

struct function {
	uint32_t symbol; /* index into profile.symbols */
	uint64_t self[VALUE_COUNT];
	uint64_t total[VALUE_COUNT];
};

/* All functions that occur, the largest self first, by `by` (then total, then symbol). The array is the caller's to free.
 * 0 or -ENOMEM. */
int functions_make(struct function **ret_functions, uint32_t *ret_count, const struct profile *profile,
                   enum value_index by);
/* The same, in the order of a ranking. */
int functions_rank(struct function **ret_functions, uint32_t *ret_count, const struct profile *profile,
                   const struct ranking *ranking);

#endif
