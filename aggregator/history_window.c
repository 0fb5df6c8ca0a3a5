/* SPDX-License-Identifier: Apache-2.0 */
/* Which slices a query asks for, and sums of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/history_state.h"

void level_window(const struct level *level, const struct history_query *query, uint64_t *ret_first, uint64_t *ret_end)
{
	uint64_t first = level->first, end = level->first + level->count;

	/* Slices follow each other in time: halve twice. */
	for (uint64_t high = end; first < high;) {
		uint64_t middle = first + (high - first) / 2;

		if (level_slice(level, middle)->to_ns > query->from_ns)
			high = middle;
		else
			first = middle + 1;
	}
	for (uint64_t low = first; query->to_ns && low < end;) {
		uint64_t middle = low + (end - low) / 2;

		if (level_slice(level, middle)->from_ns >= query->to_ns)
			end = middle;
		else
			low = middle + 1;
	}
	*ret_first = first;
	*ret_end = end;
}

bool history_open_asked(const struct history *h, const struct history_query *query)
{
	return (query->to_ns == 0 || h->open.from_ns < query->to_ns) && h->open.to_ns >= query->from_ns;
}

static bool is_asked(const struct book *book, const struct history_query *query)
{
	if (query->by_group && book->group != query->group)
		return false;
	if (query->pid == 0)
		return true;
	return book->targets == 1 && book->process.pid == query->pid &&
	       (query->start_time == 0 || book->process.start_time == query->start_time);
}

static void add_open(const struct book *book, struct sums *sums)
{
	for (uint32_t i = 0; i < book->open.count; i++) {
		const struct node_values *item = &book->open.items[i];
		uint64_t *values = sums_at(sums, item->node);

		for (int v = 0; v < HISTORY_VALUES && values; v++)
			values[v] += item->values[v];
	}
	for (int i = 0; i < FACT_COUNT; i++)
		sums->facts[i] += book->open.facts[i];
}

/* Adds each of a book's entries that are asked for, and what is open, to sums. */
static void add_book(const struct history *h, const struct book *book, const struct history_query *query,
                     struct sums *sums)
{
	for (int level = HISTORY_LEVELS; level-- > 0;) {
		struct cursor cursor;
		uint64_t first, end;

		level_window(&h->levels[level], query, &first, &end);
		if (first == end)
			continue;
		cursor = queue_seek(&book->queues[level], first);
		while (cursor_next(&cursor) && cursor.number < end)
			if (cursor.number >= first)
				entry_add(&cursor.entry, &book->patterns, NULL, sums);
	}
	if (history_open_asked(h, query))
		add_open(book, sums);
}

/* --- sums --- */

int history_each_book(const struct history *h, const struct history_query *query,
                      int (*take)(void *context, const struct book *book, struct sums *sums), void *context)
{
	struct sums sums = {0};
	int err = 0;

	for (uint32_t i = 0; i < h->book_count && !err; i++) {
		if (!is_asked(h->books[i], query))
			continue;
		add_book(h, h->books[i], query, &sums);
		err = take(context, h->books[i], &sums);
		sums_clear(&sums);
	}
	sums_release(&sums);
	return err;
}

static int add_values(void *context, const struct book *book, struct sums *sums)
{
	uint64_t *values = context;

	(void)book;
	for (uint32_t i = 0; i < sums->count; i++)
		for (int v = 0; v < HISTORY_VALUES; v++)
			values[v] += sums->items[i].values[v];
	return 0;
}

int history_sums(const struct history *h, const struct history_query *query, uint64_t ret_values[VALUE_COUNT])
{
	uint64_t values[VALUE_COUNT] = {0};
	int err = history_each_book(h, query, add_values, values);

	if (!err)
		memcpy(ret_values, values, sizeof(values));
	return err;
}

struct share {
	const struct symbols *symbols;
	const char *name;
	uint64_t in_ns, all_ns;
};

/* Whether the function is on the path to a node. */
enum within { WITHIN_UNKNOWN, WITHIN_NOT, WITHIN };

/* The children of the root are threads, not functions. */
static enum within look_at_node(const struct share *share, const struct book *book, const uint8_t *within, uint32_t at)
{
	const struct call_node *node = &book->tree.nodes[at];
	const char *text;

	if (at == 0 || node->parent == 0)
		return WITHIN_NOT;
	if (within[at] != WITHIN_UNKNOWN)
		return within[at];
	text = share->symbols->slots[node->symbol].text;
	return text && strcmp(text, share->name) == 0 ? WITHIN : WITHIN_UNKNOWN;
}

/* Found out once for each node that lies on a path to one with values: of a parked process these are few, of whatever there is in its tree. */
static enum within look_within(const struct share *share, const struct book *book, uint8_t *within, uint32_t node)
{
	enum within found;
	uint32_t up = node;

	while ((found = look_at_node(share, book, within, up)) == WITHIN_UNKNOWN)
		up = book->tree.nodes[up].parent;
	for (; node != up; node = book->tree.nodes[node].parent)
		within[node] = (uint8_t)found;
	within[up] = (uint8_t)found;
	return found;
}

static int add_share(void *context, const struct book *book, struct sums *sums)
{
	struct share *share = context;
	uint8_t *within;

	if (sums->count == 0)
		return 0;
	within = calloc(book->tree.count, sizeof(*within));
	if (!within)
		return -ENOMEM;
	for (uint32_t i = 0; i < sums->count; i++) {
		share->all_ns += sums->items[i].values[VALUE_WALL];
		if (look_within(share, book, within, sums->items[i].node) == WITHIN)
			share->in_ns += sums->items[i].values[VALUE_WALL];
	}
	free(within);
	return 0;
}

int history_function_share(const struct history *h, const struct history_query *query, const char *name,
                           double *ret_share)
{
	struct share share = {.symbols = &h->symbols, .name = name};
	int err = history_each_book(h, query, add_share, &share);

	if (!err)
		*ret_share = share.all_ns ? (double)share.in_ns / (double)share.all_ns : 0;
	return err;
}

/* --- who there is --- */

int history_each_process(const struct history *h, int (*take)(void *context, const struct history_process *process),
                         void *context)
{
	int err = 0;

	for (uint32_t i = 0; i < h->book_count && !err; i++) {
		const struct book *book = h->books[i];
		struct history_process process = {
			.pid = book->process.pid,
			.start_time = book->process.start_time,
			.name = book->process.name ? book->process.name : "",
			.group = book->group,
			.version = book->process.version,
			.ended = book->alive == 0,
			.facts = book->process.facts,
		};

		if (book->targets == 1)
			err = take(context, &process);
	}
	return err;
}

void history_total(const struct history *h, struct rec_facts *ret_facts)
{
	*ret_facts = (struct rec_facts){0};
	facts_to_record(h->total, ret_facts);
}
