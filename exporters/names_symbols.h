/* SPDX-License-Identifier: Apache-2.0 */
/* Which function an address of an ELF file is in, by its symbol tables and its PLT. Hostile input: runs in the naming child. */
#ifndef SAMPLED_EXPORTERS_NAMES_SYMBOLS_H
#define SAMPLED_EXPORTERS_NAMES_SYMBOLS_H

#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_symbol {
	uint64_t start, end; /* virtual addresses of the file */
	const char *name;    /* in the Elf's own memory, or, of a stub, that of the table */
	uint8_t rank;        /* of several at one place the highest is shown */
	bool sized;          /* its size was told; else it reaches to the next one */
	bool stub;           /* in the PLT: name is that of what it leads to */
};

struct code_symbols {
	struct code_symbol *items;
	size_t count, room;
	bool full; /* at the bound, or no memory */
	bool sorted;
};

/* Adds what .symtab and .dynsym define; of a file whose .symtab was taken away, symbols without a size are left out, as what lies between
 * them and the next one is not told. The Elf must outlive the table. */
void code_symbols_add(struct code_symbols *symbols, Elf *elf);
/* Adds the stubs of .plt, .plt.sec and .plt.got: what they jump through is looked up in the relocations. */
void code_symbols_add_plt(struct code_symbols *symbols, Elf *elf);
/* Adds one whose text is kept. */
void code_symbols_append(struct code_symbols *symbols, const struct code_symbol *symbol);
/* NULL: no symbol covers the address. */
const struct code_symbol *code_symbols_find(struct code_symbols *symbols, uint64_t address);
void code_symbols_release(struct code_symbols *symbols);

/* A section's header by its name; false: there is none. */
bool elf_section(Elf *elf, const char *name, Elf_Scn **ret_section, GElf_Shdr *ret_header);

#endif
