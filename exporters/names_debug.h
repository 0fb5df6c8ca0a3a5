/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files opened with care, and where a file's debug data is kept apart from it. Hostile input: runs in the naming child. */
#ifndef SAMPLED_EXPORTERS_NAMES_DEBUG_H
#define SAMPLED_EXPORTERS_NAMES_DEBUG_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/names_file.h"

/* An ELF file, or one in memory. */
struct open_elf {
	Elf *elf;     /* NULL: none */
	int fd;       /* owned; -1: it is in memory */
	char *memory; /* owned; NULL */
};

/* Opens what is behind a descriptor, which becomes the callee's. 0, -EBADMSG (no ELF file), -EINVAL (no regular file). */
int open_elf_fd(struct open_elf *ret_elf, int fd);
/* The bytes, malloc()ed, become the callee's. 0 or -EBADMSG. */
int open_elf_memory(struct open_elf *ret_elf, char *bytes, size_t count);
void open_elf_close(struct open_elf *elf);

/* A regular file, for reading; never waits. root_fd -1: this host's. A file descriptor or -errno. */
int open_below(int root_fd, const char *path, int flags);

/* The build id in the file's notes; 0 bytes: none. Valid as long as the Elf. */
size_t elf_build_id(Elf *elf, const uint8_t **ret_build_id);
bool elf_has_section(Elf *elf, const char *name);

/* The separate debug file of a file that has this build id (0 bytes: none): by build id, by .gnu_debuglink with its checksum, by asking the
 * source's server; below the source's root, then on this host. 0 or -ENOENT. */
int find_debug_file(struct open_elf *ret_elf, Elf *of, const uint8_t *build_id, size_t build_id_bytes,
                    const struct code_file_source *source);
/* The symbols that .gnu_debugdata holds, packed by xz. 0 or -ENOENT. */
int find_packed_symbols(struct open_elf *ret_elf, Elf *of);

#endif
