/* SPDX-License-Identifier: Apache-2.0 */
/* Records in: each is checked, and either taken whole or left out and counted. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/aggregator.h"
#include "aggregator/records.h"
#include "aggregator/state.h"

static int add_process(struct aggregator *aggregator, const struct rec_target *record)
{
	struct kept_process kept = {.fold_at = FOLD_THREADS};
	int err;

	if (aggregator->process_count == aggregator->process_room) {
		uint32_t room = aggregator->process_room ? aggregator->process_room * 2 : 4;
		struct kept_process *larger = realloc(aggregator->processes, room * sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		aggregator->processes = larger;
		aggregator->process_room = room;
	}
	err = process_describe(&kept.process, record);
	if (!err)
		err = lookup_add(&aggregator->target_ids, lookup_hash_id(record->id), aggregator->process_count);
	if (err) {
		free(kept.process.name);
		return err;
	}
	budget_charge(&aggregator->budget, sizeof(kept));
	aggregator->processes[aggregator->process_count++] = kept;
	if (aggregator->tally.attached_ns == 0)
		aggregator->tally.attached_ns = record->t_ns;
	return 0;
}

static int feed_target(struct aggregator *aggregator, const struct rec_target *record)
{
	uint32_t process = lookup_id(&aggregator->target_ids, record->id);

	if (process != LOOKUP_NONE && record->event != TARGET_ATTACHED) /* an id is never used twice */
		return process_describe(&aggregator->processes[process].process, record);
	if (process == LOOKUP_NONE && (record->event == TARGET_ATTACHED || record->event == TARGET_EXECED))
		return add_process(aggregator, record);
	return -EPROTO;
}

static int add_thread(struct aggregator *aggregator, const struct rec_thread *record, uint32_t process,
                      struct record_fate *fate)
{
	struct kept_process *kept = &aggregator->processes[process];
	struct thread *thread;
	int err;

	if (kept->thread_count >= kept->fold_at)
		fold_ended_threads(aggregator, process);
	if (aggregator->thread_count == aggregator->thread_room) {
		uint32_t room = aggregator->thread_room ? aggregator->thread_room * 2 : 16;
		struct thread **larger = realloc(aggregator->threads, room * sizeof(struct thread *));

		if (!larger)
			return -ENOMEM;
		aggregator->threads = larger;
		aggregator->thread_room = room;
	}
	err = thread_new(&thread, record->id, process, &aggregator->budget);
	if (err)
		return err;
	err = thread_describe(thread, record, &aggregator->options);
	if (!err)
		err = lookup_add(&aggregator->thread_ids, lookup_hash_id(record->id), aggregator->thread_count);
	if (err) {
		thread_free(thread, &aggregator->symbols);
		return err;
	}
	aggregator->threads[aggregator->thread_count++] = thread;
	kept->thread_count++;
	fate->excluded = thread->excluded;
	return 0;
}

static int feed_thread(struct aggregator *aggregator, const struct rec_thread *record, struct record_fate *fate)
{
	uint32_t process = lookup_id(&aggregator->target_ids, record->target);
	struct thread *thread;
	uint32_t index;
	int err;

	if (process == LOOKUP_NONE)
		return -EPROTO;
	index = lookup_id(&aggregator->thread_ids, record->id);
	if (index == LOOKUP_NONE)
		return add_thread(aggregator, record, process, fate);
	thread = aggregator->threads[index];
	if (thread->process != process || thread->interpreter != record->interpreter)
		return -EPROTO;
	err = thread_describe(thread, record, &aggregator->options);
	if (thread->has_ended)
		spread_release(&thread->spread, &aggregator->budget);
	fate->excluded = thread->excluded;
	return err;
}

static int feed_stack(struct aggregator *aggregator, const struct rec_stack *record, struct record_fate *fate)
{
	struct thread *thread;
	enum taken taken;
	uint32_t index;
	int err;

	index = lookup_id(&aggregator->thread_ids, record->thread);
	if (index == LOOKUP_NONE) {
		aggregator->tally.malformed_samples += record->count;
		return -EPROTO;
	}
	thread = aggregator->threads[index];
	err = thread_take(thread, &aggregator->symbols, &aggregator->options, record, &taken);
	if (err == -EPROTO) {
		aggregator->tally.malformed_samples += record->count;
		return err;
	}
	if (err)
		taken = TAKEN_NO_MEMORY;
	switch (taken) {
	case TAKEN_COUNTED:
		*fate = (struct record_fate){.counted = true, .cut = thread->stack.start};
		break;
	case TAKEN_FILTERED:
		aggregator->tally.filtered += record->count;
		break;
	case TAKEN_OMITTED:
		aggregator->tally.omitted += record->count;
		break;
	case TAKEN_NO_MEMORY:
		aggregator->tally.out_of_memory += record->count;
		break;
	}
	if (taken != TAKEN_COUNTED)
		aggregator->tally.left_out.wall += record->weight_ns;
	if (aggregator->tally.first_ns == 0 || record->t_first_ns < aggregator->tally.first_ns)
		aggregator->tally.first_ns = record->t_first_ns;
	if (aggregator->tally.last_ns < record->t_last_ns)
		aggregator->tally.last_ns = record->t_last_ns;
	/* Relaxed: only this thread writes it, and nothing hangs on it. */
	atomic_store_explicit(&aggregator->samples, aggregator_samples(aggregator) + record->count,
	                      memory_order_relaxed);
	return err;
}

static int feed_facts(struct aggregator *aggregator, const struct rec_facts *record)
{
	uint32_t process = lookup_id(&aggregator->target_ids, record->target);

	if (process == LOOKUP_NONE)
		return -EPROTO;
	aggregator->processes[process].process.facts = *record;
	return 0;
}

static int feed_time(struct aggregator *aggregator, const struct rec_time *record, struct record_fate *fate)
{
	uint32_t index = lookup_id(&aggregator->thread_ids, record->thread);

	if (index == LOOKUP_NONE)
		return -EPROTO;
	thread_take_time(aggregator->threads[index], record, fate);
	aggregator->tally.left_out.cpu += fate->left_cpu_ns;
	aggregator->tally.left_out.run_wait += fate->left_wait_ns;
	aggregator->has_time = true;
	return 0;
}

static int feed_mark(struct aggregator *aggregator, const struct rec_mark *record)
{
	aggregator->mark_sequence = record->sequence;
	aggregator->mark_ns = record->t_ns;
	return 0;
}

static int dispatch(struct aggregator *aggregator, const struct rec_head *record, struct record_fate *fate)
{
	int err = record_check(record);

	if (err)
		return err;
	switch (record->type) {
	case REC_SYMBOL:
		return symbols_define(&aggregator->symbols, (const struct rec_symbol *)record);
	case REC_MAPPING:
		return symbols_define_mapping(&aggregator->symbols, (const struct rec_mapping *)record);
	case REC_FORGET:
		return symbols_forget(&aggregator->symbols, ((const struct rec_forget *)record)->id);
	case REC_THREAD:
		return feed_thread(aggregator, (const struct rec_thread *)record, fate);
	case REC_STACK:
		return feed_stack(aggregator, (const struct rec_stack *)record, fate);
	case REC_FACTS:
		return feed_facts(aggregator, (const struct rec_facts *)record);
	case REC_TARGET:
		return feed_target(aggregator, (const struct rec_target *)record);
	case REC_TIME:
		return feed_time(aggregator, (const struct rec_time *)record, fate);
	case REC_MARK:
		return feed_mark(aggregator, (const struct rec_mark *)record);
	default:
		return -EPROTO;
	}
}

int aggregator_feed(struct aggregator *aggregator, const struct rec_head *record)
{
	struct record_fate fate = {0};
	int err;

	aggregator->mark_sequence = 0;
	aggregator->mark_ns = 0;
	err = dispatch(aggregator, record, &fate);
	if (err == -EPROTO)
		aggregator->tally.malformed_records++;
	else if (aggregator->options.on_record && (err == 0 || record->type == REC_STACK))
		aggregator->options.on_record(aggregator->options.on_record_context, record, &fate);
	return err;
}
