/* SPDX-License-Identifier: Apache-2.0 */
/* Units are found by their ranges. Of a unit that is asked about, the functions and what is inlined in them are walked once and kept as ranges of
 * addresses in pre-order, so that an address costs a search and a few compares instead of a walk of the whole unit. */
#include "exporters/names_dwarf.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/names_library.h"
#include "exporters/names_units.h"

struct debug_data {
	const struct dwarf_library *lib;
	Dwarf *dwarf;
	struct debug_units units;
};

int debug_data_new(struct debug_data **ret_data, Elf *elf)
{
	const struct dwarf_library *lib = names_library_dwarf();
	struct debug_data *d;

	if (!lib)
		return -ENOSYS;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->lib = lib;
	d->dwarf = lib->begin_elf(elf, DWARF_C_READ, NULL);
	if (!d->dwarf || debug_units_read(&d->units, lib, d->dwarf)) {
		debug_data_free(d);
		return -ENODATA;
	}
	*ret_data = d;
	return 0;
}

void debug_data_free(struct debug_data *data)
{
	if (!data)
		return;
	debug_units_release(&data->units);
	if (data->dwarf)
		data->lib->end(data->dwarf);
	free(data);
}

static uint32_t number_of(const struct dwarf_library *lib, Dwarf_Die *die, unsigned attribute, bool integrate)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;
	Dwarf_Attribute *found =
		integrate ? lib->attr_integrate(die, attribute, &attr) : lib->attr(die, attribute, &attr);

	return found && lib->formudata(found, &value) == 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static const char *text_of(const struct dwarf_library *lib, Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute attr;
	Dwarf_Attribute *found = lib->attr_integrate(die, attribute, &attr);
	const char *text = found ? lib->formstring(found) : NULL;

	return text && *text ? text : NULL;
}

static void describe(const struct dwarf_library *lib, Dwarf_Die *die, struct debug_frame *to)
{
	to->name = text_of(lib, die, DW_AT_linkage_name);
	if (!to->name)
		to->name = text_of(lib, die, DW_AT_MIPS_linkage_name);
	if (!to->name)
		to->name = text_of(lib, die, DW_AT_name);
	to->first_line = number_of(lib, die, DW_AT_decl_line, true);
}

static void place_of_line(const struct dwarf_library *lib, Dwarf_Die *unit, uint64_t address, struct debug_frame *to)
{
	Dwarf_Line *line = lib->getsrc_die(unit, address);
	int number;

	if (!line)
		return;
	to->file = lib->linesrc(line, NULL, NULL);
	if (lib->lineno(line, &number) == 0 && number > 0)
		to->line = (uint32_t)number;
}

/* Where a function was called that is inlined. */
static void place_of_call(const struct dwarf_library *lib, Dwarf_Die *unit, Dwarf_Die *inlined, struct debug_frame *to)
{
	uint32_t file = number_of(lib, inlined, DW_AT_call_file, false);
	Dwarf_Files *files;
	size_t count;

	to->line = number_of(lib, inlined, DW_AT_call_line, false);
	if (lib->getsrcfiles(unit, &files, &count) == 0 && file < count)
		to->file = lib->filesrc(files, file, NULL, NULL);
}

size_t debug_data_find(struct debug_data *data, uint64_t address, struct debug_frame *to, size_t room)
{
	const struct dwarf_library *lib = data->lib;
	uint64_t path[DEBUG_FRAMES_MAX];
	Dwarf_Die unit, die;
	uint64_t unit_off;
	const char *folder;
	size_t depth;

	if (room > DEBUG_FRAMES_MAX)
		room = DEBUG_FRAMES_MAX;
	if (!debug_units_find(&data->units, lib, data->dwarf, address, &unit_off, path, room, &depth) ||
	    !lib->offdie(data->dwarf, unit_off, &unit) || room == 0)
		return 0;
	memset(to, 0, (depth ? depth : 1) * sizeof(*to));
	folder = text_of(lib, &unit, DW_AT_comp_dir);
	for (size_t i = 0; i < depth; i++) {
		if (!lib->offdie(data->dwarf, path[i], &die))
			return 0;
		describe(lib, &die, &to[i]);
		if (i > 0)
			place_of_call(lib, &unit, &die, &to[i - 1]);
	}
	place_of_line(lib, &unit, address, &to[depth ? depth - 1 : 0]);
	for (size_t i = 0; i < (depth ? depth : 1); i++)
		to[i].folder = folder;
	return depth ? depth : to[0].line != 0;
}
