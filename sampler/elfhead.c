/* SPDX-License-Identifier: Apache-2.0 */
/* Format: System V ABI, chapters 4 and 5. Each loop runs over a count that is bounded by a constant here. */
#include "sampler/elfhead.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADERS_MAX = 256, NOTE_BYTES_MAX = 16384, DYNAMIC_MAX = 1024 };

#if defined(__x86_64__)
enum { OUR_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { OUR_MACHINE = EM_AARCH64 };
#else
#error "unknown machine: which ELF files run on it?"
#endif

int elf_bytes_read(const struct elf_bytes *from, uint64_t file_off, void *to, size_t bytes)
{
	size_t done = 0;

	if (file_off > INT64_MAX - bytes)
		return -ENOEXEC;
	if (from->data) {
		if (file_off > from->data_bytes || bytes > from->data_bytes - file_off)
			return -ENOEXEC;
		memcpy(to, from->data + file_off, bytes);
		return 0;
	}
	while (done < bytes) {
		ssize_t got = pread(from->fd, (char *)to + done, bytes - done, (off_t)(file_off + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -ENOEXEC;
		done += (size_t)got;
	}
	return 0;
}

static void take_build_id(struct elfhead *head, const struct elf_bytes *from, const Elf64_Phdr *segment)
{
	uint8_t notes[NOTE_BYTES_MAX];
	size_t bytes = segment->p_filesz < sizeof(notes) ? (size_t)segment->p_filesz : sizeof(notes);
	size_t align = segment->p_align == 8 ? 8 : 4;
	Elf64_Nhdr note;

	if (head->build_id_bytes || elf_bytes_read(from, segment->p_offset, notes, bytes))
		return;
	for (size_t at = 0; bytes - at >= sizeof(note);) {
		size_t name_bytes, text_bytes;

		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		name_bytes = (note.n_namesz + align - 1) & ~(align - 1);
		text_bytes = (note.n_descsz + align - 1) & ~(align - 1);
		if (name_bytes > bytes - at || note.n_descsz > bytes - at - name_bytes)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + at, "GNU", 4) == 0 &&
		    note.n_descsz <= BUILD_ID_MAX) {
			memcpy(head->build_id, notes + at + name_bytes, note.n_descsz);
			head->build_id_bytes = note.n_descsz;
			return;
		}
		at += name_bytes;
		if (text_bytes > bytes - at)
			return;
		at += text_bytes;
	}
}

/* Where in the file the byte at addr is, and how many follow it in its segment. */
static bool file_place(const struct elfhead *head, uint64_t addr, uint64_t *ret_off, uint64_t *ret_bytes)
{
	for (unsigned i = 0; i < head->segments_count; i++) {
		const struct elfhead_segment *segment = &head->segments[i];

		if (addr < segment->addr || addr - segment->addr >= segment->file_bytes)
			continue;
		*ret_off = segment->file_off + (addr - segment->addr);
		*ret_bytes = segment->file_bytes - (addr - segment->addr);
		return true;
	}
	return false;
}

static void take_soname(struct elfhead *head, const struct elf_bytes *from, const Elf64_Phdr *dynamic)
{
	uint64_t strings = 0, name = 0, off, left;
	bool named = false;
	char text[sizeof(head->soname)];

	for (uint64_t i = 0; i < DYNAMIC_MAX && (i + 1) * sizeof(Elf64_Dyn) <= dynamic->p_filesz; i++) {
		Elf64_Dyn entry;

		if (elf_bytes_read(from, dynamic->p_offset + i * sizeof(entry), &entry, sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_STRTAB)
			strings = entry.d_un.d_ptr;
		if (entry.d_tag == DT_SONAME) {
			name = entry.d_un.d_val;
			named = true;
		}
	}
	if (!named || !file_place(head, strings + name, &off, &left))
		return;
	if (left > sizeof(text))
		left = sizeof(text);
	if (elf_bytes_read(from, off, text, (size_t)left) == 0 && memchr(text, '\0', (size_t)left))
		strcpy(head->soname, text);
}

static void take_segment(struct elfhead *head, const Elf64_Phdr *segment)
{
	if (segment->p_type == PT_GNU_EH_FRAME) {
		head->unwind_addr = segment->p_vaddr;
		head->unwind_bytes = segment->p_filesz;
	}
	if (segment->p_type != PT_LOAD || head->segments_count == ELFHEAD_SEGMENTS || segment->p_offset > INT64_MAX ||
	    segment->p_filesz > INT64_MAX)
		return;
	head->segments[head->segments_count++] = (struct elfhead_segment){
		.addr = segment->p_vaddr,
		.file_off = segment->p_offset,
		.file_bytes = segment->p_filesz,
		.memory_bytes = segment->p_memsz,
		.executable = segment->p_flags & PF_X,
	};
}

int elfhead_read(struct elfhead *ret_head, const struct elf_bytes *from)
{
	Elf64_Phdr segments[HEADERS_MAX];
	struct elfhead head = {0};
	unsigned count;
	Elf64_Ehdr file;
	int err = elf_bytes_read(from, 0, &file, sizeof(file));

	if (err)
		return err;
	if (memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64 ||
	    file.e_ident[EI_DATA] != ELFDATA2LSB || file.e_machine != OUR_MACHINE ||
	    file.e_phentsize != sizeof(segments[0]))
		return -ENOEXEC;
	count = file.e_phnum < HEADERS_MAX ? file.e_phnum : HEADERS_MAX;
	err = elf_bytes_read(from, file.e_phoff, segments, count * sizeof(segments[0]));
	if (err)
		return err;
	head.entry = file.e_entry;
	for (unsigned i = 0; i < count; i++)
		take_segment(&head, &segments[i]);
	if (head.segments_count == 0)
		return -ENOEXEC;
	for (unsigned i = 0; i < count; i++) {
		if (segments[i].p_type == PT_NOTE)
			take_build_id(&head, from, &segments[i]);
		else if (segments[i].p_type == PT_DYNAMIC)
			take_soname(&head, from, &segments[i]);
	}
	*ret_head = head;
	return 0;
}

int elfhead_bias(const struct elfhead *head, uint64_t map_start, uint64_t file_off, uint64_t *ret_bias)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	/* The loader maps whole pages, and somebody may have changed the protection of a part since. */
	for (unsigned i = 0; i < head->segments_count; i++) {
		const struct elfhead_segment *segment = &head->segments[i];
		uint64_t from = segment->file_off & ~(page - 1);

		if (!segment->executable || file_off < from || file_off >= segment->file_off + segment->file_bytes)
			continue;
		*ret_bias = map_start - (segment->addr - segment->file_off + file_off);
		return 0;
	}
	return -ENOENT;
}

int elfhead_load(const struct elfhead *head, const struct elf_bytes *from, uint64_t addr, size_t max_bytes,
                 uint8_t **ret_data, size_t *ret_bytes)
{
	uint64_t off, bytes;
	uint8_t *data;
	int err;

	if (!file_place(head, addr, &off, &bytes))
		return -ENOENT;
	if (bytes > max_bytes)
		return -EFBIG;
	data = malloc((size_t)bytes);
	if (!data)
		return -ENOMEM;
	err = elf_bytes_read(from, off, data, (size_t)bytes);
	if (err) {
		free(data);
		return err;
	}
	*ret_data = data;
	*ret_bytes = (size_t)bytes;
	return 0;
}
