/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles out: a copy of everything. It must be quick, since the ring fills meanwhile: a tree is one memcpy, and symbols keep the
 * numbers that the nodes name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/aggregator.h"
#include "aggregator/state.h"

const char *const sample_mode_names[SAMPLE_MODES] = {
	[MODE_WALL] = "wall", [MODE_CPU] = "cpu", [MODE_GIL] = "gil", [MODE_EXCEPTION] = "exception"};

static const char ended_name[] = "(ended threads)";

/* Appends a thread with the fields given and a copy of the tree and the name (NULL: none). */
static int add_thread(struct profile *profile, const struct thread_tree *fields, const struct tree *tree,
                      const char *name)
{
	struct thread_tree *thread = &profile->threads[profile->thread_count];
	size_t bytes = tree->count * sizeof(*tree->nodes);

	*thread = *fields;
	thread->nodes = malloc(bytes);
	thread->name = name ? strdup(name) : NULL;
	thread->node_count = tree->count;
	profile->thread_count++;
	if (!thread->nodes || (name && !thread->name))
		return -ENOMEM;
	memcpy(thread->nodes, tree->nodes, bytes);
	return 0;
}

static int copy_threads(struct profile *profile, const struct aggregator *aggregator)
{
	size_t most = (size_t)aggregator->thread_count + aggregator->process_count;
	int err = 0;

	profile->threads = calloc(most + 1, sizeof(*profile->threads));
	if (!profile->threads)
		return -ENOMEM;
	for (uint32_t i = 0; i < aggregator->thread_count && !err; i++) {
		const struct thread *thread = aggregator->threads[i];
		struct thread_tree fields = {
			.process = thread->process,
			.interpreter = thread->interpreter,
			.tid = thread->tid,
			.is_main = thread->is_main,
			.t_first_ns = thread->t_first_ns,
			.t_last_ns = thread->t_last_ns,
			.depth_max = thread->depth_max,
		};

		if (thread->excluded && thread->t_first_ns == 0)
			continue;
		err = add_thread(profile, &fields, &thread->tree, thread->name);
	}
	for (uint32_t i = 0; i < aggregator->process_count && !err; i++) {
		const struct kept_process *kept = &aggregator->processes[i];
		struct thread_tree fields = {
			.process = i,
			.t_first_ns = kept->ended_first_ns,
			.t_last_ns = kept->ended_last_ns,
			.depth_max = kept->ended_depth_max,
		};

		if (kept->ended_first_ns)
			err = add_thread(profile, &fields, &kept->ended, ended_name);
	}
	return err;
}

static int copy_processes(struct profile *profile, const struct aggregator *aggregator)
{
	profile->processes = calloc((size_t)aggregator->process_count + 1, sizeof(*profile->processes));
	if (!profile->processes)
		return -ENOMEM;
	for (uint32_t i = 0; i < aggregator->process_count; i++) {
		const struct process *from = &aggregator->processes[i].process;

		profile->processes[i] = *from;
		profile->processes[i].name = strdup(from->name ? from->name : "");
		profile->process_count++;
		if (!profile->processes[i].name)
			return -ENOMEM;
	}
	return 0;
}

/* From the first tick (the attachment, when there was none) to the mark, or to the last tick. */
static void set_times(struct profile *profile, const struct aggregator *aggregator)
{
	uint64_t start_ns = aggregator->tally.first_ns;
	uint64_t end_ns = aggregator->tally.last_ns;
	struct rec_facts facts;

	profile_facts(profile, &facts);
	if (facts.t_start_ns && (start_ns == 0 || facts.t_start_ns < start_ns))
		start_ns = facts.t_start_ns;
	if (start_ns == 0)
		start_ns = aggregator->tally.attached_ns;
	if (end_ns < facts.t_last_ns)
		end_ns = facts.t_last_ns;
	if (aggregator->mark_ns)
		end_ns = aggregator->mark_ns;
	profile->t_start_ns = start_ns;
	profile->t_end_ns = end_ns > start_ns ? end_ns : start_ns;
	profile->wall_start_ns = start_ns + aggregator->realtime_offset_ns;
}

int aggregator_profile(struct aggregator *aggregator, struct profile **ret_profile)
{
	struct profile *profile = calloc(1, sizeof(*profile));
	int err;

	if (!profile)
		return -ENOMEM;
	err = symbols_copy(&aggregator->symbols, profile);
	if (!err)
		err = copy_threads(profile, aggregator);
	if (!err)
		err = copy_processes(profile, aggregator);
	if (err) {
		profile_free(profile);
		return err;
	}
	memcpy(profile->values, profile_value_types, sizeof(profile->values));
	if (!aggregator->has_time)
		profile->values[VALUE_CPU] = profile->values[VALUE_RUN_WAIT] = (struct value_type){0};
	set_times(profile, aggregator);
	profile->interval_ns = aggregator->options.interval_ns;
	profile->sequence = aggregator->mark_sequence;
	profile->mode = sample_mode_names[aggregator->options.mode];
	profile->filtered = aggregator->tally.filtered;
	profile->omitted = aggregator->tally.omitted;
	profile->out_of_memory = aggregator->tally.out_of_memory;
	profile->left_out = aggregator->tally.left_out;
	profile->malformed_samples = aggregator->tally.malformed_samples;
	profile->malformed_records = aggregator->tally.malformed_records;
	*ret_profile = profile;
	return 0;
}
