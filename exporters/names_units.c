/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names_units.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	UNITS_MAX = 1 << 18,
	RANGES_MAX = 1 << 21,
	DEPTH_MAX = 100,     /* of DIEs in one another */
	KEPT_MAX = 6 << 20,  /* entries and ranges: from there on what was walked is forgotten */
	DIES_MAX = 20 << 20, /* of one unit */
	LOOK_BACK = 32,      /* ranges that begin before an address and may hold it */
};

static bool append_range(struct code_range **items, uint32_t *count, uint32_t *room, const struct code_range *range)
{
	if (*count == *room) {
		uint32_t more = *room ? *room * 2 : 64;
		struct code_range *grown = more <= RANGES_MAX ? realloc(*items, more * sizeof(*grown)) : NULL;

		if (!grown)
			return false;
		*items = grown;
		*room = more;
	}
	(*items)[(*count)++] = *range;
	return true;
}

static int compare_ranges(const void *left, const void *right)
{
	const struct code_range *a = left, *b = right;

	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	/* The longer one is around the shorter. */
	return a->high > b->high ? -1 : a->high < b->high ? 1 : 0;
}

/* The last range that begins at or before the address and holds it. */
static const struct code_range *find_range(const struct code_range *ranges, uint32_t count, uint64_t address)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ranges[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (unsigned back = 0; back < LOOK_BACK && low > 0; back++)
		if (address < ranges[--low].high)
			return &ranges[low];
	return NULL;
}

/* --- units --- */

static bool add_unit(struct debug_units *units, const struct dwarf_library *lib, Dwarf_Die *die)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	if (units->count == units->room) {
		uint32_t room = units->room ? units->room * 2 : 64;
		struct debug_unit *items = room <= UNITS_MAX ? realloc(units->items, room * sizeof(*items)) : NULL;

		if (!items)
			return false;
		units->items = items;
		units->room = room;
	}
	units->items[units->count] = (struct debug_unit){.die_off = lib->dieoffset(die)};
	while ((at = lib->ranges(die, at, &base, &low, &high)) > 0)
		if (low < high && !append_range(&units->ranges, &units->range_count, &units->range_room,
		                                &(struct code_range){low, high, units->count}))
			return false;
	units->count++;
	return true;
}

int debug_units_read(struct debug_units *units, const struct dwarf_library *lib, Dwarf *dwarf)
{
	Dwarf_Off at = 0, next;
	size_t head_bytes;

	while (lib->next_unit(dwarf, at, &next, &head_bytes, NULL, NULL, NULL, NULL, NULL, NULL) == 0 && next > at) {
		Dwarf_Die die;

		if (lib->offdie(dwarf, at + head_bytes, &die) && lib->tag(&die) == DW_TAG_compile_unit &&
		    !add_unit(units, lib, &die))
			break;
		at = next;
	}
	if (units->range_count == 0)
		return -ENODATA;
	qsort(units->ranges, units->range_count, sizeof(units->ranges[0]), compare_ranges);
	return 0;
}

static void forget_unit(struct debug_unit *unit)
{
	free(unit->codes);
	free(unit->inner);
	free(unit->outer);
	*unit = (struct debug_unit){.die_off = unit->die_off};
}

void debug_units_release(struct debug_units *units)
{
	for (uint32_t i = 0; i < units->count; i++)
		forget_unit(&units->items[i]);
	free(units->items);
	free(units->ranges);
	*units = (struct debug_units){0};
}

/* --- the functions of one --- */

struct walk {
	const struct dwarf_library *lib;
	struct debug_unit *unit;
	uint32_t dies;
	bool full; /* at a bound, or no memory */
};

/* Whether DIEs of this kind can have code, or functions, below them. */
static bool is_scope(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type: /* Rust has methods there */
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return true;
	default:
		return false;
	}
}

/* An entry for a function that has code; false: it has none, or there is no room. */
static bool add_code(struct walk *w, Dwarf_Die *die, bool inlined)
{
	struct debug_unit *unit = w->unit;
	struct debug_code code = {
		.die_off = w->lib->dieoffset(die), .first_range = unit->inner_count, .inlined = inlined};
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = w->lib->ranges(die, at, &base, &low, &high)) > 0)
		if (low < high && !append_range(&unit->inner, &unit->inner_count, &unit->inner_room,
		                                &(struct code_range){low, high, unit->code_count})) {
			w->full = true;
			return false;
		}
	code.range_count = unit->inner_count - code.first_range;
	if (code.range_count == 0)
		return false;
	if (unit->code_count == unit->code_room) {
		uint32_t room = unit->code_room ? unit->code_room * 2 : 64;
		struct debug_code *codes = room <= RANGES_MAX ? realloc(unit->codes, room * sizeof(*codes)) : NULL;

		if (!codes) {
			w->full = true;
			return false;
		}
		unit->codes = codes;
		unit->code_room = room;
	}
	unit->codes[unit->code_count++] = code;
	return true;
}

static void walk_children(struct walk *w, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;
	int more = depth < DEPTH_MAX ? w->lib->child(parent, &die) : 1;

	for (; more == 0 && !w->full; more = w->lib->siblingof(&die, &die)) {
		int tag = w->lib->tag(&die);
		uint32_t own = w->unit->code_count;
		bool added = false;

		if (++w->dies > DIES_MAX)
			w->full = true;
		if (!is_scope(tag))
			continue;
		if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine)
			added = add_code(w, &die, tag == DW_TAG_inlined_subroutine);
		walk_children(w, &die, depth + 1);
		if (added)
			w->unit->codes[own].end = w->unit->code_count;
	}
}

/* Ranges of functions, sorted for the search. */
static bool sort_functions(struct debug_unit *unit)
{
	unit->outer = malloc((unit->inner_count + (size_t)1) * sizeof(*unit->outer));
	if (!unit->outer)
		return false;
	for (uint32_t i = 0; i < unit->inner_count; i++)
		if (!unit->codes[unit->inner[i].index].inlined)
			unit->outer[unit->outer_count++] = unit->inner[i];
	qsort(unit->outer, unit->outer_count, sizeof(unit->outer[0]), compare_ranges);
	return true;
}

static bool walk_unit(struct debug_units *units, const struct dwarf_library *lib, Dwarf *dwarf, struct debug_unit *unit)
{
	struct walk w = {.lib = lib, .unit = unit};
	Dwarf_Die die;

	if (units->kept > KEPT_MAX) {
		for (uint32_t i = 0; i < units->count; i++)
			forget_unit(&units->items[i]);
		units->kept = 0;
	}
	unit->walked = true;
	if (!lib->offdie(dwarf, unit->die_off, &die))
		return false;
	walk_children(&w, &die, 0);
	units->kept += unit->code_count + (uint64_t)unit->inner_count * 2;
	return sort_functions(unit);
}

static bool holds(const struct debug_unit *unit, const struct debug_code *code, uint64_t address)
{
	for (uint32_t i = 0; i < code->range_count; i++) {
		const struct code_range *range = &unit->inner[code->first_range + i];

		if (range->low <= address && address < range->high)
			return true;
	}
	return false;
}

bool debug_units_find(struct debug_units *units, const struct dwarf_library *lib, Dwarf *dwarf, uint64_t address,
                      uint64_t *ret_unit_off, uint64_t *path, size_t room, size_t *ret_depth)
{
	const struct code_range *range = find_range(units->ranges, units->range_count, address), *function;
	struct debug_unit *unit;
	uint32_t end;

	if (!range)
		return false;
	unit = &units->items[range->index];
	if (!unit->walked && !walk_unit(units, lib, dwarf, unit))
		return false;
	*ret_unit_off = unit->die_off;
	*ret_depth = 0;
	function = unit->outer ? find_range(unit->outer, unit->outer_count, address) : NULL;
	if (!function || room == 0)
		return true;
	path[(*ret_depth)++] = unit->codes[function->index].die_off;
	end = unit->codes[function->index].end;
	for (uint32_t i = function->index + 1; i < end && *ret_depth < room;) {
		const struct debug_code *code = &unit->codes[i];

		if (code->inlined && holds(unit, code, address)) {
			path[(*ret_depth)++] = code->die_off;
			end = code->end;
			i++;
		} else {
			i = code->end > i ? code->end : i + 1;
		}
	}
	return true;
}
