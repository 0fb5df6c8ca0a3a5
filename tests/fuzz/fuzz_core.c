/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a core file: no read out of bounds, an end, and a reason where it is refused; and what may be asked of one that was
 * opened. No other file is read: what it names would be. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sampler/candidates.h"
#include "sampler/core_state.h"
#include "sampler/discover.h"
#include "sampler/host.h"
#include "tests/fuzz/common.h"

enum { LOOKS_MAX = 64 };

/* A file with these bytes, of which its header, by itself hard to come by, is a core's. */
static int write_core(const uint8_t *data, size_t bytes)
{
	const unsigned char ident[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB};
	const uint16_t kind[] = {ET_CORE, CORE_MACHINE};
	int fd = memfd_create("core", MFD_CLOEXEC);

	expect(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
	if (bytes >= sizeof(Elf64_Ehdr)) {
		expect(pwrite(fd, ident, sizeof(ident), 0) == sizeof(ident));
		expect(pwrite(fd, kind, sizeof(kind), EI_NIDENT) == sizeof(kind));
	}
	return fd;
}

static int check_order(void *context, const struct proc_map *map)
{
	raddr_t *end = context;

	expect(map->start >= *end && map->end > map->start && map->path);
	*end = map->end;
	return 0;
}

static void look(struct core *core)
{
	struct candidates all = {0};
	raddr_t end = 0;
	struct pyproc proc;
	struct fault fault = {0};
	struct remote remote;
	char text[256];

	remote_open_core(&remote, core);
	for (size_t i = 0; i < core->segment_count && i < LOOKS_MAX; i++) {
		ssize_t got = remote_read_some(&remote, core->segments[i].start, text, sizeof(text));

		expect(got <= (ssize_t)sizeof(text));
		expect(i == 0 ||
		       core->segments[i - 1].start + core->segments[i - 1].memory_bytes <= core->segments[i].start);
	}
	for (size_t i = 0; i < core->map_count; i++) {
		expect(core->maps[i].start < core->maps[i].end && core->maps[i].file < core->file_count);
		expect(i == 0 || core->maps[i - 1].end <= core->maps[i].start);
	}
	for (size_t i = 0; i < core->file_count; i++)
		expect(strlen(core->files[i].path) <= 4096 + 16 && core->files[i].told.build_id_bytes <= BUILD_ID_MAX);
	for (size_t i = 0; i < core_thread_count(core) && i < LOOKS_MAX; i++) {
		struct unwind_regs regs;
		struct oncpu state;

		host_core.open_oncpu(&remote, &state, core_thread(core, i)->tid);
		if (host_core.registers(&remote, core_thread(core, i)->tid, &regs))
			expect(unwind_knows(&regs, UNWIND_IP) && unwind_knows(&regs, UNWIND_SP));
	}
	expect(host_core.maps_each(&remote, check_order, &end) == 0);
	expect(host_core.command_line(&remote, COMMAND_LINE_FULL, text, sizeof(text)) == 0 && memchr(text, '\0', sizeof(text)));
	expect(candidates_collect(&all, &remote) == 0);
	candidates_release(&all);
	if (discover(&proc, &remote, &fault) != 0)
		expect(fault.why[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct core *core;
	struct fault fault = {0};
	char path[64];
	int fd = write_core(data, bytes);
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = core_open(&core, path, &fault);
	close(fd);
	expect(err <= 0 && (err == 0 || fault.why[0] != '\0'));
	if (err)
		return 0;
	for (size_t i = 0; i < core->file_count; i++)
		core->files[i].looked_for = true;
	look(core);
	core_free(core);
	return 0;
}
