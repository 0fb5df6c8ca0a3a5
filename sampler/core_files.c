/* SPDX-License-Identifier: Apache-2.0 */
/* The files that were mapped: which, where, and whether the ones of these names are still the same. A core may name any file: one is
 * read only if it is a regular one and has the build id that the first page of the mapping in the core shows, or if the user gave it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/core_state.h"
#include "sampler/elfhead.h"

enum {
	MAPS_MAX = 1 << 17,
	FILES_MAX = 1 << 16,
	OPEN_FILES_MAX = 256,
	HEAD_BYTES = 16384,
};

ssize_t core_add_mapped(struct core *core, const char *path, size_t path_bytes)
{
	struct core_mapped *file;

	if (core->file_count >= FILES_MAX || path_bytes > PATH_MAX + 16)
		return -E2BIG;
	if (core->file_count == core->file_room) {
		size_t room = core->file_room ? 2 * core->file_room : 32;
		struct core_mapped *files = realloc(core->files, room * sizeof(*files));

		if (!files)
			return -ENOMEM;
		core->files = files;
		core->file_room = room;
	}
	file = &core->files[core->file_count];
	*file = (struct core_mapped){.path = strndup(path, path_bytes), .fd = -1};
	if (!file->path)
		return -ENOMEM;
	return (ssize_t)core->file_count++;
}

int core_add_map(struct core *core, struct core_map map)
{
	if (core->map_count >= MAPS_MAX)
		return -E2BIG;
	if (core->map_count == core->map_room) {
		size_t room = core->map_room ? 2 * core->map_room : 64;
		struct core_map *maps = realloc(core->maps, room * sizeof(*maps));

		if (!maps)
			return -ENOMEM;
		core->maps = maps;
		core->map_room = room;
	}
	core->maps[core->map_count++] = map;
	return 0;
}

const struct core_map *core_find_map(const struct core *core, raddr_t addr)
{
	size_t low = 0, high = core->map_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (core->maps[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < core->map_count && core->maps[low].start <= addr ? &core->maps[low] : NULL;
}

/* What the headers say of the file that begins at this address, as far as the core itself has it: they and the build id lie in the first page, or in
 * none that a core keeps. 0 or -errno. */
static int read_head(const struct core *core, raddr_t addr, struct elfhead *ret_head)
{
	uint8_t data[HEAD_BYTES];
	const struct elf_bytes bytes = {
		.fd = -1, .data = data, .data_bytes = core_read_own(core, addr, data, sizeof(data))};

	return elfhead_read(ret_head, &bytes);
}

/* The length of the file's id, or 0. */
static uint32_t read_build_id(int fd, uint8_t *to)
{
	struct elfhead head;

	if (elfhead_read(&head, &(struct elf_bytes){.fd = fd}))
		return 0;
	memcpy(to, head.build_id, head.build_id_bytes);
	return head.build_id_bytes;
}

static bool begins_elf(const struct core *core, raddr_t addr)
{
	char magic[SELFMAG];

	return core_read_own(core, addr, magic, sizeof(magic)) == sizeof(magic) && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* Segments that begin an ELF file, for want of notes: of a core that was cut, and had them behind the memory. */
static int add_unnamed(struct core *core)
{
	for (size_t i = 0; i < core->segment_count; i++) {
		const struct core_segment *segment = &core->segments[i];
		ssize_t file;
		int err;

		if (!begins_elf(core, segment->start))
			continue;
		file = core_add_mapped(core, "", 0);
		err = file < 0 ? (int)file
		               : core_add_map(core, (struct core_map){.start = segment->start,
		                                                      .end = segment->start + segment->memory_bytes,
		                                                      .file = (uint32_t)file});
		if (err)
			return err == -E2BIG ? 0 : err;
	}
	return 0;
}

static int compare_maps(const void *left, const void *right)
{
	const struct core_map *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->end > b->end) - (a->end < b->end);
}

int core_settle_maps(struct core *core)
{
	size_t kept = 0;
	raddr_t end = 0;

	/* Where notes tell of the mappings, what they leave out is no file: the kernel's own code. */
	if (core->map_count == 0 && add_unnamed(core))
		return -ENOMEM;
	if (core->map_count)
		qsort(core->maps, core->map_count, sizeof(core->maps[0]), compare_maps);
	for (size_t i = 0; i < core->map_count; i++) {
		if (core->maps[i].start < end)
			continue;
		end = core->maps[i].end;
		core->maps[kept++] = core->maps[i];
	}
	core->map_count = kept;
	for (size_t i = 0; i < core->map_count; i++) {
		struct core_file *told = &core->files[core->maps[i].file].told;
		struct elfhead head;

		if (core->maps[i].file_off != 0 || told->build_id_bytes || read_head(core, core->maps[i].start, &head))
			continue;
		memcpy(told->build_id, head.build_id, head.build_id_bytes);
		told->build_id_bytes = head.build_id_bytes;
	}
	return 0;
}

uint64_t core_program(const struct core *core)
{
	const struct core_map *map = core_find_map(core, core_auxv(core, AT_PHDR));

	if (!map)
		map = core_find_map(core, core_auxv(core, AT_ENTRY));
	return map ? (uint64_t)map->file + 1 : 0;
}

/* Whether the mapped file's own headers call what was mapped there code. */
static bool is_code(const struct core *core, const struct core_map *map)
{
	const struct core_map *first = map;
	struct elfhead head;
	uint64_t bias;

	while (first > core->maps && first->file_off > 0 && first[-1].file == map->file)
		first--;
	return first->file_off == 0 && read_head(core, first->start, &head) == 0 &&
	       elfhead_bias(&head, map->start, map->file_off, &bias) == 0;
}

/* Code in memory that begins in [from, to), between mappings of files: the kernel's, and what was made while the program ran. `at`: the first segment
 * that was not looked at yet. */
static int tell_memory(const struct core *core, size_t *at, raddr_t from, raddr_t to,
                       int (*fn)(void *context, const struct proc_map *map), void *context)
{
	const raddr_t vdso = core_auxv(core, AT_SYSINFO_EHDR);
	int stop = 0;

	for (; !stop && *at < core->segment_count && core->segments[*at].start < to; ++*at) {
		const struct core_segment *segment = &core->segments[*at];
		uint64_t room = to - segment->start;
		bool is_vdso = vdso != 0 && segment->start == vdso;
		const struct proc_map found = {
			.start = segment->start,
			.end = segment->start + (segment->memory_bytes < room ? segment->memory_bytes : room),
			.readable = true,
			.writable = segment->writable,
			.executable = true,
			.path = is_vdso ? "[vdso]" : "",
		};

		if (segment->start >= from && (segment->executable || is_vdso))
			stop = fn(context, &found);
	}
	return stop;
}

static int tell_file(const struct core *core, const struct core_map *map,
                     int (*fn)(void *context, const struct proc_map *map), void *context)
{
	const struct core_segment *next, *segment = core_find_segment(core, map->start, &next);
	const struct proc_map found = {
		.start = map->start,
		.end = map->end,
		.file_off = map->file_off,
		.readable = true,
		.writable = segment && segment->writable,
		/* Debuggers leave out the code, and mark nothing as code. */
		.executable = (segment && segment->executable) ||
	                      (map->file_off == 0 && begins_elf(core, map->start)) || is_code(core, map),
		.inode = (uint64_t)map->file + 1,
		.path = core->files[map->file].path,
	};

	return fn(context, &found);
}

int core_maps_each(struct core *core, int (*fn)(void *context, const struct proc_map *map), void *context)
{
	size_t segment = 0;
	raddr_t end = 0;
	int stop = 0;

	for (size_t i = 0; !stop && i < core->map_count; i++) {
		stop = tell_memory(core, &segment, end, core->maps[i].start, fn, context);
		if (!stop)
			stop = tell_file(core, &core->maps[i], fn, context);
		end = core->maps[i].end;
	}
	return stop ? stop : tell_memory(core, &segment, end, UINT64_MAX, fn, context);
}

/* Opens a regular file, without waiting and without waking a device. `follow`: through a link at the end of its name. */
static int open_regular(const char *path, bool follow)
{
	char self[64];
	struct stat st;
	int fd, look_fd = open(path, O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));

	if (look_fd < 0)
		return -errno;
	if (fstat(look_fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(look_fd);
		return -ENOENT;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", look_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		fd = -errno;
	close(look_fd);
	return fd;
}

/* Opens the file of that name, if it is the one. " (deleted)" is what the kernel wrote behind a name that was gone: another file may
 * have come to it, with the same content. */
static void look_for(struct core *core, struct core_mapped *file)
{
	static const char mark[] = " (deleted)";
	size_t bytes = strlen(file->path);
	uint8_t id[BUILD_ID_MAX];
	char path[PATH_MAX];
	int fd;

	file->looked_for = true;
	file->told.state = CORE_FILE_MISSING;
	if (bytes > strlen(mark) && strcmp(file->path + bytes - strlen(mark), mark) == 0)
		bytes -= strlen(mark);
	if (file->path[0] != '/' || bytes >= sizeof(path) || core->open_files >= OPEN_FILES_MAX)
		return;
	memcpy(path, file->path, bytes);
	path[bytes] = '\0';
	fd = open_regular(path, false);
	if (fd < 0)
		return;
	if (file->told.build_id_bytes == 0) {
		file->told.state = CORE_FILE_UNPROVEN;
	} else if (read_build_id(fd, id) != file->told.build_id_bytes ||
	           memcmp(id, file->told.build_id, file->told.build_id_bytes) != 0) {
		file->told.state = CORE_FILE_OTHER;
	} else {
		file->told.state = CORE_FILE_USED;
		file->fd = fd;
		core->open_files++;
		return;
	}
	close(fd);
}

int core_file_fd(struct core *core, size_t i)
{
	struct core_mapped *file = &core->files[i];
	int fd;

	pthread_mutex_lock(&core->lock);
	if (!file->looked_for)
		look_for(core, file);
	fd = file->fd >= 0 ? file->fd : -ENOENT;
	pthread_mutex_unlock(&core->lock);
	return fd;
}

int core_open_mapped(struct core *core, const struct proc_map *map)
{
	int fd;

	if (map->inode == 0 || map->inode > core->file_count)
		return -ENOENT;
	fd = core_file_fd(core, (size_t)map->inode - 1);
	if (fd < 0)
		return fd;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* Which of the mapped files this one is; file_count: none. */
static size_t find_given(const struct core *core, const uint8_t *id, uint32_t id_bytes)
{
	size_t program = (size_t)core_program(core);

	for (size_t i = 0; id_bytes && i < core->file_count; i++)
		if (core->files[i].told.build_id_bytes == id_bytes &&
		    memcmp(core->files[i].told.build_id, id, id_bytes) == 0)
			return i;
	/* What cannot be compared is the user's to know. */
	if (program && core->files[program - 1].told.build_id_bytes == 0)
		return program - 1;
	return core->file_count;
}

int core_add_file(struct core *core, const char *path, struct fault *fault)
{
	uint8_t id[BUILD_ID_MAX];
	uint32_t id_bytes;
	size_t found;
	int err, fd = open_regular(path, true);

	if (fd < 0)
		return fault_set(fault, fd, "", "%s", strerror(-fd));
	id_bytes = read_build_id(fd, id);
	found = find_given(core, id, id_bytes);
	if (found == core->file_count || core->open_files >= OPEN_FILES_MAX) {
		close(fd);
		err = -EINVAL;
		return fault_set(fault, err, "the build ids differ: readelf -n shows them",
		                 "no file like it was mapped");
	}
	if (core->files[found].fd >= 0)
		close(core->files[found].fd);
	else
		core->open_files++;
	core->files[found].fd = fd;
	core->files[found].looked_for = true;
	core->files[found].told.state = CORE_FILE_USED;
	return 0;
}

size_t core_file_count(const struct core *core)
{
	return core->file_count;
}

struct core_file core_file(const struct core *core, size_t i)
{
	struct core_file told = core->files[i].told;

	told.path = core->files[i].path;
	return told;
}
