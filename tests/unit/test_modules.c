/* SPDX-License-Identifier: Apache-2.0 */
/* The modules of this very process, and of an eval loop made for the purpose. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampler/evalloop.h"
#include "sampler/modules.h"

struct here {
	struct remote remote;
	struct pyproc proc;
	struct symtab *symbols;
	struct modules *modules;
};

static void open_here(struct here *here)
{
	memset(here, 0, sizeof(*here));
	here->proc.pid = getpid();
	cr_assert_eq(remote_open(&here->remote, getpid()), 0);
	cr_assert_eq(symtab_new(&here->symbols), 0);
	cr_assert_eq(modules_new(&here->modules, &here->remote, &here->proc, here->symbols, 1), 0);
}

static void close_here(struct here *here)
{
	modules_free(here->modules);
	symtab_free(here->symbols);
	remote_release(&here->remote);
}

/* Older than what is read anew at once. */
static void wait_a_little(void)
{
	usleep(60000);
}

static void expect_file_bytes(const struct module *module, raddr_t pc, const char *path)
{
	uint8_t bytes[16];
	int fd = open(path, O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_assert_eq(pread(fd, bytes, sizeof(bytes), modules_where(module, pc)), (ssize_t)sizeof(bytes));
	cr_expect_eq(memcmp(bytes, (const void *)(uintptr_t)pc, sizeof(bytes)), 0, "another place in the file");
	close(fd);
}

Test(modules, of_the_program_and_the_c_library)
{
	raddr_t ours = (raddr_t)(uintptr_t)expect_file_bytes, libc = (raddr_t)(uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
	struct module *program, *library;
	char path[4096] = "";
	struct here here;

	open_here(&here);
	program = modules_find(here.modules, ours);
	library = modules_find(here.modules, libc);
	cr_assert(program && library && program != library);
	cr_assert_gt(readlink("/proc/self/exe", path, sizeof(path) - 1), 0);
	cr_expect_str_eq(modules_path(program), path);
	cr_expect_eq(program->flags, 0u);
	cr_expect_eq(library->flags, (uint32_t)MAPPING_SYSTEM);
	expect_file_bytes(program, ours, path);
	expect_file_bytes(library, libc, modules_path(library));
	cr_expect(modules_tables(here.modules, program) && modules_tables(here.modules, library));
	cr_expect_eq(modules_find(here.modules, libc + 1), library);
	cr_expect_null(modules_find(here.modules, (raddr_t)(uintptr_t)&here), "data is no code");
	cr_expect_not(modules_know_eval(here.modules), "it is no interpreter");
	cr_expect_not(modules_is_eval(here.modules, ours));
	close_here(&here);
}

Test(modules, have_an_id_when_they_are_used)
{
	struct module *program, *library;
	struct here here;
	uint32_t id;

	open_here(&here);
	program = modules_find(here.modules, (raddr_t)(uintptr_t)expect_file_bytes);
	library = modules_find(here.modules, (raddr_t)(uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
	cr_assert(program && library);
	cr_expect_eq(program->id, 0u);
	cr_expect_eq(symtab_defined(here.symbols), 0u);
	id = modules_use(here.modules, program);
	cr_expect(id && program->id == id && modules_use(here.modules, program) == id);
	cr_expect_neq(modules_use(here.modules, library), id);
	cr_expect_eq(symtab_defined(here.symbols), 2u);
	close_here(&here);
}

Test(modules, of_the_vdso)
{
	raddr_t vdso = getauxval(AT_SYSINFO_EHDR);
	struct module *module;
	struct here here;

	if (!vdso)
		cr_skip_test("there is none");
	open_here(&here);
	module = modules_find(here.modules, vdso + 16);
	cr_assert_not_null(module);
	cr_expect_str_eq(modules_path(module), "[vdso]");
	cr_expect_eq(module->flags, (uint32_t)MAPPING_SYSTEM);
	cr_expect_eq(modules_where(module, vdso + 16), 16u);
	cr_expect_not_null(modules_tables(here.modules, module), "read from the process");
	close_here(&here);
}

Test(modules, of_memory_without_a_file)
{
	uint8_t *memory = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("code", MFD_CLOEXEC);
	uint8_t *other;
	struct module *module;
	struct here here;
	uint32_t id;

	cr_assert(memory != MAP_FAILED && fd >= 0 && ftruncate(fd, 4096) == 0);
	other = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	cr_assert_neq(other, MAP_FAILED);
	open_here(&here);
	module = modules_find(here.modules, (raddr_t)(uintptr_t)memory + 100);
	cr_assert_not_null(module);
	cr_expect_str_eq(modules_path(module), "");
	cr_expect_eq(module->flags, (uint32_t)MAPPING_MEMORY);
	cr_expect_eq(modules_where(module, (raddr_t)(uintptr_t)memory + 100), 100u);
	cr_expect_null(modules_tables(here.modules, module));
	id = modules_use(here.modules, module);
	module = modules_find(here.modules, (raddr_t)(uintptr_t)other + 5);
	cr_assert_not_null(module);
	cr_expect_eq(module->flags, (uint32_t)MAPPING_MEMORY);
	cr_expect_neq(modules_use(here.modules, module), id);
	close_here(&here);
	munmap(memory, 8192);
	munmap(other, 4096);
	close(fd);
}

/* A library of one function that no other process has: made, and put where it says. */
static void make_library(char *path, size_t room, const char *code, const char *options)
{
	char command[1024];

	snprintf(path, room, "/tmp/sampled-modules-%d.so", (int)getpid());
	snprintf(command, sizeof(command), "printf '%%s' '%s' | cc -O2 -fPIC -shared -Wl,--build-id %s -x c - -o %s",
	         code, options, path);
	cr_assert_eq(system(command), 0);
}

/* The mappings are not read again at once, and the longer that takes (as in a sanitized build), the later. */
static struct module *find_new(struct modules *modules, raddr_t addr)
{
	struct module *module = NULL;

	for (int i = 0; i < 100 && !module; i++) {
		wait_a_little();
		module = modules_find(modules, addr);
	}
	return module;
}

Test(modules, come_and_go)
{
	char path[64];
	struct here here;
	struct module *module;
	uint64_t generation;
	raddr_t function;
	uint32_t id;
	void *handle;

	make_library(path, sizeof(path), "int sampled_test(void) { return 7; }", "");
	open_here(&here);
	modules_find(here.modules, (raddr_t)(uintptr_t)expect_file_bytes);
	handle = dlopen(path, RTLD_NOW);
	cr_assert_not_null(handle);
	function = (raddr_t)(uintptr_t)dlsym(handle, "sampled_test");
	generation = modules_generation(here.modules);
	module = find_new(here.modules, function);
	cr_assert_not_null(module);
	cr_expect_str_eq(modules_path(module), path);
	cr_expect_eq(modules_generation(here.modules), generation, "nothing went away");
	id = modules_use(here.modules, module);
	dlclose(handle);
	for (int i = 0; i < 100 && modules_find(here.modules, function); i++) {
		wait_a_little();
		modules_doubt(here.modules);
	}
	cr_expect_null(modules_find(here.modules, function));
	cr_expect_neq(modules_generation(here.modules), generation);
	cr_expect_eq(module->id, id, "who saw it may still name it");
	modules_forget(here.modules);
	/* Loaded again it is the same to who reads, and has a number of its own. */
	handle = dlopen(path, RTLD_NOW);
	module = find_new(here.modules, (raddr_t)(uintptr_t)dlsym(handle, "sampled_test"));
	cr_assert_not_null(module);
	cr_expect_neq(modules_use(here.modules, module), id);
	dlclose(handle);
	close_here(&here);
	unlink(path);
}

static volatile sig_atomic_t stalled;

static void stall(int signal_number)
{
	struct timespec wait = {.tv_nsec = 300 * NS_PER_MS};

	(void)signal_number;
	nanosleep(&wait, NULL);
	stalled = 1;
}

/* One reading that had to wait for a CPU says nothing of what reading costs. */
Test(modules, come_after_a_reading_that_was_interrupted)
{
	struct itimerval soon = {.it_value = {.tv_usec = 20}};
	char path[64];
	struct here here;
	void *handle;

	make_library(path, sizeof(path), "int sampled_test(void) { return 7; }", "");
	open_here(&here);
	cr_assert_neq(signal(SIGALRM, stall), SIG_ERR);
	cr_assert_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
	modules_find(here.modules, (raddr_t)(uintptr_t)expect_file_bytes);
	cr_assert(stalled);
	handle = dlopen(path, RTLD_NOW);
	cr_assert_not_null(handle);
	cr_expect_not_null(find_new(here.modules, (raddr_t)(uintptr_t)dlsym(handle, "sampled_test")));
	dlclose(handle);
	close_here(&here);
	unlink(path);
}

Test(modules, of_a_file_that_was_removed)
{
	char path[64];
	struct here here;
	struct module *module;
	void *handle;

	make_library(path, sizeof(path), "int sampled_test(void) { return 7; }", "");
	handle = dlopen(path, RTLD_NOW);
	cr_assert_not_null(handle);
	unlink(path);
	open_here(&here);
	module = modules_find(here.modules, (raddr_t)(uintptr_t)dlsym(handle, "sampled_test"));
	cr_assert_not_null(module);
	cr_expect_str_eq(modules_path(module), path);
	if (geteuid() == 0)
		cr_expect_not_null(modules_tables(here.modules, module), "through the mapping's own link");
	close_here(&here);
	dlclose(handle);
}

/* What compilers do to the real one: the unlikely half of it stands elsewhere. */
static const char loop_code[] =
	"extern int rare(int) __attribute__((cold, noinline)); volatile int told; static int helper(int x) { told = x; "
	"return x; }"
	"int _PyEval_EvalFrameDefaultOther(int x) { return x; }"
	"int _PyEval_EvalFrameDefault(const unsigned char *p, int x) {"
	"for (;;) switch (*p++) {"
	"case 0: return x; case 1: x += 3; told = x; break; case 2: x *= told; break; case 3: x ^= helper(x); break;"
	"case 4: if (__builtin_expect(x == 77, 0)) { x = rare(x); told++; } told = 1; break;"
	"case 5: if (__builtin_expect(x == 99, 0)) { x = rare(x + 1); told--; } told = 3; break;"
	"case 6: if (__builtin_expect(x < -9, 0)) { told = rare(x * 2); x--; } told = 9; break;"
	"default: told = 5; } }"
	"int rare(int x) { told += x; return told; }";

static struct evalloop *find_loop(const char *path)
{
	struct elf_bytes from = {.fd = open(path, O_RDONLY)};
	struct evalloop *loop = NULL;
	struct unwind_tables tables = {0};
	struct elfhead head;
	uint8_t *data;
	size_t bytes;

	cr_assert_geq(from.fd, 0);
	cr_assert_eq(elfhead_read(&head, &from), 0);
	cr_expect_eq(head.build_id_bytes, 20u);
	cr_assert_eq(elfhead_load(&head, &from, head.unwind_addr, 1 << 20, &data, &bytes), 0);
	tables.pieces[0] = (struct unwind_piece){.addr = head.unwind_addr, .bytes = (uint32_t)bytes, .data = data};
	cr_assert_eq(unwind_tables_init(&tables), 0);
	cr_assert_eq(evalloop_find(&loop, from.fd, &head, &tables), 0);
	free(data);
	close(from.fd);
	return loop;
}

Test(modules, know_the_eval_loop_with_and_without_symbols)
{
	struct evalloop *named, *stripped;
	unsigned inside = 0, differ = 0;
	char path[64], command[128];

	make_library(path, sizeof(path), loop_code, "-freorder-blocks-and-partition");
	named = find_loop(path);
	snprintf(command, sizeof(command), "strip %s", path);
	cr_assert_eq(system(command), 0);
	stripped = find_loop(path);
	for (uint64_t addr = 0; addr < 0x10000; addr++) {
		inside += evalloop_has(named, addr);
		differ += evalloop_has(named, addr) != evalloop_has(stripped, addr);
		cr_expect_not(evalloop_has_inner(named, addr));
	}
	cr_expect_gt(inside, 60u);
	cr_expect_eq(differ, 0u, "%u of %u bytes", differ, inside);
	evalloop_free(named);
	evalloop_free(stripped);
	unlink(path);
}

Test(modules, know_handlers_that_call_each_other_as_tails)
{
	static const char code[] =
		"volatile int told; static __attribute__((noinline)) int _TAIL_CALL_NOP(int x) { told = x; return x; }"
		"int _PyEval_EvalFrameDefault(int x) { told = 1; return _TAIL_CALL_NOP(x) + told; }";
	struct evalloop *loop;
	unsigned outer = 0, inner = 0;
	char path[64];

	make_library(path, sizeof(path), code, "-fno-ipa-sra");
	loop = find_loop(path);
	for (uint64_t addr = 0; addr < 0x10000; addr++) {
		cr_expect_not(evalloop_has(loop, addr) && evalloop_has_inner(loop, addr));
		outer += evalloop_has(loop, addr);
		inner += evalloop_has_inner(loop, addr);
	}
	cr_expect(outer > 5 && inner > 5);
	evalloop_free(loop);
	unlink(path);
}
