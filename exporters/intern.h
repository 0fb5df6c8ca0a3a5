/* SPDX-License-Identifier: Apache-2.0 */
/* Sets that number what is put in, from 0 in the order of first appearance: one of texts, one of pairs of numbers. */
#ifndef SAMPLED_EXPORTERS_INTERN_H
#define SAMPLED_EXPORTERS_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* What both return without memory; the set stays as it was. */
#define INTERN_FAILED UINT32_MAX

struct intern_slots {
	uint32_t *slots; /* open addressing: index + 1, 0 empty */
	size_t room;     /* a power of two, or 0 */
};

struct pair {
	uint32_t a, b;
};

struct pair_set {         /* all zero: empty */
	struct buf pairs; /* struct pair */
	uint32_t count;
	struct intern_slots table;
};

struct text_entry {
	size_t text_off;
	uint64_t hash;
	uint32_t bytes;
};

struct text_set {           /* all zero: empty */
	struct buf texts;   /* each ends in a NUL */
	struct buf entries; /* struct text_entry */
	uint32_t count;
	struct intern_slots table;
};

uint32_t pair_set_add(struct pair_set *set, uint32_t a, uint32_t b);
/* INTERN_FAILED: it is not in the set. */
uint32_t pair_set_find(const struct pair_set *set, uint32_t a, uint32_t b);
struct pair pair_set_get(const struct pair_set *set, uint32_t index);
void pair_set_release(struct pair_set *set);

uint32_t text_set_add(struct text_set *set, const char *text, size_t bytes);
/* Valid until the next add. ret_bytes may be NULL. */
const char *text_set_get(const struct text_set *set, uint32_t index, size_t *ret_bytes);
void text_set_release(struct text_set *set);

#endif
