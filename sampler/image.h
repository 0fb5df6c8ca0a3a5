/* SPDX-License-Identifier: Apache-2.0 */
/* One loaded ELF file, looked at for an interpreter: addresses in the process of what marks one. */
#ifndef SAMPLED_SAMPLER_IMAGE_H
#define SAMPLED_SAMPLER_IMAGE_H

#include <stdbool.h>

#include "sampler/candidates.h"
#include "sampler/remote.h"

enum { IMAGE_RANGES = 32 };

struct image_range {
	raddr_t addr;
	uint64_t bytes;
	bool writable;
};

struct image {
	raddr_t runtime;      /* _PyRuntime; 0: none. All are addresses in the process, 0 where there is none */
	raddr_t version_word; /* Py_Version */
	raddr_t interp_head;  /* as variables of their own, before there was a _PyRuntime: */
	raddr_t tstate_current;
	raddr_t collecting;
	raddr_t gil_cond;
	bool old_python;                         /* no _PyRuntime, but symbols that only an older Python has */
	bool waits_for_python;                   /* it asks for libpython, which may not have been loaded yet */
	struct image_range ranges[IMAGE_RANGES]; /* its memory */
	size_t ranges_count;
	char found_by[256];
};

/* 0; -ENOENT: no trace of a Python in it; or -errno when it could not be looked at. thorough: also search its writable
 * memory, for stripped files. */
int image_examine(struct image *ret_image, const struct remote *r, const struct candidate *candidate, bool thorough);

/* Calls fn for the image's memory, a piece of at most 64 KiB at a time, neighbours overlapping by `overlap` bytes so that
 * nothing shorter is missed at a seam. Stops when fn returns not 0, and returns that. At most 64 MiB are read. */
int image_search(const struct image *image, const struct remote *r, bool writable, size_t overlap,
                 int (*fn)(void *context, raddr_t addr, const char *piece, size_t bytes), void *context);

#endif
