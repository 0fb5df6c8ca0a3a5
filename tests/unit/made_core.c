/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/made_core.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <unistd.h>

#include "sampler/core_state.h"

void made_core_load(struct made_core *made, uint64_t addr, const void *data, size_t bytes, uint64_t memory_bytes,
                    uint32_t flags)
{
	cr_assert_lt(made->load_count, MADE_LOADS_MAX);
	made->loads[made->load_count++] = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = flags,
		.p_vaddr = addr,
		.p_offset = made->memory.bytes, /* from where memory begins */
		.p_filesz = bytes,
		.p_memsz = memory_bytes,
	};
	buf_add(&made->memory, data, bytes);
}

void made_core_raw_note(struct made_core *made, uint32_t data_bytes, uint32_t name_bytes, uint32_t type)
{
	const Elf64_Nhdr note = {.n_namesz = name_bytes, .n_descsz = data_bytes, .n_type = type};

	buf_add(&made->notes, &note, sizeof(note));
}

void made_core_note(struct made_core *made, uint32_t type, const void *data, size_t bytes)
{
	made_core_raw_note(made, (uint32_t)bytes, 5, type);
	buf_add(&made->notes, "CORE\0\0\0", 8);
	buf_add(&made->notes, data, bytes);
	buf_add(&made->notes, "\0\0\0", (4 - bytes % 4) % 4);
}

void made_core_thread(struct made_core *made, int tid, int signal_number, uint64_t pthread_self)
{
	struct elf_prstatus status = {.pr_pid = tid, .pr_cursig = (short)signal_number};

#if defined(__x86_64__)
	status.pr_reg[21] = pthread_self;
#else
	(void)pthread_self;
#endif
	made_core_note(made, NT_PRSTATUS, &status, sizeof(status));
}

void made_core_process(struct made_core *made, int pid, int parent_pid, const char *name, const char *arguments)
{
	struct elf_prpsinfo info = {.pr_pid = pid, .pr_ppid = parent_pid};

	strncpy(info.pr_fname, name, sizeof(info.pr_fname) - 1);
	strncpy(info.pr_psargs, arguments, sizeof(info.pr_psargs) - 1);
	made_core_note(made, NT_PRPSINFO, &info, sizeof(info));
}

void made_core_mapped(struct made_core *made, uint64_t start, uint64_t end, uint64_t file_off, const char *path)
{
	const uint64_t words[] = {1, 4096, start, end, file_off / 4096};
	struct buf note = {0};

	buf_add(&note, words, sizeof(words));
	buf_add(&note, path, strlen(path) + 1);
	made_core_note(made, NT_FILE, note.data, note.bytes);
	buf_release(&note);
}

Elf64_Ehdr *made_core_head(struct made_core *made)
{
	if (made->head.e_phoff == 0)
		made->head = (Elf64_Ehdr){
			.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			.e_type = ET_CORE,
			.e_machine = CORE_MACHINE,
			.e_phoff = sizeof(made->head),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = (Elf64_Half)(1 + made->load_count),
		};
	return &made->head;
}

/* Notes come first, as the kernel has them. */
static uint64_t memory_off(const struct made_core *made)
{
	return sizeof(Elf64_Ehdr) + (1 + made->load_count) * sizeof(Elf64_Phdr) + made->notes.bytes;
}

uint64_t made_core_bytes(struct made_core *made)
{
	return memory_off(made) + made->memory.bytes;
}

int made_core_file(struct made_core *made, uint64_t bytes)
{
	const Elf64_Phdr notes = {.p_type = PT_NOTE,
	                          .p_offset = sizeof(Elf64_Ehdr) + (1 + made->load_count) * sizeof(Elf64_Phdr),
	                          .p_filesz = made->notes.bytes};
	struct buf whole = {0};
	int fd = memfd_create("core", MFD_CLOEXEC);

	buf_add(&whole, made_core_head(made), sizeof(made->head));
	buf_add(&whole, &notes, sizeof(notes));
	for (size_t i = 0; i < made->load_count; i++) {
		Elf64_Phdr load = made->loads[i];

		load.p_offset += memory_off(made);
		buf_add(&whole, &load, sizeof(load));
	}
	if (made->notes.bytes)
		buf_add(&whole, made->notes.data, made->notes.bytes);
	if (made->memory.bytes)
		buf_add(&whole, made->memory.data, made->memory.bytes);
	cr_assert(fd >= 0 && whole.err == 0);
	if (bytes == 0 || bytes > whole.bytes)
		bytes = whole.bytes;
	cr_assert_eq(write(fd, whole.data, bytes), (ssize_t)bytes);
	buf_release(&whole);
	return fd;
}

void made_core_release(struct made_core *made)
{
	buf_release(&made->memory);
	buf_release(&made->notes);
	*made = (struct made_core){0};
}
