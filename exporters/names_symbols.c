/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names_symbols.h"

#include <stdlib.h>
#include <string.h>

enum {
	SYMBOLS_MAX = 1 << 23,
	LOOK_BACK = 64, /* symbols that begin before an address and may cover it: deeper nesting there is not */
	TINY = 64,      /* a section of so many bytes holds one function */
};

bool elf_section(Elf *elf, const char *name, Elf_Scn **ret_section, GElf_Shdr *ret_header)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((section = elf_nextscn(elf, section))) {
		const char *own =
			gelf_getshdr(section, ret_header) ? elf_strptr(elf, names, ret_header->sh_name) : NULL;

		if (own && strcmp(own, name) == 0) {
			*ret_section = section;
			return true;
		}
	}
	return false;
}

void code_symbols_append(struct code_symbols *symbols, const struct code_symbol *symbol)
{
	if (symbols->count == symbols->room) {
		size_t room = symbols->room ? symbols->room * 2 : 1024;
		struct code_symbol *items = room <= SYMBOLS_MAX ? realloc(symbols->items, room * sizeof(*items)) : NULL;

		if (!items) {
			symbols->full = true;
			return;
		}
		symbols->items = items;
		symbols->room = room;
	}
	symbols->items[symbols->count++] = *symbol;
	symbols->sorted = false;
}

static uint8_t rank_of(const GElf_Sym *symbol)
{
	unsigned bind = GELF_ST_BIND(symbol->st_info), type = GELF_ST_TYPE(symbol->st_info);
	unsigned rank = bind == STB_GLOBAL || bind == STB_GNU_UNIQUE ? 3 : bind == STB_WEAK ? 2 : 1;

	return (uint8_t)(rank + (type == STT_NOTYPE ? 0 : 4) + (symbol->st_size ? 8 : 0));
}

static bool is_code(const GElf_Sym *symbol, const char *name)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS || !name || !*name)
		return false;
	/* Labels of assemblers, and ARM's marks of code and data. */
	if (type == STT_NOTYPE)
		return name[0] != '$' && name[0] != '.';
	return type == STT_FUNC || type == STT_GNU_IFUNC;
}

/* Of one table. alone: the file has no other. */
static void add_table(struct code_symbols *to, Elf *elf, Elf_Scn *section, const GElf_Shdr *header, bool alone)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;

	for (size_t i = 0; i < count && i < SYMBOLS_MAX && !to->full; i++) {
		struct code_symbol symbol;
		GElf_Shdr home;
		GElf_Sym raw;

		if (!gelf_getsym(data, (int)i, &raw))
			break;
		symbol = (struct code_symbol){.start = raw.st_value,
		                              .end = raw.st_value + raw.st_size,
		                              .name = elf_strptr(elf, header->sh_link, raw.st_name),
		                              .rank = rank_of(&raw),
		                              .sized = raw.st_size != 0};
		if (!is_code(&raw, symbol.name) || symbol.end < symbol.start ||
		    !gelf_getshdr(elf_getscn(elf, raw.st_shndx), &home) || !(home.sh_flags & SHF_EXECINSTR) ||
		    symbol.start < home.sh_addr || symbol.start - home.sh_addr >= home.sh_size)
			continue;
		if (!symbol.sized) {
			if (alone && home.sh_size > TINY)
				continue;
			symbol.end = home.sh_addr + home.sh_size; /* until the table is sorted */
		}
		code_symbols_append(to, &symbol);
	}
}

void code_symbols_add(struct code_symbols *symbols, Elf *elf)
{
	Elf_Scn *section = NULL;
	bool has_symtab = false;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		has_symtab |= gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB;
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
			add_table(symbols, elf, section, &header, !has_symtab);
}

static int compare(const void *left, const void *right)
{
	const struct code_symbol *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return -strcmp(a->name, b->name); /* the search begins at the last: the same one each time */
}

static void sort(struct code_symbols *symbols)
{
	uint64_t next = UINT64_MAX;

	if (symbols->count)
		qsort(symbols->items, symbols->count, sizeof(symbols->items[0]), compare);
	/* From the last to the first: where the next place with a symbol begins is known at each. */
	for (size_t i = symbols->count; i-- > 0;) {
		struct code_symbol *symbol = &symbols->items[i];

		if (i + 1 < symbols->count && symbols->items[i + 1].start != symbol->start)
			next = symbols->items[i + 1].start;
		if (!symbol->sized && next < symbol->end)
			symbol->end = next;
	}
	symbols->sorted = true;
}

const struct code_symbol *code_symbols_find(struct code_symbols *symbols, uint64_t address)
{
	const struct code_symbol *unsized = NULL;
	size_t low = 0, high = symbols->count;

	if (!symbols->sorted)
		sort(symbols);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t back = 0; back < LOOK_BACK && low > 0; back++) {
		const struct code_symbol *symbol = &symbols->items[--low];

		if (address >= symbol->end)
			continue;
		if (symbol->sized)
			return symbol;
		if (!unsized)
			unsized = symbol;
	}
	return unsized;
}

void code_symbols_release(struct code_symbols *symbols)
{
	free(symbols->items);
	*symbols = (struct code_symbols){0};
}
