/* SPDX-License-Identifier: Apache-2.0 */
/* Source lines of a target's files, read without trust. */
#ifndef SAMPLED_EXPORTERS_SOURCE_H
#define SAMPLED_EXPORTERS_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Files larger than this are not read. */
#define SOURCE_BYTES_MAX (4u << 20)

/* Reads the file that process pid calls `path`, as it sees it (through /proc/PID/root), replacing what is in *to. Relative paths
 * are taken from its current directory. Regular files only, never through a symbolic link at the end of the path; never blocks.
 * The caller sees to it that the calling thread has the file-system credentials of the process' owner.
 * 0 or -errno (-EFBIG: larger than SOURCE_BYTES_MAX). */
int source_read(struct buf *to, int32_t pid, const char *path);

/* Line number `line`, from 1, of the file in *source: its bytes without the line end, or NULL. */
const char *source_line(const struct buf *source, uint32_t line, size_t *ret_bytes);

#endif
