/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names_file.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "exporters/names_debug.h"
#include "exporters/names_demangle.h"
#include "exporters/names_starts.h"
#include "exporters/names_symbols.h"

enum {
	SEGMENTS_MAX = 64,
	NAME_BYTES = REC_TEXT_MAX,
	VDSO_BYTES_MAX = 1 << 20,
};

struct segment {
	uint64_t offset, bytes, address;
};

struct code_file {
	struct open_elf main, debug, packed;
	struct segment segments[SEGMENTS_MAX];
	size_t segment_count;
	struct code_symbols symbols;
	struct debug_data *data;        /* NULL: none */
	struct function_starts *starts; /* NULL: none */
	bool starts_tried;
	char names[DEBUG_FRAMES_MAX][NAME_BYTES], files[DEBUG_FRAMES_MAX][NAME_BYTES]; /* of the last answer */
};

/* The vdso of this process: the kernel maps the same pages into all (of one kind), and the build id tells whether it is so. */
static int open_vdso(struct open_elf *ret_elf)
{
	const char *base = (const char *)getauxval(AT_SYSINFO_EHDR); /* NOLINT(performance-no-int-to-ptr) */
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)base;
	size_t bytes;
	char *copy;

	if (!base)
		return -ENOENT;
	bytes = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
	copy = bytes <= VDSO_BYTES_MAX ? malloc(bytes) : NULL;
	if (!copy)
		return -ENOMEM;
	memcpy(copy, base, bytes);
	return open_elf_memory(ret_elf, copy, bytes);
}

static int open_main(struct open_elf *ret_elf, const struct code_file_source *source)
{
	int fd = -1;

	if (strcmp(source->path, "[vdso]") == 0)
		return open_vdso(ret_elf);
	if (source->fd >= 0)
		fd = fcntl(source->fd, F_DUPFD_CLOEXEC, 3);
	else if (source->build_id_bytes && source->path[0] == '/')
		fd = open_below(-1, source->path, 0);
	return fd < 0 ? -ENOENT : open_elf_fd(ret_elf, fd);
}

static bool has_build_id(Elf *elf, const uint8_t *build_id, size_t bytes)
{
	const uint8_t *own;

	return bytes == 0 || (elf_build_id(elf, &own) == bytes && memcmp(own, build_id, bytes) == 0);
}

static void read_segments(struct code_file *f)
{
	size_t count;

	if (elf_getphdrnum(f->main.elf, &count))
		return;
	for (size_t i = 0; i < count && i < PN_XNUM && f->segment_count < SEGMENTS_MAX; i++) {
		GElf_Phdr segment;

		if (gelf_getphdr(f->main.elf, (int)i, &segment) && segment.p_type == PT_LOAD && segment.p_flags & PF_X)
			f->segments[f->segment_count++] = (struct segment){
				.offset = segment.p_offset, .bytes = segment.p_filesz, .address = segment.p_vaddr};
	}
}

static void read_symbols(struct code_file *f, const struct code_file_source *source)
{
	bool whole = elf_has_section(f->main.elf, ".symtab"), debug;
	const uint8_t *build_id = NULL;
	size_t build_id_bytes = elf_build_id(f->main.elf, &build_id);

	debug = elf_has_section(f->main.elf, ".debug_info") || elf_has_section(f->main.elf, ".zdebug_info");
	if (!debug && f->main.fd >= 0)
		(void)find_debug_file(&f->debug, f->main.elf, build_id, build_id_bytes, source);
	code_symbols_add(&f->symbols, f->main.elf);
	if (f->debug.elf)
		code_symbols_add(&f->symbols, f->debug.elf);
	else if (!whole && find_packed_symbols(&f->packed, f->main.elf) == 0)
		code_symbols_add(&f->symbols, f->packed.elf);
	code_symbols_add_plt(&f->symbols, f->main.elf);
	if (debug || f->debug.elf)
		(void)debug_data_new(&f->data, debug ? f->main.elf : f->debug.elf);
}

int code_file_open(struct code_file **ret_file, const struct code_file_source *source)
{
	struct code_file *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->main.fd = f->debug.fd = f->packed.fd = -1;
	err = open_main(&f->main, source);
	if (!err && !has_build_id(f->main.elf, source->build_id, source->build_id_bytes)) {
		open_elf_close(&f->main);
		err = -EBADMSG;
	}
	/* Another version lies there now, or none: a server may have the one that was mapped. */
	if (err && source->fd < 0 && source->fetch && source->build_id_bytes && source->path[0] == '/') {
		int fd = source->fetch(source->context, source->build_id, source->build_id_bytes, DEBUG_EXECUTABLE);

		if (fd >= 0)
			err = open_elf_fd(&f->main, fd);
		if (!err && !has_build_id(f->main.elf, source->build_id, source->build_id_bytes))
			err = -EBADMSG;
	}
	if (err) {
		code_file_free(f);
		return err;
	}
	read_segments(f);
	read_symbols(f, source);
	*ret_file = f;
	return 0;
}

void code_file_free(struct code_file *file)
{
	if (!file)
		return;
	debug_data_free(file->data);
	function_starts_free(file->starts);
	code_symbols_release(&file->symbols);
	open_elf_close(&file->packed);
	open_elf_close(&file->debug);
	open_elf_close(&file->main);
	free(file);
}

/* False: the offset is in no code of the file. */
static bool address_of(const struct code_file *f, uint64_t offset, uint64_t *ret_address)
{
	for (size_t i = 0; i < f->segment_count; i++)
		if (offset >= f->segments[i].offset && offset - f->segments[i].offset < f->segments[i].bytes) {
			*ret_address = f->segments[i].address + (offset - f->segments[i].offset);
			return true;
		}
	return false;
}

/* What has no name is told by where its function begins in the file. Looked for when first needed: few files have functions without symbols. */
static size_t find_start(struct code_file *f, uint64_t offset, uint64_t address, struct code_frame to[1])
{
	uint64_t start, start_offset;

	if (!f->starts_tried)
		(void)function_starts_new(&f->starts, f->main.elf);
	f->starts_tried = true;
	if (!function_starts_find(f->starts, address, &start) || start > address)
		return 0;
	/* Nothing begins before its segment does. */
	start_offset = offset - (address - start);
	if (address - start > offset || !address_of(f, start_offset, &address) || address != start ||
	    start_offset > UINT32_MAX)
		return 0;
	to[0] = (struct code_frame){.name = "", .file = "", .line = (uint32_t)start_offset};
	return 1;
}

/* The outermost function by its symbol: that knows more where the debug data has no mangled name (a C++ function of one file), or no function. */
static const char *function_name(const struct debug_frame *frame, const struct code_symbol *symbol)
{
	if (frame->name && !(symbol && !symbol->stub && name_is_mangled(symbol->name) && !name_is_mangled(frame->name)))
		return frame->name;
	return symbol ? symbol->name : NULL;
}

static const char *path_of(char to[NAME_BYTES], const struct debug_frame *frame)
{
	if (!frame->file || strcmp(frame->file, "???") == 0)
		return "";
	if (frame->file[0] == '/' || !frame->folder)
		return frame->file;
	snprintf(to, NAME_BYTES, "%s/%s", frame->folder,
	         strncmp(frame->file, "./", 2) == 0 ? frame->file + 2 : frame->file);
	return to;
}

size_t code_file_find(struct code_file *file, uint64_t offset, struct code_frame to[DEBUG_FRAMES_MAX])
{
	struct debug_frame found[DEBUG_FRAMES_MAX] = {0};
	const struct code_symbol *symbol;
	uint64_t address;
	size_t depth = 0;

	if (!address_of(file, offset, &address))
		return 0;
	symbol = code_symbols_find(&file->symbols, address);
	if (file->data)
		depth = debug_data_find(file->data, address, found, DEBUG_FRAMES_MAX);
	if (depth == 0 && symbol)
		depth = 1;
	for (size_t i = 0; i < depth; i++) {
		const char *name = i == 0 ? function_name(&found[0], symbol) : found[i].name;
		size_t bytes = name ? name_readable(file->names[i], NAME_BYTES - 8, name) : 0;

		if (bytes == 0)
			file->names[i][0] = '\0';
		else if (i == 0 && symbol && symbol->stub && name == symbol->name)
			strcpy(file->names[i] + bytes, "@plt");
		to[i] = (struct code_frame){.name = file->names[i],
		                            .file = path_of(file->files[i], &found[i]),
		                            .first_line = found[i].first_line,
		                            .line = found[i].line};
	}
	return depth && to[0].name[0] ? depth : find_start(file, offset, address, to);
}
