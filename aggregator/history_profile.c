/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of a part of the history, and figures of the whole. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/builder.h"
#include "aggregator/history_state.h"
#include "base/clock.h"

const char *const history_level_names[HISTORY_LEVELS] = {
	[HISTORY_FINE] = "fine",
	[HISTORY_MINUTE] = "minute",
	[HISTORY_TEN_MINUTES] = "ten_minutes",
	[HISTORY_FOLDED] = "folded",
};

const char *const history_step_names[HISTORY_STEPS] = {
	[HISTORY_MERGED_MINUTE] = "merged_minute", [HISTORY_MERGED_TEN] = "merged_ten_minutes",
	[HISTORY_FOLDED_LINES] = "folded_lines",   [HISTORY_MERGED_ENDED] = "merged_ended",
	[HISTORY_MERGED_ALIVE] = "merged_alive",   [HISTORY_DROPPED_SLICES] = "dropped",
};

/* A profile in the making. */
struct making {
	const struct history *history;
	const struct history_query *query;
	struct builder *builder;
	uint32_t *symbols; /* of each of ours: the builder's, + 1; 0: not asked yet */
	uint64_t from_ns, to_ns;
	uint64_t merged_targets;
};

/* --- the window --- */

/* The time that the slices asked for truly are of, what was done to them, and what they count as malformed. */
static void take_window(struct making *m)
{
	const struct history *h = m->history;
	struct profile *p = builder_profile(m->builder);
	uint64_t first, end, merged = 0, folded = 0;

	m->from_ns = UINT64_MAX;
	for (int level = HISTORY_LEVELS; level-- > 0;) {
		level_window(&h->levels[level], m->query, &first, &end);
		for (uint64_t number = first; number < end; number++) {
			const struct slice *slice = level_slice(&h->levels[level], number);

			m->from_ns = slice->from_ns < m->from_ns ? slice->from_ns : m->from_ns;
			m->to_ns = slice->to_ns > m->to_ns ? slice->to_ns : m->to_ns;
			p->malformed_samples += slice->malformed_samples;
			p->malformed_records += slice->malformed_records;
		}
		merged += level > HISTORY_FINE ? end - first : 0;
		folded += level == HISTORY_FOLDED ? end - first : 0;
	}
	if (history_open_asked(h, m->query)) {
		m->from_ns = h->open.from_ns < m->from_ns ? h->open.from_ns : m->from_ns;
		m->to_ns = h->open.to_ns > m->to_ns ? h->open.to_ns : m->to_ns;
		p->malformed_samples += h->open.malformed_samples;
		p->malformed_records += h->open.malformed_records;
	}
	if (m->from_ns == UINT64_MAX) /* nothing is there */
		m->from_ns = m->to_ns = m->query->from_ns ? m->query->from_ns : h->open.from_ns;
	if (merged)
		builder_note(m->builder, "history_merged", "slices of a minute or more", (double)merged, false);
	if (folded)
		builder_note(m->builder, "history_folded", "slices without lines", (double)folded, false);
	if (h->steps[HISTORY_DROPPED_SLICES] && m->query->from_ns && m->query->from_ns < m->from_ns)
		builder_note(m->builder, "history_missing_s", "seconds asked for that are not kept any more",
		             (double)(m->from_ns - m->query->from_ns) / (double)NS_PER_S, true);
}

/* --- who --- */

/* What a book's part is a profile of; BUILDER_NONE: no memory. */
static uint32_t make_process(struct making *m, const struct book *book, struct sums *sums)
{
	struct process process = book->process;
	struct rec_facts *facts = &process.facts;
	uint64_t samples = sums_samples(sums) + sums->facts[FACT_OUT_OF_MEMORY] + sums->facts[FACT_MALFORMED] +
	                   sums->facts[FACT_FILTERED];
	char name[80];

	if (sums->facts[FACT_SAMPLES] < samples) { /* the slice is open: its facts come last */
		sums->facts[FACT_ATTEMPTS] += samples - sums->facts[FACT_SAMPLES];
		sums->facts[FACT_SAMPLES] = samples;
	}
	facts_to_record(sums->facts, facts);
	if (facts->t_start_ns < m->from_ns)
		facts->t_start_ns = m->from_ns;
	if (facts->t_last_ns > m->to_ns)
		facts->t_last_ns = m->to_ns;
	if (facts->t_last_ns < facts->t_start_ns)
		facts->t_last_ns = facts->t_start_ns;
	if (m->query->merge || book->targets > 1) {
		process = (struct process){
			.name = name, .version = process.version, .ended = book->alive == 0, .facts = *facts};
		if (m->query->merge)
			snprintf(name, sizeof(name), "(all processes)");
		else
			snprintf(name, sizeof(name), "(%u processes of group %u%s)", book->targets, book->group,
			         book->alive ? "" : ", ended");
	}
	if (book->targets > 1)
		m->merged_targets += book->targets;
	return builder_process(m->builder, &process);
}

static uint32_t make_thread(struct making *m, uint32_t process, const struct book_thread *thread)
{
	struct thread_tree like = {.process = process,
	                           .is_main = thread->is_main,
	                           .name = thread->name,
	                           .t_first_ns = m->from_ns,
	                           .t_last_ns = m->to_ns};

	if (!m->query->merge) {
		like.interpreter = thread->interpreter;
		like.tid = thread->tid;
	}
	return builder_thread(m->builder, &like);
}

/* --- what --- */

static uint32_t make_symbol(struct making *m, uint32_t slot)
{
	struct symbol symbol;
	uint32_t made;

	if (m->symbols[slot])
		return m->symbols[slot] - 1;
	symbol = symbols_get(&m->history->symbols, slot);
	made = builder_symbol_like(m->builder, &symbol);
	m->symbols[slot] = made + 1; /* BUILDER_NONE is asked again */
	return made;
}

/* Where a node of a book is in the profile. */
struct made_node {
	uint32_t thread, node;
	bool wanted;
};

static void make_nodes(struct making *m, const struct book *book, uint32_t process, struct made_node *made)
{
	for (uint32_t i = 1; i < book->tree.count; i++) {
		const struct call_node *node = &book->tree.nodes[i];

		if (!made[i].wanted)
			continue;
		if (node->parent == 0) {
			made[i].thread = make_thread(m, process, &book->threads[node->symbol]);
			made[i].node = made[i].thread == BUILDER_NONE ? BUILDER_NONE : 0;
			continue;
		}
		made[i].thread = made[node->parent].thread;
		made[i].node = made[node->parent].node == BUILDER_NONE
		                       ? BUILDER_NONE
		                       : builder_child(m->builder, made[i].thread, made[node->parent].node,
		                                       make_symbol(m, node->symbol), node->line);
	}
}

/* How much of a thread's CPU time goes to a node: by the time in which it ran with the GIL, or without waiting for it; where no sample of the thread says that,
 * by the time in which it was runnable; else by all of its time. */
enum { BY_RUNNING, BY_RUNNABLE, BY_TIME, BASES };

static uint64_t basis_of(const uint64_t values[HISTORY_VALUES], int basis)
{
	uint64_t states[STATE_COUNT];

	if (basis == BY_TIME)
		return values[VALUE_WALL];
	if (basis == BY_RUNNABLE)
		return values[VALUE_RUNNABLE];
	values_states(values, states);
	return states[STATE_RUNNABLE] +
	       (states[STATE_GIL] < values[VALUE_RUNNABLE] ? states[STATE_GIL] : values[VALUE_RUNNABLE]);
}

/* A thread's CPU time, on its way to its nodes: what has gone to those before, by sums of their bases. */
struct spending {
	uint64_t all[BASES], upto, given[2];
};

static int basis_for(const struct spending *spending)
{
	int basis = BY_RUNNING;

	while (basis < BY_TIME && spending->all[basis] == 0)
		basis++;
	return basis;
}

/* The part of a node, in whole nanoseconds whose sum over all of the thread's nodes is exact. */
static void spend(struct spending *spending, const uint64_t top[HISTORY_VALUES], uint64_t values[VALUE_COUNT])
{
	int basis = basis_for(spending);
	uint64_t all = spending->all[basis];

	values[VALUE_CPU] = values[VALUE_RUN_WAIT] = 0;
	if (all == 0)
		return;
	spending->upto += basis_of(values, basis);
	for (int i = 0; i < 2; i++) {
		uint64_t upto = (uint64_t)((unsigned __int128)top[VALUE_CPU + i] * spending->upto / all);

		values[VALUE_CPU + i] = upto - spending->given[i];
		spending->given[i] = upto;
	}
}

static uint32_t top_of(const struct book *book, uint32_t node)
{
	while (book->tree.nodes[node].parent)
		node = book->tree.nodes[node].parent;
	return node;
}

/* Adds the values of all nodes; the CPU time, which the sums have by thread, goes to what the thread was at. */
static int add_values(struct making *m, const struct book *book, struct sums *sums, const struct made_node *made)
{
	struct spending *spendings = calloc(book->tree.count, sizeof(*spendings));

	if (!spendings)
		return -ENOMEM;
	for (uint32_t i = 0; i < sums->count; i++)
		for (int basis = 0; basis < BASES; basis++)
			spendings[top_of(book, sums->items[i].node)].all[basis] += basis_of(sums->items[i].values, basis);
	for (uint32_t i = 0; i < sums->count; i++) {
		const struct made_node *to = &made[sums->items[i].node];
		uint32_t top = top_of(book, sums->items[i].node);
		uint64_t values[VALUE_COUNT], top_values[VALUE_COUNT] = {0};

		memcpy(values, sums->items[i].values, sizeof(values));
		if (sums->places[top])
			memcpy(top_values, sums->items[sums->places[top] - 1].values, sizeof(top_values));
		if (spendings[top].all[BY_TIME])
			spend(&spendings[top], top_values, values);
		builder_add(m->builder, to->thread, to->node, values);
	}
	free(spendings);
	return 0;
}

static int make_book(void *context, const struct book *book, struct sums *sums)
{
	struct making *m = context;
	struct made_node *made;
	uint32_t process;
	int err;

	if (sums_is_empty(sums))
		return 0;
	made = calloc(book->tree.count, sizeof(*made));
	if (!made)
		return -ENOMEM;
	process = make_process(m, book, sums);
	builder_profile(m->builder)->out_of_memory += sums->facts[FACT_OUT_OF_MEMORY];
	builder_profile(m->builder)->malformed_samples += sums->facts[FACT_MALFORMED];
	builder_profile(m->builder)->filtered += sums->facts[FACT_FILTERED];
	builder_profile(m->builder)->left_out.wall += sums->facts[FACT_LEFT_WALL];
	builder_profile(m->builder)->left_out.cpu += sums->facts[FACT_LEFT_CPU];
	builder_profile(m->builder)->left_out.run_wait += sums->facts[FACT_LEFT_RUN_WAIT];
	for (uint32_t i = 0; i < sums->count; i++)
		for (uint32_t up = sums->items[i].node; up && !made[up].wanted; up = book->tree.nodes[up].parent)
			made[up].wanted = true;
	make_nodes(m, book, process, made);
	err = add_values(m, book, sums, made);
	free(made);
	return err ? err : builder_error(m->builder);
}

static void finish_times(struct making *m)
{
	struct profile *p = builder_profile(m->builder);
	struct rec_facts facts;

	profile_facts(p, &facts);
	p->t_start_ns = m->from_ns;
	p->t_end_ns = m->to_ns;
	p->wall_start_ns = m->from_ns + clock_read_ns(CLOCK_REALTIME) - clock_now_ns();
	p->interval_ns = facts.interval_ns;
	if (m->merged_targets)
		builder_note(m->builder, "history_merged_targets", "processes that stand together",
		             (double)m->merged_targets, false);
}

int history_profile(const struct history *h, const struct history_query *query, struct profile **ret_profile)
{
	struct making m = {.history = h, .query = query};
	int err;

	err = builder_new(&m.builder, &(struct builder_options){0});
	if (err)
		return err;
	m.symbols = calloc(h->symbols.count + (size_t)1, sizeof(*m.symbols));
	if (!m.symbols)
		err = -ENOMEM;
	if (!err) {
		memcpy(builder_profile(m.builder)->values, profile_value_types,
		       (h->has_time ? VALUE_COUNT : VALUE_CPU) * sizeof(profile_value_types[0]));
		take_window(&m);
		err = history_each_book(h, query, make_book, &m);
	}
	if (!err) {
		finish_times(&m);
		err = builder_finish(m.builder, ret_profile);
	}
	free(m.symbols);
	builder_free(m.builder);
	return err;
}

/* --- figures --- */

void history_stats(const struct history *h, struct history_stats *ret_stats)
{
	struct history_stats s = {
		.used_bytes = h->budget.used_bytes,
		.max_bytes = h->budget.max_bytes,
		.slices_closed = h->slices_closed,
		.oldest_ns = h->open.from_ns,
		.trees = h->book_count,
		.compactions = h->compactions,
		.out_of_memory = h->out_of_memory,
		.dropped = h->dropped,
		.malformed_samples = h->malformed_samples,
		.malformed_records = h->malformed_records,
	};

	for (int level = 0; level < HISTORY_LEVELS; level++) {
		const struct level *from = &h->levels[level];

		s.slices[level] = from->count;
		if (from->count && level_slice(from, from->first)->from_ns < s.oldest_ns)
			s.oldest_ns = level_slice(from, from->first)->from_ns;
		for (uint32_t i = 0; i < h->book_count; i++)
			s.slice_bytes[level] += h->books[i]->queues[level].memory_bytes;
	}
	for (uint32_t i = 0; i < h->book_count; i++) {
		const struct book *book = h->books[i];

		s.nodes += book->tree.count;
		s.threads += book->thread_count;
		if (book->targets > 1)
			s.targets_merged += book->targets;
		else if (book->alive)
			s.targets_alive++;
		else
			s.targets_ended++;
	}
	for (uint32_t i = 0; i < h->symbols.count; i++)
		s.symbols += h->symbols.slots[i].text != NULL;
	memcpy(s.steps, h->steps, sizeof(s.steps));
	*ret_stats = s;
}
