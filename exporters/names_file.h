/* SPDX-License-Identifier: Apache-2.0 */
/* One ELF file whose places are named: its symbols, its debug data wherever these are. Hostile input: runs in the naming child. */
#ifndef SAMPLED_EXPORTERS_NAMES_FILE_H
#define SAMPLED_EXPORTERS_NAMES_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/names_dwarf.h"
#include "sampler/record.h"

struct code_file;

enum debug_kind { DEBUG_DATA, DEBUG_EXECUTABLE }; /* as debuginfod names them: debuginfo, executable */

struct code_file_source {
	const char *path; /* as its process saw it */
	const uint8_t *build_id;
	size_t build_id_bytes;
	int fd;      /* the file; borrowed. -1: `path` on this host, and only with this build id */
	int root_fd; /* the process' root directory, for separate debug files; borrowed. -1: this host's only */
	/* Where nothing is here: a descriptor of what a server has for a build id, or -1. NULL: none is asked. */
	int (*fetch)(void *context, const uint8_t *build_id, size_t build_id_bytes, enum debug_kind kind);
	void *context;
};

/* What is at one place: texts live as long as the file and until the next question. */
struct code_frame {
	const char *name, *file; /* "" when not known */
	uint32_t first_line, line;
};

/* 0, -ENOENT (there is no such file here), -EBADMSG (it is no ELF file, or has another build id), -ENOMEM. */
int code_file_open(struct code_file **ret_file, const struct code_file_source *source);
void code_file_free(struct code_file *file);

/* The frames at an offset of the file, outermost first; at most DEBUG_FRAMES_MAX. 0: no function is known there. One frame without a name: it is only
 * known where in the file the function begins, which `line` is. */
size_t code_file_find(struct code_file *file, uint64_t offset, struct code_frame to[DEBUG_FRAMES_MAX]);

#endif
