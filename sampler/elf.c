/* SPDX-License-Identifier: Apache-2.0 */
/* libelf reads the file by copying (never by mapping it: a file that is cut while mapped kills the reader), and only what
 * lies inside it. All loops run over counts that are bounded by constants here. */
#include "sampler/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SEGMENTS_MAX = 64,
	SECTIONS_MAX = 16384,
	SYMBOLS_MAX = 4 << 20,
	NEEDED_MAX = 1024,
};
#define FILE_BYTES_MAX  (UINT64_C(2) << 30)
#define TABLE_BYTES_MAX (UINT64_C(256) << 20) /* a symbol or string table: read into memory whole */

#if defined(__x86_64__)
enum { OUR_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { OUR_MACHINE = EM_AARCH64 };
#else
#error "unknown machine: which ELF files run on it?"
#endif

struct elf_image {
	Elf *elf;
	uint64_t file_bytes;
	unsigned segment_count;
	GElf_Phdr segments[SEGMENTS_MAX]; /* PT_LOAD only */
};

/* A file's header and the program headers that matter. */
static int read_headers(struct elf_image *image)
{
	GElf_Ehdr header;
	size_t count;

	if (elf_kind(image->elf) != ELF_K_ELF || gelf_getclass(image->elf) != ELFCLASS64)
		return -ENOEXEC;
	if (!gelf_getehdr(image->elf, &header) || header.e_machine != OUR_MACHINE ||
	    header.e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	if (elf_getphdrnum(image->elf, &count))
		return -ENOEXEC;
	for (size_t i = 0; i < count && i < 1024 && image->segment_count < SEGMENTS_MAX; i++) {
		GElf_Phdr *segment = &image->segments[image->segment_count];

		if (!gelf_getphdr(image->elf, (int)i, segment))
			return -ENOEXEC;
		if (segment->p_type == PT_LOAD)
			image->segment_count++;
	}
	return image->segment_count ? 0 : -ENOEXEC;
}

int elf_image_open(struct elf_image **ret_image, int fd)
{
	struct elf_image *image;
	unsigned char magic[SELFMAG];
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(Elf64_Ehdr))
		return -ENOEXEC;
	if ((uint64_t)st.st_size > FILE_BYTES_MAX)
		return -EFBIG;
	/* Archives and others that libelf knows are none of ours. */
	if (pread(fd, magic, sizeof(magic), 0) != (ssize_t)sizeof(magic) || memcmp(magic, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	image->file_bytes = (uint64_t)st.st_size;
	image->elf = elf_begin(fd, ELF_C_READ, NULL);
	err = image->elf ? read_headers(image) : -ENOEXEC;
	if (err) {
		elf_image_free(image);
		return err;
	}
	*ret_image = image;
	return 0;
}

void elf_image_free(struct elf_image *image)
{
	if (!image)
		return;
	elf_end(image->elf);
	free(image);
}

/* The contents of a section, or NULL when it does not lie whole in the file. */
static Elf_Data *section_data(const struct elf_image *image, Elf_Scn *section, GElf_Shdr *ret_header)
{
	if (!section || !gelf_getshdr(section, ret_header))
		return NULL;
	if (ret_header->sh_type == SHT_NOBITS || ret_header->sh_size > TABLE_BYTES_MAX ||
	    ret_header->sh_offset > image->file_bytes ||
	    ret_header->sh_size > image->file_bytes - ret_header->sh_offset)
		return NULL;
	return elf_getdata(section, NULL);
}

/* Is there the C string `want` (its first `bytes`, and its end when whole) at `at` of a string table? */
static bool string_is(const Elf_Data *strings, uint64_t at, const char *want, size_t bytes, bool whole)
{
	size_t ask = bytes + (whole ? 1 : 0);

	if (!strings || !strings->d_buf || at >= strings->d_size || strings->d_size - at < ask)
		return false;
	return memcmp((const char *)strings->d_buf + at, want, ask) == 0;
}

static int find_in_table(const struct elf_image *image, Elf_Scn *section, const char *name, struct elf_range *ret_range)
{
	GElf_Shdr header, strings_header;
	Elf_Data *table = section_data(image, section, &header);
	Elf_Data *strings;
	size_t name_bytes = strlen(name), count;

	if (!table || !table->d_buf)
		return -ENOENT;
	strings = section_data(image, elf_getscn(image->elf, header.sh_link), &strings_header);
	count = table->d_size / sizeof(Elf64_Sym);
	if (!strings || count > SYMBOLS_MAX)
		return -ENOENT;
	for (size_t i = 1; i < count; i++) {
		GElf_Sym symbol;

		if (!gelf_getsym(table, (int)i, &symbol))
			break;
		if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0)
			continue;
		if (!string_is(strings, symbol.st_name, name, name_bytes, true))
			continue;
		ret_range->addr = symbol.st_value;
		ret_range->bytes = symbol.st_size;
		return 0;
	}
	return -ENOENT;
}

int elf_image_symbol(const struct elf_image *image, const char *name, struct elf_range *ret_range)
{
	static const struct {
		GElf_Word type;
		const char *where;
	} tables[] = {{SHT_DYNSYM, ".dynsym"}, {SHT_SYMTAB, ".symtab"}};

	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
		Elf_Scn *section = NULL;

		for (unsigned i = 0; i < SECTIONS_MAX && (section = elf_nextscn(image->elf, section)); i++) {
			GElf_Shdr header;

			if (!gelf_getshdr(section, &header) || header.sh_type != tables[t].type)
				continue;
			if (find_in_table(image, section, name, ret_range) == 0) {
				ret_range->where = tables[t].where;
				return 0;
			}
		}
	}
	return -ENOENT;
}

static void functions_of(const struct elf_image *image, Elf_Scn *section, bool exported,
                         void (*fn)(void *context, const struct elf_function *function), void *context)
{
	GElf_Shdr header, strings_header;
	Elf_Data *table = section_data(image, section, &header);
	Elf_Data *strings = table ? section_data(image, elf_getscn(image->elf, header.sh_link), &strings_header) : NULL;
	GElf_Sym symbol;

	if (!table || !table->d_buf || !strings || !strings->d_buf || table->d_size / sizeof(symbol) > SYMBOLS_MAX)
		return;
	for (int i = 1; gelf_getsym(table, i, &symbol); i++) {
		struct elf_function function = {.addr = symbol.st_value, .bytes = symbol.st_size, .exported = exported};

		if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
		    symbol.st_name >= strings->d_size)
			continue;
		function.name = (const char *)strings->d_buf + symbol.st_name;
		if (memchr(function.name, '\0', strings->d_size - symbol.st_name))
			fn(context, &function);
	}
}

void elf_image_functions(const struct elf_image *image, void (*fn)(void *context, const struct elf_function *function),
                         void *context)
{
	static const GElf_Word types[] = {SHT_DYNSYM, SHT_SYMTAB};

	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		Elf_Scn *section = NULL;
		GElf_Shdr header;

		for (unsigned i = 0; i < SECTIONS_MAX && (section = elf_nextscn(image->elf, section)); i++)
			if (gelf_getshdr(section, &header) && header.sh_type == types[t])
				functions_of(image, section, types[t] == SHT_DYNSYM, fn, context);
	}
}

int elf_image_section(const struct elf_image *image, const char *name, struct elf_range *ret_range)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header, names_header;
	Elf_Data *names;
	size_t names_index;

	if (elf_getshdrstrndx(image->elf, &names_index))
		return -ENOEXEC;
	names = section_data(image, elf_getscn(image->elf, names_index), &names_header);
	for (unsigned i = 0; i < SECTIONS_MAX && (section = elf_nextscn(image->elf, section)); i++) {
		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_ALLOC) || header.sh_addr == 0)
			continue;
		if (!string_is(names, header.sh_name, name, strlen(name), true))
			continue;
		*ret_range = (struct elf_range){.addr = header.sh_addr, .bytes = header.sh_size, .where = name};
		return 0;
	}
	return -ENOENT;
}

bool elf_image_segment(const struct elf_image *image, unsigned i, struct elf_range *ret_range, bool *ret_writable)
{
	if (i >= image->segment_count)
		return false;
	*ret_range = (struct elf_range){
		.addr = image->segments[i].p_vaddr,
		.bytes = image->segments[i].p_memsz,
		.where = "segment",
	};
	*ret_writable = image->segments[i].p_flags & PF_W;
	return true;
}

bool elf_image_needs(const struct elf_image *image, const char *prefix)
{
	Elf_Scn *section = NULL;

	for (unsigned i = 0; i < SECTIONS_MAX && (section = elf_nextscn(image->elf, section)); i++) {
		GElf_Shdr header, strings_header;
		Elf_Data *entries, *strings;
		GElf_Dyn entry;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNAMIC)
			continue;
		entries = section_data(image, section, &header);
		strings = section_data(image, elf_getscn(image->elf, header.sh_link), &strings_header);
		for (int k = 0; entries && k < NEEDED_MAX && gelf_getdyn(entries, k, &entry) && entry.d_tag != DT_NULL;
		     k++)
			if (entry.d_tag == DT_NEEDED &&
			    string_is(strings, entry.d_un.d_val, prefix, strlen(prefix), false))
				return true;
	}
	return false;
}

int elf_image_bias(const struct elf_image *image, uint64_t map_start, uint64_t file_off, uint64_t *ret_bias)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (unsigned i = 0; i < image->segment_count; i++) {
		const GElf_Phdr *segment = &image->segments[i];

		/* The loader maps from the page in which the segment begins. Arithmetic wraps as the loader's does. */
		if ((segment->p_offset & ~(page - 1)) != file_off)
			continue;
		*ret_bias = map_start - (segment->p_vaddr - (segment->p_offset - file_off));
		return 0;
	}
	return -ENOENT;
}
