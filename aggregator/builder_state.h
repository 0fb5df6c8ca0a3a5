/* SPDX-License-Identifier: Apache-2.0 */
/* The builder's insides, shared by the files that make it up: builder.c (its life, frames, and the profile out), builder_values.c (values
 * and notes), builder_threads.c (who was sampled) and builder_runs.c (samples and their times). All of it belongs to one thread at a time. */
#ifndef SAMPLED_AGGREGATOR_BUILDER_STATE_H
#define SAMPLED_AGGREGATOR_BUILDER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/budget.h"
#include "aggregator/builder.h"
#include "aggregator/lookup.h"
#include "aggregator/symbols.h"
#include "aggregator/tree.h"
#include "base/buf.h"

struct built_thread {
	struct thread_tree like; /* name owned; nodes unused */
	struct tree tree;        /* no nodes: it was folded, and is free */
	size_t run_room;
	uint64_t cost_bytes; /* charged besides the tree */
	uint32_t next_free;  /* of a free one: index + 1; 0: none */
};

struct builder {
	struct builder_options options;
	struct budget budget;
	struct symbols symbols;
	struct profile *profile; /* owned, until it is handed out */
	struct built_thread *threads;
	uint32_t thread_count, thread_room, process_room, free_thread;
	struct lookup thread_names;  /* hash of what identifies a thread → index */
	struct lookup process_names; /* … a process → index */
	size_t run_count;
	uint64_t start_ns;     /* 0: not known yet */
	uint64_t outside;      /* samples, of the window */
	struct buf name, file, module; /* made valid */
	int err;
};

/* Notes an error, unless there is one already. Returns BUILDER_NONE. */
uint32_t builder_fail(struct builder *builder, int err);
/* The array with room for one more of `count`, which doubles; NULL: no memory, and the error is noted. */
void *builder_grown(struct builder *builder, void *array, uint32_t count, uint32_t *room, size_t bytes);
/* Puts a thread's runs in the order of time. */
void runs_sort(struct thread_tree *thread);

/* Whether there is such a thread, and it was neither folded nor dropped. */
static inline bool builder_keeps_thread(const struct builder *b, uint32_t thread)
{
	return thread < b->thread_count && b->threads[thread].tree.nodes;
}

static inline bool builder_has_node(const struct builder *b, uint32_t thread, uint32_t node)
{
	return thread < b->thread_count && node < b->threads[thread].tree.count;
}

/* The thread was there at these times, too; 0: not known. */
static inline void thread_widen(struct thread_tree *thread, uint64_t t_first_ns, uint64_t t_last_ns)
{
	if (t_first_ns && (thread->t_first_ns == 0 || t_first_ns < thread->t_first_ns))
		thread->t_first_ns = t_first_ns;
	if (thread->t_last_ns < t_last_ns)
		thread->t_last_ns = t_last_ns;
}

#endif
