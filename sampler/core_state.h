/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a core, shared by the files that read it. */
#ifndef SAMPLED_SAMPLER_CORE_STATE_H
#define SAMPLED_SAMPLER_CORE_STATE_H

#include <elf.h>
#include <pthread.h>

#include "sampler/core.h"

#if defined(__x86_64__)
enum { CORE_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { CORE_MACHINE = EM_AARCH64 };
#else
#error "unknown machine: which core files are of it?"
#endif

struct core_segment {
	raddr_t start;
	uint64_t memory_bytes, file_bytes, file_off; /* file_bytes as promised, not as there */
	bool writable, executable;
};

struct core_map { /* of a file */
	raddr_t start, end;
	uint64_t file_off;
	uint32_t file;
};

struct core_mapped { /* a file that was mapped */
	struct core_file told;
	char *path; /* owned; what told.path is */
	int fd;     /* -1: not open */
	bool looked_for;
};

struct core {
	int fd;
	uint64_t bytes; /* of the core file */
	uid_t uid;
	gid_t gid;
	uint64_t missing_bytes;
	struct core_segment *segments; /* owned; in rising order, apart from one another */
	size_t segment_count;
	struct core_map *maps; /* owned; likewise */
	size_t map_count, map_room;
	pthread_mutex_t lock;      /* guards what files are looked for: who gives names asks for them while the memory is read */
	struct core_mapped *files; /* owned */
	size_t file_count, file_room;
	size_t open_files;
	struct core_thread *threads; /* owned */
	size_t thread_count, thread_room;
	struct core_process process;
	Elf64_auxv_t *auxv; /* owned */
	size_t auxv_count;
};

/* core.c: exactly these bytes of the core file, or -EFAULT. */
int core_pread(const struct core *core, uint64_t at, void *to, uint64_t bytes);
/* The segment or mapping with this address, or NULL; `next`: the first one above it, or NULL. */
const struct core_segment *core_find_segment(const struct core *core, raddr_t addr,
                                             const struct core_segment **ret_next);
const struct core_map *core_find_map(const struct core *core, raddr_t addr);
/* What the core itself has there: as much as lies in one segment; 0: nothing. */
size_t core_read_own(const struct core *core, raddr_t addr, void *to, size_t bytes);

/* core_notes.c: what the notes at [at, at + bytes) of the file tell. 0 or -ENOMEM. */
int core_take_notes(struct core *core, uint64_t at, uint64_t bytes);
/* The value of an entry of the auxiliary vector; 0: none. */
uint64_t core_auxv(const struct core *core, uint64_t type);

/* core_files.c */
/* Adds a file that was mapped; path is copied. Its index, or -ENOMEM, -E2BIG. */
ssize_t core_add_mapped(struct core *core, const char *path, size_t path_bytes);
/* Adds a mapping of one. 0, -ENOMEM or -E2BIG. */
int core_add_map(struct core *core, struct core_map map);
/* After all are known: puts them in order, and finds the build ids. 0 or -ENOMEM. */
int core_settle_maps(struct core *core);
/* The file, opened when first asked for; stays the core's. -errno: it is not to be had. */
int core_file_fd(struct core *core, size_t i);

#endif
