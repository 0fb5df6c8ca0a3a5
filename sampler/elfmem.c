/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic section tells where symbols and their names lie, but not how many symbols there are. All linkers put the
 * names behind the symbols, which bounds their number; a constant bounds it again.
 *
 * Source: the System V ABI, chapter 5, "Dynamic Section". */
#include "sampler/elfmem.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	HEADERS_MAX = 64,
	DYNAMIC_MAX = 256,
	SYMBOLS_MAX = 1 << 18,
	STRINGS_BYTES_MAX = 16 << 20,
};

static int read_headers(struct elfmem *elf, const struct remote *r, raddr_t base, Elf64_Phdr *ret_dynamic)
{
	Elf64_Phdr headers[HEADERS_MAX];
	Elf64_Ehdr file;
	bool biased = false, dynamic = false;
	int err = remote_read(r, base, &file, sizeof(file));

	if (err)
		return err;
	if (memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64 ||
	    file.e_phentsize != sizeof(headers[0]) || file.e_phnum > HEADERS_MAX)
		return -ENOEXEC;
	err = remote_read(r, base + file.e_phoff, headers, file.e_phnum * sizeof(headers[0]));
	if (err)
		return err;
	for (unsigned i = 0; i < file.e_phnum; i++) {
		if (headers[i].p_type == PT_LOAD && headers[i].p_offset == 0 && !biased) {
			elf->bias = base - headers[i].p_vaddr;
			biased = true;
		}
		if (headers[i].p_type == PT_DYNAMIC) {
			*ret_dynamic = headers[i];
			dynamic = true;
		}
	}
	for (unsigned i = 0; i < file.e_phnum && elf->segments_count < ELFMEM_SEGMENTS; i++)
		if (headers[i].p_type == PT_LOAD)
			elf->segments[elf->segments_count++] = (struct elfmem_segment){
				.addr = headers[i].p_vaddr + elf->bias,
				.bytes = headers[i].p_memsz,
				.writable = headers[i].p_flags & PF_W,
			};
	return biased && dynamic ? 0 : -ENOEXEC;
}

/* Reads `bytes` into new memory. */
static int read_new(const struct remote *r, raddr_t addr, size_t bytes, char **ret_data)
{
	char *data = malloc(bytes);
	int err = data ? remote_read(r, addr, data, bytes) : -ENOMEM;

	if (err) {
		free(data);
		return err;
	}
	*ret_data = data;
	return 0;
}

static int read_tables(struct elfmem *elf, const struct remote *r, raddr_t base, const Elf64_Phdr *dynamic)
{
	Elf64_Dyn entries[DYNAMIC_MAX] = {0};
	raddr_t symbols = 0, strings = 0;
	uint64_t strings_bytes = 0;
	size_t bytes = dynamic->p_memsz < sizeof(entries) ? (size_t)dynamic->p_memsz : sizeof(entries);
	int err = remote_read(r, dynamic->p_vaddr + elf->bias, entries, bytes);

	if (err)
		return err;
	for (unsigned i = 0; i < DYNAMIC_MAX && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag == DT_SYMTAB)
			symbols = entries[i].d_un.d_ptr;
		else if (entries[i].d_tag == DT_STRTAB)
			strings = entries[i].d_un.d_ptr;
		else if (entries[i].d_tag == DT_STRSZ)
			strings_bytes = entries[i].d_un.d_val;
	}
	/* glibc adds the bias to these in place, musl does not. */
	if (symbols < base)
		symbols += elf->bias;
	if (strings < base)
		strings += elf->bias;
	if (!symbols || strings <= symbols || strings_bytes == 0 || strings_bytes > STRINGS_BYTES_MAX ||
	    (strings - symbols) / sizeof(Elf64_Sym) > SYMBOLS_MAX)
		return -ENOEXEC;
	elf->symbols_count = (size_t)(strings - symbols) / sizeof(Elf64_Sym);
	elf->strings_bytes = (size_t)strings_bytes;
	err = read_new(r, symbols, elf->symbols_count * sizeof(Elf64_Sym), &elf->symbols);
	return err ? err : read_new(r, strings, elf->strings_bytes, &elf->strings);
}

int elfmem_init(struct elfmem *ret_elf, const struct remote *r, raddr_t base)
{
	struct elfmem elf = {0};
	Elf64_Phdr dynamic = {0};
	int err = read_headers(&elf, r, base, &dynamic);

	if (err == 0)
		err = read_tables(&elf, r, base, &dynamic);
	if (err) {
		elfmem_release(&elf);
		return err;
	}
	*ret_elf = elf;
	return 0;
}

void elfmem_release(struct elfmem *elf)
{
	free(elf->symbols);
	free(elf->strings);
	*elf = (struct elfmem){0};
}

raddr_t elfmem_symbol(const struct elfmem *elf, const char *name)
{
	size_t bytes = strlen(name) + 1;

	for (size_t i = 1; i < elf->symbols_count; i++) {
		Elf64_Sym symbol;

		memcpy(&symbol, elf->symbols + i * sizeof(symbol), sizeof(symbol));
		/* Between the symbols and the names lie other tables: they are read as symbols, and their values are checked later. */
		if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0 || symbol.st_name >= elf->strings_bytes ||
		    elf->strings_bytes - symbol.st_name < bytes)
			continue;
		if (memcmp(elf->strings + symbol.st_name, name, bytes) == 0)
			return symbol.st_value + elf->bias;
	}
	return 0;
}
