/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/module_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/host.h"

enum { VDSO_BYTES_MAX = 256 * 1024 };

/* Made while the program runs, though a file of the kernel's stands behind it. */
static bool is_memory(const struct proc_map *map)
{
	static const char *const made[] = {"/memfd:", "/dev/zero", "/SYSV", "/anon_hugepage", "//anon"};

	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		if (strncmp(map->path, made[i], strlen(made[i])) == 0)
			return true;
	return map->inode == 0;
}

static bool is_kernels(const char *path)
{
	return strcmp(path, "[vdso]") == 0 || strcmp(path, "[vsyscall]") == 0;
}

struct module_file *module_file_new(const struct proc_map *map)
{
	struct module_file *file = calloc(1, sizeof(*file));
	bool memory = is_memory(map) && !is_kernels(map->path);

	if (!file)
		return NULL;
	file->path = strdup(memory ? "" : map->path);
	if (!file->path) {
		free(file);
		return NULL;
	}
	file->map = *map;
	file->map.path = file->path;
	file->flags = memory ? MAPPING_MEMORY : 0;
	if (is_kernels(file->path))
		file->flags = MAPPING_SYSTEM;
	file->vdso = strcmp(file->path, "[vdso]") == 0;
	return file;
}

void module_file_unload(struct module_file *file)
{
	for (unsigned i = 0; i < UNWIND_PIECES; i++) {
		free(file->pieces[i]);
		file->pieces[i] = NULL;
	}
	file->pieces_bytes = 0;
	file->tables_good = false;
}

void module_file_free(struct module_file *file)
{
	if (!file)
		return;
	module_file_unload(file);
	evalloop_free(file->eval);
	free(file->head);
	free(file->memory);
	free(file->path);
	free(file);
}

/* The C library and the dynamic linker, glibc's and musl's, in all their files. */
static bool is_system(const char *name)
{
	static const char *const names[] = {"libc.so.", "libc.musl-", "libpthread.so.", "libdl.so.", "librt.so.",
	                                    "ld-linux", "ld-musl-",   "libc-2.",        "ld-2.",     "libpthread-2."};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return strcmp(name, "libc.so") == 0;
}

static int open_bytes(const struct module_file *file, const struct remote *remote, const struct proc_map *map,
                      struct elf_bytes *ret_bytes)
{
	int fd;

	if (file->memory) {
		*ret_bytes = (struct elf_bytes){.fd = -1, .data = file->memory, .data_bytes = file->memory_bytes};
		return 0;
	}
	if (file->flags & MAPPING_MEMORY || file->map.inode == 0)
		return -ENOENT;
	fd = host_of(remote)->open_mapped(remote, map);
	if (fd < 0)
		return fd;
	*ret_bytes = (struct elf_bytes){.fd = fd};
	return 0;
}

static void close_bytes(const struct elf_bytes *bytes)
{
	if (bytes->fd >= 0)
		close(bytes->fd);
}

static void copy_vdso(struct module_file *file, const struct remote *remote, const struct proc_map *map)
{
	uint64_t bytes = map->end - map->start;

	if (bytes > VDSO_BYTES_MAX)
		return;
	file->memory = malloc((size_t)bytes);
	if (!file->memory)
		return;
	if (remote_read(remote, map->start, file->memory, (size_t)bytes) == 0) {
		file->memory_bytes = (size_t)bytes;
		return;
	}
	free(file->memory);
	file->memory = NULL;
}

static int load_pieces(struct module_file *file, const struct elf_bytes *from, size_t max_bytes)
{
	uint64_t hdr = file->head->unwind_addr, frames;
	size_t bytes[UNWIND_PIECES] = {0};
	int err = elfhead_load(file->head, from, hdr, max_bytes, &file->pieces[0], &bytes[0]);

	if (err)
		return err;
	err = unwind_tables_frames(file->pieces[0], bytes[0], hdr, &frames);
	if (err)
		return err;
	if (frames < hdr || frames - hdr >= bytes[0]) {
		err = elfhead_load(file->head, from, frames, max_bytes - bytes[0], &file->pieces[1], &bytes[1]);
		if (err)
			return err;
	}
	file->tables = (struct unwind_tables){
		.pieces = {{.addr = hdr, .bytes = (uint32_t)bytes[0], .data = file->pieces[0]},
	                   {.addr = frames, .bytes = (uint32_t)bytes[1], .data = file->pieces[1]}},
	};
	file->pieces_bytes = bytes[0] + bytes[1];
	return unwind_tables_init(&file->tables);
}

static int load_from(struct module_file *file, const struct elf_bytes *from, size_t max_bytes)
{
	int err;

	if (!file->head || file->head->unwind_addr == 0)
		return -ENOENT;
	module_file_unload(file);
	err = load_pieces(file, from, max_bytes);
	if (err)
		module_file_unload(file);
	else
		file->tables_good = true;
	return err;
}

int module_file_load(struct module_file *file, const struct remote *remote, const struct proc_map *map,
                     size_t max_bytes)
{
	struct elf_bytes from;
	int err = open_bytes(file, remote, map, &from);

	if (err)
		return err;
	err = load_from(file, &from, max_bytes);
	close_bytes(&from);
	return err;
}

void module_file_examine(struct module_file *file, const struct remote *remote, const struct proc_map *map,
                         bool interpreter)
{
	const char *base = strrchr(file->path, '/');
	struct elf_bytes from;

	file->examined = true;
	if (file->vdso)
		copy_vdso(file, remote, map);
	if (open_bytes(file, remote, map, &from))
		return;
	file->head = malloc(sizeof(*file->head));
	if (file->head && elfhead_read(file->head, &from)) {
		free(file->head);
		file->head = NULL;
	}
	if (file->head && is_system(file->head->soname[0] || !base ? file->head->soname : base + 1))
		file->flags |= MAPPING_SYSTEM;
	if (interpreter && file->head && from.fd >= 0) {
		load_from(file, &from, SIZE_MAX / 2);
		evalloop_find(&file->eval, from.fd, file->head, file->tables_good ? &file->tables : NULL);
	}
	close_bytes(&from);
}
