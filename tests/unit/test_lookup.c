/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "aggregator/lookup.h"
#include "base/hash.h"

enum { VALUES = 500 };

/* How often the table gives this value for this hash. */
static unsigned found(const struct lookup *lookup, uint32_t hash, uint32_t value)
{
	uint32_t at = hash;
	unsigned times = 0;
	uint32_t next;

	while ((next = lookup_next(lookup, hash, &at)) != LOOKUP_NONE)
		times += next == value;
	return times;
}

/* Entries come and go at random, many under one hash and under neighbouring ones; each is found exactly while it is there. */
Test(lookup, holds_what_was_added_and_not_removed)
{
	struct lookup lookup = {0};
	bool present[VALUES] = {false};
	uint32_t count = 0;

	cr_assert_eq(found(&lookup, 1, 1), 0);
	for (uint64_t step = 0; step < 40000; step++) {
		uint32_t value = (uint32_t)(hash_u64(step + 1) % VALUES);
		uint32_t hash = value % 3 ? value / 7 : lookup_hash_id(value);

		if (present[value])
			lookup_remove(&lookup, hash, value);
		else
			cr_assert_eq(lookup_add(&lookup, hash, value), 0);
		present[value] = !present[value];
		count = present[value] ? count + 1 : count - 1;
		cr_assert_eq(lookup.used, count);
		for (uint32_t i = (uint32_t)(step % 97); i < VALUES; i += 97)
			cr_assert_eq(found(&lookup, i % 3 ? i / 7 : lookup_hash_id(i), i), present[i], "value %u, step %lu", i,
			             (unsigned long)step);
	}
	lookup_release(&lookup);
}

Test(lookup, ids_need_no_comparison)
{
	struct lookup lookup = {0};

	for (uint32_t id = 1; id <= 100000; id++)
		cr_assert_eq(lookup_add(&lookup, lookup_hash_id(id), id + 7), 0);
	for (uint32_t id = 1; id <= 100000; id++)
		cr_assert_eq(lookup_id(&lookup, id), id + 7);
	cr_assert_eq(lookup_id(&lookup, 0), LOOKUP_NONE);
	cr_assert_eq(lookup_id(&lookup, 100001), LOOKUP_NONE);
	cr_assert_geq((uint64_t)100000 * LOOKUP_ENTRY_BYTES, ((uint64_t)lookup.mask + 1) * sizeof(*lookup.slots));
	lookup_release(&lookup);
}
