/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of finding an interpreter that need none: versions, loadings of files, reasons of refusal, ELF files. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sampler/candidates.h"
#include "sampler/discover.h"
#include "sampler/elf.h"
#include "sampler/elfmem.h"
#include "sampler/permission.h"
#include "sampler/pyversion.h"

Test(discover, versions_from_numbers)
{
	struct pyversion version;

	cr_assert_eq(pyversion_from_hex(&version, 0x030b02f0), 0);
	cr_expect_eq(version.hex, 0x030b02u);
	cr_expect_str_eq(version.text, "3.11.2");
	cr_assert_eq(pyversion_from_hex(&version, 0x030f00c1), 0);
	cr_expect_str_eq(version.text, "3.15.0rc1");
	cr_expect_eq(pyversion_from_hex(&version, 0), -EPROTO);
	cr_expect_eq(pyversion_from_hex(&version, 0x030b0210), -EPROTO);
	cr_expect_eq(pyversion_from_hex(&version, UINT64_C(0x1030b02f0)), -EPROTO);
}

static int from_text(struct pyversion *version, const char *text, const char *stop)
{
	return pyversion_from_text(version, text, strlen(text) + 1, stop);
}

Test(discover, versions_from_text)
{
	static const char *const bad[] = {"", "3", "3.", "3.8", "3.8.", "3.8.x (", "3.8.18", "3.8.18(", "5.8.18 (", "3.1234.1 (",
	                                  "3.999.1 (", "3.8.1aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ("};
	struct pyversion version;

	cr_assert_eq(from_text(&version, "3.8.18 (default, May  9 2026, 10:00:00) [GCC]", " ("), 0);
	cr_expect_eq(version.hex, 0x030812u);
	cr_expect_str_eq(version.text, "3.8.18");
	cr_assert_eq(from_text(&version, "3.9.0rc1+ (heads", " ("), 0);
	cr_expect_str_eq(version.text, "3.9.0rc1+");
	cr_assert_eq(from_text(&version, "3.10.13", ""), 0);
	cr_expect_eq(version.hex, 0x030a0du);
	cr_expect_eq(from_text(&version, "3.10.13 ", ""), -EPROTO);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(from_text(&version, bad[i], " ("), -EPROTO, "%s", bad[i]);
}

static void add(struct candidates *c, uint64_t start, uint64_t off, uint64_t inode, const char *path)
{
	struct proc_map map = {
		.start = start, .end = start + 0x1000, .file_off = off, .inode = inode, .path = path, .executable = off == 0x1000};

	cr_assert_eq(candidates_add(c, &map), 0);
}

Test(discover, a_library_loaded_twice_is_two_candidates)
{
	struct candidates c = {.exe_inode = 9};

	add(&c, 0x100000, 0, 7, "/lib/libpython3.8.so");
	add(&c, 0x101000, 0x1000, 7, "/lib/libpython3.8.so");
	add(&c, 0x200000, 0, 8, "/lib/other.so");
	add(&c, 0x300000, 0, 7, "/lib/libpython3.8.so");
	add(&c, 0x301000, 0x1000, 7, "/lib/libpython3.8.so");
	add(&c, 0x400000, 0, 9, "/opt/app");
	add(&c, 0x500000, 0, 0, "[heap]");
	cr_assert_eq(c.count, 4u);
	cr_expect_eq(c.items[0].maps_count, 2u);
	cr_expect_eq(c.items[2].maps_count, 2u);
	cr_expect_eq(c.items[2].maps[0].start, 0x300000u);
	cr_expect(c.items[0].likely && c.items[0].executable);
	cr_expect(!c.items[1].likely && !c.items[1].executable);
	cr_expect(c.items[3].likely, "the program itself");
	cr_expect_not(c.pypy);
	add(&c, 0x600000, 0, 10, "/opt/bin/pypy3.9");
	cr_expect(c.pypy);
	candidates_release(&c);
}

Test(discover, candidates_are_bounded)
{
	struct candidates c = {0};

	for (uint64_t i = 0; i < 2 * CANDIDATES_MAX; i++)
		add(&c, 0x100000 + i * 0x1000, 0, 7, "/lib/x.so");
	cr_expect_eq(c.count, (size_t)CANDIDATES_MAX);
	candidates_release(&c);
	for (uint64_t i = 0; i < 4 * CANDIDATE_MAPS; i++)
		add(&c, 0x100000 + i * 0x1000, i * 0x1000, 7, "/lib/x.so");
	cr_expect_eq(c.count, 1u);
	cr_expect_eq(c.items[0].maps_count, (size_t)CANDIDATE_MAPS);
	candidates_release(&c);
}

static void expect_hint(struct permission p, const char *part)
{
	struct fault fault = {0};

	cr_expect_eq(permission_fault(&p, &fault), -EPERM);
	cr_expect_eq(fault.err, -EPERM);
	cr_expect_str_eq(fault.why, "not permitted");
	cr_expect(strstr(fault.hint, part), "\"%s\" lacks \"%s\"", fault.hint, part);
}

Test(discover, a_refusal_names_its_cause)
{
	const struct permission same = {
		.ptrace_scope = -1, .our_uid = 5, .its_uid = 5, .its_uid_known = true, .same_uids = true, .dumpable = true};
	struct permission p = same;

	expect_hint(p, "security module");
	p.ptrace_scope = 1;
	expect_hint(p, "ptrace_scope is 1");
	p.ptrace_scope = 2;
	expect_hint(p, "ptrace_scope is 2");
	p.ptrace_scope = 3;
	p.have_ptrace_cap = true;
	expect_hint(p, "until reboot");
	p = same;
	p.have_ptrace_cap = true;
	expect_hint(p, "user namespace");
	p = same;
	p.dumpable = false;
	expect_hint(p, "not dumpable");
	p = same;
	p.same_uids = false;
	expect_hint(p, "set-user-ID");
	p.its_uid = 6;
	p.ptrace_scope = 1;
	expect_hint(p, "belongs to user 6");
}

Test(discover, what_is_no_python)
{
	struct fault fault = {0};
	struct remote remote;
	struct pyproc proc;

	cr_expect_eq(discover_open(&remote, 0x3fffffff, &fault), -ESRCH);
	cr_expect(strstr(fault.why, "no such process"), "%s", fault.why);
	cr_assert_eq(discover_open(&remote, getpid(), &fault), 0);
	cr_expect_eq(discover(&proc, &remote, &fault), -ENOEXEC);
	cr_expect(strstr(fault.why, "not a Python"), "%s", fault.why);
	remote_release(&remote);
}

Test(discover, elf_of_this_program)
{
	struct elf_image *elf;
	struct elf_range range;
	bool writable, any_writable = false;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	cr_assert_eq(elf_image_open(&elf, fd), 0);
	cr_expect_eq(elf_image_symbol(elf, "discover", &range), 0);
	cr_expect_gt(range.bytes, 0u);
	cr_expect_eq(elf_image_symbol(elf, "no_such_symbol_anywhere", &range), -ENOENT);
	cr_expect_eq(elf_image_section(elf, ".text", &range), 0);
	cr_expect_eq(elf_image_section(elf, ".PyRuntime", &range), -ENOENT);
	for (unsigned i = 0; elf_image_segment(elf, i, &range, &writable); i++)
		any_writable |= writable;
	cr_expect(any_writable);
	cr_expect(elf_image_needs(elf, "libelf"));
	cr_expect_not(elf_image_needs(elf, "libpython"));
	elf_image_free(elf);
	close(fd);
}

/* The head of a real file with every byte spoilt in turn, and the file cut short: an answer, not a crash. */
Test(discover, elf_files_that_are_spoilt)
{
	enum { HEAD = 4096, STEP = 3 };
	unsigned char head[HEAD];
	int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	cr_assert_eq(pread(exe, head, sizeof(head), 0), (ssize_t)sizeof(head));
	for (size_t i = 0; i < 1024; i += STEP) {
		int fd = memfd_create("spoilt", MFD_CLOEXEC);
		struct elf_image *elf;
		struct elf_range range;
		unsigned char was = head[i];
		uint64_t bias;

		head[i] = (unsigned char)~was;
		cr_assert_eq(write(fd, head, sizeof(head)), (ssize_t)sizeof(head));
		head[i] = was;
		if (elf_image_open(&elf, fd) == 0) {
			cr_expect_neq(elf_image_symbol(elf, "discover", &range), 0, "its symbols are cut off");
			(void)elf_image_section(elf, ".PyRuntime", &range);
			(void)elf_image_needs(elf, "libpython");
			(void)elf_image_bias(elf, 0x7f0000000000, 0, &bias);
			elf_image_free(elf);
		}
		close(fd);
	}
	close(exe);
}

Test(discover, symbols_of_a_loaded_library)
{
	struct remote remote;
	struct elfmem elf;
	Dl_info info;
	raddr_t want = (raddr_t)(uintptr_t)dlsym(RTLD_DEFAULT, "elf_version");

	cr_assert_neq(dladdr((void *)(uintptr_t)want, &info), 0);
	cr_assert_eq(remote_open(&remote, getpid()), 0);
	cr_assert_eq(elfmem_init(&elf, &remote, (raddr_t)(uintptr_t)info.dli_fbase), 0);
	cr_expect_eq(elfmem_symbol(&elf, "elf_version"), want);
	cr_expect_eq(elfmem_symbol(&elf, "no_such_symbol_anywhere"), 0u);
	cr_expect_gt(elf.segments_count, 1u);
	elfmem_release(&elf);
	remote_release(&remote);
}

/* The beginning of a loaded library, copied and spoilt byte by byte: its tables are then sought in odd places. */
Test(discover, loaded_files_that_are_spoilt)
{
	enum { HEAD = 4096 };
	char *head = aligned_alloc(HEAD, HEAD);
	struct remote remote;
	struct elfmem elf;
	Dl_info info;
	unsigned passed = 0;

	cr_assert_neq(dladdr(dlsym(RTLD_DEFAULT, "elf_version"), &info), 0);
	cr_assert_eq(remote_open(&remote, getpid()), 0);
	memcpy(head, info.dli_fbase, HEAD);
	for (size_t i = 0; i < 1024; i++) {
		char was = head[i];

		head[i] = (char)~was;
		if (elfmem_init(&elf, &remote, (raddr_t)(uintptr_t)head) == 0) {
			passed++;
			(void)elfmem_symbol(&elf, "elf_version");
			elfmem_release(&elf);
		}
		head[i] = was;
	}
	cr_expect_lt(passed, 1024u);
	cr_expect_eq(elfmem_init(&elf, &remote, 8), -EFAULT);
	free(head);
	remote_release(&remote);
}
