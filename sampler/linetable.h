/* SPDX-License-Identifier: Apache-2.0 */
/* Line tables of code objects: from an instruction to the source line. Pure functions over bytes that are hostile.
 *
 * Formats: co_lnotab to 3.9 (Objects/lnotab_notes.txt), co_linetable of 3.10 (the same file), location table of 3.11+
 * (Objects/locations.md; in newer trees InternalDocs/code_objects.md). */
#ifndef SAMPLED_SAMPLER_LINETABLE_H
#define SAMPLED_SAMPLER_LINETABLE_H

#include <stddef.h>
#include <stdint.h>

#include "sampler/pyabi/pyabi.h"

/* One entry of a decoded table: from `start` (byte offset in the bytecode) up to the next entry's, the line is `line`;
 * 0: none. */
struct line_range {
	uint32_t start;
	uint32_t line;
};

/* Decodes a whole table into ret[room], sorted by start, equal neighbours joined, the first at 0. Returns the number of entries the
 * table has (more than room: only room were written), or -EPROTO when the bytes end inside an entry. */
int64_t linetable_decode(enum py_lines format, const uint8_t *table, size_t bytes, uint32_t first_line,
                         struct line_range *ret, size_t room);

/* The line at a byte offset, by binary search; 0: none. offset below 0 (nothing ran yet): first_line. */
uint32_t linetable_find(const struct line_range *ranges, size_t count, int64_t offset, uint32_t first_line);

#endif
