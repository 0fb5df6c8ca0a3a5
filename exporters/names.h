/* SPDX-License-Identifier: Apache-2.0 */
/* Names of native frames: mappings of a profile (struct symbol, mapped) become functions with file and line, inlined ones frames of
 * their own, and the interpreter's own machinery is folded away.
 *
 * Files that others made are parsed by a child process that can do nothing but read and answer (names_child.h). It is forked before any
 * target is opened, so that it never held what sampling needs. When it fails, or takes too long, frames keep MODULE+0xOFFSET. */
#ifndef SAMPLED_EXPORTERS_NAMES_H
#define SAMPLED_EXPORTERS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/named.h"
#include "aggregator/profile.h"
#include "sampler/sampler.h"

struct names;

struct names_options {
	enum native_frames
		show; /* what stays: NATIVE_ALL everything; else the interpreter's machinery is folded into its callers */
	bool debuginfod;     /* debug data that is not here is fetched from `urls` */
	const char *urls;    /* as in DEBUGINFOD_URLS: separated by blanks; NULL or "": none */
	uint64_t bytes_max;  /* of one fetched file; 0: 1 GiB */
	uint64_t timeout_ns; /* of one names_apply(); 0: 60 s */
};

/* One mapped file, or piece of memory, as struct rec_mapping has it. */
struct names_module {
	const char *path; /* as the target sees it; "": memory without one */
	const uint8_t *build_id;
	size_t build_id_bytes; /* 0: it has none */
	uint32_t flags;        /* MAPPING_* */
	uint32_t key;          /* record_mapping_key() */
	uint64_t start;        /* where memory without a file begins in the target */
	int fd;                /* the very file; -1: none. All descriptors become the callee's */
	int root_fd;           /* the target's root directory, where its debug files are; -1: this host's only */
	int perf_map_fd;       /* /tmp/perf-PID.map, for memory; -1: none */
};

/* Forks the child. Call it before any target is opened, and before there are threads. 0 or -errno. */
int names_new(struct names **ret_names, const struct names_options *options);
void names_free(struct names *names);

/* A mapping was met: its file is opened while it lives. Never waits long; what is known already is closed. Any thread. */
void names_add(struct names *names, const struct names_module *module);
/* Whether it is known, so that nothing need be opened. Any thread. */
bool names_has(struct names *names, const struct names_module *module);

/* Finds what the places in mappings that the profile has are called, as far as it is not known yet. A module that was never added is looked for on
 * this host, by path and build id. One thread at a time. 0 or -errno: what has no name then stays without. */
int names_prepare(struct names *names, const struct profile *profile);
/* A named_frames, with the struct names as its context: for the profile that was prepared last. */
size_t names_frames(void *names, const struct profile *profile, const struct node *node, struct named_frame *to,
                    size_t room);
/* Both: *profile is replaced by one with names. 0 or -errno (then *profile is as it was). */
int names_apply(struct names *names, struct profile **profile);

#endif
