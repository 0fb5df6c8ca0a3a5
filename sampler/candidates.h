/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF files mapped into a process, each once for every time it was loaded: where an interpreter may be. */
#ifndef SAMPLED_SAMPLER_CANDIDATES_H
#define SAMPLED_SAMPLER_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "sampler/procfs.h"
#include "sampler/remote.h"

enum { CANDIDATE_MAPS = 16, CANDIDATES_MAX = 4096 };

struct candidate {                            /* one loading of one file */
	struct proc_map maps[CANDIDATE_MAPS]; /* in rising order; all paths point to `path` */
	size_t maps_count;
	char *path;      /* owned */
	bool executable; /* some mapping of it is */
	bool likely;     /* the program itself, or its name says python */
};

struct candidates {
	struct candidate *items; /* owned */
	size_t count, room;
	uint64_t exe_inode; /* of the program itself; 0: not known */
	bool pypy;          /* some file's name says so */
	int err;            /* -ENOMEM */
};

/* Reads the target's mappings. 0 or -errno; release in either case. */
int candidates_collect(struct candidates *c, const struct remote *r);
/* Adds one mapping; for proc_maps_parse(). `context` is the struct candidates. */
int candidates_add(void *context, const struct proc_map *map);
void candidates_release(struct candidates *c);

#endif
