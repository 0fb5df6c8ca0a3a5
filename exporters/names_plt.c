/* SPDX-License-Identifier: Apache-2.0 */
/* Stubs of the PLT are named by what they do: each jumps through a word of the GOT, and a relocation of that word names the function. So all kinds
 * of PLT are read alike (.plt, .plt.sec, .plt.got, lazy or not, with or without IBT). */
#include <string.h>

#include "exporters/names_symbols.h"

enum {
	STUB_BYTES = 16,    /* of .plt and .plt.sec */
	GOT_STUB_BYTES = 8, /* of .plt.got without IBT; two halves of a stub with it */
	RELOCATIONS_MAX = 1 << 20,
	STUBS_MAX = 1 << 20,
};

/* Which function the relocation of a GOT word names; sorted by the word. */
struct slots {
	struct code_symbols words; /* start: the word, end: behind it */
};

static void add_relocations(struct slots *slots, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL), *symbols = NULL;
	size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
	Elf_Scn *symbol_section = elf_getscn(elf, header->sh_link);
	GElf_Shdr symbol_header;

	if (symbol_section && gelf_getshdr(symbol_section, &symbol_header) && symbol_header.sh_type == SHT_DYNSYM)
		symbols = elf_getdata(symbol_section, NULL);
	for (size_t i = 0; symbols && i < count && i < RELOCATIONS_MAX; i++) {
		const char *name;
		GElf_Rela rela;
		GElf_Sym symbol;

		if (!gelf_getrela(data, (int)i, &rela) || !gelf_getsym(symbols, (int)GELF_R_SYM(rela.r_info), &symbol))
			continue;
		name = elf_strptr(elf, symbol_header.sh_link, symbol.st_name);
		if (name && *name)
			code_symbols_append(&slots->words, &(struct code_symbol){.start = rela.r_offset,
			                                                         .end = rela.r_offset + 8,
			                                                         .name = name,
			                                                         .sized = true});
	}
}

/* The word that an instruction at `at` jumps through: jmp *disp(%rip), perhaps with a bnd prefix. 0: it is another one. */
static uint64_t jump_x86(const uint8_t *bytes, size_t room, uint64_t address)
{
	int32_t displacement;

	for (size_t at = 0; at + 6 <= room; at++) {
		if (bytes[at] != 0xff || bytes[at + 1] != 0x25)
			continue;
		memcpy(&displacement, bytes + at + 2, sizeof(displacement));
		return address + at + 6 + (uint64_t)(int64_t)displacement;
	}
	return 0;
}

/* adrp x16, page; ldr x17, [x16, #offset]; perhaps behind a landing pad. */
static uint64_t jump_arm(const uint8_t *bytes, size_t room, uint64_t address)
{
	for (size_t at = 0; at + 8 <= room; at += 4) {
		uint32_t adrp, ldr;
		int64_t pages;

		memcpy(&adrp, bytes + at, sizeof(adrp));
		memcpy(&ldr, bytes + at + 4, sizeof(ldr));
		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		pages = (int64_t)((adrp >> 29 & 3) | (adrp >> 3 & 0x1ffffc));
		if (pages & 0x100000)
			pages -= 0x200000;
		return ((address + at) & ~UINT64_C(4095)) + (uint64_t)(pages * 4096) + (ldr >> 10 & 0xfff) * 8;
	}
	return 0;
}

static void add_stubs(struct code_symbols *to, struct slots *slots, Elf *elf, const char *section_name,
                      size_t stub_bytes, uint16_t machine)
{
	Elf_Scn *section;
	GElf_Shdr header;
	Elf_Data *data;

	if (!elf_section(elf, section_name, &section, &header) || header.sh_type != SHT_PROGBITS)
		return;
	if (header.sh_entsize >= 8 && header.sh_entsize <= 32)
		stub_bytes = (size_t)header.sh_entsize;
	data = elf_getdata(section, NULL);
	for (size_t at = 0, n = 0; data && data->d_buf && at + stub_bytes <= data->d_size && n < STUBS_MAX;
	     at += stub_bytes, n++) {
		const uint8_t *bytes = (const uint8_t *)data->d_buf + at;
		uint64_t address = header.sh_addr + at;
		uint64_t word = machine == EM_AARCH64 ? jump_arm(bytes, stub_bytes, address)
		                                      : jump_x86(bytes, stub_bytes, address);
		const struct code_symbol *target = word ? code_symbols_find(&slots->words, word) : NULL;

		if (target)
			code_symbols_append(to, &(struct code_symbol){.start = address,
			                                              .end = address + stub_bytes,
			                                              .name = target->name,
			                                              .sized = true,
			                                              .stub = true});
	}
}

void code_symbols_add_plt(struct code_symbols *symbols, Elf *elf)
{
	struct slots slots = {0};
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Ehdr file;

	if (!gelf_getehdr(elf, &file) || (file.e_machine != EM_X86_64 && file.e_machine != EM_AARCH64))
		return;
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_RELA)
			add_relocations(&slots, elf, section, &header);
	if (slots.words.count) {
		add_stubs(symbols, &slots, elf, ".plt", STUB_BYTES, file.e_machine);
		add_stubs(symbols, &slots, elf, ".plt.sec", STUB_BYTES, file.e_machine);
		add_stubs(symbols, &slots, elf, ".plt.got", GOT_STUB_BYTES, file.e_machine);
	}
	code_symbols_release(&slots.words);
}
