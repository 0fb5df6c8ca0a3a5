/* SPDX-License-Identifier: Apache-2.0 */
/* Cores made by hand: whole ones, cut ones, and such as no kernel writes. */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "sampler/core.h"
#include "sampler/core_state.h"
#include "sampler/host.h"
#include "tests/unit/made_core.h"

static struct made_core made;
static struct core *core;
static struct fault fault;
static struct remote remote;

static void teardown(void)
{
	core_free(core);
	core = NULL;
	made_core_release(&made);
}

TestSuite(core, .fini = teardown);

/* Opens what was made, of which `bytes` are left (0: all). */
static int open_made(uint64_t bytes)
{
	char path[64];
	int err, fd = made_core_file(&made, bytes);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fault = (struct fault){0};
	err = core_open(&core, path, &fault);
	close(fd);
	if (err)
		core = NULL;
	else
		remote_open_core(&remote, core);
	return err;
}

static void refuse(int err, const char *why)
{
	cr_assert_eq(open_made(0), err, "%d", err);
	cr_assert_eq(fault.err, err);
	cr_assert(strstr(fault.why, why), "%s", fault.why);
}

Test(core, memory_threads_and_the_process)
{
	uint64_t word = 0;
	char text[64];

	made_core_load(&made, 0x10000, "0123456789abcdef", 16, 16, PF_R | PF_W);
	made_core_load(&made, 0x10010, "next", 4, 0x1000, PF_R);
	made_core_thread(&made, 71, SIGSEGV, 0x7000);
	made_core_thread(&made, 70, SIGSEGV, 0x8000);
	made_core_process(&made, 70, 1, "python3", "python3 app.py");
	cr_assert_eq(open_made(0), 0, "%s", fault.why);
	cr_expect_eq(remote_read(&remote, 0x10008, text, 12), 0);
	cr_expect_eq(memcmp(text, "89abcdefnext", 12), 0, "it goes on across a seam");
	cr_expect_eq(remote_read_u64(&remote, 0x10000, &word), 0);
	cr_expect_eq(memcmp(&word, "01234567", 8), 0);
	cr_expect_eq(remote_read_some(&remote, 0x10012, text, 16), 2, "the rest is not in the core");
	cr_expect_eq(remote_read(&remote, 0x10014, text, 1), -EFAULT);
	cr_expect_eq(remote_read(&remote, 0xffff, text, 1), -EFAULT);
	cr_expect_eq(remote_read(&remote, UINT64_MAX, text, 2), -EFAULT);
	cr_expect_eq(core_missing_bytes(core), 0);
	cr_assert_eq(core_thread_count(core), 2);
	cr_expect_eq(core_thread(core, 0)->tid, 71);
	cr_expect_eq(core_thread(core, 0)->signal, SIGSEGV);
	cr_expect_eq(core_thread(core, 1)->signal, 0, "the kernel writes the signal in each note");
	cr_expect_eq(core_find_thread(core, 0, 70), core_thread(core, 1));
	cr_expect_null(core_find_thread(core, 0, 72));
#if defined(__x86_64__)
	cr_expect_eq(core_find_thread(core, 0x8000, 71), core_thread(core, 1),
	             "its register tells it before its number");
#endif
	cr_expect_eq(core_process(core)->pid, 70);
	cr_expect_eq(remote.pid, 70);
	cr_expect_eq(host_of(&remote)->command_line(&remote, COMMAND_LINE_FULL, text, sizeof(text)), 0);
	cr_expect_str_eq(text, "python3 app.py");
}

Test(core, readv_stops_at_the_first_piece_that_is_not_there)
{
	char to[8];
	const struct iovec local[] = {{to, 4}, {to + 4, 4}};
	struct iovec from[] = {{(void *)0x10000, 4}, {(void *)0x10004, 4}};

	made_core_load(&made, 0x10000, "abcdef", 6, 6, PF_R);
	cr_assert_eq(open_made(0), 0);
	cr_expect_eq(remote_readv(&remote, local, from, 2), 1);
	from[1].iov_base = (void *)0x10002;
	cr_expect_eq(remote_readv(&remote, local, from, 2), 2);
	cr_expect_eq(memcmp(to, "abcdcdef", 8), 0);
	cr_expect_eq(remote_readv(&remote, local, from + 1, 1), 1);
}

Test(core, segments_that_overlap_are_read_once)
{
	char to[8];

	made_core_load(&made, 0x10004, "EFGH", 4, 4, PF_R);
	made_core_load(&made, 0x10000, "abcdefgh", 8, 8, PF_R);
	made_core_load(&made, 0x10000, "********", 8, 8, PF_R);
	made_core_load(&made, 0x10008, "ijkl", 4, 4, PF_R);
	made_core_load(&made, UINT64_MAX - 8, "beyond the end", 14, 14, PF_R);
	cr_assert_eq(open_made(0), 0);
	cr_expect_eq(remote_read(&remote, 0x10000, to, 8), 0);
	cr_expect_eq(memcmp(to, "abcdefgh", 8), 0, "the lower one stands, and of two the one first in the file");
	cr_expect_eq(remote_read(&remote, 0x10006, to, 6), 0);
	cr_expect_eq(memcmp(to, "ghijkl", 6), 0);
	cr_expect_eq(remote_read(&remote, UINT64_MAX - 8, to, 1), -EFAULT);
}

Test(core, what_was_cut_off_is_told_and_the_rest_is_read)
{
	char to[8];
	uint64_t bytes;

	made_core_load(&made, 0x10000, "0123456789abcdef", 16, 16, PF_R | PF_W);
	made_core_load(&made, 0x20000, "0123456789abcdef", 16, 16, PF_R);
	bytes = made_core_bytes(&made);
	cr_assert_eq(open_made(bytes - 20), 0, "%s", fault.why);
	cr_expect_eq(core_missing_bytes(core), 20);
	cr_expect_eq(remote_read_some(&remote, 0x10008, to, 8), 4);
	cr_expect_eq(remote_read(&remote, 0x20000, to, 1), -EFAULT);
	core_free(core);
	for (uint64_t left = 0; left < bytes; left++) {
		int err = open_made(left ? left : 1);

		cr_assert(err == 0 || err == -ENOEXEC, "%d of %lu bytes", err, (unsigned long)left);
		cr_assert(err == 0 || fault.why[0]);
		core_free(core);
	}
	core = NULL;
}

Test(core, what_is_no_core_is_refused_in_plain_words)
{
	Elf64_Ehdr *head;

	made_core_load(&made, 0x10000, "x", 1, 1, PF_R);
	head = made_core_head(&made);
	head->e_type = ET_DYN;
	refuse(-ENOEXEC, "a program or a library");
	head->e_type = ET_CORE;
	head->e_machine = EM_PPC64;
	refuse(-ENOEXEC, "another kind of machine");
	head->e_machine = EM_386;
	head->e_ident[EI_CLASS] = ELFCLASS32;
	refuse(-ENOEXEC, "another kind of machine");
	memcpy(head, "\x28\xb5\x2f\xfd", 4);
	refuse(-ENOEXEC, "compressed with zstd");
	cr_expect(strstr(fault.hint, "unpack it first"));
	memcpy(head, "\x1f\x8b\x08\x00", 4);
	refuse(-ENOEXEC, "compressed with gzip");
	memcpy(head, "text", 4);
	refuse(-ENOEXEC, "not a core file");
	cr_expect_eq(core_open(&core, "/dev/zero", &fault), -ENOEXEC);
	cr_expect_eq(core_open(&core, "/nowhere/core", &fault), -ENOENT);
	core = NULL;
}

Test(core, absurd_headers_are_refused)
{
	Elf64_Ehdr *head;

	made_core_load(&made, 0x10000, "x", 1, 1, PF_R);
	head = made_core_head(&made);
	head->e_phnum = 60000;
	refuse(-ENOEXEC, "cut within its headers");
	head->e_phnum = PN_XNUM;
	head->e_shoff = UINT64_MAX - 8;
	refuse(-ENOEXEC, "cut within its headers");
	head->e_phnum = 1;
	head->e_phoff = UINT64_MAX - 8;
	refuse(-ENOEXEC, "cut within its headers");
	head->e_phoff = sizeof(*head);
	head->e_phentsize = 8;
	refuse(-ENOEXEC, "cut within its headers");
}

Test(core, absurd_notes_are_passed_over)
{
	const uint64_t huge[] = {UINT64_MAX, 4096, 1, 2, 3};
	const uint64_t paged[] = {1, UINT64_MAX, 0x1000, 0x2000, UINT64_MAX, 0};
	const uint64_t unnamed[] = {1, 4096, 0x1000, 0x2000, 0};
	const uint64_t reversed[] = {1, 4096, 0x2000, 0x1000, 0, 0};

	made_core_note(&made, NT_PRSTATUS, "short", 5);
	made_core_note(&made, NT_PRPSINFO, "", 0);
	made_core_note(&made, NT_FILE, huge, sizeof(huge));
	made_core_note(&made, NT_FILE, paged, sizeof(paged));
	made_core_note(&made, NT_FILE, unnamed, sizeof(unnamed));
	made_core_note(&made, NT_FILE, reversed, sizeof(reversed));
	made_core_note(&made, NT_AUXV, "odd", 3);
	made_core_thread(&made, 5, 0, 0);
	made_core_raw_note(&made, UINT32_MAX, 4, NT_PRSTATUS);
	cr_assert_eq(open_made(0), 0, "%s", fault.why);
	cr_expect_eq(core_thread_count(core), 1);
	cr_expect_eq(core_thread(core, 0)->signal, 0);
	cr_expect_leq(core_file_count(core), 1);
	cr_expect_eq(core_process(core)->pid, 0);
	cr_expect_eq(core_program(core), 0);
}

/* A file that begins like an ELF file with this build id, and 4 KiB of `fill` behind its first page. */
static void elf_page(char *page, const char *id)
{
	const Elf64_Ehdr head = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
		.e_machine = CORE_MACHINE,
		.e_phoff = sizeof(head),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	const Elf64_Phdr segments[] = {
		{.p_type = PT_LOAD, .p_filesz = 4096, .p_memsz = 4096},
		{.p_type = PT_NOTE, .p_offset = 256, .p_filesz = 12 + 4 + 8},
	};
	const Elf64_Nhdr name = {.n_namesz = 4, .n_descsz = 8, .n_type = NT_GNU_BUILD_ID};

	memset(page, 0, 4096);
	memcpy(page, &head, sizeof(head));
	memcpy(page + sizeof(head), segments, sizeof(segments));
	memcpy(page + 256, &name, sizeof(name));
	memcpy(page + 268, "GNU", 4);
	memcpy(page + 272, id, 8);
}

static void make_file(char *path, const char *id, const char *text)
{
	char page[4096];
	int fd;

	strcpy(path, "/tmp/sampled-core-XXXXXX");
	fd = mkstemp(path);
	elf_page(page, id);
	cr_assert(fd >= 0 && write(fd, page, sizeof(page)) == sizeof(page));
	cr_assert(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* A core whose file of two pages has the first in it, with this id ("": without). */
static void make_mapped(const char *path, const char *id)
{
	char page[4096] = "";

	if (id[0])
		elf_page(page, id);
	made_core_load(&made, 0x40000, page, sizeof(page), 4096, PF_R);
	made_core_load(&made, 0x41000, "", 0, 4096, PF_R);
	made_core_mapped(&made, 0x40000, 0x42000, 0, path);
	cr_assert_eq(open_made(0), 0, "%s", fault.why);
	cr_assert_eq(core_file_count(core), 1);
	cr_expect_eq(core_file(core, 0).state, CORE_FILE_UNASKED);
}

Test(core, bytes_of_a_file_are_its_own_if_it_is_the_same_build)
{
	char path[64], link_path[80], to[8];

	make_file(path, "build--1", "from the file");
	make_mapped(path, "build--1");
	cr_expect_eq(remote_read(&remote, 0x41005, to, 8), 0);
	cr_expect_eq(memcmp(to, "the file", 8), 0);
	cr_expect_eq(core_file(core, 0).state, CORE_FILE_USED);
	cr_expect_eq(remote_read_some(&remote, 0x41000 + 10, to, 8), 3, "where the file ends");
	teardown();

	make_mapped(path, "build--2");
	cr_expect_eq(remote_read(&remote, 0x41000, to, 4), -EFAULT);
	cr_expect_eq(core_file(core, 0).state, CORE_FILE_OTHER);
	cr_expect_eq(core_add_file(core, path, &fault), -EINVAL, "nothing like it was mapped");
	teardown();

	make_mapped(path, "");
	cr_expect_eq(remote_read(&remote, 0x41000, to, 4), -EFAULT);
	cr_expect_eq(core_file(core, 0).state, CORE_FILE_UNPROVEN);
	teardown();

	snprintf(link_path, sizeof(link_path), "%s.link", path);
	cr_assert_eq(symlink(path, link_path), 0);
	make_mapped(link_path, "build--1");
	cr_expect_eq(remote_read(&remote, 0x41000, to, 4), -EFAULT, "no link is followed");
	cr_expect_eq(core_file(core, 0).state, CORE_FILE_MISSING);
	cr_expect_eq(core_add_file(core, link_path, &fault), 0, "but the user's own");
	cr_expect_eq(remote_read(&remote, 0x41000, to, 4), 0);
	cr_expect_eq(memcmp(to, "from", 4), 0);
	unlink(link_path);
	unlink(path);
}

Test(core, files_that_are_none_are_not_waited_for)
{
	static const char *const paths[] = {"/dev/zero", "/dev/tty", "/", "", "relative", "/proc/self/fd/0/x"};
	char to[4];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		make_mapped(paths[i], "build--1");
		cr_expect_eq(remote_read(&remote, 0x41000, to, 4), -EFAULT, "%s", paths[i]);
		cr_expect_eq(core_file(core, 0).state, CORE_FILE_MISSING, "%s", paths[i]);
		teardown();
	}
}

Test(core, the_command_line_is_found_on_the_stack)
{
	/* As the kernel lays it out, at 0x50000. */
	const Elf64_auxv_t vector[] = {
		{AT_SYSINFO_EHDR, {0x7fff0000}}, {AT_PAGESZ, {4096}}, {AT_RANDOM, {0x50100}}, {AT_NULL, {0}}};
	uint64_t stack[128] = {2, 0x50200, 0x50208, 0, 0x50210, 0};
	char text[64];

	memcpy(&stack[6], vector, sizeof(vector));
	memcpy(&stack[64], "python3\0app.py\0\0A=1", 20);
	made_core_load(&made, 0x50000, stack, sizeof(stack), sizeof(stack), PF_R | PF_W);
	made_core_note(&made, NT_AUXV, vector, sizeof(vector));
	made_core_process(&made, 1, 1, "python3", "cut");
	cr_assert_eq(open_made(0), 0);
	cr_expect_eq(host_of(&remote)->command_line(&remote, COMMAND_LINE_FULL, text, sizeof(text)), 0);
	cr_expect_str_eq(text, "python3 app.py");
}
