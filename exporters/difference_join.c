/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/difference.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/builder.h"

struct join {
	struct builder *to;
	const struct profile *from;
	enum side side;
	const struct ranking *ranking;
	double samples_per_ns;   /* 0: a sample is one */
	double rest;             /* of samples, that no node has yet */
	uint8_t samples, weight; /* places of this side's values */
	uint32_t process;
	const uint32_t *lines; /* of each symbol of both: the one first line it has in the result */
	uint32_t *symbols;     /* in the result, of each symbol of `from` */
};

/* Symbols that differ by their first line alone become one, so that edits above a function do not part it from itself. */
struct names {
	struct text_set texts;
	struct pair_set functions;
	struct buf lines; /* uint32_t a function */
	struct pair_set moved; /* (name, file before) of functions whose file is another one after */
	struct buf moved_to;   /* uint32_t each: that file */
};

static int name_moved(struct names *names, const struct difference *d)
{
	for (uint32_t i = 0; i < d->row_count; i++) {
		const struct difference_row *row = &d->rows[i];
		const char *texts[] = {difference_name(d, row), text_set_get(&d->texts, row->file_before, NULL),
		                       difference_file(d, row)};
		uint32_t numbers[3];

		if (!difference_is_moved(row))
			continue;
		for (int t = 0; t < 3; t++) {
			numbers[t] = text_set_add(&names->texts, texts[t], strlen(texts[t]));
			if (numbers[t] == INTERN_FAILED)
				return -ENOMEM;
		}
		if (pair_set_add(&names->moved, numbers[0], numbers[1]) == INTERN_FAILED)
			return -ENOMEM;
		buf_add(&names->moved_to, &numbers[2], sizeof(numbers[2]));
	}
	return names->moved_to.err;
}

/* The file after of a function before, or its own. */
static uint32_t file_after(const struct names *names, uint32_t name, uint32_t file)
{
	uint32_t index = pair_set_find(&names->moved, name, file);

	if (index != INTERN_FAILED)
		memcpy(&file, names->moved_to.data + index * sizeof(file), sizeof(file));
	return file;
}

/* Its file, a text, and first line in the result. */
static int name_symbol(struct names *names, const struct symbol *symbol, bool is_before, uint32_t *ret_file, uint32_t *ret_line)
{
	uint32_t name = text_set_add(&names->texts, symbol->name, strlen(symbol->name));
	uint32_t file = text_set_add(&names->texts, symbol->file, strlen(symbol->file)),
		 before = names->functions.count;
	uint32_t index = INTERN_FAILED;

	if (name != INTERN_FAILED && file != INTERN_FAILED && is_before)
		file = file_after(names, name, file);
	if (name != INTERN_FAILED && file != INTERN_FAILED)
		index = pair_set_add(&names->functions, name, file);
	if (index == INTERN_FAILED)
		return -ENOMEM;
	if (names->functions.count > before)
		buf_add(&names->lines, &symbol->first_line, sizeof(symbol->first_line));
	if (names->lines.err)
		return -ENOMEM;
	memcpy(ret_line, names->lines.data + index * sizeof(*ret_line), sizeof(*ret_line));
	*ret_file = file;
	return 0;
}

static int make_symbols(struct join *j, struct names *names, uint32_t *lines)
{
	for (uint32_t i = 0; i < j->from->symbol_count; i++) {
		struct symbol symbol = j->from->symbols[i];
		uint32_t file;
		int err = name_symbol(names, &symbol, j->side == BEFORE, &file, &lines[i]);

		if (err)
			return err;
		symbol.file = (char *)text_set_get(&names->texts, file, NULL);
		symbol.first_line = lines[i];
		j->symbols[i] = builder_symbol_like(j->to, &symbol);
	}
	return builder_error(j->to);
}

/* Threads of two runs are the same when their names are; their numbers never are. */
static uint64_t samples_of(struct join *j, const struct node *node)
{
	double samples = j->rest + (double)ranking_amount(j->ranking, node->self) * j->samples_per_ns;

	if (j->samples_per_ns <= 0)
		return node->self[VALUE_SAMPLES];
	j->rest = samples - floor(samples);
	return (uint64_t)floor(samples);
}

static int join_tree(struct join *j, const struct thread_tree *tree)
{
	struct thread_tree like = {.process = j->process, .interpreter = tree->interpreter, .name = tree->name};
	uint32_t thread = builder_thread(j->to, &like);
	uint32_t *at = calloc(tree->node_count, sizeof(*at));

	if (!at)
		return -ENOMEM;
	for (uint32_t n = 0; n < tree->node_count; n++) { /* parents come first */
		const struct node *node = &tree->nodes[n];
		uint64_t values[VALUE_COUNT] = {0};

		if (n)
			at[n] = builder_child(j->to, thread, at[node->parent], j->symbols[node->symbol],
			                      j->lines[node->symbol]);
		values[j->weight] = ranking_amount(j->ranking, node->self);
		values[j->samples] = samples_of(j, node);
		if (values[j->weight] || values[j->samples])
			builder_add(j->to, thread, at[n], values);
	}
	free(at);
	return builder_error(j->to);
}

static int join_side(struct join *j, struct names *names)
{
	size_t room = j->from->symbol_count + (size_t)1;
	uint32_t *lines = calloc(room, sizeof(*lines));
	uint64_t wall_ns = profile_sum(j->from, VALUE_WALL);
	int err;

	if (ranking_is_part(j->ranking) && wall_ns) /* as in difference.c */
		j->samples_per_ns = (double)profile_sum(j->from, VALUE_SAMPLES) / (double)wall_ns;
	j->symbols = calloc(room, sizeof(*j->symbols));
	err = lines && j->symbols ? make_symbols(j, names, lines) : -ENOMEM;
	j->lines = lines;
	for (uint32_t i = 0; i < j->from->thread_count && !err; i++)
		err = join_tree(j, &j->from->threads[i]);
	free(j->symbols);
	free(lines);
	return err;
}

/* The values of the joined profile: samples and weight after in their own places, those before in the next. */
static void name_values(struct builder *to, struct comparison *c, const struct profile *like, enum value_index by)
{
	c->samples[AFTER] = VALUE_SAMPLES;
	c->weight[AFTER] = VALUE_SAMPLES;
	if (by != VALUE_SAMPLES)
		c->weight[AFTER] = (uint8_t)builder_value(to, "after", like->values[by].unit, VALUE_WALL);
	c->weight[BEFORE] = (uint8_t)builder_value(to, "before", like->values[by].unit, VALUE_RUNNABLE);
	c->samples[BEFORE] = c->weight[BEFORE];
	if (by != VALUE_SAMPLES)
		c->samples[BEFORE] = (uint8_t)builder_value(to, "samples before", "count", VALUE_GIL);
}

int difference_join(struct profile **ret_profile, struct comparison *comparison, const struct profile *before,
                    const struct profile *after)
{
	const struct profile *sides[SIDES] = {[BEFORE] = before, [AFTER] = after};
	const struct ranking *ranking = &comparison->difference->ranking;
	struct builder *to = NULL;
	struct names names = {0};
	int err = builder_new(&to, &(struct builder_options){0});
	uint32_t process;

	if (err)
		return err;
	builder_profile(to)->imported = true;
	process = builder_process(to, &(struct process){.name = NULL});
	name_values(to, comparison, after, ranking->by);
	err = builder_error(to);
	if (!err)
		err = name_moved(&names, comparison->difference);
	for (int side = AFTER; side >= BEFORE && !err; side--) { /* the lines after stand */
		struct join j = {.to = to,
		                 .from = sides[side],
		                 .side = (enum side)side,
		                 .ranking = ranking,
		                 .samples = comparison->samples[side],
		                 .weight = comparison->weight[side],
		                 .process = process};

		err = join_side(&j, &names);
	}
	if (!err)
		err = builder_finish(to, ret_profile);
	builder_free(to);
	text_set_release(&names.texts);
	pair_set_release(&names.functions);
	buf_release(&names.lines);
	pair_set_release(&names.moved);
	buf_release(&names.moved_to);
	return err;
}
