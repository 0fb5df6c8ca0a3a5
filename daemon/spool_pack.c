/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spool_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/transform.h"
#include "daemon/spool_write.h"
#include "exporters/formats.h"
#include "exporters/memory.h"

/* The first try, and how much larger each next one's nodes are, in percent of the profile. */
#define PERCENT_FIRST 0.002
#define PERCENT_STEP  3

/* What pprof has samples of: nodes with values. */
static uint64_t count_samples(const struct profile *profile)
{
	uint64_t count = 0;

	for (uint32_t t = 0; t < profile->thread_count; t++)
		for (uint32_t n = 0; n < profile->threads[t].node_count; n++) {
			const uint64_t *self = profile->threads[t].nodes[n].self;

			count += self[VALUE_SAMPLES] || self[VALUE_WALL] || self[VALUE_ON_CPU] || self[VALUE_GIL];
		}
	return count;
}

static int write_pprof(const struct profile *profile, struct buf *to)
{
	struct writer *writer = memory_new();

	return memory_finish(writer, writer ? pprof_write(profile, &(struct export_options){0}, writer) : 0, to);
}

/* The last four bytes of a gzip member say how long it is unpacked. */
static uint32_t unpacked_bytes(const struct buf *packed)
{
	const unsigned char *tail = (const unsigned char *)packed->data + packed->bytes - 4;

	return tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 | (uint32_t)tail[3] << 24;
}

/* 0: it is in *to; 1: it is too large, and *to as it was; -errno. */
static int try_pack(const struct profile *profile, struct buf *to)
{
	size_t before = to->bytes;
	int err;

	if (count_samples(profile) > SPOOL_SAMPLES_MAX)
		return 1;
	err = write_pprof(profile, to);
	if (err || unpacked_bytes(to) <= SPOOL_UNPACKED_MAX_BYTES)
		return err;
	to->bytes = before;
	return 1;
}

static int prune(const struct profile *profile, double min_percent, struct profile **ret_pruned)
{
	struct builder *builder;
	int err = builder_new(&builder, &(struct builder_options){0});

	if (err)
		return err;
	err = transform_add(builder, profile, &(struct transform){.min_percent = min_percent});
	if (!err)
		err = builder_finish(builder, ret_pruned);
	builder_free(builder);
	return err;
}

static int prune_and_pack(const struct profile *profile, struct buf *to)
{
	int err = 1;

	for (double percent = PERCENT_FIRST; err == 1 && percent < 100; percent *= PERCENT_STEP) {
		struct profile *pruned;

		err = prune(profile, percent, &pruned);
		if (err)
			return err;
		err = try_pack(pruned, to);
		profile_free(pruned);
	}
	return err;
}

/* With every process' threads as one: of thousands of them each has at least a sample. */
static int join_threads_and_pack(const struct profile *profile, struct buf *to)
{
	static char all[] = "(all threads)";
	struct profile joined = *profile;
	int err;

	joined.threads = calloc(profile->thread_count + (size_t)1, sizeof(*joined.threads));
	if (!joined.threads)
		return -ENOMEM;
	for (uint32_t t = 0; t < profile->thread_count; t++) {
		joined.threads[t] = profile->threads[t];
		joined.threads[t].tid = 0;
		joined.threads[t].is_main = false;
		joined.threads[t].name = all;
	}
	err = prune_and_pack(&joined, to);
	free(joined.threads);
	return err;
}

int spool_pack(const struct profile *profile, struct buf *to, bool *ret_pruned, struct fault *fault)
{
	int err = try_pack(profile, to);
	bool pruned = err == 1;

	if (err == 1)
		err = prune_and_pack(profile, to);
	if (err == 1)
		err = join_threads_and_pack(profile, to);
	if (err == 1)
		return fault_set(fault, -EFBIG, "", "its %u processes are more than servers take in one profile",
		                 profile->process_count);
	if (err)
		return fault_set(fault, err, "", "%s", strerror(-err));
	*ret_pruned = pruned;
	return 0;
}
