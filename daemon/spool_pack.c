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

			count += self[VALUE_SAMPLES] || self[VALUE_WALL] || self[VALUE_RUNNABLE] || self[VALUE_CPU] || self[VALUE_GIL];
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

/* --- stacks without a frame --- */

/* A thread that runs no Python has samples, but no frames, and stores leave such samples out: what they show would not be what was sampled. */
static const char no_frames[] = "(no Python frames)";

static bool has_empty_stacks(const struct thread_tree *tree)
{
	uint64_t any = 0;

	for (int v = 0; v < VALUE_COUNT; v++)
		any |= tree->nodes[0].self[v];
	return any != 0;
}

/* The tree's nodes and one more, which has what the root had; owned. NULL: no memory. */
static struct node *copy_with_frame(const struct thread_tree *tree, uint32_t symbol)
{
	struct node *nodes = malloc((tree->node_count + (size_t)1) * sizeof(*nodes)), *named;

	if (!nodes)
		return NULL;
	memcpy(nodes, tree->nodes, tree->node_count * sizeof(*nodes));
	named = &nodes[tree->node_count];
	*named = nodes[0];
	named->parent = named->child = 0;
	named->sibling = nodes[0].child;
	named->symbol = symbol;
	named->line = 0;
	nodes[0].child = tree->node_count;
	memset(nodes[0].self, 0, sizeof(nodes[0].self));
	return nodes;
}

static void release_named(struct profile *named, const struct profile *of)
{
	for (uint32_t t = 0; named->threads && t < of->thread_count; t++)
		if (named->threads[t].nodes != of->threads[t].nodes)
			free(named->threads[t].nodes);
	free(named->threads);
	free(named->symbols);
}

/* A profile that shares what it can with the one it is made of, and names empty stacks. 0 or -ENOMEM. */
static int name_empty_stacks(struct profile *ret_named, const struct profile *of)
{
	struct profile named = *of;
	int err = 0;

	named.threads = calloc(of->thread_count + (size_t)1, sizeof(*named.threads));
	named.symbols = calloc(of->symbol_count + (size_t)1, sizeof(*named.symbols));
	if (!named.threads || !named.symbols)
		err = -ENOMEM;
	if (!err) {
		memcpy(named.symbols, of->symbols, of->symbol_count * sizeof(*named.symbols));
		named.symbols[of->symbol_count] = (struct symbol){
			.name = no_frames, .file = "", .module = "", .build_id = "", .kind = FRAME_SPECIAL};
		named.symbol_count++;
		named.has_runs = false; /* they would still name the root */
		memcpy(named.threads, of->threads, of->thread_count * sizeof(*named.threads));
	}
	for (uint32_t t = 0; !err && t < of->thread_count; t++) {
		struct node *nodes;

		if (!has_empty_stacks(&of->threads[t]))
			continue;
		nodes = copy_with_frame(&of->threads[t], of->symbol_count);
		if (!nodes) {
			err = -ENOMEM;
			break;
		}
		named.threads[t].nodes = nodes;
		named.threads[t].node_count++;
	}
	if (err)
		release_named(&named, of);
	else
		*ret_named = named;
	return err;
}

/* --- the whole --- */

static int pack(const struct profile *profile, struct buf *to, bool *ret_pruned)
{
	int err = try_pack(profile, to);

	*ret_pruned = err == 1;
	if (err == 1)
		err = prune_and_pack(profile, to);
	if (err == 1)
		err = join_threads_and_pack(profile, to);
	return err;
}

int spool_pack(const struct profile *profile, struct buf *to, bool *ret_pruned, struct fault *fault)
{
	struct profile named;
	bool pruned = false;
	int err = name_empty_stacks(&named, profile);

	if (!err) {
		err = pack(&named, to, &pruned);
		release_named(&named, profile);
	}
	if (err == 1)
		return fault_set(fault, -EFBIG, "", "its %u processes are more than servers take in one profile",
		                 profile->process_count);
	if (err)
		return fault_set(fault, err, "", "%s", strerror(-err));
	*ret_pruned = pruned;
	return 0;
}
