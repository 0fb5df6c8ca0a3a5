/* SPDX-License-Identifier: Apache-2.0 */
/* The units of debug data by their addresses, and the functions in those that were asked about. Part of names_dwarf.c. */
#ifndef SAMPLED_EXPORTERS_NAMES_UNITS_H
#define SAMPLED_EXPORTERS_NAMES_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/names_library.h"

struct code_range {
	uint64_t low, high;
	uint32_t index; /* of a unit, or of a function in it */
};

/* A function, or what is inlined in one. */
struct debug_code {
	uint64_t die_off;
	uint32_t end;         /* of the entries below it, which follow it */
	uint32_t first_range; /* … in the unit's inner ranges */
	uint32_t range_count;
	bool inlined;
};

struct debug_unit {
	uint64_t die_off;
	bool walked;
	struct debug_code *codes;
	uint32_t code_count, code_room;
	struct code_range *inner; /* ranges of all entries */
	uint32_t inner_count, inner_room;
	struct code_range *outer; /* those of functions, sorted */
	uint32_t outer_count;
};

struct debug_units {
	struct debug_unit *items;
	uint32_t count, room;
	struct code_range *ranges; /* sorted */
	uint32_t range_count, range_room;
	uint64_t kept; /* entries and ranges of all units that were walked */
};

/* 0, -ENODATA: there is no unit with code. */
int debug_units_read(struct debug_units *units, const struct dwarf_library *lib, Dwarf *dwarf);
/* The unit of an address, and the path to it: the function, then what is inlined there, as offsets of DIEs; depth 0: none. At most room: the
 * outermost. False: no unit. */
bool debug_units_find(struct debug_units *units, const struct dwarf_library *lib, Dwarf *dwarf, uint64_t address,
                      uint64_t *ret_unit_off, uint64_t *path, size_t room, size_t *ret_depth);
void debug_units_release(struct debug_units *units);

#endif
