/* SPDX-License-Identifier: Apache-2.0 */
/* Source lines of a target's files, read without trust. */
#ifndef SAMPLED_EXPORTERS_SOURCE_H
#define SAMPLED_EXPORTERS_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Files larger than this are not read. */
#define SOURCE_BYTES_MAX (4u << 20)

/* Where the names of a process' files begin. Opened (O_PATH) while it lives, it is good after its end too. */
struct source_place {
	int root_fd, cwd_fd;
};

/* The root and the current directory of a living process. 0, -ESRCH (it has ended) or another -errno. */
int source_place_open(struct source_place *ret_place, int32_t pid);
void source_place_close(const struct source_place *place);

/* Whoever may let source lines be read. enter() takes the file-system credentials of the owner of the process that has this
 * pid and start time, for the calling thread, and returns where its files are; NULL: they are not to be read, and there is
 * nothing to leave. leave() gives the credentials back. Not nested. */
struct source_access {
	const struct source_place *(*enter)(void *context, int32_t pid, uint64_t start_time);
	void (*leave)(void *context);
	void *context;
};

/* Reads the file that a process calls `path`, as it sees it, replacing what is in *to. Relative paths are taken from its
 * current directory. Regular files only, never through a symbolic link at the end of the path; never blocks.
 * The caller sees to it that the calling thread has the file-system credentials of the process' owner.
 * 0 or -errno (-EFBIG: larger than SOURCE_BYTES_MAX). */
int source_read(struct buf *to, const struct source_place *place, const char *path);

/* Line number `line`, from 1, of the file in *source: its bytes without the line end, or NULL. */
const char *source_line(const struct buf *source, uint32_t line, size_t *ret_bytes);

#endif
