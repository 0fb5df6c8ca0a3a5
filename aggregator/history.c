/* SPDX-License-Identifier: Apache-2.0 */
/* The history's life, and records in: each is checked, and either taken whole or left out and counted. */
#include "aggregator/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/history_state.h"
#include "aggregator/records.h"

/* The service has one for each rule there ever was. */
#define GROUPS_MAX (1u << 20)

int history_new(struct history **ret_history, const struct history_options *options)
{
	struct history *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->budget.max_bytes = options->memory_max_bytes;
	symbols_init(&h->symbols, &h->budget, NULL, NULL);
	for (int i = 0; i < HISTORY_LEVELS; i++)
		h->levels[i].first = 1;
	*ret_history = h;
	return 0;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	for (uint32_t i = 0; i < h->threads.count; i++)
		history_free_thread(h, h->threads.items[i].item);
	keyed_release(&h->threads);
	for (uint32_t i = 0; i < h->targets.count; i++)
		free(h->targets.items[i].item);
	keyed_release(&h->targets);
	for (uint32_t i = 0; i < h->book_count; i++)
		book_free(h->books[i], &h->symbols);
	free(h->books);
	for (int i = 0; i < HISTORY_LEVELS; i++)
		free(h->levels[i].slices);
	sums_release(&h->scratch[0]);
	sums_release(&h->scratch[1]);
	buf_release(&h->bytes);
	symbols_release(&h->symbols);
	free(h->modes);
	free(h);
}

/* The thread's node, or CALL_NONE. */
static uint32_t find_top(struct history *h, struct history_thread *thread)
{
	uint32_t node = thread->node;

	if (node == 0)
		node = call_tree_child(&thread->target->book->tree, &h->symbols, 0, thread->thread, 0);
	if (node != CALL_NONE)
		thread->node = node;
	return node;
}

/* The node of the innermost frame, or CALL_NONE. Only frames whose node is not known yet are looked up. */
static uint32_t find_leaf(struct history *h, struct history_thread *thread)
{
	struct call_tree *tree = &thread->target->book->tree;
	struct stack *stack = &thread->stack;
	uint32_t depth = stack->path_depth, node;

	if (find_top(h, thread) == CALL_NONE)
		return CALL_NONE;
	node = depth > 0 ? stack->path[depth - 1] : thread->node;
	for (; depth < stack->depth; depth++) {
		node = call_tree_child(tree, &h->symbols, node, stack->frames[depth].symbol, stack->frames[depth].line);
		if (node == CALL_NONE)
			break;
		stack->path[depth] = node;
	}
	stack->path_depth = depth;
	return node;
}

void history_set_memory(struct history *h, uint64_t memory_max_bytes)
{
	h->budget.max_bytes = memory_max_bytes;
	h->stuck = false;
}

int history_set_mode(struct history *h, uint32_t group, enum sample_mode mode)
{
	if (group >= h->mode_count) {
		uint32_t count = group + 16;
		uint8_t *modes = group < GROUPS_MAX ? realloc(h->modes, count) : NULL;

		if (!modes)
			return -ENOMEM;
		memset(modes + h->mode_count, MODE_WALL, count - h->mode_count);
		h->modes = modes;
		h->mode_count = count;
	}
	h->modes[group] = (uint8_t)mode;
	return 0;
}

static bool is_wanted(const struct history *h, const struct book *book, unsigned status)
{
	switch (book->group < h->mode_count ? h->modes[book->group] : MODE_WALL) {
	case MODE_CPU:
		return status & STATUS_RUNNABLE;
	case MODE_GIL:
		return status & STATUS_GIL;
	case MODE_EXCEPTION:
		return status & STATUS_EXCEPTION;
	default:
		return true;
	}
}

static void note_ran(const struct history *h, struct history_thread *thread, const struct rec_stack *record)
{
	if (!(record->status & STATUS_RUNNABLE))
		return;
	thread->ran_ns += record->weight_ns;
	if (is_wanted(h, thread->target->book, record->status))
		thread->ran_wanted_ns += record->weight_ns;
}

/* What the mode leaves out takes its part of the CPU time with it. */
static uint64_t wanted_part(const struct history_thread *thread, uint64_t ns, bool all)
{
	if (all || thread->ran_ns == 0)
		return all ? ns : 0;
	return (uint64_t)((unsigned __int128)ns * thread->ran_wanted_ns / thread->ran_ns);
}

static int feed_time(struct history *h, const struct rec_time *record)
{
	struct history_thread *thread = keyed_find(&h->threads, record->thread);
	struct book *book;
	uint64_t *values, cpu_ns, wait_ns;
	uint32_t node;
	bool all;

	if (!thread)
		return -EPROTO;
	book = thread->target->book;
	all = is_wanted(h, book, 0); /* what no state is left out for */
	history_begin_at(h, record->t_from_ns);
	h->has_time = true;
	node = find_top(h, thread);
	values = node == CALL_NONE ? NULL : sums_at(&book->open, node);
	if (!values)
		return -ENOMEM;
	cpu_ns = wanted_part(thread, record->cpu_ns, all);
	wait_ns = wanted_part(thread, record->wait_ns, all);
	values[VALUE_CPU] += cpu_ns;
	values[VALUE_RUN_WAIT] += wait_ns;
	book->open.facts[FACT_LEFT_CPU] += record->cpu_ns - cpu_ns;
	book->open.facts[FACT_LEFT_RUN_WAIT] += record->wait_ns - wait_ns;
	thread->ran_ns = thread->ran_wanted_ns = 0;
	return 0;
}

static int feed_stack(struct history *h, const struct rec_stack *record)
{
	struct history_thread *thread = keyed_find(&h->threads, record->thread);
	uint64_t *values = NULL;
	struct book *book;
	uint32_t leaf;
	int err;

	if (!thread) {
		h->malformed_samples += record->count;
		h->open.malformed_samples += record->count;
		return -EPROTO;
	}
	book = thread->target->book;
	err = stack_take(&thread->stack, &h->symbols, record);
	if (err == -EPROTO) {
		h->malformed_samples += record->count;
		book->open.facts[FACT_MALFORMED] += record->count;
		return err;
	}
	history_begin_at(h, record->t_first_ns);
	note_ran(h, thread, record);
	if (!err && !is_wanted(h, book, record->status)) {
		book->open.facts[FACT_FILTERED] += record->count;
		book->open.facts[FACT_LEFT_WALL] += record->weight_ns;
		return 0;
	}
	if (h->open.to_ns < record->t_last_ns)
		h->open.to_ns = record->t_last_ns;
	leaf = err ? CALL_NONE : find_leaf(h, thread);
	if (leaf != CALL_NONE)
		values = sums_at(&book->open, leaf);
	if (values) {
		values_add(values, record->count, record->weight_ns, record->status);
		return 0;
	}
	h->out_of_memory += record->count;
	book->open.facts[FACT_OUT_OF_MEMORY] += record->count;
	book->open.facts[FACT_LEFT_WALL] += record->weight_ns;
	return err;
}

static int feed_facts(struct history *h, const struct rec_facts *record)
{
	struct history_target *target = keyed_find(&h->targets, record->target);

	if (!target)
		return -EPROTO;
	facts_add_difference(target->book->open.facts, record, &target->facts);
	facts_add_difference(h->total, record, &target->facts);
	target->facts = *record;
	target->book->process.facts = *record;
	if (h->open.to_ns < record->t_last_ns)
		h->open.to_ns = record->t_last_ns;
	return 0;
}

static int dispatch(struct history *h, const struct rec_head *record)
{
	int err = record_check(record);

	if (err)
		return err;
	switch (record->type) {
	case REC_SYMBOL:
		return symbols_define(&h->symbols, (const struct rec_symbol *)record);
	case REC_MAPPING:
		return symbols_define_mapping(&h->symbols, (const struct rec_mapping *)record);
	case REC_FORGET:
		return symbols_forget(&h->symbols, ((const struct rec_forget *)record)->id);
	case REC_THREAD:
		return history_feed_thread(h, (const struct rec_thread *)record);
	case REC_STACK:
		return feed_stack(h, (const struct rec_stack *)record);
	case REC_FACTS:
		return feed_facts(h, (const struct rec_facts *)record);
	case REC_TIME:
		return feed_time(h, (const struct rec_time *)record);
	case REC_TARGET:
		return history_feed_target(h, (const struct rec_target *)record);
	default: /* REC_MARK: the caller closes the slice */
		return 0;
	}
}

int history_feed(struct history *h, const struct rec_head *record)
{
	uint64_t goal_bytes = history_goal_bytes(h);
	int err = dispatch(h, record);

	if (err == -EPROTO) {
		h->malformed_records++;
		h->open.malformed_records++;
	}
	/* Halfway between the goal and the bound: before anything has to be refused. */
	if (h->budget.max_bytes && !h->stuck &&
	    h->budget.used_bytes > goal_bytes + (h->budget.max_bytes - goal_bytes) / 2)
		history_shrink(h);
	return err;
}
