/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a struct profile in memory, stack by stack, for tests. Aborts without memory. */
#ifndef SAMPLED_TESTS_UNIT_BUILD_PROFILE_H
#define SAMPLED_TESTS_UNIT_BUILD_PROFILE_H

#include "aggregator/builder.h"
#include "aggregator/profile.h"
#include "exporters/source.h"

/* An empty profile: no process, no thread. Freed with built_free(). */
struct profile *built_new(void);
/* The kernel told CPU time: seven tenths of what was on a CPU, and one tenth of waiting for it. Behind all samples. */
void built_cpu_time(struct profile *profile);
void built_free(struct profile *profile);

/* Each returns the new one's index. Names are copied; NULL as a thread's name: none. */
uint32_t built_process(struct profile *profile, int32_t pid, const char *name);
uint32_t built_thread(struct profile *profile, uint32_t process, int64_t interpreter, uint64_t tid, const char *name);
/* Native code: a function in a module; and a mapping, whose places have no names (16 MiB of it, from 4 KiB on). */
uint32_t built_native(struct profile *profile, const char *name, const char *file, uint32_t first_line, const char *module, const char *build_id);
uint32_t built_mapping(struct profile *profile, const char *module, const char *build_id);
uint32_t built_symbol(struct profile *profile, const char *name, const char *file, uint32_t first_line);

/* The child of a node with this frame, made when there is none. */
uint32_t built_child(struct profile *profile, uint32_t thread, uint32_t parent, uint32_t symbol, uint32_t line);
/* Adds `count` samples of a millisecond each with these STATUS_* bits to a node, to its process' facts, and as a run behind the thread's last. */
void built_sample(struct profile *profile, uint32_t thread, uint32_t node, uint64_t count, unsigned status);
/* Adds one sample with this weight and no status, as a run too. */
void built_short_sample(struct profile *profile, uint32_t thread, uint32_t node, uint32_t weight_ns);

/* A profile whose one thread has nine samples in a stack of REC_DEPTH_MAX frames, all of them of line 2 of f (a.py:1). Freed with built_free(). */
struct profile *built_deepest(void);

/* The builder's profile, freed with profile_free(); the builder is freed. */
struct profile *built_finish(struct builder *builder);

/* Says of every process that it has the test's own root and current directory. */
extern const struct source_access built_sources;

#endif
