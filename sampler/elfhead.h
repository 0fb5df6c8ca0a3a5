/* SPDX-License-Identifier: Apache-2.0 */
/* What the program headers of a loaded ELF file tell, for files that may be hostile, and for the vdso, which is none. Unlike elf.h it needs no
 * section headers, and reads a few hundred bytes. */
#ifndef SAMPLED_SAMPLER_ELFHEAD_H
#define SAMPLED_SAMPLER_ELFHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/record.h"

struct elf_bytes { /* where a file's bytes come from */
	int fd;
	const uint8_t *data; /* not NULL: these, and fd is not used */
	size_t data_bytes;
};

enum { ELFHEAD_SEGMENTS = 64 };

struct elfhead {
	struct elfhead_segment {
		uint64_t addr, file_off, file_bytes, memory_bytes;
		bool executable;
	} segments[ELFHEAD_SEGMENTS]; /* what is loaded */
	unsigned segments_count;
	uint64_t entry;
	uint64_t unwind_addr, unwind_bytes; /* .eh_frame_hdr; 0: none */
	uint8_t build_id[BUILD_ID_MAX];
	uint32_t build_id_bytes;
	char soname[64]; /* "": it has none, or a longer one */
};

/* Exactly `bytes` at file_off. 0, -ENOEXEC (beyond the end), or another -errno. */
int elf_bytes_read(const struct elf_bytes *from, uint64_t file_off, void *to, size_t bytes);

/* 0; -ENOEXEC: no 64-bit ELF file for this machine, or one that makes no sense; or another -errno. */
int elfhead_read(struct elfhead *ret_head, const struct elf_bytes *from);

/* What to add to the file's addresses where its part at file_off was mapped executable at map_start. 0, or -ENOENT: no segment is there. */
int elfhead_bias(const struct elfhead *head, uint64_t map_start, uint64_t file_off, uint64_t *ret_bias);

/* From addr to the end of what its segment has in the file, at most max_bytes. *ret_data is malloc()ed. 0, -ENOENT (not in the file), -EFBIG or
 * another -errno. */
int elfhead_load(const struct elfhead *head, const struct elf_bytes *from, uint64_t addr, size_t max_bytes,
                 uint8_t **ret_data, size_t *ret_bytes);

#endif
