/* SPDX-License-Identifier: Apache-2.0 */
/* Thread churn: a process that starts and ends threads for hours would leave as many trees. Those of its ended threads
 * become one. A thread's id is forgotten with it: ids are never used twice. */
#include "aggregator/state.h"

static void fold(struct aggregator *aggregator, struct kept_process *process, const struct thread *thread)
{
	if (thread->t_first_ns == 0)
		return;
	aggregator->tally.out_of_memory += tree_merge(&process->ended, &aggregator->symbols, &thread->tree);
	if (process->ended_first_ns == 0 || thread->t_first_ns < process->ended_first_ns)
		process->ended_first_ns = thread->t_first_ns;
	if (process->ended_last_ns < thread->t_last_ns)
		process->ended_last_ns = thread->t_last_ns;
	if (process->ended_depth_max < thread->depth_max)
		process->ended_depth_max = thread->depth_max;
}

/* Gives the threads behind a removed one their new indices. */
static void move_thread(struct aggregator *aggregator, uint32_t from, uint32_t to)
{
	uint32_t hash = lookup_hash_id(aggregator->threads[from]->id);

	if (from == to)
		return;
	lookup_remove(&aggregator->thread_ids, hash, from);
	/* Cannot fail: an entry has just been removed. */
	lookup_add(&aggregator->thread_ids, hash, to);
	aggregator->threads[to] = aggregator->threads[from];
}

void fold_ended_threads(struct aggregator *aggregator, uint32_t index)
{
	struct kept_process *process = &aggregator->processes[index];
	uint32_t kept = 0;

	if (!process->ended.nodes && tree_init(&process->ended, &aggregator->budget) != 0)
		return;
	for (uint32_t i = 0; i < aggregator->thread_count; i++) {
		struct thread *thread = aggregator->threads[i];

		if (thread->process != index || !thread->has_ended) {
			move_thread(aggregator, i, kept++);
			continue;
		}
		fold(aggregator, process, thread);
		lookup_remove(&aggregator->thread_ids, lookup_hash_id(thread->id), i);
		thread_free(thread, &aggregator->symbols);
		process->thread_count--;
	}
	aggregator->thread_count = kept;
	process->fold_at = process->thread_count + FOLD_STEP;
	if (process->fold_at < FOLD_THREADS)
		process->fold_at = FOLD_THREADS;
}
