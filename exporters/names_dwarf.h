/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and inlined functions by DWARF 2 to 5, with libdw. Hostile input: runs in the naming child. */
#ifndef SAMPLED_EXPORTERS_NAMES_DWARF_H
#define SAMPLED_EXPORTERS_NAMES_DWARF_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

struct debug_data;

struct debug_frame {
	const char *name;    /* as in the data, perhaps mangled; NULL: none. In the Elf's or libdw's memory */
	const char *file;    /* NULL: none */
	const char *folder;  /* what `file` is relative to, where it is; NULL: not told */
	uint32_t first_line; /* 0: unknown */
	uint32_t line;
};

enum { DEBUG_FRAMES_MAX = 64 };

/* Of a file with .debug_info, which must outlive it. 0, -ENODATA (none in it), -ENOSYS (no libdw) or -ENOMEM. */
int debug_data_new(struct debug_data **ret_data, Elf *elf);
void debug_data_free(struct debug_data *data);

/* The function around an address and what is inlined there, outermost first, at most `room`; a line without a function is one frame without a
 * name. 0: nothing is known. */
size_t debug_data_find(struct debug_data *data, uint64_t address, struct debug_frame *to, size_t room);

#endif
