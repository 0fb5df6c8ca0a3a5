/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic symbols of a loaded ELF file, from the process' memory alone: for files that cannot be opened (deleted, and
 * no capability to follow the mapping's link) or that have no section headers. */
#ifndef SAMPLED_SAMPLER_ELFMEM_H
#define SAMPLED_SAMPLER_ELFMEM_H

#include <stdbool.h>
#include <stddef.h>

#include "sampler/remote.h"

enum { ELFMEM_SEGMENTS = 32 };

struct elfmem {
	uint64_t bias;
	struct elfmem_segment {
		raddr_t addr;
		uint64_t bytes;
		bool writable;
	} segments[ELFMEM_SEGMENTS]; /* in the process */
	size_t segments_count;
	char *symbols; /* owned: Elf64_Sym, symbols_count of them */
	size_t symbols_count;
	char *strings; /* owned */
	size_t strings_bytes;
};

/* Reads what was loaded at base, the mapping of the file's beginning. 0, -ENOEXEC (makes no sense), or another -errno. */
int elfmem_init(struct elfmem *ret_elf, const struct remote *r, raddr_t base);
void elfmem_release(struct elfmem *elf);
/* The address of a defined symbol in the process, or 0. */
raddr_t elfmem_symbol(const struct elfmem *elf, const char *name);

#endif
