/* SPDX-License-Identifier: Apache-2.0 */
/* .eh_frame_hdr and .eh_frame of one file: from an address to the rules that lead to its caller. Addresses are those the file speaks of.
 * Format: Linux Standard Base Core, "Exception Frames"; DWARF 5, section 6.4. All of it may be hostile. */
#ifndef SAMPLED_SAMPLER_UNWIND_TABLES_H
#define SAMPLED_SAMPLER_UNWIND_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unwind_piece { /* of a file, as it is loaded */
	uint64_t addr;
	uint32_t bytes;
	const uint8_t *data;
};

enum { UNWIND_PIECES = 2 };

struct unwind_tables {
	struct unwind_piece pieces[UNWIND_PIECES]; /* the first begins with .eh_frame_hdr */
	const uint8_t *search;                     /* its table: pairs of 32-bit distances from hdr, sorted */
	uint32_t search_count;
	uint64_t hdr; /* address of .eh_frame_hdr */
};

/* What was found of one function's piece of code. */
struct unwind_fde {
	uint64_t addr;            /* of its entry in .eh_frame */
	uint64_t start, end;      /* the code it speaks of */
	uint64_t code_align;      /* of its CIE */
	int64_t data_align;       /* " */
	uint32_t return_register; /* " */
	bool signal;              /* " : its caller was interrupted, not calling */
	const uint8_t *initial;   /* " : instructions */
	uint32_t initial_bytes;   /* " */
	const uint8_t *instructions;
	uint32_t instructions_bytes;
	uint8_t encoding; /* of addresses in instructions */
	uint64_t instructions_addr;
};

/* Makes *tables out of its pieces. 0 or -ENOEXEC. */
int unwind_tables_init(struct unwind_tables *tables);
/* Where .eh_frame begins, by the first bytes of .eh_frame_hdr. 0 or -ENOEXEC. */
int unwind_tables_frames(const uint8_t *hdr, size_t bytes, uint64_t hdr_addr, uint64_t *ret_addr);
/* The function's entry that lies at addr. 0 or -ENOEXEC. */
int unwind_tables_entry(const struct unwind_tables *tables, uint64_t addr, struct unwind_fde *ret_fde);
/* 0; -ENOENT: none speaks of addr; -ENOEXEC: it makes no sense. */
int unwind_tables_find(const struct unwind_tables *tables, uint64_t addr, struct unwind_fde *ret_fde);
/* Bytes of the tables at addr, in one piece; NULL: they are not there. */
const uint8_t *unwind_tables_at(const struct unwind_tables *tables, uint64_t addr, size_t bytes);

#endif
