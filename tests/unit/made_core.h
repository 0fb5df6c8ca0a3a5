/* SPDX-License-Identifier: Apache-2.0 */
/* A core file made by hand, piece by piece, written when all of it is known. */
#ifndef SAMPLED_TESTS_UNIT_MADE_CORE_H
#define SAMPLED_TESTS_UNIT_MADE_CORE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { MADE_LOADS_MAX = 16 };

struct made_core { /* all 0: none yet */
	Elf64_Ehdr head;
	Elf64_Phdr loads[MADE_LOADS_MAX];
	size_t load_count;
	struct buf memory, notes;
};

/* A segment with these bytes, `memory_bytes` long; flags as PF_R. */
void made_core_load(struct made_core *made, uint64_t addr, const void *data, size_t bytes, uint64_t memory_bytes,
                    uint32_t flags);
/* Notes. */
void made_core_note(struct made_core *made, uint32_t type, const void *data, size_t bytes);
/* Nothing but a note's header, whatever it promises. */
void made_core_raw_note(struct made_core *made, uint32_t data_bytes, uint32_t name_bytes, uint32_t type);
void made_core_thread(struct made_core *made, int tid, int signal_number, uint64_t pthread_self);
void made_core_process(struct made_core *made, int pid, int parent_pid, const char *name, const char *arguments);
/* One mapping of a file. */
void made_core_mapped(struct made_core *made, uint64_t start, uint64_t end, uint64_t file_off, const char *path);
/* The header, to be spoilt; the counts in it are set when it is first asked for. */
Elf64_Ehdr *made_core_head(struct made_core *made);
/* How long it is. */
uint64_t made_core_bytes(struct made_core *made);
/* A file with the first `bytes` of it (0: all). A descriptor, the caller's. */
int made_core_file(struct made_core *made, uint64_t bytes);
void made_core_release(struct made_core *made);

#endif
